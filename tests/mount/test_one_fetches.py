# SPDX-License-Identifier: LGPL-2.1-or-later
"""One store, several processes that want the same: one of them fetches it."""
import signal
import subprocess
import time

import pytest

import programs
import tools
from fetching import leftovers, reader


@pytest.fixture
def program(place):
    return programs.burn(place / "app", "fetched_once")


def get(store, server, program, env):
    return subprocess.Popen([tools.BIDCTL, "--store", store, "get", f"--url={server.url}", program.id, "elf"], env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ends(process):
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return True


def test_a_mount_and_two_programs(mount, mode, faults, store, program, env):
    server = faults("delay:2*1")
    server.serve(program)
    m = mount(f"url={server.url}")
    readers = [reader(m.artifact(program.id))]
    server.wait_active()
    readers += [get(store, server, program, env) for _ in range(2)]
    assert all(map(ends, readers))
    assert server.count() == 1
    assert m.artifact(program.id).read_bytes() == program.read() and leftovers(store) == []


def test_two_programs_and_a_mount(mount, faults, store, program, env):
    """Who comes last waits for a program as for a mount."""
    server = faults("delay:2*1")
    server.serve(program)
    m = mount(f"url={server.url}")
    first = get(store, server, program, env)
    server.wait_active()
    second, view = get(store, server, program, env), reader(m.artifact(program.id))
    assert all(map(ends, (first, second, view)))
    assert server.count() == 1
    # and nothing of that is foreign to the store
    assert "foreign files 0" in tools.run(tools.BIDCTL, "--store", store, "verify").stdout


@pytest.mark.parametrize("end", (signal.SIGKILL, signal.SIGSTOP), ids=("killed", "stopped"))
def test_whoever_began_is_gone(mount, faults, store, program, env, end):
    server = faults("stall:1000*1")
    server.serve(program)
    m = mount(f"url={server.url}")
    m.permit(r".")
    first = get(store, server, program, env)
    server.wait_active()
    view = reader(m.artifact(program.id))
    tools.wait_until(lambda: m.status()["flights"], "a flight")
    assert server.count() == 1
    first.send_signal(end)
    begun = time.monotonic()
    assert ends(view)
    took = time.monotonic() - begun
    assert took < 4 if end == signal.SIGKILL else 4 < took < 25, took
    assert server.count() == 2
    first.kill()
    first.communicate()
