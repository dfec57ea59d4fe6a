#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl with lower stores: their artifacts are listed, shown and found like those of the store.

usage: check_lower.py BIDCTL [--no-fetch] [CASE...]
"""
import os
import shutil
import subprocess
import tempfile

import cases
from bidctl_env import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, ERROR, USAGE, Env, read_json


def fill(env):
    """Put a build into the store, two into another store with one of them the same, and one into libdebuginfod's cache."""
    other = env.home / "other"
    other.mkdir()
    env.on_store("add", env.one)
    env.run("--store", other, "add", env.one, env.two)
    cache = env.home / ".cache" / "debuginfod_client"
    (cache / ID_FAR).mkdir(parents=True)
    shutil.copy(env.far, cache / ID_FAR / "executable")
    return [f"--lower={other}", "--lower=debuginfod"], other, cache


def case_list_merges_lower_stores(env):
    lowers, other, cache = fill(env)
    before = env.files()
    rows = {row["id"]: row for row in env.rows("list", *lowers)}
    assert sorted(rows) == sorted([ID_ONE, ID_TWO, ID_FAR]), rows
    assert rows[ID_TWO]["path"] == str(env.two) and rows[ID_TWO]["size"] == env.two.stat().st_size, rows
    assert rows[ID_FAR]["size"] == env.far.stat().st_size and rows[ID_FAR]["kinds"] == ["elf"], rows
    assert [row["id"] for row in env.rows("list")] == [ID_ONE]
    assert env.rows("list", *lowers, "--by=path")[-1]["id"] == ID_FAR
    assert env.rows("status", *lowers)[0]["builds"] == 3
    assert env.files() == before and not (cache / ".bidfs").exists()
    assert not (other / ".bidfs" / "unpacked").exists()


def case_get_finds_files_of_lower_stores(env):
    lowers, other, cache = fill(env)
    assert env.on_store("get", *lowers, ID_TWO[:9], "elf").stdout == f"{other}{env.two}/{ID_TWO}/elf\n"
    assert env.on_store("get", *lowers, ID_ONE, "elf").stdout.startswith(str(env.store)), "the store itself comes first"
    assert env.on_store("get", *lowers, ID_FAR).stdout == f"{cache}/{ID_FAR}/executable\n", "not stripped"
    shown = env.row("show", *lowers, ID_FAR)
    assert shown["artifacts"]["elf"]["path"] == f"{cache}/{ID_FAR}/executable", shown
    # a build in both stores is shown once
    for name, ident, how in ((ID_TWO, ID_TWO, "added"), (env.two, ID_TWO, "added"), (env.one, ID_ONE, "added")):
        shown = env.row("show", *lowers, name)
        shown = shown if name is ident else shown[0] if len(shown) == 1 else shown
        assert shown["id"] == ident and shown["artifacts"]["elf"]["how"] == how, shown
        assert shown["paths"][0] == str(env.two if ident == ID_TWO else env.one), shown
    env.on_store("show", env.two, status=REFUSED)
    assert env.on_store("missing", *lowers, ID_ONE, ID_TWO, ID_FAR, status=DONE).stdout == ""
    # a file with another id is not served
    shutil.copy(env.one, cache / ID_FAR / "executable")
    env.on_store("get", *lowers, ID_FAR, "elf", status=REFUSED)


def case_unreadable_lower_store_is_named(env):
    """The message names the lower store that denies access, and the option that does without it."""
    lowers, other, _ = fill(env)
    hidden = other / str(env.two)[1:] / ID_TWO / "elf"
    hidden.unlink()  # a hard link of a program of all cases
    shutil.copy(env.two, hidden)
    hidden.chmod(0)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    for path in env.home, env.home.parent, env.home.parent.parent, env.store:
        path.chmod(0o755)
    shutil.rmtree(env.store / ".bidfs")
    done = subprocess.run([*user, env.bidctl, "-s", env.store, "get", *lowers, ID_TWO, "elf"], env=env.environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == REFUSED, done
    assert f"permission denied in '{other}' - '--lower=none' reads no lower store" in done.stderr, done.stderr


def case_libdebuginfod_cache_is_found_without_option(env):
    """Its files are not missing and need no download; list and show cover the store alone."""
    cache = env.home / ".cache" / "debuginfod_client"
    (cache / ID_FAR).mkdir(parents=True)
    shutil.copy(env.far, cache / ID_FAR / "executable")
    (cache / ID_TWO).mkdir()
    (cache / ID_TWO / "debuginfo").touch(mode=0)  # a recent negative entry
    assert env.on_store("get", ID_FAR, "elf").stdout == f"{cache}/{ID_FAR}/executable\n"
    assert env.on_store("missing", ID_FAR, ID_TWO, status=REFUSED).stdout == f"{ID_TWO}\n"
    assert env.rows("list") == [] and env.on_store("archive", ID_FAR, "-o", env.home / "a.tar").returncode == DONE
    env.on_store("get", "--lower=none", ID_FAR, "elf", status=REFUSED)
    assert env.on_store("missing", "--lower=none", ID_FAR, status=REFUSED).stdout == f"{ID_FAR}\n"
    # no option names the cache, so it may be unreadable
    env.run("missing", ID_FAR, status=REFUSED, DEBUGINFOD_CACHE_PATH="/dev/null/cache")


def case_missing_store_is_empty(env):
    """Without a store and a cache of libdebuginfod results are empty, without an error."""
    assert env.run("list", "--lower=debuginfod").stdout == ""
    env.one_error("list", f"--lower={env.home}/missing", status=REFUSED, has="no such directory")
    env.one_error("add", "--lower=/usr/lib/debug", env.one, status=USAGE, has="'--lower'")
    (env.home / "cache" / "debuginfod_client" / ID_FAR).mkdir(parents=True)
    shutil.copy(env.far, env.home / "cache" / "debuginfod_client" / ID_FAR / "executable")
    place = {"XDG_CACHE_HOME": str(env.home / "cache")}
    found = env.run("list", "--json", "--lower=debuginfod", **place)
    assert [row["id"] for row in read_json(found.stdout)["result"]] == [ID_FAR], found
    place = {"DEBUGINFOD_CACHE_PATH": str(env.home / "cache" / "debuginfod_client")}
    assert env.run("missing", "--lower=debuginfod", ID_FAR, **place).stdout == ""
    env.run("missing", "--lower=debuginfod", ID_FAR, ID_NOT_STORED, status=REFUSED)


def link_into_packages(env):
    """Make a debug file that is a link into a store of packages. Return its tree, and the option that permits the link."""
    (env.home / "packages").mkdir()
    (env.home / "other").mkdir()
    shutil.copy(env.one, env.home / "packages" / "one.debug")
    link = env.home / "profile" / ".build-id" / ID_ONE[:2] / f"{ID_ONE[2:]}.debug"
    link.parent.mkdir(parents=True)
    link.symlink_to(env.home / "packages" / "one.debug")
    return env.home / "profile", f"--links={env.home}/other:{env.home}/packages"


def case_reading_makes_no_default_store(env):
    lowers, _, _ = fill(env)
    home = env.home / "new"
    home.mkdir()
    listed = env.run("list", *lowers[:1], HOME=str(home)).stdout
    assert ID_ONE in listed and ID_TWO in listed, listed
    assert str(env.two) in env.run("show", *lowers[:1], ID_TWO, HOME=str(home)).stdout
    assert list(home.iterdir()) == []


def case_lower_store_needs_the_links_option(env):
    tree, links = link_into_packages(env)
    refused = env.on_store("get", f"--lower={tree}", f"--links={env.home}/other", ID_ONE, status=REFUSED)
    assert refused.stderr.count("links=DIR") == 1, refused
    found = env.on_store("get", f"--lower={tree}", links, ID_ONE)
    assert found.stdout == f"{env.home}/packages/one.debug\n" and not found.stderr, found
    env.one_error("list", f"{links}:{env.home}/missing", status=USAGE, has=f"'{env.home}/missing'")


def case_file_server_needs_the_links_option(env):
    tree, links = link_into_packages(env)
    refused = env.on_store("get", f"--url=file://{tree}", ID_ONE, status=ERROR)
    assert "links=DIR" in refused.stderr, refused
    assert env.on_store("get", f"--url=file://{tree}", links, ID_ONE).stdout.startswith(str(env.store))


def case_lower_file_on_other_file_system_gets_no_path(env):
    """A hard link is impossible, so no directory for it may be left."""
    cases.need(os.access("/dev/shm", os.W_OK) and os.stat("/dev/shm").st_dev != env.home.stat().st_dev, "one file system only")
    sleep = shutil.which("sleep")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="bid-lower.") as other, subprocess.Popen([sleep, "1000"]) as process:
        try:
            env.run("--store", other, "add", "--link=copy", sleep)
            env.on_store("get", "--offline", f"--lower={other}", f"--pid={process.pid}", "elf")
        finally:
            process.kill()
    assert not [path for path in env.store.rglob("*") if path.is_dir() and ".bidfs" not in path.parts and not os.listdir(path)]


if __name__ == "__main__":
    cases.main(globals(), Env, fetching=[case_file_server_needs_the_links_option])
