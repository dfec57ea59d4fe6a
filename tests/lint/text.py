#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check each text file: 132 columns, an SPDX line on top, plain quotes in code, no stray blanks. README.md is short."""
import re

from lint import files, finish, name_of

WIDTH = 132
TAB = 8
README_MAX = 6 * 1024
SPDX = "SPDX-License-Identifier: LGPL-2.1-or-later"
CODE = {".c", ".h", ".py", ".sh", ".map", ".build", ".urls", ".gdb", ".bash", ".fish", ".zsh"}
MAN = re.compile(r"\.[1-8]")
CURLY = re.compile("[\u2018\u2019\u201a-\u201f\u00ab\u00bb\u00a0]")
# files whose lines cannot be broken: prose with one paragraph a line, data
LONG = {".md", ".json", ".svg"}


def is_code(path, text):
    return path.suffix in CODE or path.name == "meson_options.txt" or text.startswith("#!")


def check(path, text):
    name, code = name_of(path), is_code(path, text)
    lines = text.split("\n")
    if (code or MAN.fullmatch(path.suffix)) and not any(SPDX in line for line in lines[:3]):
        yield f"{name}:1: no SPDX line on top"
    if text and not text.endswith("\n"):
        yield f"{name}:{len(lines)}: no newline at the end"
    for number, line in enumerate(lines, 1):
        if path.suffix not in LONG and len(line.expandtabs(TAB)) > WIDTH:
            yield f"{name}:{number}: {len(line.expandtabs(TAB))} columns"
        if code and CURLY.search(line) and r"\u" not in line:
            yield f"{name}:{number}: a typographic quote or blank"
        if code and line != line.rstrip():
            yield f"{name}:{number}: blanks at the end"


def read(path):
    """Return the text of a file, or None for a binary one."""
    data = path.read_bytes()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def is_long_readme(path, text):
    return name_of(path) == "README.md" and len(text.encode()) > README_MAX


texts = [(path, read(path)) for path in files() if "corpus" not in path.parts and path.name != "LICENSE"]
texts = [(path, text) for path, text in texts if text is not None]
problems = [problem for path, text in texts for problem in check(path, text)]
problems += [f"README.md: {len(text.encode())} bytes, at most {README_MAX}" for path, text in texts if is_long_readme(path, text)]
finish(problems, f"{len(texts)} files")
