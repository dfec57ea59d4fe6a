# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount keeps its store within limits, and readers do not notice."""
import concurrent.futures
import contextlib
import errno
import gzip
import hashlib
import mmap
import os
import random
import threading
import time

import programs
import pytest
import tools
from fetching import leftovers, read

SIZE = 1_000_000


def used_below(directory):
    """Return the bytes on disk of the files there; files may disappear meanwhile."""
    used = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                used += os.stat(os.path.join(folder, name)).st_blocks * 512
    return used


def fetched(store):
    return used_below(store / "[debuginfod]")


def test_cache_size_evicts_least_recently_used(mount, mode, faults, workdir, store):
    builds = [programs.small(workdir / f"large{seed}", seed, f"-DBALLAST={SIZE}") for seed in range(1, 7)]
    kept = programs.small(workdir / "kept", 7, f"-DBALLAST={2 * SIZE}")
    programs.into_store(store, kept.id, kept.path, kept.path)
    server = faults()
    for build in builds:
        server.serve(build)
    mnt = mount(f"url={server.url}", "cache_size=3M")
    first = os.open(mnt.artifact(builds[0].id), os.O_RDONLY)
    mapped = mmap.mmap(first, 0, prot=mmap.PROT_READ)
    for build in builds:
        assert read(mnt.artifact(build.id)) == build.read()
    # the eviction runs in the background
    tools.wait_until(lambda: fetched(store) <= 3 << 20, "the eviction")
    assert 0 < fetched(store) <= 3 << 20
    assert "\tcache-size\t" in (store / ".bidfs/evicted").read_text()
    # an open file stays readable, and an evicted one is downloaded again
    assert os.pread(first, SIZE * 2, 0) == mapped[:] == builds[0].read()
    mapped.close()
    os.close(first)
    assert [read(mnt.artifact(build.id)) for build in builds] == [build.read() for build in builds]
    # a file that was added by perf stays, however large it is
    assert read(mnt.artifact(kept.id)) == kept.read() and server.count(kept.id) == 0
    assert leftovers(store) == []


def test_derived_modules_count_and_expire(mount, mode, workdir, store):
    """Unpacked modules of a lower store count for the same limit, are unpacked again, and expire."""
    lower = workdir / "lower"
    builds = [programs.small(workdir / f"large{seed}", seed, f"-DBALLAST={SIZE}") for seed in range(1, 7)]
    for build in builds:
        packed = workdir / f"{build.id}.ko.gz"
        packed.write_bytes(gzip.compress(build.read(), 1))
        programs.into_store(lower, build.id, packed, packed)
    old = store / ".bidfs/scan/0123456789abcdef"
    old.parent.mkdir(parents=True)
    old.touch()
    os.utime(old, (1000, 1000))
    mnt = mount(f"lower={lower}", "cache_size=3M")
    for _ in range(2):
        assert [read(mnt.artifact(build.id)) for build in builds] == [build.read() for build in builds]
        tools.wait_until(lambda: 0 < used_below(store / ".bidfs/unpacked") <= 3 << 20, "the eviction")
    assert not old.exists()
    assert leftovers(store) == []


@pytest.mark.parametrize("how", ["open", "mapped", "native"])
def test_open_file_is_not_evicted(mount, mode, faults, workdir, store, how):
    """Other files are evicted first, however long ago it was opened; after its close it is evicted as well."""
    if mode == "no_open" and how != "native":
        pytest.skip("without passthrough the kernel does not tell of who opens files of the mount")
    builds = [programs.small(workdir / f"large{seed}", seed, f"-DBALLAST={SIZE}") for seed in range(1, 5)]
    server = faults()
    for build in builds:
        server.serve(build)
    mnt = mount(f"url={server.url}", "cache_size=2500K")
    used = builds[0]
    assert read(mnt.artifact(used.id)) == used.read()
    file, record = store / "[debuginfod]" / used.id / "elf", store / ".bidfs/record" / used.id[:2] / f"{used.id[2:]}.elf"
    held = (file if how == "native" else mnt.artifact(used.id)).open("rb")
    mapped = mmap.mmap(held.fileno(), 0, prot=mmap.PROT_READ)
    if how == "mapped":
        held.close()
    for build in builds[1:]:
        os.utime(record, (0, 0))
        assert read(mnt.artifact(build.id)) == build.read()
        tools.wait_until(lambda: fetched(store) <= 2_500 << 10, "the eviction")
        assert file.exists() and mapped[:] == used.read()
    mapped.close()
    held.close()
    os.utime(record, (0, 0))
    for build in builds[1:]:
        assert read(mnt.artifact(build.id)) == build.read()
    tools.wait_until(lambda: not file.exists(), "the eviction of what is closed")


def test_min_free_evicts_and_refuses(mount, faults, workdir, store):
    """min_free is larger than the file system: no download stays, and none with an announced size starts."""
    build = programs.small(workdir / "large", 1, f"-DBALLAST={SIZE}")
    server = faults("truncate-bare:99999999")  # the whole file, without a size
    server.serve(build)
    mnt = mount(f"url={server.url}", "min_free=1000000G")
    for _ in range(3):
        assert read(mnt.artifact(build.id)) == build.read()
    tools.wait_until(lambda: fetched(store) == 0, "the eviction")
    mnt.permit(f"No space left on device for .*{build.id}")
    server.behave()
    tools.wait_until(lambda: read(mnt.artifact(build.id)) == errno.ENOSPC, "the refusal")


def test_announced_size_above_space_is_refused(needs_root, mount, mode, faults, workdir, store):
    """A file with an announced size above the free space is refused before it fills the disk, and nothing is evicted."""
    large, small = (programs.small(workdir / f"app{size}", size, f"-DBALLAST={size * SIZE}") for size in (24, 3))
    server = faults()
    server.serve(small)
    server.serve(large)
    # a limit that no eviction can satisfy
    server.behave("stall:100000", ident=large.id)
    tools.run("mount", "-t", "tmpfs", "-o", "size=16m", "store", store)
    try:
        mnt = mount(f"url={server.url}", "min_free=4M", "wait=0")
        mnt.permit(f"No space left on device for .*'{large.id}")
        assert read(mnt.artifact(small.id)) == small.read()
        assert read(mnt.artifact(large.id)) == errno.ENOSPC
        assert read(mnt.elf_file(small.id)) == small.read() and server.count(small.id) == 1
        mnt.unmount()
    finally:
        # the daemon of a failed test may still use the mount
        tools.run("umount", "-l", store)


def test_endless_body_is_cut_at_the_limit(needs_root, mount, mode, faults, workdir, store):
    """A body without a size is cut at the usable space, and no download is evicted for it."""
    endless, small = (programs.small(workdir / f"app{size}", size, f"-DBALLAST={size * SIZE}") for size in (1, 3))
    liar, good = faults(root=workdir / "liar"), faults(root=workdir / "good")
    liar.serve(endless)
    liar.serve(small)
    liar.behave("goes-on", ident=endless.id)
    good.serve(endless)
    tools.run("mount", "-t", "tmpfs", "-o", "size=112m", "store", store)
    try:
        mnt = mount(f"url={liar.url}", f"url={good.url}", "min_free=16M", "wait=0")
        mnt.permit(f"did not announce how many.*'{endless.id}")
        assert read(mnt.artifact(small.id)) == small.read()
        # the same open uses another server
        assert read(mnt.artifact(endless.id)) == endless.read()
        assert liar.count(endless.id) == 1
        assert read(mnt.elf_file(small.id)) == small.read() and liar.count(small.id) == 1
        mnt.unmount()
    finally:
        # the daemon of a failed test may still use the mount
        tools.run("umount", "-l", store)


READERS, FETCHERS = 64, 8
BUILDS, QUOTA = 40, 8 << 20


def watch_usage(store, over):
    """Sample the used bytes of downloads ten times a second."""
    used = []
    while not over.wait(0.1):
        used.append(fetched(store))
    return used


def read_often(mnt, ids, right, seed, over):
    """Open, map and read artifacts until `over`, with some of them held open; each must have the bytes of its id."""
    choice = random.Random(seed)
    while not over.is_set():
        ident = choice.choice(ids)
        try:
            fd = os.open(mnt.artifact(ident), os.O_RDONLY)
        except FileNotFoundError:
            continue  # absent is valid, too: the file may be evicted at this moment
        try:
            size = os.fstat(fd).st_size
            with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
                time.sleep(choice.random() / 50)
                assert hashlib.sha256(mapped).digest() == right[ident]
            assert hashlib.sha256(os.pread(fd, size, 0)).digest() == right[ident]
        finally:
            os.close(fd)


def fetch_often(mnt, ids, right, seed, times):
    """Read whole artifacts, most of which need a download; return the number of bytes."""
    choice = random.Random(seed)
    size = 0
    for _ in range(times):
        ident = choice.choice(ids)
        while (content := read(mnt.artifact(ident))) == errno.ENOENT:
            pass  # evicted at this moment
        assert isinstance(content, bytes), errno.errorcode[content]
        assert hashlib.sha256(content).digest() == right[ident]
        size += len(content)
    return size


def test_quota_holds_under_load(mount, mode, faults, workdir, store):
    """The builds are five times the quota, with many readers and downloads: all bytes are right, and the quota holds."""
    build = programs.small(workdir / "one", 1, f"-DBALLAST={SIZE}")
    server = faults()
    right = {}
    for number in range(BUILDS):
        ident = hashlib.sha1(str(number).encode()).hexdigest()
        forged = programs.forge(build, ident, workdir / f"forged{number}")
        server.serve(forged, "executable")
        right[forged.id] = hashlib.sha256(forged.read()).digest()
    ids = list(right)
    mnt = mount(f"url={server.url}", f"cache_size={QUOTA}")
    over = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(READERS + FETCHERS + 1) as pool:
        usage = pool.submit(watch_usage, store, over)
        # readers use a few builds, fetchers all of them
        readers = [pool.submit(read_often, mnt, ids[:4], right, seed, over) for seed in range(READERS)]
        try:
            turnover = sum(pool.map(lambda seed: fetch_often(mnt, ids, right, seed, 8), range(FETCHERS)))
        finally:
            over.set()
        for reader in readers:
            reader.result()
    assert turnover > 5 * QUOTA
    # running downloads exceed the quota, and so do those that are published during an eviction: one for each fetcher
    largest = max(path.stat().st_size for path in workdir.glob("forged*"))
    # the evicting thread may be delayed while downloads go on
    usual = sorted(usage.result())[-len(usage.result()) // 10]
    assert usual <= QUOTA + 2 * FETCHERS * largest < BUILDS * largest
    tools.wait_until(lambda: fetched(store) <= QUOTA, "the eviction")
    assert leftovers(store) == []
