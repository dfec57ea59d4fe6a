# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cache directory of perf beside the mount of a store: programs to add, perf's output, and the resulting files."""
import os
import pathlib
import shutil
import stat
import tempfile

import pytest

import programs
import tools

ROUNDS = 300_000_000
READS_OR_WRITES = ("Writing cache: ", "Cache committed: ", "symbol:")  # lines of perf -v about probe definitions
OWN = {"buildid", "by-path", ".bidfs", ".debug", "debug"}  # directories of the mount that perf does not know


class Perf:
    """Runs perf with a cache directory, and has programs to add; `copy` is the build of `burn` at another path."""

    def __init__(self, workdir, env):
        self.workdir, self.env = workdir, env
        self.burn = programs.burn(workdir / "burn", "hot_burn", 3)
        self.other = programs.burn(workdir / "other", "hot_other", 4)
        self.copy = programs.Program(shutil.copy(self.burn.path, workdir / "copy"))
        self.probed = programs.Program(programs.compile_c("probed.c", workdir / "probed", "-g", "-DSEED=1"))
        self.plain = programs.compile_c("small.c", workdir / "plain", "-DSEED=1", "-Wl,--build-id=none")
        self.data = None

    def run(self, cache, *arguments, status=0, **options):
        return tools.run("perf", "--buildid-dir", cache, *arguments, status=status, env=self.env, cwd=self.workdir, **options)

    def record(self, cache, *options):
        self.data = self.workdir / "perf.data"
        self.run(cache, "record", "-q", "-e", "cpu-clock", *options, "-o", self.data, self.burn.path, ROUNDS)


@pytest.fixture
def perf(workdir, env):
    return Perf(workdir, env)


@pytest.fixture
def native():
    """Make a cache directory for perf on another file system than the programs, so that perf must copy, as it must into a mount."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="bm-native-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=["beside", "in place"])
def view(request, mount, mode, store):
    """Mount for writing, at a separate directory or over the store itself."""
    return mount(at=store) if request.param == "in place" else mount()


def fail(error):
    raise error


def perf_files(top, modes=True):
    """Return {path: (mode, content or link)} of perf's files and links below `top`."""
    found = {}
    for at, dirs, files in os.walk(top, onerror=fail):
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


def output_of(done, cache):
    """
    Return perf's output without the name of its cache, with lists sorted. Lines about reading or writing probe definitions are left
    out, because the mount has the definitions before perf looks for them.
    """
    lines = (text.replace(str(cache), "CACHE").splitlines() for text in (done.stdout, done.stderr))
    return done.returncode, *(sorted(line for line in some if not line.startswith(READS_OR_WRITES)) for some in lines)


def objdir_of(mnt, program, ident=None):
    return mnt / str(program.path)[1:] / (ident or program.id)


def write_as_perf(directory, content, kind="elf"):
    """Copy a file as perf does (util/copyfile.c): write a temporary file, link it to its name, unlink it."""
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{kind}.", dir=directory)
    os.fchmod(descriptor, 0o755)
    os.pwrite(descriptor, content, 0)
    os.close(descriptor)
    try:
        os.link(temporary, directory / kind)
    finally:
        os.unlink(temporary)
