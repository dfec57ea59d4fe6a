# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands of perf that write: each has the same output and result on the mount of a store as on perf's own cache."""
import errno
import os
import shutil
import subprocess
import threading
import time

import pytest

import daemon
import programs
import tools
from daemon import stopped
from fetching import covered, covered_many, leftovers
from perf_cache import native, perf, view  # noqa: F401  fixtures
from perf_cache import objdir_of, ROUNDS, output_of, perf_files, write_as_perf
from test_perf import of_the_cache, why_no_recording


def script(perf):
    """
    Return all commands of perf that write its cache, and those that show the result.
    """
    cache = "buildid-cache"
    return [
        (cache, "-v", "-a", perf.burn.path),
        (cache, "-v", "-a", perf.burn.path),
        (cache, "-v", "-a", f"{perf.other.path},{perf.probed.path}"),
        (cache, "-v", "-a", perf.plain),
        (cache, "-l"),
        ("list", "sdt"),
        ("probe", "-n", "%sdt_probed:done_1"),
        ("probe", "-n", "-x", perf.probed.path, "--cache", "--add", "mine=hot n"),
        ("probe", "-n", "-x", perf.probed.path, "--cache", "--add", "mine=hot n"),
        ("probe", "-n", "-x", perf.probed.path, "--cache", "--force", "--add", "mine=hot n"),
        ("probe", "-n", "-x", perf.probed.path, "--cache", "--add", "more=main argc"),
        ("probe", "--cache", "--list"),
        ("probe", "--cache", "--del", "probe_probed:more"),
        ("probe", "--cache", "--list"),
        ("list", "sdt"),
        (cache, "-v", "-u", perf.probed.path),
        ("probe", "--cache", "--list"),
        (cache, "-v", "-r", perf.other.path),
        (cache, "-v", "-r", perf.other.path),
        (cache, "-l"),
        (cache, "-v", "-a", perf.other.path),
        (cache, "-v", "-p", perf.other.path),
        (cache, "-l"),
    ]


def test_perf_add_and_remove_match_native(view, native, perf, store):
    """docs/PERF.md, 3, 4, 5 and 6: compare output and files after each step of an add and a removal."""
    for number, arguments in enumerate(script(perf)):
        wanted, got = (output_of(perf.run(cache, *arguments, status=None), cache) for cache in (native, view.path))
        assert got == wanted, f"{number}: perf {' '.join(map(str, arguments))}"
        assert perf_files(view.path, False) == perf_files(native, False), f"{number}: perf {' '.join(map(str, arguments))}"
    # the store below has perf's files and bidfs's records
    view.unmount()
    assert perf_files(store) == perf_files(native)
    assert tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=perf.env).returncode == 0
    # perf can still use the store directly
    assert output_of(perf.run(store, "buildid-cache", "-l"), store) == output_of(perf.run(native, "buildid-cache", "-l"), native)


@pytest.mark.parametrize("ident", ["112233", "112233445566", "11223344556677"])
def test_padded_short_id_is_updated(view, perf, store, workdir, ident):
    """
    perf pads an id with zeros to a multiple of four bytes. After it removed the build to add it again, the build must be gone.
    """
    path = programs.compile_c("small.c", workdir / "short", "-DSEED=1", f"-Wl,--build-id=0x{ident}")
    for step in ("-a", "-u", "-u", "-a"):
        done = perf.run(view.path, "buildid-cache", "-v", step, path)
        assert ": Ok" in done.stderr + done.stdout, step
        assert {found.read_bytes() for found in store.glob(f"{str(path)[1:]}/*/elf")} == {path.read_bytes()}, step
        assert view.artifact(ident).read_bytes() == path.read_bytes(), step
    perf.run(view.path, "buildid-cache", "-r", path)
    assert not list(store.glob(f"{str(path)[1:]}/*/elf"))


# an output base of bazel, a layer of docker, a package of conan, and a file whose name is its digest
HASHED = [f"cache/{'0123456789abcdef' * 2}/execroot/bin/prog", f"overlay2/{'0f' * 32}/debug/prog",
          f"package/{'6a' * 20}/lib/elf/prog", f"objects/ab/{'c3' * 20}"]


def test_path_with_an_id_as_component_is_added_and_found(view, native, perf, store, workdir):
    """A path component that could be an id is a directory: builds below it are added, found and removed."""
    paths = [programs.burn(perf.workdir / name, "hot", 10 + number).path for number, name in enumerate(HASHED)]
    for arguments in [("-a", path) for path in paths] + [("-l",), ("-u", paths[0]), ("-r", paths[1]), ("-p", paths[2])]:
        wanted, got = (output_of(perf.run(cache, "buildid-cache", "-v", *arguments), cache) for cache in (native, view.path))
        assert got == wanted, arguments
        assert perf_files(view.path, False) == perf_files(native, False), arguments
    # `rm -r` by listing leaves the same files as natively
    tops = [str(perf.workdir / name.split("/")[0])[1:] for name in HASHED]
    for cache in (native, view.path):
        tools.run("rm", "-rf", *(cache / top for top in tops))
    assert perf_files(view.path, False) == perf_files(native, False)
    view.unmount()
    assert [path for path in perf_files(store) if not path.startswith(".build-id/")] == []


def test_native_path_with_an_id_as_component_is_found(mount, mode, perf, store):
    for number, name in enumerate(HASHED):
        program = programs.burn(perf.workdir / name, "hot", 10 + number)
        perf.run(store, "buildid-cache", "-a", program.path)
    mnt = mount()
    assert perf_files(mnt.path, False) == perf_files(store, False)
    for name in HASHED:
        program = programs.Program(perf.workdir / name)
        assert (mnt.link(program.id) / "elf").read_bytes() == program.read(), name
        assert (mnt / "by-path" / str(program.path)[1:] / program.id).read_bytes() == program.read(), name


@pytest.mark.parametrize("name", HASHED)
def test_path_with_an_id_as_component_works_with_a_server(mount, mode, faults, native, perf, store, name):
    """The server may have any id, so an empty directory named like an id could still become a build."""
    mnt = mount(f"url={faults().url}")
    program = programs.burn(perf.workdir / name, "hot", 10)
    for step in (("-v", "-a", program.path), ("-l",), ("-v", "-r", program.path), ("-v", "-a", program.path)):
        wanted, got = (output_of(perf.run(cache, "buildid-cache", *step, status=None), cache) for cache in (native, mnt.path))
        assert got == wanted
        assert perf_files(mnt.path, False) == perf_files(native, False)
    # a build contains no directories
    with pytest.raises(PermissionError):
        (objdir_of(mnt, program) / "new").mkdir()
    mnt.unmount()
    assert perf_files(store) == perf_files(native)


def test_purge_all_empties_the_cache(view, native, perf, store):
    for cache in (native, view.path):
        for program in (perf.burn, perf.other, perf.probed):
            perf.run(cache, "buildid-cache", "-a", program.path)
    wanted, got = (output_of(perf.run(cache, "buildid-cache", "-v", "-P"), cache) for cache in (native, view.path))
    assert got == wanted and any("Purged all: Ok" in line for line in got[1] + got[2])
    assert perf_files(view.path) == perf_files(native) == {}
    view.unmount()
    assert perf_files(store) == {}
    assert not [path for path in (store / ".bidfs/record").rglob("*") if path.is_file()]


def test_kernel_removal_removes_derived_table(view, native, perf, store):
    """The derived table goes with the symbols it comes from."""
    kernel = programs.kernel(perf.workdir / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    for cache in (native, view.path):
        perf.run(cache, "buildid-cache", "-a", f"{kernel.path},{perf.burn.path}")
    table = view.artifact(kernel.id, "kallsyms")
    for arguments in (("-u", kernel.path), ("-u", kernel.path), ("-r", kernel.path), ("-a", kernel.path), ("-P",)):
        if arguments[0] != "-a":
            assert b" T foreign_0\n" in table.read_bytes()
        wanted, got = (output_of(perf.run(cache, "buildid-cache", "-v", *arguments, status=None), cache)
                       for cache in (native, view.path))
        assert got == wanted, arguments
        assert perf_files(view.path, False) == perf_files(native, False), arguments
    view.unmount()
    assert perf_files(store) == {} and not [path for path in (store / ".bidfs/record").rglob("*") if path.is_file()]


def test_rm_r_empties_a_directory(view, perf, store):
    """`rm -r` can remove every listed name."""
    kernel = programs.kernel(perf.workdir / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    tools.run("perf", "--buildid-dir", view.path, "buildid-cache", "-a", kernel.path, env=perf.env)
    directory = objdir_of(view, kernel)
    # remove a stored file before derived ones
    assert b" T foreign_0\n" in view.artifact(kernel.id, "kallsyms").read_bytes()
    assert not (view / "[kernel.kallsyms]" / kernel.id / "kallsyms").exists()
    write_as_perf(view / "[kernel.kallsyms]" / kernel.id, b"ffffffff9a000000 T _text\n", "kallsyms")
    tools.wait_until(lambda: view.artifact(kernel.id, "kallsyms").read_bytes() == b"ffffffff9a000000 T _text\n", "the table")
    for emptied in (directory, view / "[kernel.kallsyms]" / kernel.id):
        for name in sorted(os.listdir(emptied)):
            (emptied / name).unlink()
            assert name not in os.listdir(emptied)
    view.unmount()
    assert [path for path in perf_files(store) if not path.startswith(".build-id/")] == []


def lasting(path, what):
    """Return the kernel's own symbols: those of modules and tracers come and go."""
    if not path.endswith("/kallsyms"):
        return what
    return what[0], b"".join(line for line in what[1].splitlines(True) if b"\t[" not in line)


def take_over_vdso(native, view):
    """Copy the vDSO from one cache to the other, as only one recording may have samples in it."""
    for kept in view.path.glob("[[]vdso]/*"):
        link = native / ".build-id" / kept.name[:2] / kept.name[2:]
        if not link.is_symlink():
            shutil.copytree(kept, native / "[vdso]" / kept.name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../../[vdso]/{kept.name}")


def test_perf_record_fills_the_mount(view, native, perf, store):
    """Compare the files that perf record adds at its end, and the report of the recording."""
    if reason := why_no_recording():
        pytest.skip(reason)
    perf.record(native)
    perf.record(view.path)
    burnt = str(perf.burn.path)[1:]
    # without the vDSO, which only one recording may have samples in
    wanted = {path: lasting(path, what) for path, what in perf_files(native, False).items() if path.startswith((burnt, "[kernel"))}
    assert any(path.endswith("/elf") for path in wanted)
    got = {path: lasting(path, what) for path, what in perf_files(view.path, False).items()}
    assert {path: got.get(path) for path in wanted} == wanted
    ident = perf.burn.id
    assert os.readlink(view / ".build-id" / ident[:2] / ident[2:]) == f"../../{burnt}/{ident}"
    take_over_vdso(native, view)
    # the same recording with each cache (not -M: the two recordings may have samples of different libraries)
    for arguments in (["report", "--stdio"], ["script"], ["annotate", "--stdio", "hot_burn"],
                      ["inject", "-b", "-o", perf.workdir / "injected"], ["buildid-list"]):
        native_says, view_says = (perf.run(cache, *arguments, "-i", perf.data, status=None) for cache in (native, view.path))
        assert of_the_cache(view_says.stdout) == of_the_cache(native_says.stdout), arguments
        assert view_says.stderr.replace(str(view), "") == native_says.stderr.replace(str(native), ""), arguments
    assert "hot_burn" in perf.run(view.path, "report", "--stdio", "-i", perf.data).stdout


def test_perf_record_without_addresses_is_refused(needs_root, view, native, perf):
    """
    Without access to kernel addresses perf stores zeros, natively (not perf 6.12). The mount refuses the table, and perf is silent
    about it.
    """
    if reason := why_no_recording():
        pytest.skip(reason)
    hidden = perf.workdir / "kallsyms"
    hidden.write_text("0000000000000000 T _text\n0000000000000000 T _stext\n" * 1000)
    done = {}
    for cache in (native, view.path):
        done[cache] = tools.run("unshare", "-m", "sh", "-euc", 'mount --bind "$1" /proc/kallsyms; shift; exec "$@"', "sh", hidden,
                                "perf", "--buildid-dir", cache, "record", "-q", "-e", "cpu-clock", "-o", perf.workdir / "data",
                                perf.burn.path, ROUNDS, env=perf.env, cwd=perf.workdir)
    assert done[native].stderr == done[view.path].stderr and done[native].stdout == done[view.path].stdout
    if list(native.glob("[[]kernel.kallsyms]/*/kallsyms")):
        view.expect("its addresses are hidden .*: cannot publish")
    assert not list(view.path.glob("[[]kernel.kallsyms]/*/kallsyms"))
    assert (objdir_of(view, perf.burn) / "elf").exists()


def test_removed_path_keeps_the_other_path(view, perf, store):
    """Both paths name one object. perf removes the path that its link names; the other path stays, as natively."""
    for program in (perf.burn, perf.copy):
        perf.run(view.path, "buildid-cache", "-a", program.path)
    first, second = (view / str(program.path)[1:] / perf.burn.id / "elf" for program in (perf.burn, perf.copy))
    assert first.read_bytes() == second.read_bytes() == perf.burn.read()
    assert os.stat(first).st_ino == os.stat(second).st_ino
    perf.run(view.path, "buildid-cache", "-r", perf.copy.path)
    second_only = {f"{str(perf.copy.path)[1:]}/{perf.burn.id}/elf"}
    assert set(perf_files(view.path)) == second_only and second.read_bytes() == perf.burn.read()
    view.unmount()
    assert set(perf_files(store)) == second_only


def test_read_only_mount_is_erofs(mount, mode, native, perf, store):
    """With -o ro each write fails with EROFS, and perf behaves as on a read-only disk."""
    for cache in (native, store):
        perf.run(cache, "buildid-cache", "-a", perf.probed.path)
    mnt = mount("ro")
    assert mnt.status()["read_only"] is True
    before = perf_files(store)
    if tools.IS_ROOT:
        tools.run("mount", "--bind", native, native)
        tools.run("mount", "-o", "remount,bind,ro", native)
    try:
        for arguments in script(perf):
            got = output_of(perf.run(mnt.path, *arguments, status=None), mnt.path)
            if tools.IS_ROOT:
                assert got == output_of(perf.run(native, *arguments, status=None), native), arguments
    finally:
        if tools.IS_ROOT:
            tools.run("umount", native)
    assert perf_files(store) == before


def test_unwritable_store_is_read_only(needs_root, mount, perf, store):
    """No option is needed."""
    tools.run("mount", "--bind", store, store)
    tools.run("mount", "-o", "remount,bind,ro", store)
    try:
        mnt = mount()
        assert mnt.status()["read_only"] is True
        assert tools.errno_of(os.mkdir, mnt / "new") == errno.EROFS
        mnt.unmount()
    finally:
        tools.run("umount", store)


def test_bidctl_on_covered_store_reads_or_names_remedy(mount, perf, store):
    """Commands that read use the mount; commands that write name the remedy."""
    mnt = mount(at=store)
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    assert perf.burn.id in tools.run(tools.BIDCTL, "--store", store, "list", env=perf.env).stdout
    done = tools.run(tools.BIDCTL, "--store", store, "add", perf.other.path, env=perf.env, status=3)
    assert f"umount {store}" in done.stderr and len(done.stderr.splitlines()) == 1
    # verify cannot check files through a mount either
    for command in (["verify"], ["verify", perf.burn.id], ["verify", "--repair"], ["gc", "--dry-run"], ["gc"]):
        done = tools.run(tools.BIDCTL, "--store", store, *command, env=perf.env, status=3)
        assert f"umount {store}" in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout, (command, done)
    mnt.unmount()
    tools.run(tools.BIDCTL, "--store", store, "add", perf.other.path, env=perf.env)
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=perf.env).stderr


def test_show_of_covered_store_has_records_and_sections(mount, perf, store, tmp_path):
    """
    Only the mount sees the records and sections below it, so show uses the mount; paths inside the mount are not reported as
    builds.
    """
    def bidctl(*arguments, status=0):
        return tools.run(tools.BIDCTL, "--store", store, *arguments, env=perf.env, status=status)

    ident, path = perf.burn.id, perf.burn.path
    bidctl("add", path)
    shown, = tools.rows(bidctl("show", "--json", ident))
    mnt = mount(at=store)
    for arguments in (ident, path):
        covered, = tools.rows(bidctl("show", "--json", arguments))
        assert covered["artifacts"]["elf"]["how"] == "added", covered
        assert covered["paths"] == shown["paths"]
    assert ", added\n" in bidctl("show", ident).stdout
    section = bidctl("get", ident, "section", ".text").stdout
    assert section == f"{store}/buildid/{ident}/section/.text\n"
    for kind, name in (("section", ".none"), ("source", "/none.c")):
        why = bidctl("get", ident, kind, name, status=1).stderr
        assert "the mount that covers the store" in why and why.count("\n") == 1, why
    (other := tmp_path / "other").mkdir()
    elsewhere = [tools.BIDCTL, "--store", other]
    for counts in ("added 1, known 0", "added 0, known 1"):
        assert counts in tools.run(*elsewhere, "add", f"{store}/buildid/{ident}/elf", env=perf.env).stderr
        shown, = tools.rows(tools.run(*elsewhere, "show", "--json", ident, env=perf.env))
        assert shown["paths"] == ["[debuginfod]"] and shown["artifacts"]["elf"]["how"] == "added", shown
    tools.run(*elsewhere, "add", path, env=perf.env)
    assert tools.rows(tools.run(*elsewhere, "show", "--json", ident, env=perf.env))[0]["paths"] == [str(path)]
    tools.run(*elsewhere, "add", f"{store}/buildid/{ident}/elf", env=perf.env)
    assert tools.rows(tools.run(*elsewhere, "show", "--json", ident, env=perf.env))[0]["paths"] == [str(path)]
    mnt.unmount()
    assert bidctl("get", ident, "section", ".text").stdout != section


def get(store, env, ident, *arguments, status):
    """Run get for an id, and in a list; return the outputs."""
    single = covered(env, store, ident, *arguments, status=status)
    many = covered_many(env, store, ident, "-", *arguments, status=status)
    assert single.stderr.count("\n") == (status != 0), single.stderr
    return single.stdout, single.stderr, many.stdout + many.stderr


def test_get_from_covered_store_asks_the_mount(mount, perf, store, faults):
    """The mount downloads. A file that it could not request is not reported absent, though stat(2) returns ENOENT."""
    server = faults()
    server.serve(perf.burn)
    mnt = mount(f"url={server.url}", at=store)
    path, _, many = get(store, perf.env, perf.burn.id, "debuginfo", status=0)
    assert path.startswith(f"{store}/") and open(path.strip(), "rb").read(4) == b"\x7fELF" and "here 1" in many
    for _ in range(2):
        _, why, many = get(store, perf.env, "00" * 20, "debuginfo", status=1)
        assert "the mount that covers it" in why and "cannot be written" not in why + many and "absent 1" in many, (why, many)
    server.behave("error:503")
    mnt.expect("HTTP 503")
    _, why, many = get(store, perf.env, "22" * 20, "debuginfo", status=3)
    assert "the mount that covers" in why and "absent 0" in many, (why, many)
    mnt.unmount()
    # the server accepts requests and does not respond yet
    server.behave("stall-headers")
    mnt = mount(f"url={server.url},wait=1", at=store)
    mnt.permit(server.url)
    _, why, many = get(store, perf.env, "11" * 20, "debuginfo", status=3)
    assert "the mount that covers" in why and "'bidctl status'" in why and "failed 1" in many, (why, many)
    mnt.unmount()
    # a refused connection proves no absence either
    server.stop()
    mnt = mount(f"url={server.url}", at=store)
    mnt.expect("could not connect")
    for ident in ("33" * 20, "33" * 20, "44" * 20):
        _, why, many = get(store, perf.env, ident, "debuginfo", status=3)
        assert "the mount that covers" in why and "failed 1" in many, (why, many)
    assert get(store, perf.env, perf.burn.id, "debuginfo", status=0)[0] == path
    mnt.unmount()
    mnt = mount("offline", at=store)
    assert "the mount that covers it" in get(store, perf.env, "33" * 20, "debuginfo", status=1)[1]
    mnt.unmount()


def test_dead_mount_over_store_is_reported(mount, perf, store):
    """The error names the remedy, and status lists the mount."""
    mnt = mount(at=store)
    mnt.die()
    try:
        for command in ("list", "status"):
            done = tools.run(tools.BIDCTL, "--store", store, command, env=perf.env, status=3)
            assert f"umount -l {store}" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert f"{mnt} " in done.stdout and "its daemon is gone" in done.stdout, done.stdout
        done = tools.run(tools.BIDCTL, "--json", "--store", store, "status", env=perf.env, status=3)
        shown = tools.rows(done)[0]
        assert (shown["store"], shown["state"]) == (str(store), "unreadable"), shown
    finally:
        tools.run("umount", "-l", store) if tools.IS_ROOT else tools.run("fusermount3", "-uz", store)


def test_status_of_stopped_mount_does_not_wait(mount, perf, store):
    mnt = mount(at=store)
    with stopped(mnt):
        done = tools.run(tools.BIDCTL, "--store", store, "status", env=perf.env, status=3)
        assert done.stderr.count("\n") == 1 and str(store) in done.stderr and "does not answer" in done.stderr, done.stderr
        assert "unreadable" in done.stdout and "its daemon does not answer" in done.stdout, done.stdout
    tools.await_status(perf.env, store, "writable")
    mnt.unmount()


def test_perf_downloads_through_a_mount_over_home(mount, mode, perf, workdir, env, faults):
    """A mount over ~/.debug downloads missing builds for every perf, without configuration."""
    if reason := why_no_recording():
        pytest.skip(reason)
    home = workdir / "home/.debug"
    home.mkdir()
    server = faults()
    server.serve(perf.burn)
    data = workdir / "home.data"
    tools.run("perf", "record", "-q", "-N", "-e", "cpu-clock", "-o", data, perf.burn.path, ROUNDS, env=env)
    perf.burn.path.unlink()
    report = ["perf", "report", "--stdio", "-i", data]
    assert "hot_burn" not in tools.run(*report, env=env).stdout
    mnt = mount(f"url={server.url}", at=home, on=home)
    assert "hot_burn" in tools.run(*report, env=env).stdout
    assert mnt.counter("fetched") >= 1
    mnt.unmount()
    # the downloads are in perf's cache now
    assert "hot_burn" in tools.run(*report, env=env).stdout


@pytest.mark.limit(60)
def test_native_and_mounted_perf_work_at_once(mount, mode, perf, store):
    """Two perfs use the mount and one uses the store below it."""
    mnt = mount()
    builds = [programs.small(perf.workdir / f"b{seed}", seed) for seed in range(12)]
    errors = []

    def work(cache, order):
        for program in order:
            for option in ("-a", "-r", "-a"):
                done = perf.run(cache, "buildid-cache", option, program.path, status=None)
                if done.returncode:
                    errors.append(done.stderr)

    workers = [threading.Thread(target=work, args=(cache, order)) for cache, order in
               ((store, builds), (mnt.path, builds), (mnt.path, builds[::-1]))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    # all builds can be added again and have the right bytes; for a second perf may still see removed builds and add nothing
    time.sleep(1.1)

    def all_can_be_had():
        for program in builds:
            perf.run(mnt.path, "buildid-cache", "-a", program.path)
        return all(mnt.artifact(program.id).exists() for program in builds)

    tools.wait_until(all_can_be_had, "all builds")
    for program in builds:
        assert mnt.artifact(program.id).read_bytes() == program.read()
    mnt.unmount()
    assert leftovers(store) == []
    tools.run(tools.BIDCTL, "--store", store, "verify", "--repair", status=None, env=perf.env)
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=perf.env)


SLOW = {"look": "?lstat,?newfstatat,?statx", "open": "openat", "unlink": "?unlink,?unlinkat", "rmdir": "?rmdir,?unlinkat"}


@pytest.mark.parametrize("calls", SLOW.values(), ids=SLOW.keys())
def test_slow_perf_remove_empties_the_build(mount, mode, perf, store, calls):
    """The kernel's caches expire before perf opens, lists or removes the directory of the build."""
    mnt = mount()
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    link, log = mnt.link(perf.burn.id), perf.workdir / "calls"
    done = tools.run("strace", "-f", "-o", log, "-P", link, "-P", f"{link.parent}/../..{perf.burn.path}/{perf.burn.id}",
                     "-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter=1300000",
                     "perf", "--buildid-dir", mnt.path, "buildid-cache", "-v", "-r", perf.burn.path, env=perf.env, cwd=perf.workdir)
    assert "(DELAYED)" in log.read_text()
    assert f"Removing {perf.burn.id} {perf.burn.path}: Ok" in done.stderr.splitlines()
    assert not os.path.lexists(mnt / str(perf.burn.path)[1:] / perf.burn.id) and not os.path.lexists(link)
    mnt.unmount()
    assert not list(store.rglob(perf.burn.id))


def test_add_during_removal_keeps_the_directory(mount, mode, perf, store):
    """The link is created again between the steps of a removal, which must leave the directory."""
    mnt = mount()
    left = mnt / str(perf.burn.path)[1:] / perf.burn.id
    for _ in range(2):
        perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
        assert (left / "elf").read_bytes() == perf.burn.read()
        mnt.link(perf.burn.id).unlink()
        assert "elf" in os.listdir(left)
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    mnt.unmount()
    assert tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=perf.env).returncode == 0
    assert (store / ".build-id" / perf.burn.id[:2] / perf.burn.id[2:] / "elf").read_bytes() == perf.burn.read()


@pytest.mark.limit(90)
def test_kill_during_perf_add_leaves_whole_builds(mount, mode, perf, store):
    """Kill the daemon at many moments: each build is complete or absent, and no other file is left."""
    builds = [programs.small(perf.workdir / f"k{seed}", seed) for seed in range(6)]
    joined = ",".join(str(program.path) for program in builds)
    whole = 0
    for moment in range(12):
        mnt = mount()
        process = subprocess.Popen(["perf", "--buildid-dir", str(mnt.path), "buildid-cache", "-a", joined], env=perf.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tools.wait_until(lambda: len(list(store.rglob("elf"))) >= moment % 6 or process.poll() is not None, "some builds")
        mnt.kill()
        process.wait()
        tools.wait_until(lambda: not daemon.is_mounted(mnt.path), "the end of the mount")
        for path, (_, content) in perf_files(store).items():
            owner = [program for program in builds if program.id in path or program.id[2:] in path]
            assert len(owner) == 1, path
            if path.endswith("/elf"):
                whole += 1
                assert content == owner[0].read(), path
            elif path.endswith("/probes"):
                assert content == b""
        # another add repairs a build without its link, and then perf can remove it
        again = mount()
        perf.run(again.path, "buildid-cache", "-a", joined)
        assert all(again.artifact(program.id).read_bytes() == program.read() for program in builds)
        perf.run(again.path, "buildid-cache", "-P")
        again.unmount()
        assert leftovers(store) == [] and perf_files(store) == {}
    assert whole > 0


def test_moved_link_is_seen(mount, mode, perf, store):
    """The kernel caches link targets; a changed target is visible soon, whoever changed it."""
    mnt = mount()
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    link = mnt.link(perf.burn.id)
    first, second = (f"../..{program.path}/{perf.burn.id}" for program in (perf.burn, perf.copy))
    assert [os.readlink(link) for _ in range(3)] == [first] * 3
    # natively, below the mount: removed, and added from another path
    perf.run(store, "buildid-cache", "-r", perf.burn.path)
    perf.run(store, "buildid-cache", "-a", perf.copy.path)
    tools.wait_until(lambda: link.is_symlink() and os.readlink(link) == second, "the new text")
    perf.run(mnt.path, "buildid-cache", "-r", perf.copy.path)
    tools.wait_until(lambda: not link.is_symlink(), "the end of the link")
    # perf does not add a file that it sees, and may see the removed one for a second
    tools.wait_until(lambda: not os.path.lexists(link.parent / first / "elf"), "the end of the file")
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    tools.wait_until(lambda: link.is_symlink() and os.readlink(link) == first, "the old text")


def test_directory_made_again_while_old_one_is_open(mount, mode, store):
    """'perf buildid-cache -u' is fast enough to create a directory whose old namesake is still open."""
    mnt = mount()
    directory = mnt / "usr/bin/app" / ("ab" * 20)
    held = []
    directory.parent.mkdir(parents=True)
    try:
        for _ in range(3):
            directory.mkdir()
            (directory / ".elf.123456").write_bytes(b"")
            (directory / ".elf.123456").unlink()
            held.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
            directory.rmdir()
            assert tools.errno_of(os.open, ".elf.123456", os.O_CREAT | os.O_WRONLY, dir_fd=held[-1]) == errno.ENOENT
        directory.mkdir()
        assert os.listdir(directory) == []
    finally:
        for fd in held:
            os.close(fd)
