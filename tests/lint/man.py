#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual pages are formatted without a warning, and have something to show: man.py PAGE..."""
import os
import pathlib
import subprocess
import sys

from lint import finish, name_of

problems = []
for page in sys.argv[1:]:
    run = subprocess.run(["man", "--warnings", "--local-file", page], capture_output=True, text=True,
                         env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
    name = name_of(pathlib.Path(page).resolve())
    problems += [f"{name}: {line}" for line in run.stderr.splitlines()]
    if run.returncode or "SYNOPSIS" not in run.stdout:
        problems.append(f"{name}: man ended with {run.returncode} and showed {len(run.stdout)} characters")
finish(problems, f"{len(sys.argv) - 1} pages")
