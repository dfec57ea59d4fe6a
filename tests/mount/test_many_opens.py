# SPDX-License-Identifier: LGPL-2.1-or-later
"""R19: thousands of files are open at once, and processes open and close as fast as they can."""
import concurrent.futures
import itertools
import os
import pathlib
import resource
import subprocess
import time

import pytest

import tools
from fetching import read

IDS, HELD = 1000, 10000
FULL = bool(os.environ.get("BIDFS_FULL"))
PROCESSES, OPENS = 64, 100000 if FULL else 6400  # opens of all processes together
OURS = 100  # descriptors of the daemon besides those of open files
MAY_HAVE = 2048  # the limit of the daemon
KEPT = MAY_HAVE // 4  # cached descriptors of closed files: raise_limit() in fs/fuse/session.c
SCRIPT = """
import itertools, random, sys
paths = sys.stdin.read().split()
random.Random(int(sys.argv[1])).shuffle(paths)
for path in itertools.islice(itertools.cycle(paths), int(sys.argv[2])):
    with open(path, "rb") as file:
        if bytes.fromhex(path.split("/")[-2]) not in file.read():
            sys.exit(f"not what it should be: {path}")
"""


@pytest.fixture
def store(memory):
    tools.run(tools.BUILD / "tests/bench/make-store", memory / "store", IDS)
    return memory / "store"


@pytest.fixture
def ids(store):
    return [fanout.name + link.name for fanout in (store / ".build-id").iterdir() for link in fanout.iterdir()]


def descriptors_of(mnt):
    return len(os.listdir(f"/proc/{mnt.pid}/fd"))


def ran(mnt):
    """Return nanoseconds of processor time."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{mnt.pid}/task").glob("*/schedstat"))


def is_idle(mnt):
    before = ran(mnt)
    time.sleep(0.3)
    return ran(mnt) - before < 1_000_000


def test_ten_thousand_open_files_work(mount, mode, with_descriptors, ids):
    """No open fails; the daemon holds a descriptor for each file, and closes them afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = min(HELD, hard - 200)
    if held < 4 * IDS:
        pytest.skip(f"a process may have {hard} files open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 200, hard))
    mnt = mount(program=with_descriptors(MAY_HAVE))
    files = []
    try:
        for ident in itertools.islice(itertools.cycle(ids), held):
            files.append(os.open(mnt.artifact(ident), os.O_RDONLY))
        for number, fd in enumerate(files):
            assert bytes.fromhex(ids[number % IDS]) in os.pread(fd, 4096, 0)
        assert descriptors_of(mnt) <= IDS + OURS
    finally:
        for fd in files:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    tools.wait_until(lambda: descriptors_of(mnt) <= KEPT + OURS, "the daemon drops idle descriptors")
    # the kernel reports closed files with a delay, and not at all after the unmount
    tools.wait_until(lambda: is_idle(mnt), "the kernel has reported all closed files")


@pytest.mark.limit(300 if FULL else 90)
def test_many_processes_read_at_once(mount, mode, with_descriptors, ids):
    """BIDFS_FULL=1 runs the numbers of R19."""
    mnt = mount(program=with_descriptors(MAY_HAVE))
    paths = "\n".join(str(mnt.artifact(ident)) for ident in ids)

    def client(seed):
        argv = ["/usr/bin/python3", "-c", SCRIPT, seed, -(-OPENS // PROCESSES)]
        return subprocess.run([str(arg) for arg in argv], input=paths, capture_output=True, text=True, check=False)

    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for done in pool.map(client, range(PROCESSES)):
            assert done.returncode == 0, done.stderr
    tools.wait_until(lambda: descriptors_of(mnt) <= KEPT + OURS, "the daemon drops idle descriptors")


def test_exhausted_descriptors_are_emfile_for_one_call(needs_root, mount, mode, ids):
    """EMFILE is an error of one call; later calls succeed."""
    mnt = mount()
    soft, hard = resource.prlimit(mnt.pid, resource.RLIMIT_NOFILE)
    assert pathlib.Path(mnt.artifact(ids[0])).read_bytes()
    resource.prlimit(mnt.pid, resource.RLIMIT_NOFILE, (descriptors_of(mnt), hard))
    results = [read(mnt.artifact(ident)) for ident in ids[:50]]
    resource.prlimit(mnt.pid, resource.RLIMIT_NOFILE, (soft, hard))
    mnt.permit("Too many open files")
    assert any(isinstance(result, int) for result in results), "nothing ran out"
    for ident, result in zip(ids, results):
        assert isinstance(result, int) or bytes.fromhex(ident) in result
    tools.wait_until(lambda: all(isinstance(read(mnt.artifact(ident)), bytes) for ident in ids[:50]), "all is served again")
