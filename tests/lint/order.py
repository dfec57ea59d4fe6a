#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that the includes of each paragraph are sorted, each once. Only cmocka.h comes behind the headers that it needs."""
import re

from lint import files, finish, name_of

INCLUDE = re.compile(r'#include [<"]([^>"]+)[>"]')
CMOCKA = ("setjmp.h", "stdarg.h", "cmocka.h")


def paragraphs(path):
    """Yield blocks of consecutive includes: (line of the first, names)."""
    names = []
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        if match := INCLUDE.match(line):
            names.append(match[1])
        elif names:
            yield number - len(names), names
            names = []


def check(path):
    for number, names in paragraphs(path):
        if "cmocka.h" in names:
            names = [name for name in names if name not in CMOCKA]
        for before, name in zip(names, names[1:]):
            if name <= before:
                yield f"{name_of(path)}:{number}: '{name}' behind '{before}'"


sources = files(".c", ".h")
finish([problem for path in sources for problem in check(path)], f"{len(sources)} files")
