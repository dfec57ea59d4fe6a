# SPDX-License-Identifier: LGPL-2.1-or-later
"""Static probes of programs that bidctl added: perf finds them in the mount as if it had cached them itself."""
import fcntl
import os
import pathlib
import shutil
import uuid

import pytest

import programs
import tools


@pytest.fixture
def probed(workdir, store, env):
    """Store a program that perf has not read."""
    program = programs.Program(programs.compile_c("probed.c", workdir / "probed", "-g", "-DSEED=1"))
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, env=env)
    return program


def views(mnt, program):
    return [mnt / "buildid" / program.id / "probes", mnt.link(program.id) / "probes",
            mnt / str(program.path)[1:] / program.id / "probes"]


def wanted(program, workdir, env):
    """Return the definitions that perf caches of it."""
    cache = workdir / "cache"
    tools.run("perf", "--buildid-dir", cache, "buildid-cache", "-a", program.path, env=env)
    return next(cache.rglob("probes")).read_text()


@pytest.mark.parametrize("options", ["", "ro"])
def test_derived_probes_equal_perfs(mount, mode, probed, workdir, store, env, options):
    mnt = mount(options) if options else mount()
    text = wanted(probed, workdir, env)
    assert text.startswith("%sdt_probed:done_1=done_1\n")
    assert [path.read_text() for path in views(mnt, probed)] == [text] * 3
    stored = store / str(probed.path)[1:] / probed.id / "probes"
    assert stored.read_text() == text


def test_perf_reads_and_extends_probes(mount, mode, probed, env):
    """perf opens the definitions for writing and appends to them."""
    mnt = mount()
    perf = ["perf", "--buildid-dir", mnt.path]
    assert "sdt_probed:done_1" in tools.run(*perf, "list", "sdt", env=env).stdout
    tools.run(*perf, "probe", "-n", "-x", probed.path, "--cache", "--add", "mine=hot n", env=env)
    listed = tools.run(*perf, "probe", "--cache", "--list", env=env).stdout
    assert "sdt_probed:done_1=done_1" in listed and "probe_probed:mine=hot n" in listed, listed
    lines = views(mnt, probed)[0].read_text().splitlines()
    assert lines[0] == "%sdt_probed:done_1=done_1" and lines[2] == "#probe_probed:mine=hot n", lines


REPLACE = {
    "tar": 'tar -cf - -C "$1" . | timeout 50 tar -xf - -C "$2"',
    "cp": 'cp --remove-destination "$1/$3" "$2/$3"',
    "by hand": 'rm "$2/$3"; cat "$2/$4" >&2; cp "$1/$3" "$2/$3"',
}


@pytest.mark.parametrize("how", REPLACE)
def test_written_probes_replace_derived_ones(mount, mode, probed, workdir, env, how):
    """Derived definitions reappear at once after a removal, so writers that remove the file first must succeed as well."""
    perf = ["perf", "--buildid-dir", workdir / "cache"]
    tools.run(*perf, "buildid-cache", "-a", probed.path, env=env)
    probes = next((workdir / "cache").rglob("probes"))
    probes.write_text("%sdt_probed:done_1=done_1\n")
    mnt = mount()
    made = [path.read_text() for path in views(mnt, probed)]
    tools.run("sh", "-euc", REPLACE[how], "sh", workdir / "cache", mnt, probes.relative_to(workdir / "cache"),
              f"buildid/{probed.id}/probes", env=env)
    assert made[0].startswith("%sdt_probed:done_1=done_1\np:"), made
    assert [path.read_text() for path in views(mnt, probed)] == [probes.read_text()] * 3


def test_changed_probes_of_same_size_are_read(mount, mode, workdir, store):
    """Definitions derived in memory, from a private file, must not have the pages of their predecessor."""
    program = programs.Program(programs.compile_c("probed.c", workdir / "probed", "-g", "-DSEED=1"))
    programs.into_store(store, program.id, "/usr/bin/one", program.path).chmod(0o600)
    mnt = mount()
    path = mnt / "buildid" / program.id / "probes"
    with open(path, "rb", buffering=0) as file:
        old = file.read()
        assert b" /usr/bin/one:" in old
        (store / "usr/bin/one").rename(store / "usr/bin/two")
        link = store / ".build-id" / program.id[:2] / program.id[2:]
        link.unlink()
        link.symlink_to(f"../../usr/bin/two/{program.id}")
        if mode == "no_open":
            tools.wait_until(lambda: path.read_bytes() == old.replace(b"/usr/bin/one", b"/usr/bin/two"), "the new definitions")
    # with passthrough all readers share the pages of one file
    tools.wait_until(lambda: path.read_bytes() == old.replace(b"/usr/bin/one", b"/usr/bin/two"), "the new definitions")


def can_be_leased(path):
    with open(path, "r+", encoding="ascii") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return False
    return True


def test_open_probes_allow_a_write_lease(mount, mode, probed, store, env):
    """
    A mount that has read the definitions blocks no lease; a writer through the mount does, in modes in which the daemon sees opens.
    """
    mnt = mount()
    stored = store / str(probed.path)[1:] / probed.id / "probes"
    add = [tools.BIDCTL, "--store", store, "probe", "add", probed.id]
    for path in views(mnt, probed):
        text = path.read_text()
        assert path.stat().st_size == len(text)
        tools.wait_until(lambda: can_be_leased(stored), "a lease")
    if mode != "no_open":
        with open(views(mnt, probed)[0], "r+", encoding="ascii") as file:
            assert file.read() == text and not can_be_leased(stored)
            assert "open" in tools.run(*add, "p:some/other 0x1129", env=env, status=3).stderr
            assert stored.read_text() == text
            file.write("#some:one=x\np:some/one /x:0x1\n")
        tools.wait_until(lambda: can_be_leased(stored), "a lease")
    tools.run(*add, "p:some/other 0x1129", env=env)
    text = stored.read_text()
    assert "p:some/other" in text and ("p:some/one" in text) == (mode != "no_open")

    def are_seen():
        return [path.read_text() for path in views(mnt, probed)] == [text] * 3

    # without requests for opens, the mount must invalidate the kernel's cache
    if mode == "no_open":
        tools.wait_until(are_seen, "the other definitions")
    assert are_seen()


UPROBES = pathlib.Path("/sys/kernel/tracing/uprobe_events")


@pytest.fixture
def group():
    """Return an unused group for kernel events, and remove its events at the end."""
    if not os.access(UPROBES, os.W_OK):
        pytest.skip("only root may set uprobes, in a kernel that has them, with tracefs mounted")
    name = f"bid{uuid.uuid4().hex[:12]}"
    yield name
    left = {line.split(":", 1)[1].split()[0] for line in UPROBES.read_text().splitlines() if name in line}
    for event in left:
        tools.run("sh", "-c", f"echo -:{event} >>{UPROBES}")
    assert not left, left


def set_and_count(directory, program, group, static, env):
    """Set a probe of each kind, count both in a run of the program, and remove them; return perf's output with the counts."""
    perf, outputs = ["perf", "--buildid-dir", directory], []

    def say(*arguments):
        done = tools.run(*perf, *arguments, env=env)
        outputs.append((arguments, done.stdout, done.stderr))
        return done

    # perf renames an event that the kernel has in another group, so each test uses its own name
    mine = f"{group}:counted"
    say("probe", "-x", program.path, "--cache", "--add", f"{mine}=hot n")
    say("probe", "-x", program.path, "--add", f"%{static}")
    count = tools.run("perf", "stat", "-x,", "-e", f"{mine},{static}", program.path, "a", env=env)
    counts = {line.split(",")[2]: line.split(",")[0] for line in count.stderr.splitlines() if line.count(",") > 3}
    say("probe", "--cache", "--list")
    # without --cache the probe is in the kernel, with it in the cache
    say("probe", "--del", mine, "--del", static)
    assert program.path.name not in UPROBES.read_text()
    say("probe", "--cache", "--list")
    say("probe", "--cache", "--del", mine)
    say("probe", "--cache", "--list")
    return outputs, counts


def test_perf_sets_and_counts_probes(mount, mode, workdir, store, env, group):
    """Set in the kernel, counted, and removed, as with a native cache."""
    path = programs.compile_c("probed.c", workdir / group, "-g", f"-DSEED={os.getpid()}", f"-DPROVIDER={group}")
    program, static = programs.Program(path), f"sdt_{group}:done_{os.getpid()}"
    native = workdir / "native"
    tools.run("perf", "--buildid-dir", native, "buildid-cache", "-a", path, env=env)
    tools.run(tools.BIDCTL, "--store", store, "add", path, env=env)
    mnt = mount()
    wanted = set_and_count(native, program, group, static, env)
    assert wanted[1] == {f"{group}:counted": "1", static: "1"}, wanted
    assert set_and_count(mnt.path, program, group, static, env) == wanted
    # and by bidctl, from the definitions of the mount
    tools.run("perf", "--buildid-dir", mnt.path, "probe", "-n", "-x", path, "--cache", "--add", f"{group}:counted=hot n", env=env)
    assert tools.run(tools.BIDCTL, "--store", store, "probe", "apply", path, "counted", env=env).stdout == f"{group}/counted\n"
    counted = tools.run("perf", "stat", "-x,", "-e", f"{group}:counted", path, env=env).stderr
    assert counted.startswith("1,"), counted
    tools.run("perf", "probe", "--del", f"{group}:counted", env=env)


def test_program_without_probes_has_none(mount, mode, workdir, store, env):
    program = programs.Program(shutil.copy(programs.burn(workdir / "built", "hot_burn", 3).path, workdir / "burn"))
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, env=env)
    mnt = mount()
    assert not any(path.exists() for path in views(mnt, program))


def test_probes_of_unnamed_build_name_the_stored_file(mount, mode, probed, workdir, store, env):
    """A downloaded build has no path yet: its definitions name the file in the store, and are not kept."""
    directory = store / "[debuginfod]" / probed.id
    text = wanted(probed, workdir, env).replace(f" {probed.path}:", f" {directory}/elf:")
    directory.mkdir(parents=True)
    (store / str(probed.path)[1:] / probed.id / "elf").rename(directory / "elf")
    link = store / ".build-id" / probed.id[:2] / probed.id[2:]
    link.unlink()
    link.symlink_to(f"../../[debuginfod]/{probed.id}")
    mnt = mount()
    for path in (mnt / "buildid" / probed.id / "probes", mnt.link(probed.id) / "probes"):
        assert path.read_text() == text
        assert path.stat().st_size == len(text)
    assert not (directory / "probes").exists()
    # perf replaces them with its own
    with open(mnt.link(probed.id) / "probes", "r+", encoding="ascii") as file:
        file.truncate(0)
        file.write("#mine:one=main\n")
    assert (directory / "probes").read_text() == "#mine:one=main\n"


def test_kernel_probes_in_two_directories_are_read(mount, mode, store):
    """
    docs/FORMAT.md: perf appends natively to the definitions under the kernel's name, and reads the empty file behind its link.
    """
    ident, perfs = "ab" * 20, "#probe:open=do_sys_open\np:probe/open _text+4096\n"
    workdir = programs.into_store(store, ident, "/boot/vmlinux", b"", "probes").parent
    stored = programs.into_store(store, ident, "[kernel.kallsyms]", perfs.encode(), "probes")
    link = store / ".build-id" / ident[:2] / ident[2:]
    assert os.readlink(link) == f"../../boot/vmlinux/{ident}"
    mnt = mount()
    paths = [mnt.artifact(ident, "probes"), mnt.link(ident) / "probes", mnt / "[kernel.kallsyms]" / ident / "probes"]
    assert [path.read_text() for path in paths] == [perfs] * 3
    # as perf does: it writes the whole file again
    with open(paths[0], "r+", encoding="ascii") as file:
        file.truncate()
        file.write("#mine:one=main\n" + perfs)
        file.flush()
    assert [path.read_text() for path in paths] == ["#mine:one=main\n" + perfs] * 3
    assert sorted(path.stat().st_size for path in (stored, workdir / "probes")) == [0, len("#mine:one=main\n" + perfs)]
