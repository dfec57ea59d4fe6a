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
    return subprocess.Popen([tools.BIDCTL, "--store", store, "get", "--verbose", f"--url={server.url}", program.id, "elf"], env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


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
    assert ends(readers.pop(0))
    for reader_of_it in readers:
        _, said = reader_of_it.communicate(timeout=60)
        assert reader_of_it.returncode == 0 and "ms for another process that was fetching it" in said, said
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


def test_an_outage_is_paid_for_once(mount, faults, store, program, env):
    """Whoever waits for one who gets no answer gets none, and is told so; not one after the other."""
    limit = {"DEBUGINFOD_TIMEOUT": "6"}
    server = faults("delay:60")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=60", env_more=limit)
    m.permit(r".")
    begun = time.monotonic()
    first = get(store, server, program, {**env, **limit})
    server.wait_active()
    others = [get(store, server, program, {**env, **limit}) for _ in range(3)]
    view = reader(m.artifact(program.id))
    assert "no answer within 6 s" in first.communicate(timeout=60)[1]
    for other in others:
        _, said = other.communicate(timeout=60)
        assert other.returncode == 3 and "another process that asked the same servers meanwhile got nothing" in said, said
    view.communicate(timeout=60)
    assert view.returncode != 0
    assert time.monotonic() - begun < 11
    assert server.count() == 1


def test_who_asks_another_server_waits_for_nobody(faults, store, program, env):
    silent, sound = faults("stall:1000"), faults()
    for server in (silent, sound):
        server.serve(program)
    first = get(store, silent, program, env)
    silent.wait_active()
    begun = time.monotonic()
    assert ends(get(store, sound, program, env))
    assert time.monotonic() - begun < 4
    first.kill()
    first.communicate()
