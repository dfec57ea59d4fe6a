# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers of a mount are switched off for a while."""
import errno
import os
import signal

import pytest

import programs
import tools
from fetching import covered, covered_many, names, read


@pytest.fixture
def program(workdir):
    return programs.small(workdir / "app")


def offline(env, *arguments, status=0):
    return tools.run(tools.BIDCTL, *arguments, env=env, status=status)


def test_offline_sends_no_request(mount, mode, faults, program, workdir, env):
    server = faults()
    absent, wanted = (programs.forge(program, byte * 20, workdir / byte) for byte in ("ab", "cd"))
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert read(mnt.artifact(program.id)) == program.read() and read(mnt.artifact(absent.id)) == errno.ENOENT
    server.serve(absent)
    server.serve(wanted)
    requests = server.count()

    assert offline(env, "offline", "on", mnt.path).stdout == f"{mnt.path}\toffline\tit is offline\n"
    for _ in range(2):
        for name in (*names(mnt, wanted.id), *names(mnt, absent.id)):
            assert read(name) == errno.ENOENT
    assert [read(name) for name in names(mnt, program.id)] == [program.read()] * 2
    assert server.count() == requests and mnt.counter("negative_entries") == 1
    assert mnt.status()["offline"] and "bidfs_offline 1\n" in (mnt / ".bidfs/metrics").read_text()
    tools.wait_until(lambda: "'bidctl offline off' ends it" in tools.run(tools.BIDCTL, "status", env=env).stdout, "the state")

    assert tools.rows(offline(env, "--json", "offline", "off", mnt.path)) == \
        [{"mount": str(mnt.path), "state": "online", "reason": None}]
    # no delay: the kernel caches no name for a lookup without a request
    assert [read(name) for name in names(mnt, wanted.id)] == [wanted.read()] * 2
    assert not mnt.status()["offline"] and "bidfs_offline 0\n" in (mnt / ".bidfs/metrics").read_text()
    assert server.count() == requests + 1


def test_store_option_orders_the_mounts_of_the_store_alone(mount, env, store, workdir):
    (workdir / "other").mkdir()
    mnt, other = mount("url=http://127.0.0.1:1"), mount("url=http://127.0.0.1:1", on=workdir / "other")
    offline(env, "-s", store, "offline", "on")
    assert mnt.status()["offline"] and not other.status()["offline"]


def test_offline_absence_is_not_cached(mount, faults, program, store, env):
    """An error of the read and the output of bidctl distinguish offline from absent."""
    server = faults()
    server.serve(program)
    cause = "the mount that covers the store is offline - 'bidctl offline off' ends that"
    for errors, result in ("strict", errno.EHOSTUNREACH), ("enoent", errno.ENOENT):
        mnt = mount(f"url={server.url}", f"errors={errors}", at=store)
        offline(env, "offline", "on", mnt.path)
        assert read(mnt.artifact(program.id)) == result
        for what in (["elf"], ["source", "/usr/src/a.c"]):
            assert cause in covered(env, store, program.id, *what, status=3).stderr
        assert cause in covered_many(env, store, program.id, "-", "elf", status=3).stdout
        assert server.count() == 0
        mnt.unmount()
    # the responses of servers stay known
    mnt = mount(f"url={server.url}", at=store)
    absent = "ab" * 20
    assert read(mnt.artifact(absent)) == errno.ENOENT
    offline(env, "offline", "on", mnt.path)
    assert "offline" not in covered(env, store, absent, "elf", status=1).stderr


def test_offline_needs_the_owner_or_root(mount, faults, env, tmp_path):
    server = faults()
    mnt = mount(f"url={server.url}", "allow_other" if tools.IS_ROOT else "rw")
    for text in (b"", b"2", b"on", b"10"):
        assert tools.errno_of(os.setxattr, mnt / ".bidfs", "user.bidfs.offline", text) == errno.EINVAL
    if tools.IS_ROOT:
        argv = ["setpriv", "--reuid=20001", "--regid=20001", "--clear-groups", tools.BIDCTL, "offline", "on", mnt.path]
        assert "it takes orders of its owner" in tools.run(*argv, status=1).stderr
    assert not mnt.status()["offline"]
    # with a slash, as shells complete it, and by another name
    (tmp_path / "link").symlink_to(mnt.path)
    alone = mount()
    output = offline(env, "offline", "on", f"{alone.path}/", tmp_path / "link").stdout
    assert sorted(output.splitlines()) == sorted([f"{alone.path}\toffline\tit has none",
                                                f"{mnt.path}\toffline\tit is offline"])
    offline(env, "offline", "off", alone.path, status=1)
    # a read-only mount cannot be switched and keeps using its servers
    kept, before = mount(f"url={server.url}", "ro"), server.count()
    failed = offline(env, "offline", "on", kept.path, status=1)
    assert failed.stdout == "" and "it is read-only here, and takes no orders" in failed.stderr
    assert read(kept.artifact("cd" * 20)) == errno.ENOENT and server.count() > before
    assert "no mount of bidfs" in offline(env, "offline", "on", tmp_path, status=1).stderr
    assert "one of off, on" in offline(env, "offline", "perhaps", status=2).stderr


def test_offline_fails_without_a_mount_to_change(needs_root, mount, faults, env, workdir):
    """No mount is reported offline that still uses its servers."""
    server = faults()
    mnt = mount(f"url={server.url}")
    other = workdir / "other"
    for what, flags, words in (mnt.path, ["bind", "bind,remount,ro"], "it is read-only here, and takes no orders"), \
                              (mnt / "buildid", ["bind"], "it shows only a part of a mount"):
        other.mkdir(exist_ok=True)
        for flag in flags:
            tools.run("mount", "-o", flag, what, other)
        try:
            failed = offline(env, "--json", "offline", "on", other, status=1)
            assert tools.rows(failed) == [{"mount": str(other), "state": "failed", "reason": words}]
            assert words in failed.stderr and not mnt.status()["offline"]
        finally:
            tools.run("umount", other)
    # one mount over another: the visible one is switched, and the hidden one is reported as failed
    above = mount(f"url={server.url}")
    tools.run("mount", "--bind", above.path, mnt.path)
    try:
        failed = offline(env, "offline", "on", mnt.path, status=1)
        assert failed.stdout == f"{mnt.path}\toffline\tit is offline\n"
        assert failed.stderr == f"bidctl: error: another mount lies over it: '{mnt.path}'\n"
    finally:
        tools.run("umount", mnt.path)
    assert above.status()["offline"] and not mnt.status()["offline"]


def test_offline_of_hung_daemon_times_out(mount, faults, env):
    mnt = mount(f"url={faults().url}")
    tools.stop(mnt.pid)
    try:
        assert "its daemon does not answer" in offline(env, "offline", "on", mnt.path, status=3).stderr
    finally:
        os.kill(mnt.pid, signal.SIGCONT)
