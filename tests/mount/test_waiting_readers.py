# SPDX-License-Identifier: LGPL-2.1-or-later
"""No reader hangs: each wait for a server has an end, can be interrupted, and delays no other reader."""
import errno
import os
import signal
import subprocess

import pytest

import daemon
import programs
import tools
from fetching import await_transfer, await_waiters, contents, leftovers, names, read, reader

MISSES = 100


def still_waiting(processes):
    """Return whether all processes still wait: no request was queued behind theirs."""
    return all(process.poll() is None for process in processes)


def replace(path, content):
    """Replace a file by rename, so that readers keep the old one."""
    path.with_name("new").write_bytes(content)
    path.with_name("new").chmod(0o755)
    os.rename(path.with_name("new"), path)


def finish(processes, sig=signal.SIGKILL):
    for process in processes:
        process.send_signal(sig)
    for process in processes:
        process.wait(10)
        process.stderr.close()


@pytest.mark.limit(60)
def test_hit_does_not_wait_for_misses(mount, mode, faults, place, store):
    """A hundred misses wait for a silent server; half of them are in the directory of the hits."""
    program = programs.small(place / "app")
    stored = [f"ab{number:038x}" for number in range(100)]
    for ident in stored:
        programs.into_store(store, ident, "/usr/bin/app", programs.forge(program, ident, place / "forged").path)
    server = faults()
    server.serve(program)
    m = mount(f"url={server.url}", "wait=60", "errors=strict")
    # a server with an earlier response has a longer time limit than a new one
    assert read(m.artifact(program.id)) == program.read()
    server.behave("stall-headers")
    fanout = m / "usr/lib/debug/.build-id/ab"
    missing = [fanout / f"{number:038x}" for number in range(1000, 1000 + MISSES // 2)]
    missing += [m.artifact(f"{number:02x}" * 20) for number in range(1, 1 + MISSES // 2)]
    readers = [reader(path) for path in missing]
    await_waiters(m, MISSES)
    server.wait_active()

    for number, ident in enumerate(stored):
        # a new name for each read, which the kernel has not cached
        path = (fanout / ident[2:], m.artifact(ident), fanout / f"{ident[2:]}.debug")[number % 3]
        content = read(path)
        assert isinstance(content, bytes) and bytes.fromhex(ident) in content
        if number % 10 == 0:
            # the kernel's cache is invalidated, also in the directory with waiting lookups
            replace(store / "usr/bin/app" / ident / "elf", content + bytes(16))
            tools.wait_until(lambda at=m.artifact(ident), size=len(content): at.stat().st_size > size, ident)
    for directory in (fanout, m / "buildid", m / ".build-id/ab", m / "by-path/usr/bin/app", m / "buildid" / stored[0]):
        assert len(tools.run("ls", "-l", directory).stdout.splitlines()) > 2, directory
    assert still_waiting(readers)
    finish(readers)
    tools.wait_until(lambda: not m.status()["downloads"], "end of the downloads that nobody waits for")
    assert m.counter("interrupted") == MISSES


def test_change_beside_a_miss_is_seen(mount, mode, faults, place, store):
    """
    A program is replaced during the download of its debug information: hits do not wait, and other changes are visible at once.
    """
    builds = [programs.split(programs.small(place / f"app{seed}", seed), place / "debug") for seed in range(2)]
    elfs = [programs.into_store(store, build.id, f"/usr/bin/{build.path.name}", build.path) for build in builds]
    m = mount(f"url={faults('stall-headers').url}", "wait=60")
    for build in builds:
        assert m.artifact(build.id).read_bytes() == build.read()
    waiting = reader(m.artifact(builds[0].id, "debuginfo"))
    await_waiters(m, 1)
    for elf in elfs:
        replace(elf, elf.read_bytes() + bytes(16))
    for name in ("info", "executable", "section"):
        os.stat(m / "buildid" / builds[0].id / name)
    tools.wait_until(lambda: read(m.artifact(builds[1].id)) == elfs[1].read_bytes(), "the change")
    assert still_waiting([waiting])
    finish([waiting])
    tools.wait_until(lambda: read(m.artifact(builds[0].id)) == elfs[0].read_bytes(), "the change of what was waited for")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("behaviour", ["stall-headers", "stall:5000"])
def test_waiting_reader_is_interruptible(mount, faults, place, sig, behaviour):
    program, first = programs.small(place / "app"), programs.small(place / "first", 2)
    server = faults()
    for build in (program, first):
        server.serve(build)
    # no time limit ends the download meanwhile
    m = mount(f"url={server.url}", "wait=60", env_more={"DEBUGINFOD_TIMEOUT": "60"})
    # a server with an earlier response has a longer time limit than a new one
    assert read(m.artifact(first.id)) == first.read()
    server.behave(behaviour)
    process = reader(m.artifact(program.id))
    await_waiters(m, 1)
    process.send_signal(sig)
    # the mount itself would wait longer
    assert process.wait(50) == -sig
    process.stderr.close()
    # a download without readers is cancelled, and its request with it
    tools.wait_until(lambda: not m.status()["downloads"] and server.active() == 0, "end of the download")
    # a cancelled download leaves no negative entry: the next reader gets the file
    server.behave()
    assert read(names(m, program.id)[1]) == program.read()


def test_interrupt_ends_only_its_reader(mount, mode, faults, place):
    program = programs.small(place / "app")
    server = faults("hold")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=60")
    given_up, patient = [reader(path, subprocess.PIPE) for path in names(m, program.id)]
    await_waiters(m, 2)
    given_up.send_signal(signal.SIGINT)
    assert given_up.communicate(timeout=30)[0] == b"" and given_up.returncode == -signal.SIGINT
    server.release()
    assert patient.communicate()[0] == program.read()
    assert server.count() == 1


@pytest.mark.parametrize("strict", [False, True])
def test_wait_ends_at_its_limit(mount, mode, faults, place, store, clock, strict):
    program = programs.small(place / "app")
    server = faults("stall:5000")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=5", f"errors={'strict' if strict else 'enoent'}",
              env_more={**clock.env, "DEBUGINFOD_TIMEOUT": "3600"})
    m.permit(server.url)
    waiting = reader(m.artifact(program.id))
    await_transfer(m)
    assert still_waiting([waiting])
    clock.advance(5)
    error = waiting.communicate()[1].decode()
    assert os.strerror(errno.ETIMEDOUT if strict else errno.ENOENT) in error, error
    assert contents(store) == set() and not (m / "by-path/[debuginfod]").exists()
    assert program.id not in os.listdir(m / "buildid")
    # a healthy server delivers, even if the stalled download still runs
    server.behave()
    server.release()
    tools.wait_until(lambda: read(names(m, program.id)[1]) == program.read(), "the file")


def test_timed_out_download_continues(mount, mode, faults, place):
    """A later reader gets the file from the same download."""
    program = programs.small(place / "app", 1, "-DBALLAST=200000")
    server = faults("hold")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=1", "errors=strict")
    assert read(m.artifact(program.id)) == errno.ETIMEDOUT
    server.release()
    tools.wait_until(lambda: read(m.artifact(program.id)) == program.read(), "the end of the download")
    assert server.count() == 1


def test_server_death_ends_the_wait(mount, mode, faults, place, store, clock):
    program = programs.small(place / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:200000")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=60", env_more=clock.env)
    m.permit(server.url)
    process = reader(m.artifact(program.id), subprocess.PIPE)
    await_transfer(m)
    server.stop()
    tools.wait_until(lambda: m.status()["sources"][0].get("trouble"), "a refused connection")
    clock.advance(60)
    output, message = process.communicate()
    assert output == b"" and b"No such file or directory" in message
    assert contents(store) == set()
    assert not (m / "buildid" / program.id / "elf").exists() and os.listdir(m / "buildid") == []
    assert m.counter("remembered_absent") == 0
    # a server at the same port again
    again = faults(port=server.port)
    clock.advance(300)  # the longest backoff of a circuit breaker
    tools.wait_until(lambda: read(m.artifact(program.id)) == program.read(), "the file")
    assert again.count() >= 1 and leftovers(store) == []


def test_daemon_death_ends_the_wait(mount, mode, faults, place, store):
    program = programs.small(place / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:200000")
    server.serve(program)
    m = mount(f"url={server.url}", "wait=30")
    process = reader(m.artifact(program.id), subprocess.PIPE)
    await_transfer(m)
    m.die()
    assert process.communicate()[0] == b"" and process.returncode == 1
    assert daemon.unmount(m.path, "-l").returncode == 0
    assert contents(store) == set()
    server.behave()
    again = mount(f"url={server.url}", at=m.path)
    assert os.listdir(again / "buildid") == [] and leftovers(store) == []
    assert read(again.artifact(program.id)) == program.read()
    assert leftovers(store) == []


def start_download(mount, faults, place, *options):
    program = programs.small(place / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:100000")
    server.serve(program)
    m = mount(f"url={server.url}", *options)
    process = reader(m.artifact(program.id))
    await_transfer(m)
    return m, process


def test_unmount_during_download_ends_the_wait(mount, mode, faults, place, store):
    m, process = start_download(mount, faults, place, "wait=1")
    assert process.wait() == 1
    process.stderr.close()
    assert len(m.status()["downloads"]) == 1
    m.unmount()
    assert contents(store) == set()


def test_signal_during_download_unmounts(mount, mode, faults, place, store):
    m, process = start_download(mount, faults, place, "wait=60")
    status, _ = m.end()
    assert status == 0 and not daemon.is_mounted(m.path), (status, m.log())
    assert process.wait() == 1
    process.stderr.close()
    assert contents(store) == set()
    m.check_log()


def test_forced_unmount_during_download_ends_the_wait(needs_root, mount, mode, faults, place, store):
    m, process = start_download(mount, faults, place, "wait=60")
    assert "busy" in daemon.unmount(m.path).stderr
    daemon.unmount(m.path, "-f")
    assert process.wait() == 1
    process.stderr.close()
    m.unmount()
    assert contents(store) == set()
