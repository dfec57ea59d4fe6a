#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl du, which shows the space that a store takes.

usage: check_du.py BIDCTL [--no-fetch] [CASE...]
"""
import os
import subprocess

from bidctl_scene import ID_NOT_STORED, ID_ONE, ID_TWO, TIMEOUT, Scene, server
from cases import main


def on_disk(path):
    return os.lstat(path).st_blocks * 512


def rows(scene, *arguments):
    """Return {(kind, origin): (files, bytes)}, and the sum."""
    done = scene.on_store("du", *arguments)
    lines = [line.split("\t") for line in done.stdout.removesuffix(done.summary).splitlines()]
    return {(kind, origin): (int(files), int(size)) for kind, origin, files, size in lines}, done.summary


def case_total_equals_that_of_du(scene):
    scene.on_store("add", scene.one, scene.two, "--link=hard")
    scene.on_store("add", scene.no_id, scene.text, status=None)
    (scene.store / "notes").write_bytes(bytes(9000))
    quarantine = scene.store / ".bidfs" / "quarantine"
    quarantine.mkdir()
    (quarantine / f"{ID_ONE}.elf.1764140400").write_bytes(bytes(5000))
    found, _ = rows(scene)
    size = on_disk(scene.one) + on_disk(scene.two)
    assert found["elf", "added"] == (2, size), found
    assert found["foreign", "-"] == (1, on_disk(scene.store / "notes")), found
    assert found["quarantine", "-"] == (1, 8192), found
    whole = subprocess.run(["du", "--summarize", "--block-size=1", scene.store], check=True, capture_output=True, text=True,
                           timeout=TIMEOUT).stdout
    json = scene.json("du")
    assert json["totals"]["size"] == sum(size for _, size in found.values()) == int(whole.split()[0]), (json, whole)
    assert json["totals"]["shared_size"] == size and [row["path"] for row in json["result"] if "id" in row] in (
        [str(scene.one), str(scene.two)], [str(scene.two), str(scene.one)]), json


def case_file_with_several_names_counts_once(scene):
    scene.on_store("add", "--link=copy", scene.one)
    again = scene.home / "again"
    again.write_bytes(scene.one.read_bytes())
    scene.on_store("add", "--link=copy", again)
    names = [path for path in scene.store.rglob("elf") if ".bidfs" not in path.parts]
    assert len(names) == 2 and names[0].samefile(names[1])
    found, summary = rows(scene)
    assert found["elf", "added"] == (1, on_disk(names[0])), found
    assert "outside" not in summary, "a file is not shared with others if all its names are in the store"


def case_pattern_is_a_path_or_an_id(scene):
    scene.on_store("add", "--link=copy", scene.one, scene.two)
    for pattern in (scene.one, "*/one", ID_ONE[:9], ID_ONE.upper()):
        found, _ = rows(scene, pattern)
        assert set(found) == {("elf", "added")} and found["elf", "added"][0] == 1, (pattern, found)
        assert [line.split("\t")[0] for line in scene.on_store("list", pattern).stdout.splitlines()] == [ID_ONE]
    assert rows(scene, "none") == ({}, "files 0, size 0 B\n")
    assert ID_TWO not in scene.on_store("du", ID_ONE[:9]).stdout


def case_downloads_and_derived_files_are_told_apart(scene):
    with server(scene) as url:
        scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        scene.on_store("get", f"--url={url}", ID_NOT_STORED)
    scene.on_store("get", "--offline", ID_NOT_STORED, "section", ".text")
    scene.on_store("add", scene.one)
    found, _ = rows(scene)
    assert {("elf", "fetched"), ("elf", "added"), ("debuginfo", "fetched"), ("section", "derived")} < set(found), found
    assert scene.on_terminal("-s", scene.store, "du")[1].count(ID_NOT_STORED) == 1


def case_absent_default_store_takes_nothing(scene):
    assert scene.run("du").summary == "files 0, size 0 B\n"
    assert not (scene.home / ".debug").exists()


main(globals(), Scene, fetching=(case_downloads_and_derived_files_are_told_apart,))
