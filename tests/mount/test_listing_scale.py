# SPDX-License-Identifier: LGPL-2.1-or-later
"""Listings of many ids: cost and correctness."""
import itertools
import os
import pathlib
import time

import pytest

import programs
import tools

MANY = 10000
TICK = 0.1  # seconds: directories that changed within the clock's resolution are not cached
MAKE_STORE = tools.BUILD / "tests" / "bench" / "make-store"


def ids_in(store):
    return {fanout.name + link.name for fanout in (store / ".build-id").iterdir() for link in fanout.iterdir()}


def requests_of(mnt):
    """Return the requests that a daemon without busy polling has read."""
    lines = pathlib.Path(f"/proc/{mnt.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["syscr"])


def memory_of(mnt):
    lines = pathlib.Path(f"/proc/{mnt.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@pytest.fixture
def store(memory):
    tools.run(MAKE_STORE, memory / "store", MANY)
    return memory / "store"


def test_listing_of_many_ids_is_cached_until_changed(mount, mode, store, workdir):
    """The kernel caches the listing until the ids of the store change."""
    mnt = mount("busy_poll=0")
    listed = mnt / "buildid"
    before = memory_of(mnt)
    counts = [requests_of(mnt)]
    for _ in range(6):
        assert set(os.listdir(listed)) == ids_in(store)
        counts.append(requests_of(mnt))
    # the daemon sends the first listing; later ones cost a revalidation, unless memory pressure drops the cache
    first, *again = (after - before for before, after in itertools.pairwise(counts))
    assert min(again) < first / 2, counts
    # with a kept name and number for each id this would be a megabyte; AddressSanitizer keeps as much freed memory
    assert tools.is_sanitized() or memory_of(mnt) - before < 512

    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    time.sleep(TICK)
    assert set(os.listdir(listed)) == ids_in(store)
    assert program.id in os.listdir(listed)
    (store / ".build-id" / program.id[:2] / program.id[2:]).unlink()
    time.sleep(TICK)
    assert set(os.listdir(listed)) == ids_in(store)
