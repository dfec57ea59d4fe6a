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

from bidctl_env import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, USAGE, Env, read_json
from cases import main
from check_add_perf_data import Recording
from check_watch import Watch

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
SIZES = {"size", "free", "fetched_size", "derived_size", "evicted_size", "in_use_size", "shared_size", "files"}
TIMES = {"time", "mtime"}


def normal(env, value, key=None):
    """Return @value with a word in place of each value that differs from run to run."""
    if isinstance(value, dict):
        return {name: normal(env, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [normal(env, inner, key) for inner in value]
    if key in SIZES | TIMES and value:
        return "SIZE" if key in SIZES else "TIME"
    if key == "link" and value:
        return "LINK"
    if isinstance(value, str):
        for path, name in (env.store, "STORE"), (env.home, "HOME"), (env.one.parent, "BUILT"):
            value = value.replace(str(path), name).replace(str(path)[1:], name)
        value = re.sub(r"\b\d+-\d+-[0-9a-f]{32}\b", "CONTENT_KEY", value)
        value = re.sub(r"xxh3-128:[0-9a-f]+", "DIGEST", value)
    return value


def compare(env, name, *arguments, status=DONE, rows=None, totals=True):
    """Compare the output of a command. @rows selects rows that each machine has; without @totals they are not compared."""
    value = read_json(env.on_store("--json", *arguments, status=status).stdout)
    if rows:
        value["result"] = [row for row in value["result"] if rows(row)]
    if not totals:
        value["totals"] = dict.fromkeys(value["totals"])
    text = json.dumps(normal(env, value), indent=2) + "\n"
    path = GOLDEN / f"{name}.json"
    if os.environ.get("BIDFS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text(), f"not as {path.name}:\n{text}"


def case_builds(env):
    compare(env, "add", "add", "--jobs=1", env.one, env.two, env.text, status=REFUSED)
    compare(env, "add-known", "add", env.one)
    compare(env, "update", "update", env.one, env.far, env.text, status=REFUSED)
    compare(env, "list", "list")
    compare(env, "show", "show", ID_ONE)
    compare(env, "show-path", "show", env.one)
    compare(env, "show-absent", "show", ID_NOT_STORED, status=REFUSED)
    compare(env, "get", "get", "--offline", ID_ONE, "elf")
    compare(env, "get-absent", "get", "--offline", ID_NOT_STORED, status=REFUSED)
    compare(env, "missing", "missing", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(env, "archive", "archive", "-o", env.home / "a.tar", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(env, "unarchive", "unarchive", env.home / "a.tar")
    compare(env, "pin", "pin", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(env, "unpin", "unpin", ID_ONE, ID_NOT_STORED, status=REFUSED)
    # on tmpfs a directory takes no blocks
    compare(env, "du", "du", rows=lambda row: row.get("kind") != "index")
    compare(env, "remove-dry-run", "remove", "--dry-run", ID_ONE)
    compare(env, "remove", "remove", ID_ONE, ID_NOT_STORED, status=REFUSED)
    compare(env, "gc", "gc")


def case_state(env):
    env.on_store("add", env.one)
    compare(env, "status", "status", rows=lambda row: "mount" not in row, totals=False)
    compare(env, "doctor", "doctor", "--offline", status=None, rows=lambda row: row["check"] == "store", totals=False)
    compare(env, "offline", "offline", "on", env.home, status=REFUSED)
    compare(env, "umount", "umount", env.home, status=REFUSED)
    compare(env, "mount", "mount", status=USAGE)
    compare(env, "setup", "setup", "system", "--undo", f"--root={env.home}", status=REFUSED)
    compare(env, "log", "log")


def case_watch_prints_an_object_for_each_line(env):
    with Watch(env, "--json") as watch:
        watch.end()
    *values, last = [read_json(line) for line in watch.lines]
    assert all(len(value["result"]) == 1 and value["totals"] == {} for value in values) and last["result"] == [], watch.lines
    assert list(values[0]["result"][0]) == ["id", "kind", "state", "link", "file", "reason", "time"], values[0]


def case_damage(env):
    env.on_store("add", "--link=copy", env.one, env.two)
    stored = env.store / str(env.one)[1:] / ID_ONE / "elf"
    stored.unlink()
    shutil.copy(env.far, stored)
    compare(env, "verify", "verify", status=REFUSED)
    place = env.store / ".bidfs" / "quarantine"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(env.far, place / f"{ID_TWO}.elf.1")
    compare(env, "quarantine", "quarantine")
    shutil.copy(env.far, place / "wrong")
    compare(env, "quarantine-drop", "quarantine", "drop", "wrong")
    compare(env, "quarantine-restore", "quarantine", "restore", f"{ID_TWO}.elf.1", "none", status=REFUSED)


def case_probes(env):
    env.on_store("add", env.one)
    (env.store / str(env.one)[1:] / ID_ONE / "probes").write_text(f"#a:b=main\np:a/b {env.one}:0x10\n")
    compare(env, "probe-list", "probe", "list")
    compare(env, "probe-show", "probe", "show", ID_ONE)
    compare(env, "probe-add", "probe", "add", ID_ONE, f"p:a/c {env.one}:0x10")
    compare(env, "probe-apply", "probe", "apply", ID_ONE, "none", status=REFUSED)
    compare(env, "probe-remove", "probe", "remove", ID_ONE, "a:b")


def case_recording(env):
    recording = Recording(env.home).lists(env.one, ID_ONE).lists("/gone", ID_FAR).write()
    compare(env, "get-many", "get", "--perf-data", recording, "--offline", status=REFUSED)
    compare(env, "add-perf-data", "add", "--perf-data", recording, status=REFUSED)
    env.on_store("add", "--perf-data", Recording(env.home).maps(env.no_id).write(), status=REFUSED)
    compare(env, "list-content-keys", "list", "--content-keys")


def case_wrong_usage_is_refused(env):
    compare(env, "usage", "list", "--no-such-option", status=USAGE)
    compare(env, "usage-command", "no-such-command", status=USAGE)
    compare(env, "no-store", "--store", "/nowhere", "list", status=REFUSED)
    text = env.run("list", "--perf-data", "-vj", status=USAGE).stdout
    assert read_json(env.run("-vj", "list", "--no-such", status=USAGE).stdout)["command"] == "list" and text == ""
    assert ID_FAR not in env.run("--json", "--help").stdout


if __name__ == "__main__":
    main(globals(), Env)
