# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files in the cache of libdebuginfod need no download."""
import os
import pathlib
import shutil

import pytest

import programs
import tools


@pytest.fixture
def client_cache(workdir, env, faults):
    """Return a cached program, a program with a negative entry in the client's cache, their server, and the cache."""
    here, absent = (programs.small(workdir / f"built/{seed}", seed) for seed in (1, 2))
    server = faults()
    server.serve(here)

    def find(program, status):
        tools.run("debuginfod-find", "executable", program.id, env={**env, "DEBUGINFOD_URLS": server.url}, status=status)

    find(here, 0)
    find(absent, 1)
    server.serve(absent)
    cache = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"])
    # since 0.188 the client has negative entries
    negative = cache / absent.id / "executable"
    assert negative.exists() and negative.stat().st_size == 0, "the client remembers it otherwise now"
    negative.chmod(0)
    return here, absent, server, cache


def test_libdebuginfod_cache_saves_a_download(mount, mode, client_cache, store):
    here, absent, server, cache = client_cache
    mnt = mount(f"url={server.url}", "wait=30")
    assert os.listdir(mnt / "buildid") == [here.id]
    assert mnt.artifact(here.id).read_bytes() == here.read()
    assert server.count(here.id) == 1, "the client's request is the only one"
    assert mnt.artifact(absent.id).read_bytes() == absent.read(), "an empty file is no answer"
    assert not list(store.rglob(here.id))
    # newer clients cache response headers, too
    names = sorted(path.name for path in cache.glob("*/*") if not path.name.startswith("hdr-"))
    assert names == ["executable", "executable"]
    mnt.unmount()
    # found without any server
    assert mount("offline").artifact(here.id).read_bytes() == here.read()


def test_wrong_file_in_libdebuginfod_cache_is_refused(mount, client_cache):
    """The client verifies no download."""
    here, absent, server, cache = client_cache
    os.chmod(cache / here.id / "executable", 0o600)
    shutil.copy(absent.path, cache / here.id / "executable")
    mnt = mount(f"url={server.url}", "wait=30")
    mnt.expect(f"wrong content: '{cache}/{here.id}/executable'")
    assert mnt.artifact(here.id).read_bytes() == here.read() and server.count(here.id) == 2


def test_no_lower_option_disables_libdebuginfod_cache(mount, client_cache):
    here, _, server, _ = client_cache
    assert not mount("offline", "lower=none").artifact(here.id).exists()
    # the cache belongs to one user, so other users see it only if an option says so
    if tools.IS_ROOT:
        assert not mount("offline", "allow_other").artifact(here.id).exists()
    assert mount("offline", "lower=debuginfod").artifact(here.id).exists()
    assert server.count(here.id) == 1
