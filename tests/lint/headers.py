#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compile each header alone: headers.py --build DIR FOLDER...

The force-included header is left out, because it includes headers of the C library and so hides missing includes.
"""
import argparse
import itertools
import json
import pathlib
import shlex
import subprocess

from lint import CONTRACTS, PUBLIC, ROOT, finish, name_of

KEPT = ("-std=", "-D", "-I", "-O", "-f")
DROPPED = ("-fsanitize", "-fdiagnostics")
STRICT = ["-Wall", "-Wextra", "-Wmissing-prototypes", "-Wno-unused-parameter", "-Wno-unused-function", "-Werror", "-fsyntax-only"]


def flags_of(build, folder):
    """Return the compiler and flags of the sources of a folder, from the target with most flags."""
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        words = shlex.split(entry["command"])
        if source.suffix == ".c" and source.parent == ROOT / folder:
            compiler = list(itertools.takewhile(lambda word: not word.startswith("-"), words))  # behind ccache, if there is one
            found.append(compiler + [word for word in words if word.startswith(KEPT) and not word.startswith(DROPPED)])
    return max(found, key=len, default=None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()

    problems, count = [], 0
    for folder in args.folders:
        # public headers and those between the layers have no sources beside them
        command = flags_of(args.build, "store" if folder in CONTRACTS else folder)
        if command is None:
            problems.append(f"{folder}: the build compiles nothing here, so its flags are not known")
            continue
        if folder in PUBLIC:
            command = [word for word in command if not word.endswith("store")]
        for header in sorted((ROOT / folder).glob("*.h")):
            count += 1
            run = subprocess.run(command + STRICT + ["-x", "c", "-include", header, "/dev/null"],
                                 cwd=args.build, capture_output=True, text=True)
            if run.returncode:
                problems.append(f"{name_of(header)}: does not compile alone:\n{run.stderr}")
    finish(problems, f"{count} headers")


main()
