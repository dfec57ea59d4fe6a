# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cache of perf and the mount of a store, side by side: programs to add, perf's output, and the resulting files."""
import os
import pathlib
import shutil
import stat
import tempfile

import pytest

import programs
import tools

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


def fail(error):
    raise error


def seen(top, modes=True):
    """Path -> mode and content or text of every file and link below `top` that is perf's."""
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


def said(done, cache):
    """What perf printed, without the name of its cache; lists come in the order of a directory. That it writes probe definitions,
    or reads them, is left out: in the mount they are there before perf looks for them."""
    lines = (text.replace(str(cache), "CACHE").splitlines() for text in (done.stdout, done.stderr))
    return done.returncode, *(sorted(line for line in some if not line.startswith(READS_OR_WRITES)) for some in lines)


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
