# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several processes that want the same artifact of one store: one of them downloads it."""
import contextlib
import os
import pathlib
import signal
import subprocess

import pytest

import programs
import tools
from fetching import await_waiters, leftovers, reader

PATIENT = {"DEBUGINFOD_TIMEOUT": "600"}  # with a server that does not respond


@pytest.fixture
def program(workdir):
    return programs.burn(workdir / "app", "fetched_once")


def get(store, server, program, env):
    return subprocess.Popen([tools.BIDCTL, "--store", store, "get", "--verbose", f"--url={server.url}", program.id, "elf"], env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ends(process):
    _, output = process.communicate()
    assert process.returncode == 0, output
    return True


def is_idle(process, store):
    """Return whether the process has taken part in the lock, and all of its threads sleep."""
    proc = pathlib.Path(f"/proc/{process.pid}")
    with contextlib.suppress(OSError):
        return any(os.readlink(fd) == f"{store}/.bidfs/fetching" for fd in (proc / "fd").iterdir()) and \
            all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in (proc / "task").iterdir())
    return False


def await_idle(processes, store):
    """Wait until all processes wait for another one and are idle for a while."""
    looks = 0

    def are_idle():
        nonlocal looks
        looks = looks + 1 if all(is_idle(process, store) for process in processes) else 0
        return looks == 20

    tools.wait_until(are_idle, "programs that wait for another")


def test_mount_downloads_for_two_programs(mount, mode, faults, store, program, env):
    server = faults("hold")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60")
    mnt.permit(server.url)
    view = reader(mnt.artifact(program.id))
    server.wait_active()
    others = [get(store, server, program, env) for _ in range(2)]
    await_idle(others, store)
    server.release()
    assert ends(view)
    for other in others:
        _, output = other.communicate()
        assert other.returncode == 0 and "ms for another process that was fetching it" in output, output
    assert server.count() == 1
    assert mnt.artifact(program.id).read_bytes() == program.read() and leftovers(store) == []


def test_program_downloads_for_a_mount(mount, faults, store, program, env):
    """A mount waits for the download of a program as for that of another mount."""
    server = faults("hold")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60")
    first = get(store, server, program, env)
    server.wait_active()
    second, view = get(store, server, program, env), reader(mnt.artifact(program.id))
    await_waiters(mnt, 1)
    await_idle([second], store)
    server.release()
    assert all(map(ends, (first, second, view)))
    assert server.count() == 1
    # the lock files are not foreign to the store
    assert "foreign 0" in tools.run(tools.BIDCTL, "--store", store, "verify").stderr


@pytest.mark.parametrize("end", (signal.SIGKILL, signal.SIGSTOP), ids=("killed", "stopped"))
def test_killed_downloader_is_replaced(mount, faults, store, program, env, clock, end):
    server = faults("stall:1000*1")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60", env_more=clock.env)
    mnt.permit(r".")
    first = get(store, server, program, {**env, **PATIENT})
    server.wait_active()
    view = reader(mnt.artifact(program.id))
    await_waiters(mnt, 1)
    assert server.count() == 1
    first.send_signal(end)
    if end == signal.SIGSTOP:
        clock.advance(30)  # half of wait=
    assert ends(view)
    assert ("another process holds the download lock" in mnt.log()) == (end == signal.SIGSTOP), mnt.log()
    assert server.count() == 2
    first.kill()
    first.communicate()


def test_process_with_other_servers_does_not_wait(faults, store, program, env):
    silent, sound = faults("stall-headers"), faults()
    for server in (silent, sound):
        server.serve(program)
    first = get(store, silent, program, {**env, **PATIENT})
    silent.wait_active()
    assert ends(get(store, sound, program, env))
    assert first.poll() is None
    first.kill()
    first.communicate()
