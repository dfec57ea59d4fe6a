#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that each list names tests that exist, once, and that one in release is in no other list: lists.py BUILD_DIRECTORY"""
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
    problems = []
    for which, names in lists.items():
        for name, count in collections.Counter(names).items():
            if name.partition("::")[0] not in tests:
                problems.append(f"{name}: tests/lists/{which} has it, but there is no such test")
            if count > 1:
                problems.append(f"{name}: tests/lists/{which} has it {count} times")
            if which != "release" and name in lists["release"]:
                problems.append(f"{name}: tests/lists/{which} and tests/lists/release have it")
    finish(sorted(problems), f"{sum(map(len, lists.values()))} lines")


if __name__ == "__main__":
    main()
