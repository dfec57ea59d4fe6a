# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount keeps its store within limits, and no reader notices."""
import mmap
import os

import programs
import tools
from fetching import leftovers, read

SIZE = 1_000_000


def fetched(store):
    """Bytes on disk of what was fetched."""
    return sum(path.stat().st_blocks * 512 for path in (store / "[debuginfod]").rglob("elf"))


def test_cache_size(mount, mode, faults, place, store):
    builds = [programs.small(place / f"large{seed}", seed, f"-DBALLAST={SIZE}") for seed in range(1, 7)]
    kept = programs.small(place / "kept", 7, f"-DBALLAST={2 * SIZE}")
    programs.into_store(store, kept.id, kept.path, kept.path)
    server = faults()
    for build in builds:
        server.serve(build)
    m = mount(f"url={server.url}", "cache_size=3M")
    first = os.open(m.artifact(builds[0].id), os.O_RDONLY)
    mapped = mmap.mmap(first, 0, prot=mmap.PROT_READ)
    for build in builds:
        assert read(m.artifact(build.id)) == build.read()
    # behind the readers' backs, so it may take a moment
    tools.wait_until(lambda: fetched(store) <= 3 << 20, "the eviction", 10)
    assert 0 < fetched(store) <= 3 << 20
    # who has a file open keeps it, and what was evicted comes again
    assert os.pread(first, SIZE * 2, 0) == mapped[:] == builds[0].read()
    mapped.close()
    os.close(first)
    assert [read(m.artifact(build.id)) for build in builds] == [build.read() for build in builds]
    # what somebody put in is not asked for again, however large it is
    assert read(m.artifact(kept.id)) == kept.read() and server.count(kept.id) == 0
    assert leftovers(store) == []


def test_min_free(mount, faults, place, store):
    """With more to be free than the file system has, nothing that was fetched stays for long; it is served all the same."""
    build = programs.small(place / "large", 1, f"-DBALLAST={SIZE}")
    server = faults()
    server.serve(build)
    m = mount(f"url={server.url}", "min_free=1000000G")
    for _ in range(3):
        assert read(m.artifact(build.id)) == build.read()
    tools.wait_until(lambda: fetched(store) == 0, "the eviction", 10)
