#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that each requirement in docs/PERF.md names existing tests."""
import re

from lint import ROOT, finish

NAME = re.compile(r"`(?:(test_\w+\.py)(?:: )?)?(test_\w+)?`")

problems, rows = [], 0
for line in (ROOT / "docs/PERF.md").read_text().splitlines():
    cells = line.split(" | ")
    if not re.match(r"\| \d+ \|", line):
        continue
    rows += 1
    file = None
    for name, test in NAME.findall(cells[-1]):
        file = name or file
        path = ROOT / "tests/mount" / (file or "")
        if not file or not path.is_file() or (test and f"def {test}(" not in path.read_text()):
            problems.append(f"docs/PERF.md: row {rows}: no '{file}: {test}'")
    if not file:
        problems.append(f"docs/PERF.md: row {rows} names no test")
finish(problems, f"{rows} rows")
