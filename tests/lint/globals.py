#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that only the log has a mutable global: globals.py ARCHIVE..."""
import re
import subprocess
import sys

from lint import finish

ALLOWED = {"libbid-base.a": r"base_log\.c\.o"}
# objdump -t: value, seven flags (the last is O for data), section, size, name
DATA = re.compile(r"^[0-9a-f]+ .{6}O (?P<section>\S+)\s+(?P<size>[0-9a-f]+)\s+(?:\.hidden )?(?P<name>\S+)$")
# constants, and tables of pointers to constants, which the dynamic linker makes read-only
HARMLESS = re.compile(r"\.rodata.*|\.data\.rel\.ro.*")


def check(archive):
    member = None
    for line in subprocess.run(["objdump", "--syms", archive], check=True, capture_output=True, text=True).stdout.splitlines():
        if match := re.match(r"(\S+):\s+file format", line):
            member = match[1].rpartition("/")[2]
        match = DATA.match(line)
        if not match or HARMLESS.fullmatch(match["section"]):
            continue
        if not re.fullmatch(ALLOWED.get(archive.rpartition("/")[2], ""), member):
            yield f"{member}: '{match['name']}' in {match['section']}: a mutable global"


problems = [problem for archive in sys.argv[1:] for problem in check(archive)]
finish(problems, f"{len(sys.argv) - 1} archives")
