#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check C sources with clang-format. The column of a comment behind code is free, so comments can be aligned. Versions of
clang-format disagree in details; the version of Debian 12 decides.
"""
import difflib
import pathlib
import re
import shutil
import subprocess
import tempfile

from lint import ROOT, files, finish, name_of, skip

VERSION = 14
BEHIND = re.compile(r"(?<=\S)[ \t]+(/\*.*\*/|\\)$")
DEFINE = re.compile(r"^(#define \S+)[ \t]+")


def normal(text):
    return [DEFINE.sub(r"\1 ", BEHIND.sub(r" \1", line)) for line in text.splitlines()]


def find_tool():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], check=True, capture_output=True, text=True).stdout.strip()
            if re.search(rf"version {VERSION}\.", version):
                return name
            skip(f"'{version}' is not version {VERSION}, which decides")
    skip(f"no clang-format, version {VERSION} is wanted")


tool, problems, sources = find_tool(), [], files(".c", ".h")
with tempfile.TemporaryDirectory(prefix="bidfs-format-") as scratch:
    # format copies with one start, which takes much longer than a file
    copies = {path: pathlib.Path(scratch) / name_of(path) for path in [ROOT / ".clang-format", *sources]}
    for path, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    subprocess.run([tool, "--style=file", "-i", *(copies[path] for path in sources)], check=True)
    for path in sources:
        name = name_of(path)
        diff = difflib.unified_diff(normal(path.read_text()), normal(copies[path].read_text()), name, f"{name} (formatted)",
                                    lineterm="", n=1)
        if lines := list(diff):
            problems.append("\n".join(lines))
finish(problems, f"{len(sources)} files")
