# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many ids: what a listing costs, and that it stays right."""
import itertools
import os
import pathlib
import time

import pytest

import programs
import tools

MANY = 10000
TICK = 0.1  # nothing is kept that changed in this very moment, and what is kept is to be tested
MAKE_STORE = tools.BUILD / "tests" / "bench" / "make-store"


def ids_in(store):
    return {fanout.name + link.name for fanout in (store / ".build-id").iterdir() for link in fanout.iterdir()}


def requests_of(m):
    """Requests that a daemon without busy polling has read."""
    lines = pathlib.Path(f"/proc/{m.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["syscr"])


def memory_of(m):
    lines = pathlib.Path(f"/proc/{m.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@pytest.fixture
def store(memory):
    tools.run(MAKE_STORE, memory / "store", MANY)
    return memory / "store"


def test_listing_of_many_ids_is_cached_until_changed(mount, mode, store, place):
    """The kernel lists again by itself, until the store has other ids."""
    m = mount("busy_poll=0")
    listed = m / "buildid"
    before = memory_of(m)
    counts = [requests_of(m)]
    for _ in range(6):
        assert set(os.listdir(listed)) == ids_in(store)
        counts.append(requests_of(m))
    # the first of these came from us; one was at most looked at whether it holds, but on a full machine that may be over soon
    first, *again = (after - before for before, after in itertools.pairwise(counts))
    assert min(again) < first / 2, counts
    # a name and its number would be a megabyte; AddressSanitizer keeps as much of what was freed
    assert tools.is_sanitized() or memory_of(m) - before < 512

    program = programs.small(place / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    time.sleep(TICK)
    assert set(os.listdir(listed)) == ids_in(store)
    assert program.id in os.listdir(listed)
    (store / ".build-id" / program.id[:2] / program.id[2:]).unlink()
    time.sleep(TICK)
    assert set(os.listdir(listed)) == ids_in(store)
