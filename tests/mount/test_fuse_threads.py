# SPDX-License-Identifier: LGPL-2.1-or-later
"""FUSE threads: a blocked one delays no others as long as one is free."""
import concurrent.futures
import os
import time

import pytest

import programs
from daemon import stopped

THREADS = 3
LIMIT = 15  # seconds; the rest of the time limit is for a lost request
HITS = 60


@pytest.fixture
def builds(workdir):
    sample = programs.small(workdir / "app", 1)
    (workdir / "slow").mkdir()
    (workdir / "quick").mkdir()

    def into(store, first, n):
        made = [f"{number:040x}" for number in range(first, first + n)]
        for ident in made:
            programs.into_store(store, ident, f"/usr/bin/app{ident}", programs.forge(sample, ident, workdir / "forged").path)
        return made

    return into(workdir / "slow", 1, THREADS), into(workdir / "quick", 100, HITS)


@pytest.mark.parametrize("polling", ["busy_poll=50", "busy_poll=0"])
@pytest.mark.parametrize("held", range(1, THREADS))
def test_blocked_thread_does_not_delay_others(mount, mode, workdir, builds, held, polling):
    """A hung file system holds one thread; the others respond at once, also after they fell asleep."""
    slow, quick = builds
    lower = mount(on=workdir / "slow")
    mnt = mount(f"lower={lower}", f"max_threads={THREADS}", polling, on=workdir / "quick")
    with concurrent.futures.ThreadPoolExecutor(THREADS + 4) as pool:
        with stopped(lower):
            waiting = [pool.submit(os.stat, mnt.artifact(ident)) for ident in slow[:held]]
            time.sleep(0.3)
            for pause in (0, 0.01, 0.1):
                for start in range(0, HITS // 3, 4):
                    some = quick[start:start + 4]
                    for done in [pool.submit(os.stat, mnt.artifact(ident)) for ident in some]:
                        done.result(LIMIT)
                    time.sleep(pause)
                quick = quick[HITS // 3:]
            assert not any(request.done() for request in waiting)
        for request in waiting:
            assert request.result(LIMIT).st_size
