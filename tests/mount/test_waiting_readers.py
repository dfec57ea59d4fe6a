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
        process.wait()
        process.stderr.close()


@pytest.mark.limit(60)
def test_hit_does_not_wait_for_misses(mount, mode, faults, workdir, store):
    """A hundred misses wait for a silent server; half of them are in the directory of the hits."""
    program = programs.small(workdir / "app")
    stored = [f"ab{number:038x}" for number in range(100)]
    for ident in stored:
        programs.into_store(store, ident, "/usr/bin/app", programs.forge(program, ident, workdir / "forged").path)
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60", "errors=strict")
    # a server with an earlier response has a longer time limit than a new one
    assert read(mnt.artifact(program.id)) == program.read()
    server.behave("stall-headers")
    fanout = mnt / "usr/lib/debug/.build-id/ab"
    missing = [fanout / f"{number:038x}" for number in range(1000, 1000 + MISSES // 2)]
    missing += [mnt.artifact(f"{number:02x}" * 20) for number in range(1, 1 + MISSES // 2)]
    readers = [reader(path) for path in missing]
    await_waiters(mnt, MISSES)
    server.wait_active()

    for number, ident in enumerate(stored):
        # a new name for each read, which the kernel has not cached
        path = (fanout / ident[2:], mnt.artifact(ident), fanout / f"{ident[2:]}.debug")[number % 3]
        content = read(path)
        assert isinstance(content, bytes) and bytes.fromhex(ident) in content
        if number % 10 == 0:
            # the kernel's cache is invalidated, also in the directory with waiting lookups
            replace(store / "usr/bin/app" / ident / "elf", content + bytes(16))
            tools.wait_until(lambda at=mnt.artifact(ident), size=len(content): at.stat().st_size > size, ident)
    for directory in (fanout, mnt / "buildid", mnt / ".build-id/ab", mnt / "by-path/usr/bin/app", mnt / "buildid" / stored[0]):
        assert len(tools.run("ls", "-l", directory).stdout.splitlines()) > 2, directory
    assert still_waiting(readers)
    finish(readers)
    tools.wait_until(lambda: not mnt.status()["downloads"], "end of the downloads that nobody waits for")
    assert mnt.counter("interrupted") == MISSES


def test_change_beside_a_miss_is_seen(mount, mode, faults, workdir, store):
    """
    A program is replaced during the download of its debug information: hits do not wait, and other changes are visible at once.
    """
    builds = [programs.split(programs.small(workdir / f"app{seed}", seed), workdir / "debug") for seed in range(2)]
    elfs = [programs.into_store(store, build.id, f"/usr/bin/{build.path.name}", build.path) for build in builds]
    mnt = mount(f"url={faults('stall-headers').url}", "wait=60")
    for build in builds:
        assert mnt.artifact(build.id).read_bytes() == build.read()
    waiting = reader(mnt.artifact(builds[0].id, "debuginfo"))
    await_waiters(mnt, 1)
    for elf in elfs:
        replace(elf, elf.read_bytes() + bytes(16))
    for name in ("info", "executable", "section"):
        os.stat(mnt / "buildid" / builds[0].id / name)
    tools.wait_until(lambda: read(mnt.artifact(builds[1].id)) == elfs[1].read_bytes(), "the change")
    assert still_waiting([waiting])
    finish([waiting])
    tools.wait_until(lambda: read(mnt.artifact(builds[0].id)) == elfs[0].read_bytes(), "the change of what was waited for")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("behaviour", ["stall-headers", "stall:5000"])
def test_waiting_reader_is_interruptible(mount, faults, workdir, sig, behaviour):
    program, first = programs.small(workdir / "app"), programs.small(workdir / "first", 2)
    server = faults()
    for build in (program, first):
        server.serve(build)
    # no time limit ends the download meanwhile
    mnt = mount(f"url={server.url}", "wait=60", env_more={"DEBUGINFOD_TIMEOUT": "60"})
    # a server with an earlier response has a longer time limit than a new one
    assert read(mnt.artifact(first.id)) == first.read()
    server.behave(behaviour)
    process = reader(mnt.artifact(program.id))
    await_waiters(mnt, 1)
    process.send_signal(sig)
    # the mount itself would wait longer
    assert process.wait() == -sig
    process.stderr.close()
    # a download without readers is cancelled, and its request with it
    tools.wait_until(lambda: not mnt.status()["downloads"] and server.active() == 0, "end of the download")
    # a cancelled download leaves no negative entry: the next reader gets the file
    server.behave()
    assert read(names(mnt, program.id)[1]) == program.read()


def test_interrupt_ends_only_its_reader(mount, mode, faults, workdir):
    program = programs.small(workdir / "app")
    server = faults("hold")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60")
    given_up, patient = [reader(path, subprocess.PIPE) for path in names(mnt, program.id)]
    await_waiters(mnt, 2)
    given_up.send_signal(signal.SIGINT)
    assert given_up.communicate()[0] == b"" and given_up.returncode == -signal.SIGINT
    server.release()
    assert patient.communicate()[0] == program.read()
    assert server.count() == 1


@pytest.mark.parametrize("strict", [False, True])
def test_wait_ends_at_its_limit(mount, mode, faults, workdir, store, clock, strict):
    program = programs.small(workdir / "app")
    server = faults("stall:5000")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=5", f"errors={'strict' if strict else 'enoent'}",
              env_more={**clock.env, "DEBUGINFOD_TIMEOUT": "3600"})
    mnt.permit(server.url)
    waiting = reader(mnt.artifact(program.id))
    await_transfer(mnt)
    assert still_waiting([waiting])
    clock.advance(5)
    error = waiting.communicate()[1].decode()
    assert os.strerror(errno.ETIMEDOUT if strict else errno.ENOENT) in error, error
    assert contents(store) == set() and not (mnt / "by-path/[debuginfod]").exists()
    assert program.id not in os.listdir(mnt / "buildid")
    # a healthy server delivers, even if the stalled download still runs
    server.behave()
    server.release()
    tools.wait_until(lambda: read(names(mnt, program.id)[1]) == program.read(), "the file")


def test_timed_out_download_continues(mount, mode, faults, workdir):
    """A later reader gets the file from the same download."""
    program = programs.small(workdir / "app", 1, "-DBALLAST=200000")
    server = faults("hold")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=1", "errors=strict")
    assert read(mnt.artifact(program.id)) == errno.ETIMEDOUT
    server.release()
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "the end of the download")
    assert server.count() == 1


def test_server_death_ends_the_wait(mount, mode, faults, workdir, store, clock):
    program = programs.small(workdir / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:200000")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60", env_more=clock.env)
    mnt.permit(server.url)
    process = reader(mnt.artifact(program.id), subprocess.PIPE)
    await_transfer(mnt)
    server.stop()
    tools.wait_until(lambda: mnt.status()["servers"][0].get("last_failure"), "a refused connection")
    clock.advance(60)
    output, message = process.communicate()
    assert output == b"" and b"No such file or directory" in message
    assert contents(store) == set()
    assert not (mnt / "buildid" / program.id / "elf").exists() and os.listdir(mnt / "buildid") == []
    assert mnt.counter("negative_entries") == 0
    # a server at the same port again
    again = faults(port=server.port)
    clock.advance(300)  # the longest backoff of a circuit breaker
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "the file")
    assert again.count() >= 1 and leftovers(store) == []


def test_daemon_death_ends_the_wait(mount, mode, faults, workdir, store):
    program = programs.small(workdir / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:200000")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=30")
    process = reader(mnt.artifact(program.id), subprocess.PIPE)
    await_transfer(mnt)
    mnt.die()
    assert process.communicate()[0] == b"" and process.returncode == 1
    assert daemon.unmount(mnt.path, "-l").returncode == 0
    assert contents(store) == set()
    server.behave()
    again = mount(f"url={server.url}", at=mnt.path)
    assert os.listdir(again / "buildid") == [] and leftovers(store) == []
    assert read(again.artifact(program.id)) == program.read()
    assert leftovers(store) == []


def start_download(mount, faults, workdir, *options):
    program = programs.small(workdir / "app", 1, "-DBALLAST=2000000")
    server = faults("slow:100000")
    server.serve(program)
    mnt = mount(f"url={server.url}", *options)
    process = reader(mnt.artifact(program.id))
    await_transfer(mnt)
    return mnt, process


def test_unmount_during_download_ends_the_wait(mount, mode, faults, workdir, store):
    mnt, process = start_download(mount, faults, workdir, "wait=1")
    assert process.wait() == 1
    process.stderr.close()
    assert len(mnt.status()["downloads"]) == 1
    mnt.unmount()
    assert contents(store) == set()


def test_signal_during_download_unmounts(mount, mode, faults, workdir, store):
    mnt, process = start_download(mount, faults, workdir, "wait=60")
    status = mnt.end()
    assert status == 0 and not daemon.is_mounted(mnt.path), (status, mnt.log())
    assert process.wait() == 1
    process.stderr.close()
    assert contents(store) == set()
    mnt.check_log()


def test_forced_unmount_during_download_ends_the_wait(needs_root, mount, mode, faults, workdir, store):
    mnt, process = start_download(mount, faults, workdir, "wait=60")
    assert "busy" in daemon.unmount(mnt.path).stderr
    daemon.unmount(mnt.path, "-f")
    assert process.wait() == 1
    process.stderr.close()
    mnt.unmount()
    assert contents(store) == set()
