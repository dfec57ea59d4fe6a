# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount that has servers is told to leave them alone for a while."""
import errno
import json
import os

import pytest

import programs
import tools
from fetching import names, read


@pytest.fixture
def program(place):
    return programs.small(place / "app")


def offline(env, *arguments, status=0):
    return tools.run(tools.BIDCTL, *arguments, env=env, status=status)


def test_nobody_is_asked(mount, mode, faults, program, place, env):
    server = faults()
    absent, wanted = (programs.forge(program, byte * 20, place / byte) for byte in ("ab", "cd"))
    server.serve(program)
    m = mount(f"url={server.url}")
    assert read(m.artifact(program.id)) == program.read() and read(m.artifact(absent.id)) == errno.ENOENT
    server.serve(absent)
    server.serve(wanted)
    asked = server.count()

    assert offline(env, "offline", "on", m.path).stdout == f"{m.path}: asks no server (it is offline)\n"
    for _ in range(2):
        for name in (*names(m, wanted.id), *names(m, absent.id)):
            assert read(name) == errno.ENOENT
    assert [read(name) for name in names(m, program.id)] == [program.read()] * 2
    assert server.count() == asked and m.counter("remembered_absent") == 1
    assert m.status()["offline"] and "bidfs_offline 1\n" in (m / ".bidfs/metrics").read_text()
    tools.wait_until(lambda: "'bidctl offline off' ends that" in tools.run(tools.BIDCTL, "status", env=env).stdout, "the state")

    assert json.loads(offline(env, "--json", "offline", "off", m.path).stdout) == \
        [{"mount_point": str(m.path), "asks_servers": True, "reason": None}]
    # at once: that nobody was asked is nothing that the kernel keeps
    assert [read(name) for name in names(m, wanted.id)] == [wanted.read()] * 2
    assert not m.status()["offline"] and "bidfs_offline 0\n" in (m / ".bidfs/metrics").read_text()
    assert server.count() == asked + 1


def test_it_is_no_answer(mount, faults, program, store, env):
    """Who wants to know whether there was one is told: by an error, and by bidctl."""
    server = faults()
    server.serve(program)
    m = mount(f"url={server.url}", "errors=strict", at=store)
    offline(env, "offline", "on", m.path)
    assert read(m.artifact(program.id)) not in (errno.ENOENT, program.read())
    for what in (["elf"], ["source", "/usr/src/a.c"]):
        told = tools.run(tools.BIDCTL, "--store", store, "get", program.id, *what, env=env, status=3)
        assert "offline" in told.stderr or "by the mount that covers the store" in told.stderr, told.stderr
    m.unmount()
    m = mount(f"url={server.url}", at=store)
    offline(env, "offline", "on", m.path)
    for what in (["elf"], ["source", "/usr/src/a.c"]):
        told = tools.run(tools.BIDCTL, "--store", store, "get", program.id, *what, env=env, status=3)
        assert "the mount that covers the store is offline ('bidctl offline off' ends that)" in told.stderr
    assert server.count() == 0


def test_who_may(mount, faults, env, tmp_path):
    server = faults()
    m = mount(f"url={server.url}", "allow_other" if tools.IS_ROOT else "rw")
    for text in (b"", b"2", b"on", b"10"):
        assert tools.errno_of(os.setxattr, m / ".bidfs", "user.bidfs.offline", text) == errno.EINVAL
    if tools.IS_ROOT:
        argv = ["setpriv", "--reuid=20001", "--regid=20001", "--clear-groups", tools.BIDCTL, "offline", "on", m.path]
        assert "only its owner and root may tell it" in tools.run(*argv, status=1).stderr
    assert not m.status()["offline"]
    alone, kept = mount(), mount(f"url={server.url}", "ro")
    kept.permit("nothing will be fetched")
    told = offline(env, "offline", "on", alone.path, kept.path).stdout
    assert told == f"{alone.path}: asks no server (it has none)\n" \
                   f"{kept.path}: asks no server (it is read-only)\n"
    for other in alone, kept:
        offline(env, "offline", "off", other.path, status=1)
    assert "no mount of bidfs" in offline(env, "offline", "on", tmp_path, status=1).stderr
    assert "neither 'on' nor 'off'" in offline(env, "offline", "perhaps", status=2).stderr
