# SPDX-License-Identifier: LGPL-2.1-or-later
"""perf, several bidctl, a server and readers through a mount, all at once on one store; for ten minutes with BIDFS_FULL=1."""
import os
import shutil
import sys

import pytest

import tools

sys.path.insert(0, str(tools.ROOT / "tests/unit"))
from bidctl_env import Env, server  # noqa: E402
from check_concurrent import check_afterwards, perfs_name, together  # noqa: E402

SECONDS = 600 if os.environ.get("BIDFS_FULL") else 8


@pytest.mark.limit(SECONDS + 90)
def test_concurrent_perf_bidctl_and_readers_stay_consistent(mount, mode, workdir):
    for name in ("built", "env"):
        (workdir / name).mkdir()
    env = Env(tools.BIDCTL, workdir / "built", workdir / "env")
    with server(env) as url:
        view = mount(f"url={url}", on=env.store)
        names = [lambda ident: perfs_name(view.path, ident), view.artifact, view.elf_file]
        right = together(env, shutil.which("perf"), SECONDS, url, caches=[view.path],
                         readers={f"mount-{number}": lambda g, ident: g.choice(names)(ident) for number in range(2)})
        view.unmount()
    check_afterwards(env, right)
