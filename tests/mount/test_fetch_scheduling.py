# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that fail many times over: killed in a body, dripping, in each combination. BIDFS_FULL=1 runs the full numbers."""
import errno
import itertools
import os
import random
import signal
import socket
import subprocess
import time

import pytest

import programs
import tools
from fetching import forget, leftovers, names, read, reader

FULL = bool(os.environ.get("BIDFS_FULL"))
KILLS = {64 << 10: 500, 8 << 20: 500, 200 << 20: 50} if FULL else {64 << 10: 6, 8 << 20: 6}  # by the size of the file


def of_size(program, ident, size, output):
    made = programs.forge(program, ident, output)
    with open(output, "ab") as file:
        file.write(random.Random(size).randbytes(size - os.path.getsize(output)))
    return made


@pytest.mark.limit(3600 if FULL else 60)
@pytest.mark.parametrize("size", KILLS)
def test_server_killed_in_body_leaves_no_partial_file(mount, faults, workdir, store, size):
    """No part of a file is visible, the file is not absent, and it comes once the server is back."""
    original, rng = programs.small(workdir / "app"), random.Random(1)
    server = faults()
    mnt = mount(f"url={server.url}", "wait=50")
    mnt.permit(server.url)
    for number in range(KILLS[size]):
        program = of_size(original, f"{number:04x}" * 10, size, workdir / "made")
        server.serve(program, "executable")
        # more often than a download is retried
        server.behave(f"reset:{rng.randrange(size)}*3", ident=program.id)
        path = mnt.artifact(program.id)
        assert read(path) == errno.ENOENT
        assert not list((store / ".build-id").rglob("*")) or read(mnt.elf_file(program.id)) in (errno.ENOENT, program.read())
        tools.wait_until(lambda path=path, program=program: read(path) == program.read(), "the file, once the server is well")
        assert leftovers(store) == []
        forget(mnt, server, program.id)
    assert mnt.counter("negative_entries") == 0


def test_slow_first_byte_prefers_the_other_server(mount, faults, workdir):
    """A server that starts slowly loses to another one, which is preferred from then on."""
    original, numbers = programs.small(workdir / "app"), itertools.count()
    slow, quick = faults("slow:5000", root=workdir / "slow"), faults(root=workdir / "quick")
    mnt = mount(f"url={slow.url}", f"url={quick.url}", "wait=60")

    def fetched(size, *behaviours):
        """Download another file and return the requests of both servers."""
        program, before = of_size(original, f"{next(numbers):02x}" * 20, size, workdir / "made"), (slow.count(), quick.count())
        for server in (slow, quick):
            server.serve(program, "executable")
        if behaviours:
            quick.behave(*behaviours, ident=program.id)
        assert read(mnt.artifact(program.id)) == program.read()
        return slow.count() - before[0], quick.count() - before[1]

    def only_from_quick(*what):
        assert fetched(*what) == (0, 1)

    # the slow server would need two minutes, thirteen seconds of them for the first 64 KiB
    assert fetched(600 << 10) == (1, 1)
    assert [source.get("found", 0) for source in mnt.status()["servers"]] == [0, 1]
    # the preferred source gets the only request
    for _ in range(2):
        only_from_quick(600 << 10)
    # at an acceptable rate, for two seconds
    only_from_quick(4 << 20, "slow:2000000")


@pytest.mark.limit(90)
def test_dripping_bodies_are_given_up(mount, faults, workdir, store, clock):
    """
    64 responses that come byte by byte are given up; hits do not wait for them, and files of another server are downloaded
    meanwhile.
    """
    names = [f"{number:04x}" * 10 for number in range(64)]
    original = programs.small(workdir / "app")
    here, there = (programs.forge(original, f"{byte}" * 20, workdir / byte) for byte in ("ee", "ef"))
    programs.into_store(store, here.id, "/usr/bin/here", here.path)
    drip, good = faults("slow-headers:0.2", root=workdir / "drip"), faults(root=workdir / "good")
    good.serve(there)
    mnt = mount(f"url={drip.url}", f"url={good.url}", "wait=0", env_more={**clock.env, "DEBUGINFOD_TIMEOUT": "3600"})
    mnt.permit(drip.url)
    waiting = [subprocess.Popen(["cat", mnt.artifact(name)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for name in names]
    try:
        drip.wait_active()
        for _ in range(500):
            assert read(mnt.artifact(here.id)) == here.read()
        # no miss has ended, so no hit waited for one
        assert all(process.poll() is None for process in waiting)
        clock.advance(3600)
        mnt.permit(good.url)
        tools.wait_until(lambda: read(mnt.artifact(there.id)) == there.read(), "the other server's file")
        for process in waiting:
            assert process.wait() == 1
    finally:
        for process in waiting:
            process.kill()
            process.wait()
    assert mnt.counter("absent") == 0
    # the first requests put the silent server into backoff; it gets no request for the other files. One more looks for a server
    # in front of this mount
    assert drip.count() <= 32 + 1


def test_stalled_server_is_hedged(mount, faults, workdir, clock):
    """A server that stops in the body is retried; a hedged request to another server serves the reader."""
    silent, good = faults("stall:100000", root=workdir / "silent"), faults(root=workdir / "good")
    program = of_size(programs.small(workdir / "app"), "1" * 40, 200000, workdir / "made")
    for server in (silent, good):
        server.serve(program, "executable")
    mnt = mount(f"url={silent.url}", f"url={good.url}", "wait=7200",
                env_more={**clock.env, "DEBUGINFOD_TIMEOUT": "3600"})
    mnt.permit("http://127.0.0.1")
    process = reader(mnt.artifact(program.id), subprocess.PIPE)
    # a busy silent server may lose to the other one before it stalls
    tools.wait_until(lambda: process.poll() is not None or any(row["received"] >= 100000 for row in mnt.status()["downloads"]),
                     "a stalled body")
    clock.advance(3600)
    assert process.communicate()[0] == program.read()
    # without the other server it would get three attempts
    assert silent.count(program.id) <= 2 and good.count(program.id) == 1


def test_slow_bodies_do_not_delay_a_small_file(mount, mode, faults, workdir):
    """Slow downloads of large files without a reader use all connections of a server; a small file is downloaded meanwhile."""
    original, server = programs.small(workdir / "app"), faults()
    mnt = mount(f"url={server.url}", "wait=30", "errors=strict")
    mnt.permit(server.url)
    large = [of_size(original, f"{number:04x}" * 10, 8 << 20, workdir / f"large-{number}") for number in range(8)]
    for program in large:
        server.serve(program, "executable")
        server.behave("slow:100000", ident=program.id)
    server.serve(original, "executable")
    waiting = [reader(mnt.artifact(program.id)) for program in large]
    try:
        tools.wait_until(lambda: server.count() == len(large), "requests for all large files")
        assert read(mnt.artifact(original.id)) == original.read()
        assert len(mnt.status()["downloads"]) == len(large)
    finally:
        for process in waiting:
            process.kill()
            process.wait()


@pytest.mark.limit(240)
def test_slow_unpacking_server_is_waited_for(mount, faults, workdir, store, env):
    """A server unpacks a package before its first byte: a patient reader gets the file, and an impatient one finds it later."""
    original, server = programs.small(workdir / "app"), faults("delay:40")
    early, late = (programs.forge(original, f"{byte}" * 20, workdir / byte) for byte in ("ee", "ef"))
    server.serve(early)
    server.serve(late)
    tools.run(tools.BIDCTL, "--store", store, "get", f"--url={server.url}", early.id, "elf", env=env)
    assert server.count() == 1
    mnt = mount(f"url={server.url}", "wait=1")
    mnt.permit(server.url)
    path = mnt.artifact(late.id)
    assert read(path) == errno.ENOENT
    tools.wait_until(lambda: not mnt.status()["downloads"], "the file")
    assert read(path) == late.read() and server.count() == 2


STATES = {"well": [], "slow": ["delay:0.6"], "absent": ["absent"], "dies": ["reset:5000"], "bad": ["error:503"]}
ORDERS = list(itertools.product([*STATES, "dead"], repeat=3))


@pytest.mark.limit(1200 if FULL else 90)
def test_three_servers_in_every_state_give_the_right_result(mount, faults, workdir, store):
    """
    The file comes if one of three servers has it, even slowly; it is absent if all three report that; otherwise the result is an
    error.
    """
    original = programs.small(workdir / "app")
    servers = {state: [faults(*behaviours, root=workdir / state) for _ in range(3)] for state, behaviours in STATES.items()}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        for number, states in enumerate(ORDERS if FULL else ORDERS[::17]):
            program = programs.forge(original, f"{number:04x}" * 10, workdir / "made")
            for some in servers.values():
                some[0].serve(program, "executable")
            urls = [dead if state == "dead" else servers[state][at].url for at, state in enumerate(states)]
            mnt = mount(*[f"url={url}" for url in urls], "wait=30")
            mnt.permit("http://127.0.0.1")
            answer, there = read(mnt.artifact(program.id)), bool({"well", "slow"} & set(states))
            assert answer == (program.read() if there else errno.ENOENT), states
            assert (mnt.counter("unknown") > 0) == (not there and set(states) != {"absent"}), states
            mnt.unmount()
    assert leftovers(store) == []


READERS, ROUNDS, SIZE = (1000, 20, 50 << 20) if FULL else (40, 1, 1 << 20)


@pytest.mark.limit(7200 if FULL else 60)
def test_processes_share_one_download(mount, mode, faults, workdir):
    """R18: processes that open one missing file at once all get it from one download."""
    original, server = programs.small(workdir / "app"), faults()
    mnt = mount(f"url={server.url}", "wait=0", "miss_rate=0")
    for number in range(ROUNDS):
        single = of_size(original, f"{2 * number:04x}" * 10, SIZE, workdir / "single")
        program = of_size(original, f"{2 * number + 1:04x}" * 10, SIZE, workdir / "made")
        server.serve(single, "executable")
        server.serve(program, "executable")
        begun = time.monotonic()
        assert read(mnt.artifact(single.id)) == single.read()
        alone, begun = time.monotonic() - begun, time.monotonic()
        server.behave("delay:2", ident=program.id)
        # the download is shared; the start of a thousand programs takes its own time
        waiting = [subprocess.Popen(["cmp", "-s", mnt.artifact(program.id), program.path]) for _ in range(READERS)]
        assert [process.wait() for process in waiting] == READERS * [0]
        print(f"alone {alone:.2f} s, {READERS} of them {time.monotonic() - begun:.2f} s, with 2 s until the answer")
        assert server.count(program.id) == server.count(single.id) == 1
        for ident in (single.id, program.id):
            (server.root / ident / "executable").unlink()


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGALRM]


@pytest.mark.limit(3600 if FULL else 60)
def test_signal_interrupts_a_waiting_reader(mount, mode, faults, workdir):
    """R21: a signal ends a lookup, an open or a read of a missing file at any moment."""
    program, server, dice = programs.small(workdir / "app", 1, "-DBALLAST=300000"), faults(), random.Random(21)
    mnt = mount(f"url={server.url}", "wait=60", "miss_rate=0", env_more={"DEBUGINFOD_TIMEOUT": "60"})
    took = []
    for number in range(1000 if FULL else 12):
        one = programs.forge(program, f"{number:04x}" * 10, workdir / "made")
        server.serve(one, "executable")
        server.behave(dice.choice(["stall-headers", "stall:5000", "slow:400000", "ok"]), ident=one.id)
        process = reader(names(mnt, one.id)[number % 2])
        time.sleep(dice.random() * 0.1)
        process.send_signal(SIGNALS[number % len(SIGNALS)])
        begun = time.monotonic()
        status = process.wait()
        process.stderr.close()
        took.append(time.monotonic() - begun)
        assert status in (0, -SIGNALS[number % len(SIGNALS)])
        (server.root / one.id / "executable").unlink()
    print(f"the slowest of {len(took)} was gone after {max(took):.3f} s, the median {sorted(took)[len(took) // 2]:.3f} s")
    server.release()
    tools.wait_until(lambda: not mnt.status()["downloads"], "end of the downloads that nobody waits for")
