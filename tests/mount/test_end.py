# SPDX-License-Identifier: LGPL-2.1-or-later
"""The end of a daemon whose threads wait in the kernel for each other."""
import concurrent.futures
import os
import pathlib
import signal

import pytest

import daemon
import programs
import tools

CONNECTIONS = pathlib.Path("/sys/fs/fuse/connections")


@pytest.fixture
def fusectl(needs_root):
    """The kernel's files of connections, which systemd mounts."""
    if any(CONNECTIONS.iterdir()):
        yield
        return
    tools.run("mount", "-t", "fusectl", "none", CONNECTIONS)
    yield
    tools.run("umount", "-l", CONNECTIONS)  # daemons of other tests may have found a file of theirs there


@pytest.fixture(scope="module")
def deaf(tmp_path_factory):
    return programs.compile_c("deaf.c", tmp_path_factory.mktemp("deaf") / "deaf.so", "-shared", "-fPIC")


def state_of(m, name):
    """Of the thread of that name, as in proc(5)."""
    for task in pathlib.Path(f"/proc/{m.pid}/task").iterdir():
        stat = (task / "stat").read_text()
        if f"({name})" in stat:
            return stat.rpartition(")")[2].split()[0]
    return None


@pytest.mark.parametrize("sandbox,sig", [("auto", signal.SIGTERM), ("off", signal.SIGTERM), ("auto", signal.SIGKILL)])
def test_signal_while_the_notifier_waits_for_a_lookup_ends_the_daemon(fusectl, mount, deaf, store, place, env, sandbox, sig):
    """The lookup holds the lock of a directory, in which a name is to be taken back, and no thread reads the request any more."""
    program = programs.small(place / "app")
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    m = mount("offline", "busy_poll=0", "max_threads=1", f"sandbox={sandbox}", env_more={
        "LD_PRELOAD": str(deaf), "DEAF": str(place / "deaf"),
        "ASAN_OPTIONS": f"{env.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"})
    directory = m / "buildid" / program.id
    tools.wait_until(lambda: (directory / "elf").read_bytes() and m.status()["watched"], "the watch of the id")
    connection = CONNECTIONS / str(os.minor(os.stat(m.path).st_dev))
    (place / "deaf").touch()
    with concurrent.futures.ThreadPoolExecutor(1) as looker:
        found = looker.submit(tools.errno_of, os.stat, directory / "nothing")
        try:
            tools.wait_until(lambda: int((connection / "waiting").read_text()) > 0, "the lookup")
            next(store.glob("usr/bin/app/*/elf")).unlink()
            tools.wait_until(lambda: state_of(m, "bid-notify") == "D", "the notifier")
            status, _ = m.end(sig)
            assert status == (-sig if sig == signal.SIGKILL else 0)
            assert found.result(20 * tools.PATIENCE) != 0
        finally:
            if (connection / "abort").exists():
                (connection / "abort").write_text("1")
    tools.wait_until(lambda: not daemon.is_mounted(m.path), "the end of the mount")
    m.check_log()
