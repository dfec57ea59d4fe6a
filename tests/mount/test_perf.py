# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unmodified perf prints the same with the mount as its build-id directory as with its own directory."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile

import pytest

import programs
import tools

ROUNDS = 300_000_000
BUILDS = ("alpha", "beta", "gamma")  # three builds of one program at one path; the hot function is hot_NAME


class Profile:
    """Recordings of three builds, of which only the last one is still at its path, and the store that perf filled."""

    def __init__(self, workdir):
        self.workdir = workdir
        self.store = workdir / "store"
        (workdir / "home").mkdir()
        self.env = tools.environment(workdir / "home")
        self.builds = {}
        for seed, name in enumerate(BUILDS):
            program = programs.burn(workdir / "prog", f"hot_{name}", seed)
            if name != BUILDS[-1]:
                self.record(name)
            else:
                self.record(name, "-N")
                self.perf(self.store, "buildid-cache", "-a", program.path)
            self.builds[name] = program

    def data(self, name):
        return self.workdir / f"{name}.data"

    def record(self, name, *options):
        self.perf(self.store, "record", "-q", "-e", "cpu-clock", *options, "-o", self.data(name), self.workdir / "prog", ROUNDS)

    def perf(self, cache, *arguments, status=0):
        return tools.run("perf", "--buildid-dir", cache, *arguments, status=status, env=self.env, cwd=self.workdir)


def why_no_recording():
    done = tools.run("perf", "record", "-q", "-N", "-e", "cpu-clock", "-o", "/dev/null", "true", status=None,
                     env=tools.environment("/nowhere"))
    return None if done.returncode == 0 else f"perf cannot record here: {(done.stderr or done.stdout).strip()[:200]}"


@pytest.fixture(scope="module")
def profile():
    if reason := why_no_recording():
        pytest.skip(reason)
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="bm-perf-", dir="/tmp"))
    yield Profile(workdir)
    shutil.rmtree(workdir)


@pytest.fixture
def own_store(profile, store):
    """Copy the store, for changes."""
    store.rmdir()
    shutil.copytree(profile.store, store, symlinks=True)
    return store


COMMANDS = {
    "report": ["report", "--stdio"],
    "report --sort": ["report", "--stdio", "--sort", "dso,sym", "--no-children"],
    "script": ["script"],
    # without a function name perf 6.12 crashes at those of the kernel, with or without a mount
    "annotate": ["annotate", "--stdio", "hot_{name}"],
}


def of_the_cache(text):
    """Remove the random tip of perf report, and from perf list the probes that the kernel has at the moment."""
    return [line for line in text.splitlines() if not line.startswith("# (Tip: ") and "[Tracepoint event]" not in line]


@pytest.mark.parametrize("command", COMMANDS)
def test_perf_prints_the_same_as_natively(mount, mode, profile, command):
    mnt = mount(on=profile.store)
    for name in BUILDS:
        arguments = [*(word.format(name=name) for word in COMMANDS[command]), "-i", profile.data(name)]
        native, mounted = profile.perf(profile.store, *arguments), profile.perf(mnt, *arguments)
        assert f"hot_{name}" in native.stdout
        assert of_the_cache(mounted.stdout) == of_the_cache(native.stdout)
        assert mounted.stderr == native.stderr
        assert not [other for other in BUILDS if other != name and f"hot_{other}" in mounted.stdout]
    assert mnt.counter("hits") > 0


def test_empty_store_gives_no_symbols(profile, store):
    """The symbols above come from the store: two of the builds exist nowhere else."""
    for name in BUILDS[:-1]:
        assert f"hot_{name}" not in profile.perf(store, "report", "--stdio", "-i", profile.data(name)).stdout


def test_symfs_finds_symbols(mount, profile, store):
    mnt = mount(on=profile.store)
    for name in BUILDS:
        arguments = ["report", "--stdio", "-i", profile.data(name)]
        assert f"hot_{name}" in profile.perf(store, *arguments, f"--symfs={mnt}").stdout
    # a directory without a mount gives no symbols
    (profile.workdir / "empty").mkdir(exist_ok=True)
    arguments = ["report", "--stdio", "-i", profile.data("alpha"), f"--symfs={profile.workdir}/empty"]
    assert "hot_alpha" not in profile.perf(store, *arguments).stdout


def cached(profile, cache):
    return sorted(profile.perf(cache, "buildid-cache", "-l").stdout.splitlines())


def test_perf_lists_the_same_as_natively(mount, mode, profile):
    mnt = mount(on=profile.store)
    native = cached(profile, profile.store)
    assert any(profile.builds["gamma"].id in line for line in native)
    assert cached(profile, mnt) == native
    assert set(os.listdir(mnt / "buildid")) >= {program.id for program in profile.builds.values()}
    listed = os.listdir(mnt / "by-path" / str(profile.workdir)[1:] / "prog")
    assert set(listed) == {program.id for program in profile.builds.values()}


def archive(profile, cache, name):
    """Return {name: content or link} of the files that `perf archive` packs."""
    data = profile.data(name)
    tools.run("perf", "--buildid-dir", cache, "archive", data, env=profile.env, cwd=profile.workdir)
    packed = pathlib.Path(f"{data}.tar.bz2")
    with tarfile.open(packed) as tar:
        members = {entry.name: entry.linkname if entry.issym() else tar.extractfile(entry).read()
                   for entry in tar if not entry.isdir()}
    packed.unlink()
    return members


def script(profile):
    """Return {name: command} of perf's commands that read the cache; test_perf_cache_commands.py has those that write."""
    alpha, beta, injected = profile.data("alpha"), profile.data("beta"), profile.workdir / "injected"
    kernel = programs.kernel(profile.workdir / "vmlinux", "part", 0xffffffff81000000, 1 << 20)
    return [
        ["report", "--stdio", "-i", alpha],
        ["report", "--stdio", "-k", kernel.path, "-i", alpha],
        ["diff", alpha, beta],
        ["script", "-i", beta],
        ["annotate", "--stdio", "-i", beta, "hot_beta"],
        ["inject", "-b", "-i", alpha, "-o", injected],
        ["buildid-list", "-i", injected],
        ["buildid-cache", "-l"],
        ["buildid-cache", "-M", alpha],
        ["list", "sdt"],
        ["probe", "--cache", "--list"],
        ["probe", "-n", "-x", profile.builds["gamma"].path, "--add", "hot_gamma"],
    ]


def says(profile, cache, arguments):
    done = profile.perf(cache, *arguments, status=None)
    made = arguments[-1].read_bytes() if arguments[0] == "inject" else None
    return done.returncode, made, *(of_the_cache(text.replace(str(cache), "CACHE")) for text in (done.stdout, done.stderr))


@pytest.fixture(scope="module")
def archived(profile):
    """Return the files that perf packs from its own cache."""
    members = archive(profile, profile.store, "alpha")
    assert any(name.endswith(f"{profile.builds['alpha'].id}/elf") for name in members)
    return members


@contextlib.contextmanager
def read_only(path):
    tools.run("mount", "--bind", path, path)
    tools.run("mount", "-o", "remount,bind,ro", path)
    try:
        yield
    finally:
        tools.run("umount", path)


@pytest.mark.parametrize("where", ["ro", "rw", "in place"])
def test_every_perf_command_prints_the_same(needs_root, mount, profile, own_store, archived, where):
    """Compare each command that reads the cache between a native cache and each kind of mount, byte for byte."""
    native = profile.workdir / f"native-{where.split()[0]}"
    shutil.copytree(profile.store, native, symlinks=True)
    mnt = mount("ro") if where == "ro" else mount(at=own_store if where == "in place" else None)
    # before the script, whose `list` writes probe caches
    assert archive(profile, mnt.path, "alpha") == archived
    with read_only(native) if where == "ro" else contextlib.nullcontext():
        for arguments in script(profile):
            wanted = says(profile, native, arguments)
            assert says(profile, mnt.path, arguments) == wanted, arguments


def test_perf_top_works_with_the_mount(mount, profile, own_store, workdir):
    """perf top shows running programs and reads symbols from the program itself; the cache must not disturb it."""
    mnt = mount()
    shown = workdir / "shown"
    with open(shown, "wb") as output, contextlib.ExitStack() as stack:
        running = stack.enter_context(subprocess.Popen([profile.builds["gamma"].path, str(1 << 40)], stdin=subprocess.DEVNULL))
        stack.callback(running.kill)
        argv = ["perf", "--buildid-dir", mnt.path, "top", "--stdio", "-e", "cpu-clock", "-d", "1", "-p", str(running.pid)]
        top = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=profile.env,
                                                   cwd=workdir))
        stack.callback(top.send_signal, signal.SIGINT)
        tools.wait_until(lambda: top.poll() is not None or b"hot_gamma" in shown.read_bytes(), "its function")
    assert b"hot_gamma" in shown.read_bytes(), shown.read_text()


def test_native_perf_add_is_seen(mount, mode, profile, own_store, workdir):
    mnt = mount()
    fresh = programs.burn(workdir / "fresh", "hot_fresh", 9)
    names = (mnt.artifact(fresh.id), mnt.artifact(fresh.id, "debuginfo"), mnt.debug_file(fresh.id), mnt.link(fresh.id) / "elf",
             mnt / "by-path" / str(fresh.path)[1:] / fresh.id)

    def is_there():
        return all(path.exists() for path in names) and fresh.id in os.listdir(mnt / "buildid")

    def is_gone():
        return not any(path.exists() for path in names) and fresh.id not in os.listdir(mnt / "buildid")

    # the kernel has now cached absent names and all listings
    assert is_gone()
    profile.perf(own_store, "buildid-cache", "-a", fresh.path)
    tools.wait_until(is_there, "the added build")
    assert os.readlink(mnt.link(fresh.id)) == f"../..{fresh.path}/{fresh.id}"
    assert mnt.artifact(fresh.id).read_bytes() == fresh.path.read_bytes()
    assert cached(profile, mnt) == cached(profile, own_store)

    profile.perf(own_store, "buildid-cache", "-r", fresh.path)
    tools.wait_until(is_gone, "end of what perf removed")
    # the build may be added again
    profile.perf(own_store, "buildid-cache", "-a", fresh.path)
    tools.wait_until(is_there, "the build added again")


def test_debug_file_gets_its_link_with_its_program(mount, mode, profile, faults, workdir):
    """With the debug file and without the program perf 6.12 ends with SIGSEGV, and perf 6.1 reports wrong symbols."""
    split = programs.split(programs.burn(workdir / "split", "hot_split", 5), workdir / "split.debug")
    split.debug = split.debug.rename(workdir / "elsewhere.debug")
    server, data = faults(), workdir / "split.data"
    server.serve(split, "debuginfo")
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(split.id, "debuginfo").read_bytes() == split.debug.read_bytes()

    def report():
        moved = split.path.rename(workdir / "moved")
        shown = profile.perf(mnt, "report", "-i", data, "--stdio", "--sort", "sym").stdout
        moved.rename(split.path)
        return shown

    profile.perf(workdir / "empty", "record", "-q", "-e", "cpu-clock", "-o", data, split.path, ROUNDS)
    assert not os.path.lexists(mnt.link(split.id)) and os.listdir(mnt.link(split.id).parent) == []
    assert "0x0000" in report()
    profile.perf(mnt, "record", "-q", "-e", "cpu-clock", "-o", data, split.path, ROUNDS)
    assert os.readlink(mnt.link(split.id)) == f"../..{split.path}/{split.id}"
    assert "hot_split" in report()


def test_perf_writes_nothing_through_the_mount(mount, profile, workdir):
    """The mount is read-only: perf reports it and continues."""
    mnt = mount("ro", on=profile.store)
    before = cached(profile, profile.store)
    fresh = programs.burn(workdir / "fresh", "hot_fresh", 10)
    done = profile.perf(mnt, "buildid-cache", "-a", fresh.path, status=None)
    assert "Read-only file system" in done.stdout + done.stderr
    profile.perf(mnt, "record", "-q", "-e", "cpu-clock", "-o", workdir / "fresh.data", fresh.path, ROUNDS)
    assert cached(profile, profile.store) == before
