#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that a function with one user is static, and that each has a user besides tests: private.py BUILD_ROOT

Functions of include/bid/ have users outside of the tree. The handlers of fs/fuse/ops.h are declared by file, wherever their table
is.
"""
import json
import pathlib
import re
import subprocess
import sys

from lint import PUBLIC, declared_functions, finish

ELSEWHERE = re.compile(r"main|bid_op_\w+|bid_perfdata_read_fd")  # tests and fuzz targets read recordings by descriptor
INSTRUMENTS = re.compile(r"__(asan|odr_asan|ubsan|tsan|lsan|gcov)\w*")


def symbols(objects):
    """Yield (object, type, name) of each symbol."""
    output = subprocess.run(["nm", "--print-file-name", "--format=posix", "--extern-only", *objects],
                            check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        place, name, kind = line.split()[:3]
        yield place.rstrip(":"), kind, name


root = pathlib.Path(sys.argv[1])
# only objects of this build: a renamed file leaves its object behind
outputs = [command["output"] for command in json.loads((root / "compile_commands.json").read_text())]
objects = sorted(str(root / output) for output in outputs if output.startswith(("store/", "fs/")))
found = list(symbols(objects)) if objects else []
used = {name for _, kind, name in found if kind == "U"}
public = declared_functions(PUBLIC)
problems = [f"{pathlib.Path(place).relative_to(root)}: '{name}': no other file uses it: static, or dead"
            for place, kind, name in found
            if kind in "TDBR" and name not in used and name not in public
            and not ELSEWHERE.fullmatch(name) and not INSTRUMENTS.match(name)]
finish(problems, f"{len(found)} symbols of {len(objects)} objects")
