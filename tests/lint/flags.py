#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that each flag of meson.build is in each compilation: flags.py BUILD_DIR

A flag that the compiler does not know, or two in one string, is dropped by meson without a word.
"""
import ast
import json
import pathlib
import re
import shlex
import sys

from lint import ROOT, finish


def main():
    build = pathlib.Path(sys.argv[1])
    text = re.sub(r"#.*", "", (ROOT / "meson.build").read_text())
    wanted = ast.literal_eval(re.search(r"^wanted_flags = (\[.*?\])", text, re.M | re.S)[1])
    wanted += ["-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"]

    problems = [f"'{flag}': two flags in one string" for flag in wanted if len(flag.split()) != 1]
    commands = [entry for entry in json.loads((build / "compile_commands.json").read_text()) if entry["file"].endswith(".c")]
    for entry in commands:
        words = shlex.split(entry["command"])
        problems += [f"'{entry['file']}': compiled without '{flag}'" for flag in wanted if flag not in words]
        if not any(word == "-include" and follower.endswith("store/base/banned.h") for word, follower in zip(words, words[1:])):
            problems.append(f"'{entry['file']}': compiled without store/base/banned.h")
    finish(problems, f"{len(commands)} commands, {len(wanted)} flags")


main()
