#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that docs/PERF.md names existing tests, and that each of its requirements names one."""
import re

from lint import ROOT, finish

NAME = re.compile(r"`(?:(test_\w+\.py)(?:: )?)?(test_\w+)?`")

problems, rows = [], 0
for line in (ROOT / "docs/PERF.md").read_text().splitlines():
    row = re.match(r"\| (\d+a?) \|", line)
    rows += bool(row)
    file = None
    for name, test in NAME.findall(line):
        file = name or file
        path = ROOT / "tests/mount" / (file or "")
        if not file or not path.is_file() or (test and f"def {test}(" not in path.read_text()):
            problems.append(f"docs/PERF.md: no '{file}: {test}'")
    if row and not file:
        problems.append(f"docs/PERF.md: row {row[1]} names no test")
finish(problems, f"{rows} rows")
