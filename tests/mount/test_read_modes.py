# SPDX-License-Identifier: LGPL-2.1-or-later
"""R35: on machines without passthrough or other features reads are slower and return the same, and status shows mode and reason."""
import hashlib
import mmap
import os
import re

import pytest

import programs
import tools
from fetching import read
from namespace import NOBODY, as_user, fuse_device, isolated, mount_program_of_nobody

BALLAST = 3_000_000  # more than the kernel's readahead
# all artifacts under each of their names, with size and bytes, without info, whose content grows
DIGEST = "(cd {} && find -L buildid debug by-path usr -type f ! -name info -printf '%p %s\\n' -exec sha256sum {{}} + " \
    "| sort | sha256sum)"
WAYS = {
    "auto": "passthrough=auto",
    "no passthrough": "passthrough=off",
    "one thread": "max_threads=1",
    "ten threads": "max_threads=10",
    "no busy polling": "busy_poll=0",
    "ro": "ro",
}


@pytest.fixture
def builds(workdir, store):
    """Store a program with separate debug information, one without, and a large one."""
    made = [programs.small(workdir / "app"), programs.split(programs.small(workdir / "split", 2), workdir / "split.debug"),
            programs.small(workdir / "large", 3, f"-DBALLAST={BALLAST}")]
    for build in made:
        programs.into_store(store, build.id, f"/usr/bin/{build.path.name}", build.path)
    programs.into_store(store, made[1].id, "/usr/bin/split", made[1].debug, "debug")
    return made


def digest_of(mnt):
    text = tools.run("sh", "-ec", DIGEST.format(mnt)).stdout
    assert re.match(r"[0-9a-f]{64} ", text)
    return text


def test_every_mode_reads_the_same_bytes(mount, builds):
    """Compare a digest of the whole tree, and the bytes of the store."""
    digests = {}
    for way, option in WAYS.items():
        mnt = mount(option)
        status = mnt.status()
        served = "no_open" if way == "ro" else "daemon"
        assert status["mode"] in ("passthrough", served), way
        assert (status["mode"] == served) == bool(status["mode_reason"]), way
        assert (tools.why_no_passthrough() or way == "no passthrough") == (status["mode"] == served) or status["mode_reason"]
        for build in builds:
            assert mnt.artifact(build.id).read_bytes() == build.read()
        digests[way] = digest_of(mnt)
        mnt.unmount()
    assert len(set(digests.values())) == 1, digests


def test_unprivileged_daemon_reads_the_same_bytes(needs_root, mount, builds, store, workdir, env):
    """A user who can only call fusermount3(1) reads the same as root with all features."""
    mnt = mount("ro")
    expected = digest_of(mnt)
    mnt.unmount()
    point = workdir / "mnt"
    mine, user = mount_program_of_nobody(workdir, point), as_user(NOBODY)
    done = isolated(f"""
        {fuse_device(workdir)}
        {user} {mine} {store} {point} -o ro >&2
        {user} grep -o '"mode[a-z_]*": ".*"' {point}/.bidfs/status >&2
        {user} sh -ec "{DIGEST.format(point)}"
        {user} fusermount3 -u {point}""", env)
    assert done.stdout == expected
    assert re.search(r'"mode": "no_open"\n"mode_reason": ".*(CAP_SYS_ADMIN|libfuse before 3.17)', done.stderr), done.stderr


@pytest.mark.parametrize("how", ["remove", "evict"])
def test_open_and_mapped_files_survive_eviction(mount, mode, store, workdir, faults, builds, how):
    """A file is removed while open and mapped, before its first read. An eviction spares open files."""
    build = builds[2]
    right = hashlib.sha256(build.read()).hexdigest()
    if how == "evict":
        build = programs.small(workdir / "fetched", 4, f"-DBALLAST={BALLAST}")
        right = hashlib.sha256(build.read()).hexdigest()
        server = faults()
        server.serve(build)
        mnt = mount(f"url={server.url}")
        assert mnt.artifact(build.id).stat().st_size == len(build.read())
    else:
        mnt = mount()
    fd = os.open(mnt.artifact(build.id), os.O_RDONLY)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
        if how == "evict":
            message = tools.run(tools.BIDCTL, "-s", store, "gc", "--cache-size", "1", status=1).stderr
            assert "evicted 0" in message and "in use 1, " in message, message
        else:
            tools.run(tools.BIDCTL, "-s", store, "remove", build.id)
        assert bool(list(store.glob(f"**/{build.id}/elf"))) == (how == "evict")
        assert hashlib.sha256(mapped).hexdigest() == right
    assert hashlib.sha256(os.pread(fd, 2 * BALLAST, 0)).hexdigest() == right
    os.close(fd)
    if how == "remove":
        tools.wait_until(lambda: read(mnt.artifact(build.id)) == 2, "its name is gone")
