# SPDX-License-Identifier: LGPL-2.1-or-later
"""Listings of many ids: cost and correctness."""
import os
import pathlib

import pytest

import programs
import tools

MANY = 10000
MAKE_STORE = tools.BUILD / "tests" / "bench" / "make-store"


def ids_in(store):
    return {fanout.name + link.name for fanout in (store / ".build-id").iterdir() for link in fanout.iterdir()}


def memory_of(mnt):
    lines = pathlib.Path(f"/proc/{mnt.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@pytest.fixture
def store(memory):
    tools.run(MAKE_STORE, memory / "store", MANY)
    return memory / "store"


def test_listing_of_many_ids_is_the_one_of_the_store(mount, mode, store, workdir):
    mnt = mount()
    listed = mnt / "buildid"
    before = memory_of(mnt)
    for _ in range(2):
        assert set(os.listdir(listed)) == ids_in(store)
    # with a kept name and number for each id this would be a megabyte; AddressSanitizer keeps as much freed memory
    assert tools.is_sanitized() or memory_of(mnt) - before < 512

    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    assert set(os.listdir(listed)) == ids_in(store)
    assert program.id in os.listdir(listed)
    (store / ".build-id" / program.id[:2] / program.id[2:]).unlink()
    assert set(os.listdir(listed)) == ids_in(store)
