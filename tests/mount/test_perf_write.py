# SPDX-License-Identifier: LGPL-2.1-or-later
"""perf writes: whatever it does to a cache of its own, it does to the mount of a store, with the same words and the same result."""
import errno
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import threading
import time

import pytest

import daemon
import programs
import tools
from fetching import leftovers
from test_perf import why_no_recording, without_tip

ROUNDS = 300_000_000
READS_OR_WRITES = ("Writing cache: ", "Cache committed: ", "symbol:")  # perf -v, of probe definitions
OWN = {"buildid", "by-path", ".bidfs", ".debug", "debug"}  # names of the mount, which are not perf's


class Scene:
    """Programs to add, one of them the same build at two paths."""

    def __init__(self, place, env):
        self.place, self.env = place, env
        self.burn = programs.burn(place / "burn", "hot_burn", 3)
        self.other = programs.burn(place / "other", "hot_other", 4)
        self.copy = programs.Program(shutil.copy(self.burn.path, place / "copy"))
        self.probed = programs.Program(programs.compile_c("probed.c", place / "probed", "-g", "-DSEED=1"))
        self.plain = programs.compile_c("small.c", place / "plain", "-DSEED=1", "-Wl,--build-id=none")
        self.data = None

    def perf(self, cache, *arguments, status=0, **options):
        return tools.run("perf", "--buildid-dir", cache, *arguments, status=status, env=self.env, cwd=self.place, **options)

    def record(self, cache, *options):
        self.data = self.place / "perf.data"
        self.perf(cache, "record", "-q", "-e", "cpu-clock", *options, "-o", self.data, self.burn.path, ROUNDS)


@pytest.fixture
def scene(place, env):
    return Scene(place, env)


@pytest.fixture
def native():
    """A cache of perf's own, on another file system than the programs: perf copies into it, as it must into a mount."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="bm-native-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=["beside", "in place"])
def view(request, mount, mode, store):
    """A writable mount: at a place of its own, or over the store itself."""
    return mount(at=store) if request.param == "in place" else mount()


def seen(top, modes=True):
    """Path -> mode and content or text of every file and link below `top` that is perf's."""
    found = {}
    for at, dirs, files in os.walk(top):
        if at == str(top):
            dirs[:] = [name for name in dirs if name not in OWN]
            files = [name for name in files if name not in OWN]
        if at == f"{top}/usr/lib/debug":
            dirs.remove(".build-id")
        for name in (*files, *(name for name in dirs if os.path.islink(os.path.join(at, name)))):
            path = pathlib.Path(at, name)
            info = path.lstat()
            content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else path.read_bytes()
            found[str(path.relative_to(top))] = (stat.S_IMODE(info.st_mode) if modes else None, content)
    return found


def said(done, cache):
    """What perf printed, without the name of its cache; lists come in the order of a directory. That it writes probe definitions,
    or reads them, is left out: in the mount they are there before perf looks for them."""
    lines = (text.replace(str(cache), "CACHE").splitlines() for text in (done.stdout, done.stderr))
    return done.returncode, *(sorted(line for line in some if not line.startswith(READS_OR_WRITES)) for some in lines)


def script(scene):
    """Every way of perf's to write to its cache, and to look at what it wrote (contract, sections 2.1, 2.2 and 2.4)."""
    cache = "buildid-cache"
    return [
        (cache, "-v", "-a", scene.burn.path),
        (cache, "-v", "-a", scene.burn.path),
        (cache, "-v", "-a", f"{scene.other.path},{scene.probed.path}"),
        (cache, "-v", "-a", scene.plain),
        (cache, "-l"),
        ("list", "sdt"),
        ("probe", "-n", "%sdt_probed:done_1"),
        ("probe", "-n", "-x", scene.probed.path, "--cache", "--add", "mine=hot n"),
        ("probe", "-n", "-x", scene.probed.path, "--cache", "--add", "mine=hot n"),
        ("probe", "-n", "-x", scene.probed.path, "--cache", "--force", "--add", "mine=hot n"),
        ("probe", "-n", "-x", scene.probed.path, "--cache", "--add", "more=main argc"),
        ("probe", "--cache", "--list"),
        ("probe", "--cache", "--del", "probe_probed:more"),
        ("probe", "--cache", "--list"),
        ("list", "sdt"),
        (cache, "-v", "-u", scene.probed.path),
        ("probe", "--cache", "--list"),
        (cache, "-v", "-r", scene.other.path),
        (cache, "-v", "-r", scene.other.path),
        (cache, "-l"),
        (cache, "-v", "-a", scene.other.path),
        (cache, "-v", "-p", scene.other.path),
        (cache, "-l"),
    ]


def test_says_and_leaves_the_same(view, native, scene, store):
    """docs/PERF.md, 3, 4, 5 and 6: every step of an add and a removal, by what perf says and by what is there afterwards."""
    for number, arguments in enumerate(script(scene)):
        wanted, got = (said(scene.perf(cache, *arguments, status=None), cache) for cache in (native, view.path))
        assert got == wanted, f"{number}: perf {' '.join(map(str, arguments))}"
        assert seen(view.path, False) == seen(native, False), f"{number}: perf {' '.join(map(str, arguments))}"
    # what is below is what perf would have made, with what we remember of it
    view.unmount()
    assert seen(store) == seen(native)
    assert tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=scene.env).returncode == 0
    # and it is perf's, as before
    assert said(scene.perf(store, "buildid-cache", "-l"), store) == said(scene.perf(native, "buildid-cache", "-l"), native)


def test_purge_all(view, native, scene, store):
    for cache in (native, view.path):
        for program in (scene.burn, scene.other, scene.probed):
            scene.perf(cache, "buildid-cache", "-a", program.path)
    wanted, got = (said(scene.perf(cache, "buildid-cache", "-v", "-P"), cache) for cache in (native, view.path))
    assert got == wanted and any("Purged all: Ok" in line for line in got[1] + got[2])
    assert seen(view.path) == seen(native) == {}
    view.unmount()
    assert seen(store) == {}
    assert not [path for path in (store / ".bidfs/record").rglob("*") if path.is_file()]


def test_a_kernel_whose_table_was_read(view, native, scene, store):
    """What was made of its symbols goes with it."""
    kernel = programs.kernel(scene.place / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    for cache in (native, view.path):
        scene.perf(cache, "buildid-cache", "-a", f"{kernel.path},{scene.burn.path}")
    table = view.artifact(kernel.id, "kallsyms")
    for arguments in (("-u", kernel.path), ("-u", kernel.path), ("-r", kernel.path), ("-a", kernel.path), ("-P",)):
        if arguments[0] != "-a":
            assert b" T foreign_0\n" in table.read_bytes()
        wanted, got = (said(scene.perf(cache, "buildid-cache", "-v", *arguments, status=None), cache)
                       for cache in (native, view.path))
        assert got == wanted, arguments
        assert seen(view.path, False) == seen(native, False), arguments
    view.unmount()
    assert seen(store) == {} and not [path for path in (store / ".bidfs/record").rglob("*") if path.is_file()]


def test_a_directory_is_emptied_name_by_name(view, scene, store):
    """As `rm -r` does it: there is nothing in a listing that cannot be removed."""
    kernel = programs.kernel(scene.place / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    tools.run("perf", "--buildid-dir", view.path, "buildid-cache", "-a", kernel.path, env=scene.env)
    directory = place_of(view, kernel)
    # one that is filed goes before what is made, and each directory of the kernel tells of it
    assert b" T foreign_0\n" in view.artifact(kernel.id, "kallsyms").read_bytes()
    assert not (view / "[kernel.kallsyms]" / kernel.id / "kallsyms").exists()
    write_as_perf(view / "[kernel.kallsyms]" / kernel.id, b"ffffffff9a000000 T _text\n", "kallsyms")
    tools.wait_until(lambda: view.artifact(kernel.id, "kallsyms").read_bytes() == b"ffffffff9a000000 T _text\n", "the table")
    tools.wait_until(lambda: "kallsyms" in os.listdir(directory), "the table beside the kernel")
    for name in sorted(os.listdir(directory)):
        (directory / name).unlink()
        assert name not in os.listdir(directory)
    view.unmount()
    assert [path for path in seen(store) if not path.startswith(".build-id/")] == []


def lasting(path, what):
    """Of the kernel's symbols, what does not come and go with whoever traces: "ftrace_trampoline [__builtin__ftrace]"."""
    if not path.endswith("/kallsyms"):
        return what
    return what[0], b"".join(line for line in what[1].splitlines(True) if b"[__builtin__" not in line and b"[bpf]" not in line)


def test_record_fills_it(view, native, scene, store):
    """What perf record adds at its end, and what is made of the recording then."""
    if reason := why_no_recording():
        pytest.skip(reason)
    scene.record(native)
    scene.record(view.path)
    burnt = str(scene.burn.path)[1:]
    # not all that was sampled: a call of the vDSO is in one recording, perhaps, and not in the other
    wanted = {path: lasting(path, what) for path, what in seen(native, False).items() if path.startswith((burnt, "[kernel"))}
    assert any(path.endswith("/elf") for path in wanted)
    got = {path: lasting(path, what) for path, what in seen(view.path, False).items()}
    assert {path: got.get(path) for path in wanted} == wanted
    ident = scene.burn.id
    assert os.readlink(view / ".build-id" / ident[:2] / ident[2:]) == f"../../{burnt}/{ident}"
    # the same recording, from the one and from the other
    # (not -M: the two recordings have sampled other libraries, perhaps)
    for arguments in (["report", "--stdio"], ["script"], ["annotate", "--stdio", "hot_burn"],
                      ["inject", "-b", "-o", scene.place / "injected"], ["buildid-list"]):
        native_says, view_says = (scene.perf(cache, *arguments, "-i", scene.data, status=None) for cache in (native, view.path))
        assert without_tip(view_says.stdout) == without_tip(native_says.stdout), arguments
        assert view_says.stderr.replace(str(view), "") == native_says.stderr.replace(str(native), ""), arguments
    assert "hot_burn" in scene.perf(view.path, "report", "--stdio", "-i", scene.data).stdout


def test_one_build_at_two_paths(view, scene, store):
    """Contract 2.5: natively the second path is an orphan that nothing removes. Here it is a name of one object."""
    for program in (scene.burn, scene.copy):
        scene.perf(view.path, "buildid-cache", "-a", program.path)
    first, second = (view / str(program.path)[1:] / scene.burn.id / "elf" for program in (scene.burn, scene.copy))
    assert first.read_bytes() == second.read_bytes() == scene.burn.read()
    assert os.stat(first).st_ino == os.stat(second).st_ino
    scene.perf(view.path, "buildid-cache", "-r", scene.copy.path)
    assert seen(view.path) == {}
    view.unmount()
    assert seen(store) == {}


def test_read_only(mount, mode, native, scene, store):
    """With -o ro every write is EROFS, and perf takes it as from a disk that is read-only."""
    for cache in (native, store):
        scene.perf(cache, "buildid-cache", "-a", scene.probed.path)
    m = mount("ro")
    assert m.status()["read_only"] is True
    before = seen(store)
    if tools.IS_ROOT:
        tools.run("mount", "--bind", native, native)
        tools.run("mount", "-o", "remount,bind,ro", native)
    try:
        for arguments in script(scene):
            got = said(scene.perf(m.path, *arguments, status=None), m.path)
            if tools.IS_ROOT:
                assert got == said(scene.perf(native, *arguments, status=None), native), arguments
    finally:
        if tools.IS_ROOT:
            tools.run("umount", native)
    assert seen(store) == before


def test_unwritable_store_is_read_only(needs_root, mount, scene, store):
    """Nobody has to say so."""
    tools.run("mount", "--bind", store, store)
    tools.run("mount", "-o", "remount,bind,ro", store)
    try:
        m = mount()
        assert m.status()["read_only"] is True
        assert tools.errno_of(os.mkdir, m / "new") == errno.EROFS
        m.unmount()
    finally:
        tools.run("umount", store)


def test_bidctl_on_a_covered_store(mount, scene, store):
    """What reads goes through the mount; what writes says what to do."""
    m = mount(at=store)
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    assert scene.burn.id in tools.run(tools.BIDCTL, "--store", store, "list", env=scene.env).stdout
    done = tools.run(tools.BIDCTL, "--store", store, "add", scene.other.path, env=scene.env, status=3)
    assert f"umount {store}" in done.stderr and len(done.stderr.splitlines()) == 1
    m.unmount()
    tools.run(tools.BIDCTL, "--store", store, "add", scene.other.path, env=scene.env)


def test_bidctl_on_a_store_that_a_dead_mount_covers(mount, scene, store):
    """What is to be done is said, and status shows the mount all the same."""
    m = mount(at=store)
    m.die()
    try:
        for command in ("list", "status"):
            done = tools.run(tools.BIDCTL, "--store", store, command, env=scene.env, status=3)
            assert f"umount -l {store}" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert f"mount      {m}" in done.stdout and "its daemon is gone" in done.stdout, done.stdout
        done = tools.run(tools.BIDCTL, "--json", "--store", store, "status", env=scene.env, status=3)
        assert json.loads(done.stdout)["store"] == {"path": str(store), "readable": False}
    finally:
        tools.run("umount", "-l", store) if tools.IS_ROOT else tools.run("fusermount3", "-uz", store)


def place_of(m, program, ident=None):
    return m / str(program.path)[1:] / (ident or program.id)


def write_as_perf(directory, content, kind="elf"):
    """The steps of perf's copy (util/copyfile.c), of which the link is the last but one."""
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{kind}.", dir=directory)
    os.fchmod(descriptor, 0o755)
    os.pwrite(descriptor, content, 0)
    os.close(descriptor)
    try:
        os.link(temporary, directory / kind)
    finally:
        os.unlink(temporary)


BAD = {
    "another build": lambda scene: scene.other.read(),
    "a build without id": lambda scene: scene.plain.read_bytes(),
    "no ELF file": lambda scene: b"not an ELF file",
    "nothing": lambda scene: b"",
    "a part": lambda scene: scene.burn.read()[:-500],
}


@pytest.mark.parametrize("what", BAD)
def test_wrong_bytes_are_refused(view, scene, store, what):
    """docs/PERF.md, 7: under an id there is nothing that does not carry it, whoever writes."""
    content = BAD[what](scene)
    directory = place_of(view, scene.burn)
    view.expect("refused as")
    for kind in ("elf", "debug"):
        assert tools.errno_of(write_as_perf, directory, content, kind) == errno.EBADMSG, kind
        assert not (directory / kind).exists()
    assert not view.link(scene.burn.id).is_symlink()
    # the same steps with the right bytes are well
    write_as_perf(directory, scene.burn.read())
    assert (directory / "elf").read_bytes() == scene.burn.read()
    tools.wait_until(view.link(scene.burn.id).is_symlink, "perf's link")
    assert sorted(os.listdir(directory)) == ["elf"]
    view.unmount()
    assert sorted(path for path in seen(store)) == sorted([f"{str(scene.burn.path)[1:]}/{scene.burn.id}/elf",
                                                           f".build-id/{scene.burn.id[:2]}/{scene.burn.id[2:]}"])


def test_in_whatever_way_it_is_written(view, scene):
    """Not perf alone: cp, tar and rsync write under the name itself, or rename to it."""
    content, directory = scene.burn.read(), place_of(view, scene.burn)
    os.makedirs(directory)
    with open(directory / "elf", "wb") as file:
        half = len(content) // 2
        file.seek(half)
        file.write(content[half:])
        file.flush()
        file.seek(0)
        file.write(content[:half])
    assert (directory / "elf").read_bytes() == content
    assert view.artifact(scene.burn.id).read_bytes() == content
    other = place_of(view, scene.other)
    os.makedirs(other)
    (other / ".elf.AbCdEf").write_bytes(scene.other.read())
    os.rename(other / ".elf.AbCdEf", other / "elf")
    assert sorted(os.listdir(other)) == ["elf"]
    assert view.artifact(scene.other.id).read_bytes() == scene.other.read()


def test_a_symbol_table_is_published_whole(mount, mode):
    """It does not say whether it is whole, and in no_open mode nobody says when it is: a look at it in the middle is no sign."""
    m, ident, lines = mount(), "ab" * 20, b"ffffffff81000000 T _text\n" * 1000
    directory = m / "[kernel.kallsyms]" / ident
    os.makedirs(directory)
    with open(directory / "kallsyms", "wb", buffering=0) as file:
        file.write(lines[:8192])
        assert (directory / "kallsyms").stat().st_size == 8192
        assert (directory / "kallsyms").read_bytes() == lines[:8192]
        file.write(lines[8192:])
    tools.wait_until(lambda: (directory / "kallsyms").exists() and m.artifact(ident, "kallsyms").exists(), "the symbol table")
    assert m.artifact(ident, "kallsyms").read_bytes() == lines


def test_written_by_a_shell(mount, mode, scene):
    """A redirection is closed by the shell, which has it twice, before anything is written, and then by each program in turn."""
    m, ident, source = mount(), "ab" * 20, scene.place / "table"
    source.write_bytes(b"ffffffff81000000 T _text\n" * 1000)
    table, elf = m / "[kernel.kallsyms]" / ident / "kallsyms", place_of(m, scene.burn) / "elf"
    for path in (table, elf):
        os.makedirs(path.parent)
    tools.run("sh", "-euc", '(head -n 9 "$1"; sed 1,9d "$1") >"$2"', "sh", source, table)
    tools.run("sh", "-euc", 'cat "$1" >"$2"', "sh", scene.burn.path, elf)
    tools.wait_until(lambda: table.exists() and m.artifact(ident, "kallsyms").exists(), "the table")
    tools.wait_until(lambda: elf.exists() and m.artifact(scene.burn.id).exists(), "the program")
    assert m.artifact(ident, "kallsyms").read_bytes() == source.read_bytes()
    assert m.artifact(scene.burn.id).read_bytes() == elf.read_bytes() == scene.burn.read()


@pytest.mark.parametrize("content", [b"0000000000000000 T _text\n" * 1000, b"hello\n"], ids=["hidden", "no table"])
def test_a_table_of_no_use_is_refused(mount, mode, store, content):
    """And does not stand in the way of one that is."""
    m, ident, good = mount(), "ab" * 20, b"ffffffff81000000 T _text\n"
    directory = m / "[kernel.kallsyms]" / ident
    m.expect("refused as")
    assert tools.errno_of(write_as_perf, directory, content, "kallsyms") == errno.EBADMSG
    assert not (directory / "kallsyms").exists() and not m.artifact(ident, "kallsyms").exists()
    write_as_perf(directory, good, "kallsyms")
    tools.wait_until(m.artifact(ident, "kallsyms").exists, "the symbol table")
    assert m.artifact(ident, "kallsyms").read_bytes() == good
    # one that perf filed by itself, beside the mount, gives way, too
    other = programs.into_store(store, "cd" * 20, "[kernel.kallsyms]", content, "kallsyms")
    assert not m.artifact("cd" * 20, "kallsyms").exists()
    m.expect("set aside")
    write_as_perf(m / "[kernel.kallsyms]" / ("cd" * 20), good, "kallsyms")
    tools.wait_until(m.artifact("cd" * 20, "kallsyms").exists, "the symbol table")
    assert m.artifact("cd" * 20, "kallsyms").read_bytes() == other.read_bytes() == good


def test_record_without_addresses(needs_root, view, native, scene):
    """Who may not see the kernel's addresses files zeros, natively (not by perf 6.12). They are refused, and perf says nothing."""
    if reason := why_no_recording():
        pytest.skip(reason)
    hidden = scene.place / "kallsyms"
    hidden.write_text("0000000000000000 T _text\n0000000000000000 T _stext\n" * 1000)
    done = {}
    for cache in (native, view.path):
        done[cache] = tools.run("unshare", "-m", "sh", "-euc", 'mount --bind "$1" /proc/kallsyms; shift; exec "$@"', "sh", hidden,
                                "perf", "--buildid-dir", cache, "record", "-q", "-e", "cpu-clock", "-o", scene.place / "data",
                                scene.burn.path, ROUNDS, env=scene.env, cwd=scene.place)
    assert done[native].stderr == done[view.path].stderr and done[native].stdout == done[view.path].stdout
    if list(native.glob("[[]kernel.kallsyms]/*/kallsyms")):
        view.expect("its addresses are hidden .*: refused as")
    assert not list(view.path.glob("[[]kernel.kallsyms]/*/kallsyms"))
    assert (place_of(view, scene.burn) / "elf").exists()


def test_written_and_unmounted(mount, mode, scene, store):
    """Nobody looks at it before the end, which is the only sign there is in no_open mode that it was closed."""
    m, lines = mount(), b"ffffffff81000000 T _text\n"
    for directory, name, content in ((place_of(m, scene.burn), "elf", scene.burn.read()),
                                     (m / "[kernel.kallsyms]" / ("ab" * 20), "kallsyms", lines)):
        os.makedirs(directory)
        (directory / name).write_bytes(content)
    m.unmount()
    assert (store / str(scene.burn.path)[1:] / scene.burn.id / "elf").read_bytes() == scene.burn.read()
    assert (store / "[kernel.kallsyms]" / ("ab" * 20) / "kallsyms").read_bytes() == lines


def overwrite(path):
    with open(path, "r+b", buffering=0) as file:
        file.write(b"x")


def test_what_carries_an_id_does_not_change(view, scene):
    scene.perf(view.path, "buildid-cache", "-a", scene.burn.path)
    elf = place_of(view, scene.burn) / "elf"
    for call in (lambda: os.truncate(elf, 1), lambda: os.chmod(elf, 0o777), lambda: overwrite(elf),
                 lambda: open(elf, "wb")):
        assert tools.errno_of(call) == errno.EPERM
    assert elf.read_bytes() == scene.burn.read()
    for path in (view / "buildid/new", view / "by-path/new", view / ".bidfs/new", view / "usr/lib/debug/.build-id/ab/new"):
        assert tools.errno_of(os.mkdir, path) in (errno.EPERM, errno.ENOENT), path
    for path in (view / "file", view / ".build-id/ab/cdef", view / "usr/file"):
        assert tools.errno_of(open, path, "w") == errno.EPERM, path
    assert tools.errno_of(os.symlink, "/etc/passwd", view / ".build-id/ab/cdef") == errno.EINVAL
    assert tools.errno_of(os.symlink, "../../../../etc/abcdef", view / ".build-id/ab/cdef") == errno.EINVAL


def test_perf_at_home(mount, mode, scene, place, env, faults):
    """In place of ~/.debug every perf fetches what it misses, and nobody has to configure anything."""
    if reason := why_no_recording():
        pytest.skip(reason)
    home = place / "home/.debug"
    home.mkdir()
    server = faults()
    server.serve(scene.burn)
    data = place / "home.data"
    tools.run("perf", "record", "-q", "-N", "-e", "cpu-clock", "-o", data, scene.burn.path, ROUNDS, env=env)
    scene.burn.path.unlink()
    report = ["perf", "report", "--stdio", "-i", data]
    assert "hot_burn" not in tools.run(*report, env=env).stdout
    m = mount(f"url={server.url}", at=home, on=home)
    assert "hot_burn" in tools.run(*report, env=env).stdout
    assert m.counter("fetched") >= 1
    m.unmount()
    # what was fetched is in perf's cache now
    assert "hot_burn" in tools.run(*report, env=env).stdout


@pytest.mark.limit(60)
def test_natively_and_through_the_mount_at_once(mount, mode, scene, store):
    """Two perfs, one of which knows nothing of the mount."""
    m = mount()
    builds = [programs.small(scene.place / f"b{seed}", seed) for seed in range(12)]
    troubles = []

    def work(cache, order):
        for program in order:
            for option in ("-a", "-r", "-a"):
                done = scene.perf(cache, "buildid-cache", option, program.path, status=None)
                if done.returncode:
                    troubles.append(done.stderr)

    workers = [threading.Thread(target=work, args=(cache, order)) for cache, order in
               ((store, builds), (m.path, builds), (m.path, builds[::-1]))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not troubles
    # whoever came last, every build can be had again, and what is there is right; for a second perf may see what is gone, and
    # add nothing
    time.sleep(1.1)
    for program in builds:
        scene.perf(m.path, "buildid-cache", "-a", program.path)
    tools.wait_until(lambda: all(m.artifact(program.id).exists() for program in builds), "all builds")
    for program in builds:
        assert m.artifact(program.id).read_bytes() == program.read()
    m.unmount()
    assert leftovers(store) == []
    tools.run(tools.BIDCTL, "--store", store, "verify", "--repair", status=None, env=scene.env)
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=scene.env)


SLOW = {"look": "?lstat,?newfstatat,?statx", "open": "openat", "unlink": "?unlink,?unlinkat", "rmdir": "?rmdir,?unlinkat"}


@pytest.mark.parametrize("calls", SLOW.values(), ids=SLOW.keys())
def test_perf_that_is_slow_to_remove(mount, mode, scene, store, calls):
    """Before it looks at the directory of the build, opens it or removes it, all that the kernel believed is forgotten."""
    m = mount()
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    link, log = m.link(scene.burn.id), scene.place / "calls"
    done = tools.run("strace", "-f", "-o", log, "-P", link, "-P", f"{link.parent}/../..{scene.burn.path}/{scene.burn.id}",
                     "-e", f"trace={calls}", "-e", f"inject={calls}:delay_enter=1300000",
                     "perf", "--buildid-dir", m.path, "buildid-cache", "-v", "-r", scene.burn.path, env=scene.env, cwd=scene.place)
    assert "(DELAYED)" in log.read_text()
    assert f"Removing {scene.burn.id} {scene.burn.path}: Ok" in done.stderr.splitlines()
    assert not os.path.lexists(m / str(scene.burn.path)[1:] / scene.burn.id) and not os.path.lexists(link)
    m.unmount()
    assert not list(store.rglob(scene.burn.id))


def test_added_again_before_it_is_gone(mount, mode, scene, store):
    """Whoever removed the link wants it back, and leaves the directory where it is."""
    m = mount()
    left = m / str(scene.burn.path)[1:] / scene.burn.id
    for _ in range(2):
        scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
        assert (left / "elf").read_bytes() == scene.burn.read()
        m.link(scene.burn.id).unlink()
        assert os.listdir(left) == []
        # perf adds no file that it sees
        tools.wait_until(lambda: not os.path.lexists(left / "elf"), "the end of the file")
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    m.unmount()
    assert tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=scene.env).returncode == 0
    assert (store / ".build-id" / scene.burn.id[:2] / scene.burn.id[2:] / "elf").read_bytes() == scene.burn.read()


@pytest.mark.limit(90)
def test_killed_while_perf_adds(mount, mode, scene, store):
    """kill -9 of the daemon at many moments: each build is there as a whole or not at all, and nothing else is."""
    builds = [programs.small(scene.place / f"k{seed}", seed) for seed in range(6)]
    joined = ",".join(str(program.path) for program in builds)
    whole = 0
    for moment in range(12):
        m = mount()
        perf = subprocess.Popen(["perf", "--buildid-dir", str(m.path), "buildid-cache", "-a", joined], env=scene.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tools.wait_until(lambda: len(list(store.rglob("elf"))) >= moment % 6 or perf.poll() is not None, "some builds")
        m.kill()
        perf.wait(20)
        tools.wait_until(lambda: not daemon.is_mounted(m.path), "the end of the mount")
        for path, (_, content) in seen(store).items():
            owner = [program for program in builds if program.id in path or program.id[2:] in path]
            assert len(owner) == 1, path
            if path.endswith("/elf"):
                whole += 1
                assert content == owner[0].read(), path
            elif path.endswith("/probes"):
                assert content == b""
        # whoever adds again makes whole what may lack its link, and then it can be removed
        again = mount()
        scene.perf(again.path, "buildid-cache", "-a", joined)
        assert all(again.artifact(program.id).read_bytes() == program.read() for program in builds)
        scene.perf(again.path, "buildid-cache", "-P")
        again.unmount()
        assert leftovers(store) == [] and seen(store) == {}
    assert whole > 0


def test_a_link_that_perf_moves(mount, mode, scene, store):
    """The kernel keeps the texts of links; one that is another now is seen soon, whoever changed it."""
    m = mount()
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    link = m.link(scene.burn.id)
    first, second = (f"../..{program.path}/{scene.burn.id}" for program in (scene.burn, scene.copy))
    assert [os.readlink(link) for _ in range(3)] == [first] * 3
    # natively, beside the mount: removed, and added from another path
    scene.perf(store, "buildid-cache", "-r", scene.burn.path)
    scene.perf(store, "buildid-cache", "-a", scene.copy.path)
    tools.wait_until(lambda: link.is_symlink() and os.readlink(link) == second, "the new text")
    scene.perf(m.path, "buildid-cache", "-r", scene.copy.path)
    tools.wait_until(lambda: not link.is_symlink(), "the end of the link")
    # perf adds no file that it sees, and for a second it may see what was removed beside the mount
    tools.wait_until(lambda: not os.path.lexists(link.parent / first / "elf"), "the end of the file")
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    tools.wait_until(lambda: link.is_symlink() and os.readlink(link) == first, "the old text")


def test_a_directory_that_is_made_again_while_the_old_one_is_held(mount, mode, store):
    """By whoever has it open, or is about to let go of it: 'perf buildid-cache -u' is fast enough to meet that."""
    m = mount()
    directory = m / "usr/bin/app" / ("ab" * 20)
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
