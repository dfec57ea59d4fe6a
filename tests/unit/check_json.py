#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the JSON of each command with tests/unit/golden/NAME.json, without values that change: paths, times, sizes.

With BIDFS_GOLDEN=write in the environment, write these files. A changed or removed key is a new schema: docs/JSON.md.
"""
import json
import os
import pathlib
import re
import shutil

from bidctl_scene import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, USAGE, Scene, read_json
from cases import main
from check_add_perf_data import Recording

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
SIZES = {"size", "free", "fetched_size", "derived_size", "evicted_size", "in_use_size", "shared_size", "files"}
TIMES = {"time", "mtime"}


def normal(scene, value, key=None):
    """Return @value with a word in place of each value that differs from run to run."""
    if isinstance(value, dict):
        return {name: normal(scene, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [normal(scene, inner, key) for inner in value]
    if key in SIZES | TIMES and value:
        return "SIZE" if key in SIZES else "TIME"
    if key == "link" and value:
        return "LINK"
    if isinstance(value, str):
        for path, name in (scene.store, "STORE"), (scene.home, "HOME"), (scene.one.parent, "BUILT"):
            value = value.replace(str(path), name).replace(str(path)[1:], name)
        value = re.sub(r"\b\d+-\d+-[0-9a-f]{32}\b", "CONTENT_KEY", value)
        value = re.sub(r"xxh3-128:[0-9a-f]+", "DIGEST", value)
    return value


def compare(scene, name, *arguments, status=DONE, rows=None, totals=True):
    """Compare the output of a command. @rows selects rows that each machine has; without @totals they are not compared."""
    value = read_json(scene.on_store("--json", *arguments, status=status).stdout)
    if rows:
        value["result"] = [row for row in value["result"] if rows(row)]
    if not totals:
        value["totals"] = dict.fromkeys(value["totals"])
    text = json.dumps(normal(scene, value), indent=2) + "\n"
    path = GOLDEN / f"{name}.json"
    if os.environ.get("BIDFS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text(), f"not as {path.name}:\n{text}"


def case_builds(scene):
    compare(scene, "add", "add", "--jobs=1", scene.one, scene.two, scene.text, status=REFUSED)
    compare(scene, "add-known", "add", scene.one)
    compare(scene, "update", "update", scene.one, scene.far, scene.text, status=REFUSED)
    compare(scene, "list", "list")
    compare(scene, "show", "show", ID_ONE)
    compare(scene, "show-path", "show", scene.one)
    compare(scene, "show-absent", "show", ID_NOT_STORED, status=REFUSED)
    compare(scene, "get", "get", "--offline", ID_ONE, "elf")
    compare(scene, "get-absent", "get", "--offline", ID_NOT_STORED, status=REFUSED)
    compare(scene, "missing", "missing", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(scene, "archive", "archive", "-o", scene.home / "a.tar", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(scene, "unarchive", "unarchive", scene.home / "a.tar")
    compare(scene, "pin", "pin", ID_ONE, ID_NOT_STORED, status=REFUSED)
    # on tmpfs a directory takes no blocks
    compare(scene, "du", "du", rows=lambda row: row.get("kind") != "index")
    compare(scene, "remove-dry-run", "remove", "--dry-run", ID_ONE)
    compare(scene, "remove", "remove", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(scene, "gc", "gc")


def case_state(scene):
    scene.on_store("add", scene.one)
    compare(scene, "status", "status", rows=lambda row: "mount" not in row, totals=False)
    compare(scene, "doctor", "doctor", "--offline", status=None, rows=lambda row: row["check"] == "store", totals=False)
    compare(scene, "offline", "offline", "on", scene.home, status=REFUSED)
    compare(scene, "umount", "umount", scene.home, status=REFUSED)
    compare(scene, "mount", "mount", status=USAGE)
    compare(scene, "setup", "setup", "system", "--undo", f"--root={scene.home}", status=REFUSED)
    compare(scene, "log", "log")


def case_watch_prints_an_object_for_each_line(scene):
    lines = scene.on_store("--json", "watch", "--once").stdout.splitlines()
    *values, last = [read_json(line) for line in lines]
    assert all(len(value["result"]) == 1 and value["totals"] == {} for value in values) and last["result"] == [], lines
    assert list(values[0]["result"][0]) == ["id", "kind", "state", "link", "file", "reason", "time"], values[0]


def case_damage(scene):
    scene.on_store("add", "--link=copy", scene.one, scene.two)
    stored = scene.store / str(scene.one)[1:] / ID_ONE / "elf"
    stored.unlink()
    shutil.copy(scene.far, stored)
    compare(scene, "verify", "verify", status=REFUSED)
    place = scene.store / ".bidfs" / "quarantine"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(scene.far, place / f"{ID_TWO}.elf.1")
    compare(scene, "quarantine", "quarantine")
    shutil.copy(scene.far, place / "wrong")
    compare(scene, "quarantine-drop", "quarantine", "drop", "wrong")
    compare(scene, "quarantine-restore", "quarantine", "restore", f"{ID_TWO}.elf.1", "none", status=REFUSED)


def case_probes(scene):
    scene.on_store("add", scene.one)
    (scene.store / str(scene.one)[1:] / ID_ONE / "probes").write_text(f"#a:b=main\np:a/b {scene.one}:0x10\n")
    compare(scene, "probe-list", "probe", "list")
    compare(scene, "probe-show", "probe", "show", ID_ONE)
    compare(scene, "probe-add", "probe", "add", ID_ONE, f"p:a/c {scene.one}:0x10")
    compare(scene, "probe-apply", "probe", "apply", ID_ONE, "none", status=REFUSED)
    compare(scene, "probe-remove", "probe", "remove", ID_ONE, "a:b")


def case_recording(scene):
    recording = Recording(scene.home).lists(scene.one, ID_ONE).lists("/gone", ID_FAR).write()
    compare(scene, "get-many", "get", "--perf-data", recording, "--offline", status=REFUSED)
    compare(scene, "add-perf-data", "add", "--perf-data", recording, status=REFUSED)
    scene.on_store("add", "--perf-data", Recording(scene.home).maps(scene.no_id).write(), status=REFUSED)
    compare(scene, "list-content-keys", "list", "--content-keys")


def case_wrong_usage_is_refused(scene):
    compare(scene, "usage", "list", "--no-such-option", status=USAGE)
    compare(scene, "usage-command", "no-such-command", status=USAGE)
    compare(scene, "no-store", "--store", "/nowhere", "list", status=REFUSED)
    text = scene.run("list", "--perf-data", "-vj", status=USAGE).stdout
    assert read_json(scene.run("-vj", "list", "--no-such", status=USAGE).stdout)["command"] == "list" and text == ""
    assert ID_FAR not in scene.run("--json", "--help").stdout


if __name__ == "__main__":
    main(globals(), Scene)
