# SPDX-License-Identifier: LGPL-2.1-or-later
"""What servers said they do not have: asked once, remembered over restarts and by all programs, forgotten on request."""
import errno
import time

import pytest

import programs
import tools
from fetching import names, read, read_all


@pytest.fixture
def program(place):
    return programs.small(place / "app")


def get(m, env, program, *options, status=0):
    return tools.run(tools.BIDCTL, "--store", m.store, "get", *options, program.id, "elf", env=env, status=status)


def test_asked_once_over_restarts(mount, mode, faults, program, env):
    server = faults()
    m = mount(f"url={server.url}")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    m.unmount()
    m = mount(f"url={server.url}")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    # bidctl knows it, too, and says how to ask again
    said = get(m, env, program, f"--url={server.url}", status=1)
    assert "--refresh" in said.stderr
    assert server.count(program.id) == 1


def test_refused_is_not_absent(mount, mode, faults, place, program, env):
    """403, which storage services say of what is not there, too: not asked again so soon, nor taken for a no, and others are."""
    server, other = faults("error:403"), programs.forge(program, "ab" * 20, place / "other")
    m = mount(f"url={server.url}", "errors=strict")
    m.permit(server.url)
    first, second = names(m, program.id)
    assert read(first) == errno.EHOSTUNREACH
    time.sleep(0.3)  # a result lingers for a moment in any case
    assert read(second) == errno.EHOSTUNREACH
    assert server.count(program.id) == 1 and m.counter("remembered_absent") == 0
    assert m.status()["sources"][0]["breaker"] == "closed"
    server.serve(other)
    server.behave("ok")
    assert read(m.artifact(other.id)) == other.read()
    # a program that begins anew does not know it
    server.serve(program)
    get(m, env, program, f"--url={server.url}")
    tools.wait_until(lambda: read(m.artifact(program.id)) == program.read(), "what is in the store")


def test_refresh_is_for_everybody(mount, mode, faults, program, env):
    """404, then the file: after `bidctl get --refresh` the mount has it, without waiting for its own "no" to pass."""
    server = faults()
    m = mount(f"url={server.url}")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT
    get(m, env, program, f"--url={server.url}", "--refresh", status=1)
    server.serve(program)
    get(m, env, program, f"--url={server.url}", status=1)
    assert server.count(program.id) == 2
    get(m, env, program, f"--url={server.url}", "--refresh")
    tools.wait_until(lambda: read(first) == read(second) == program.read(), "the file")
    assert server.count(program.id) == 3


def test_each_server_is_asked_once(mount, faults, place, program):
    """404 of one, 410 of the second, and the third has it or not."""
    servers = [faults(root=place / f"server-{number}") for number in range(3)]
    servers[1].behave("gone")
    forged = [programs.forge(program, f"{number:02x}" * 20, place / f"app-{number}") for number in range(40)]
    here = forged[::2]
    for one in here:
        servers[2].serve(one)
    m = mount(*(f"url={server.url}" for server in servers), "wait=30")
    for _ in range(3):
        answers = read_all([m.artifact(one.id) for one in forged])
        assert answers == [one.read() if one in here else errno.ENOENT for one in forged]
    for one in forged:
        assert servers[2].count(one.id) == 1
        assert all(server.count(one.id) <= 1 for server in servers[:2])
        assert one in here or all(server.count(one.id) == 1 for server in servers)


def test_an_outage_is_not_remembered(mount, faults, place, program):
    healthy, sick = faults(root=place / "healthy"), faults("error:500", root=place / "sick")
    m = mount(f"url={healthy.url}", f"url={sick.url}")
    m.permit(sick.url)
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT
    sick.serve(program)
    sick.behave()
    tools.wait_until(lambda: read(second) == program.read(), "the file", 20)
    # the healthy one has said all that it had to say
    assert healthy.count(program.id) == 1


@pytest.mark.parametrize("answer", ["error:501", "error:405", "error:422", "error:503::invalid buildid"])
def test_what_cannot_be_asked_is_not_absent(mount, mode, faults, program, answer):
    """That a server does not offer this, or not under this name, keeps it from being asked in a burst; it is no "no" that stays."""
    server = faults(answer)
    m = mount(f"url={server.url}")
    for name in names(m, program.id) * 3:
        assert read(name) == errno.ENOENT
    assert server.count(program.id) == 1
    assert m.counter("remembered_absent") == 0
    m.unmount()
    server.behave()
    server.serve(program)
    m = mount(f"url={server.url}")
    assert read(m.artifact(program.id)) == program.read()


def test_a_damaged_memory(mount, faults, program, store):
    """Whatever is in the file: it is a memory of "no", not a reason to fail."""
    server = faults()
    (store / ".bidfs").mkdir(exist_ok=True)
    (store / ".bidfs/absent").write_bytes(b"bidabsnt" + bytes(range(256)) * 20)
    m = mount(f"url={server.url}")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    assert server.count(program.id) == 1
    assert (store / ".bidfs/absent").stat().st_size == 32 + 32


def test_status_tells_how_often(mount, mode, faults, program, env):
    """What a server had is told of what it answered, and what it did not answer beside that."""
    server = faults("hang-up")
    m = mount(f"url={server.url}")
    m.expect("broke off without an answer")
    assert read(m.artifact(program.id)) == errno.ENOENT
    server.behave()
    server.serve(program)
    tools.wait_until(lambda: read(m.artifact(program.id)) == program.read(), "an answer")
    told = tools.run(tools.BIDCTL, "status", env=env).stdout
    assert ", had 100% of what it answered, left 1 without a whole answer, " in told, told
