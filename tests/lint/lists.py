#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that the list commit or release has each test, and that the other lists name tests of commit: lists.py BUILD_DIRECTORY"""
import collections
import json
import pathlib
import sys

from lint import ROOT, finish

LISTS = ROOT / "tests/lists"


def read_list(path):
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def main():
    tests = {test["name"] for test in json.loads((pathlib.Path(sys.argv[1]) / "meson-info/intro-tests.json").read_text())}
    tests |= {path.name for path in (ROOT / "tests/mount").glob("test_*.py")}
    lists = {path.name: read_list(path) for path in LISTS.iterdir()}
    commit = set(lists["commit"])
    listed = collections.Counter(lists["commit"] + lists["release"])
    problems = [f"{name}: no list has it: add it to tests/lists/commit or tests/lists/release" for name in tests - set(listed)]
    for name, count in listed.items():
        if name.partition("::")[0] not in tests:
            problems.append(f"{name}: a list has it, but there is no such test")
        if count > 1:
            problems.append(f"{name}: listed {count} times")
    for which in lists.keys() - {"commit", "release"}:
        problems += [f"{name}: tests/lists/{which} has it, but tests/lists/commit has not" for name in set(lists[which]) - commit]
    finish(sorted(problems), f"{len(tests)} tests")


if __name__ == "__main__":
    main()
