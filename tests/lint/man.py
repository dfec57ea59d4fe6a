#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Format the manual pages without a warning, and check that each is installed: man.py INSTALLED-PAGE..."""
import os
import pathlib
import subprocess
import sys

from lint import files, finish, name_of

installed = [pathlib.Path(page).resolve() for page in sys.argv[1:]]
problems = [f"{name_of(page)}: docs/meson.build does not install this page" for page in files(".1", ".7", ".8", below="docs")
            if page not in installed]
for page in installed:
    run = subprocess.run(["man", "--warnings", "--local-file", page], capture_output=True, text=True,
                         env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
    name = name_of(page)
    problems += [f"{name}: {line}" for line in run.stderr.splitlines()]
    if run.returncode or "DESCRIPTION" not in run.stdout:
        problems.append(f"{name}: man ended with {run.returncode} and showed {len(run.stdout)} characters")
finish(problems, f"{len(installed)} pages")
