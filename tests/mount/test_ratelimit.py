# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user requests random ids without end: servers get few requests, and other users notice nothing."""
import errno
import os
import subprocess
import sys
import time

import pytest

import programs
import tools
from fetching import read

NOBODY = 65534

# a program that requests ids from several threads until it is killed
FLOOD = """
import os, sys, threading
def ask(number):
    while True:
        try:
            os.stat(f"{sys.argv[1]}/buildid/{number:08x}{os.urandom(16).hex()}/elf")
        except FileNotFoundError:
            pass
for number in range(8):
    threading.Thread(target=ask, args=[number], daemon=True).start()
print("on", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def flood(workdir):
    """Return a function that starts the flood as nobody."""
    started = []

    def start(mnt):
        workdir.chmod(0o711)
        started.append(subprocess.Popen([sys.executable, "-c", FLOOD, str(mnt)], user=NOBODY, group=NOBODY, extra_groups=[],
                                        stdout=subprocess.PIPE, cwd="/"))
        assert started[-1].stdout.readline() == b"on\n"

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_flood_of_misses_is_limited(mount, mode, needs_root, faults, workdir, flood):
    local, missed = programs.small(workdir / "local"), [programs.small(workdir / f"missed-{seed}", seed) for seed in range(2, 7)]
    server = faults()
    for program in (local, *missed):
        server.serve(program)
    mnt = mount(f"url={server.url}", "allow_other", "wait=20", "miss_rate=5")
    assert read(mnt.artifact(local.id)) == local.read()
    flood(mnt)
    tools.wait_until(lambda: mnt.counter("rate_limited") > 2000, "a flood")
    # other users get stored and missing files as always
    for program in missed:
        assert read(mnt.artifact(local.id)) == local.read()
        assert read(mnt.artifact(program.id)) == program.read()
    assert read(mnt.artifact("77" * 20)) == errno.ENOENT
    # a burst of 20, then 5 a second
    requests, status = server.count(), mnt.status()
    assert requests <= 7 + 20 + 5 * (status["uptime_s"] + 2)
    assert status["counters"]["rate_limited"] > 20 * requests
    metrics = dict(line.rsplit(" ", 1) for line in (mnt / ".bidfs/metrics").read_text().splitlines())
    assert int(metrics["bidfs_rate_limited_total"]) >= status["counters"]["rate_limited"]
    # a refused request leaves no negative cache entry
    assert status["counters"]["negative_entries"] <= server.count()


def test_stripped_debug_file_is_served_above_the_rate(mount, needs_root, faults, workdir, store, flood):
    program, stripped = programs.small(workdir / "app"), workdir / "stripped.debug"
    tools.run("strip", "-o", workdir / "app.stripped", program.path)
    tools.run("objcopy", "--only-keep-debug", workdir / "app.stripped", stripped)
    programs.into_store(store, program.id, "/usr/bin/app", stripped, "debug")
    mnt = mount(f"url={faults().url}", "allow_other", "miss_rate=1")
    flood(mnt)
    tools.wait_until(lambda: mnt.counter("rate_limited") > 100, "a flood")
    shown = subprocess.run(["cat", mnt.artifact(program.id, "debuginfo")], user=NOBODY, group=NOBODY, extra_groups=[],
                           capture_output=True, check=True).stdout
    assert shown == stripped.read_bytes()


def resident(mnt):
    """Return resident bytes."""
    with open(f"/proc/{mnt.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.limit(300)
def test_long_flood_keeps_memory_bounded(mount, mode, needs_root, faults, workdir, flood):
    """R26: one minute; print the delays of other users, and bound the memory."""
    local, server = programs.small(workdir / "local"), faults()
    server.serve(local)
    mnt = mount(f"url={server.url}", "allow_other", "wait=20")
    assert read(mnt.artifact(local.id)) == local.read()

    def measure(what, seconds, first):
        hits, misses, end = [], [], time.monotonic() + seconds
        while time.monotonic() < end:
            missed = programs.forge(local, f"{first + len(misses):08x}" * 5, workdir / "missed")
            server.serve(missed, "executable")
            for program, times in ((missed, misses), *100 * [(local, hits)]):
                begun, path = time.perf_counter(), mnt.artifact(program.id)
                assert read(path) == program.read()
                times.append(time.perf_counter() - begun)
        hits, misses = sorted(hits), sorted(misses)
        print(f"{what}: a hit {hits[len(hits) // 2] * 1e6:.0f} us (p99 {hits[len(hits) * 99 // 100] * 1e6:.0f} us), "
              f"a miss {misses[len(misses) // 2] * 1e3:.1f} ms (p99 {misses[len(misses) * 99 // 100] * 1e3:.1f} ms)")

    measure("idle", 5, 1)
    before = resident(mnt)
    flood(mnt)
    measure("flooded", 60, 1 << 16)
    refused = mnt.counter("rate_limited")
    more = resident(mnt) - before
    print(f"{refused} refused; {more / 1e6:.1f} MB more, {mnt.counter('negative_entries')} negative entries")
    # the kernel keeps an inode for each looked up id until memory is short, and the daemon some 160 bytes
    assert refused > 10000 and more < 192 * refused + (16 << 20)


def test_ratelimit_0_is_unlimited(mount, needs_root, faults, flood):
    server = faults()
    mnt = mount(f"url={server.url}", "allow_other", "miss_rate=0")
    flood(mnt)
    tools.wait_until(lambda: server.count() > 300, "a flood")
    assert mnt.counter("rate_limited") == 0
