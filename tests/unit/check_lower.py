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
from bidctl_scene import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, TROUBLE, USAGE, Scene, read_json


def fill(scene):
    """Put a build into the store, two into another store with one of them the same, and one into libdebuginfod's cache."""
    other = scene.home / "other"
    other.mkdir()
    scene.on_store("add", scene.one)
    scene.run("--store", other, "add", scene.one, scene.two)
    cache = scene.home / ".cache" / "debuginfod_client"
    (cache / ID_FAR).mkdir(parents=True)
    shutil.copy(scene.far, cache / ID_FAR / "executable")
    return [f"--lower={other}", "--lower=debuginfod"], other, cache


def case_list_merges_lower_stores(scene):
    lowers, other, cache = fill(scene)
    before = scene.files()
    rows = {row["id"]: row for row in scene.rows("list", *lowers)}
    assert sorted(rows) == sorted([ID_ONE, ID_TWO, ID_FAR]), rows
    assert rows[ID_TWO]["path"] == str(scene.two) and rows[ID_TWO]["size"] == scene.two.stat().st_size, rows
    assert rows[ID_FAR]["size"] == scene.far.stat().st_size and rows[ID_FAR]["kinds"] == ["elf"], rows
    assert [row["id"] for row in scene.rows("list")] == [ID_ONE]
    assert scene.rows("list", *lowers, "--by=path")[-1]["id"] == ID_FAR
    assert scene.rows("status", *lowers)[0]["builds"] == 3
    assert scene.files() == before and not (cache / ".bidfs").exists()
    assert not (other / ".bidfs" / "unpacked").exists()


def case_get_finds_files_of_lower_stores(scene):
    lowers, other, cache = fill(scene)
    assert scene.on_store("get", *lowers, ID_TWO[:9], "elf").stdout == f"{other}{scene.two}/{ID_TWO}/elf\n"
    assert scene.on_store("get", *lowers, ID_ONE, "elf").stdout.startswith(str(scene.store)), "the store itself comes first"
    assert scene.on_store("get", *lowers, ID_FAR).stdout == f"{cache}/{ID_FAR}/executable\n", "not stripped"
    shown = scene.row("show", *lowers, ID_FAR)
    assert shown["artifacts"]["elf"]["path"] == f"{cache}/{ID_FAR}/executable", shown
    # a build in both stores is shown once
    for name, ident, how in ((ID_TWO, ID_TWO, "added"), (scene.two, ID_TWO, "added"), (scene.one, ID_ONE, "added")):
        shown = scene.row("show", *lowers, name)
        shown = shown if name is ident else shown[0] if len(shown) == 1 else shown
        assert shown["id"] == ident and shown["artifacts"]["elf"]["how"] == how, shown
        assert shown["paths"][0] == str(scene.two if ident == ID_TWO else scene.one), shown
    scene.on_store("show", scene.two, status=REFUSED)
    assert scene.on_store("missing", *lowers, ID_ONE, ID_TWO, ID_FAR, status=DONE).stdout == ""
    # a file with another id is not served
    shutil.copy(scene.one, cache / ID_FAR / "executable")
    scene.on_store("get", *lowers, ID_FAR, "elf", status=REFUSED)


def case_libdebuginfod_cache_is_found_without_option(scene):
    """Its files are not missing and need no download; list and show cover the store alone."""
    cache = scene.home / ".cache" / "debuginfod_client"
    (cache / ID_FAR).mkdir(parents=True)
    shutil.copy(scene.far, cache / ID_FAR / "executable")
    (cache / ID_TWO).mkdir()
    (cache / ID_TWO / "debuginfo").touch(mode=0)  # a recent negative entry
    assert scene.on_store("get", ID_FAR, "elf").stdout == f"{cache}/{ID_FAR}/executable\n"
    assert scene.on_store("missing", ID_FAR, ID_TWO, status=REFUSED).stdout == f"{ID_TWO}\n"
    assert scene.rows("list") == [] and scene.on_store("archive", ID_FAR, "-o", scene.home / "a.tar").returncode == DONE
    scene.on_store("get", "--lower=none", ID_FAR, "elf", status=REFUSED)
    assert scene.on_store("missing", "--lower=none", ID_FAR, status=REFUSED).stdout == f"{ID_FAR}\n"
    # no option names the cache, so it may be unreadable
    scene.run("missing", ID_FAR, status=REFUSED, DEBUGINFOD_CACHE_PATH="/dev/null/cache")


def case_missing_store_is_empty(scene):
    """Without a store and a cache of libdebuginfod results are empty, without an error."""
    assert scene.run("list", "--lower=debuginfod").stdout == ""
    scene.one_error("list", f"--lower={scene.home}/missing", status=REFUSED, has="no such directory")
    scene.one_error("add", "--lower=/usr/lib/debug", scene.one, status=USAGE, has="'--lower'")
    (scene.home / "cache" / "debuginfod_client" / ID_FAR).mkdir(parents=True)
    shutil.copy(scene.far, scene.home / "cache" / "debuginfod_client" / ID_FAR / "executable")
    place = {"XDG_CACHE_HOME": str(scene.home / "cache")}
    found = scene.run("list", "--json", "--lower=debuginfod", **place)
    assert [row["id"] for row in read_json(found.stdout)["result"]] == [ID_FAR], found
    place = {"DEBUGINFOD_CACHE_PATH": str(scene.home / "cache" / "debuginfod_client")}
    assert scene.run("missing", "--lower=debuginfod", ID_FAR, **place).stdout == ""
    scene.run("missing", "--lower=debuginfod", ID_FAR, ID_NOT_STORED, status=REFUSED)


def link_into_packages(scene):
    """Make a debug file that is a link into a store of packages. Return its tree, and the option that permits the link."""
    (scene.home / "packages").mkdir()
    (scene.home / "other").mkdir()
    shutil.copy(scene.one, scene.home / "packages" / "one.debug")
    link = scene.home / "profile" / ".build-id" / ID_ONE[:2] / f"{ID_ONE[2:]}.debug"
    link.parent.mkdir(parents=True)
    link.symlink_to(scene.home / "packages" / "one.debug")
    return scene.home / "profile", f"--links={scene.home}/other:{scene.home}/packages"


def case_reading_makes_no_default_store(scene):
    lowers, _, _ = fill(scene)
    home = scene.home / "new"
    home.mkdir()
    listed = scene.run("list", *lowers[:1], HOME=str(home)).stdout
    assert ID_ONE in listed and ID_TWO in listed, listed
    assert str(scene.two) in scene.run("show", *lowers[:1], ID_TWO, HOME=str(home)).stdout
    assert list(home.iterdir()) == []


def case_lower_store_needs_the_links_option(scene):
    tree, links = link_into_packages(scene)
    refused = scene.on_store("get", f"--lower={tree}", f"--links={scene.home}/other", ID_ONE, status=REFUSED)
    assert refused.stderr.count("links=DIR") == 1, refused
    found = scene.on_store("get", f"--lower={tree}", links, ID_ONE)
    assert found.stdout == f"{scene.home}/packages/one.debug\n" and not found.stderr, found
    scene.one_error("list", f"{links}:{scene.home}/missing", status=USAGE, has=f"'{scene.home}/missing'")


def case_file_server_needs_the_links_option(scene):
    tree, links = link_into_packages(scene)
    refused = scene.on_store("get", f"--url=file://{tree}", ID_ONE, status=TROUBLE)
    assert "links=DIR" in refused.stderr, refused
    assert scene.on_store("get", f"--url=file://{tree}", links, ID_ONE).stdout.startswith(str(scene.store))


def case_lower_file_on_other_file_system_gets_no_path(scene):
    """A hard link is impossible, so no directory for it may be left."""
    cases.need(os.access("/dev/shm", os.W_OK) and os.stat("/dev/shm").st_dev != scene.home.stat().st_dev, "one file system only")
    sleep = shutil.which("sleep")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="bid-lower.") as other, subprocess.Popen([sleep, "1000"]) as process:
        try:
            scene.run("--store", other, "add", "--link=copy", sleep)
            scene.on_store("get", "--offline", f"--lower={other}", f"--pid={process.pid}", "elf")
        finally:
            process.kill()
    assert not [path for path in scene.store.rglob("*") if path.is_dir() and ".bidfs" not in path.parts and not os.listdir(path)]


if __name__ == "__main__":
    cases.main(globals(), Scene, fetching=[case_file_server_needs_the_links_option])
