#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the exports of libbid.so with include/bid and the version script: exports.py LIBRARY [--without HEADER]..."""
import argparse
import re
import subprocess

from lint import PUBLIC, ROOT, declared_functions, finish, without_comments


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--without", action="append", default=[], help="a header whose functions are not built in")
    args = parser.parse_args()

    declared = declared_functions(PUBLIC)
    script = without_comments((ROOT / "store/libbid.map").read_text())
    in_script = set(re.findall(r"\b(bid_\w+)\s*;", script))
    output = subprocess.run(["nm", "--dynamic", "--defined-only", "--portability", args.library],
                            check=True, capture_output=True, text=True).stdout
    # the version's own name is an absolute symbol
    exported = {line.split()[0].partition("@")[0] for line in output.splitlines() if line.split()[1] != "A"}
    built = {name for name, header in declared.items() if header.rpartition("/")[2] not in args.without}

    problems = [f"'{name}' of '{declared[name]}' is not in store/libbid.map" for name in sorted(set(declared) - in_script)]
    problems += [f"'{name}' of store/libbid.map is in no public header" for name in sorted(in_script - set(declared))]
    problems += [f"'{name}' of '{declared[name]}' is not exported" for name in sorted(built - exported)]
    problems += [f"'{name}' is exported and in no public header" for name in sorted(exported - built)]
    finish(problems, f"{len(declared)} functions")


main()
