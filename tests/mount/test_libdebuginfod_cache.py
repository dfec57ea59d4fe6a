# SPDX-License-Identifier: LGPL-2.1-or-later
"""What debuginfod's own client has fetched need not be fetched again."""
import os
import pathlib
import shutil

import pytest

import programs
import tools


@pytest.fixture
def world(place, env, faults):
    """Two programs on a server. The client has one of them in its cache, and of the other that no server has it."""
    here, absent = (programs.small(place / f"built/{seed}", seed) for seed in (1, 2))
    server = faults()
    server.serve(here)

    def find(program, status):
        tools.run("debuginfod-find", "executable", program.id, env={**env, "DEBUGINFOD_URLS": server.url}, status=status)

    find(here, 0)
    find(absent, 1)
    server.serve(absent)
    cache = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"])
    # 0.188 and later; the others make none
    negative = cache / absent.id / "executable"
    assert negative.exists() and negative.stat().st_size == 0, "the client remembers it otherwise now"
    negative.chmod(0)
    return here, absent, server, cache


def test_libdebuginfod_cache_saves_a_download(mount, mode, world, store):
    here, absent, server, cache = world
    m = mount(f"url={server.url}", "wait=30")
    assert os.listdir(m / "buildid") == [here.id]
    assert m.artifact(here.id).read_bytes() == here.read()
    assert server.count(here.id) == 1, "the client's request is the only one"
    assert m.artifact(absent.id).read_bytes() == absent.read(), "an empty file is no answer"
    assert not list(store.rglob(here.id))
    # newer clients keep the header of an answer, too
    names = sorted(path.name for path in cache.glob("*/*") if not path.name.startswith("hdr-"))
    assert names == ["executable", "executable"]
    m.unmount()
    # no server, no client: it is found all the same
    assert mount("offline").artifact(here.id).read_bytes() == here.read()


def test_wrong_file_in_libdebuginfod_cache_is_refused(mount, world):
    """The client believes whatever a server sent."""
    here, absent, server, cache = world
    os.chmod(cache / here.id / "executable", 0o600)
    shutil.copy(absent.path, cache / here.id / "executable")
    m = mount(f"url={server.url}", "wait=30")
    m.expect(f"wrong content: '{cache}/{here.id}/executable'")
    assert m.artifact(here.id).read_bytes() == here.read() and server.count(here.id) == 2


def test_no_lower_option_disables_libdebuginfod_cache(mount, world):
    here, _, server, _ = world
    assert not mount("offline", "lower=none").artifact(here.id).exists()
    # it is one user's, so it is not for others, unless he says so
    if tools.IS_ROOT:
        assert not mount("offline", "allow_other").artifact(here.id).exists()
    assert mount("offline", "lower=debuginfod").artifact(here.id).exists()
    assert server.count(here.id) == 1
