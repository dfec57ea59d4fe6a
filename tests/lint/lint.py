# SPDX-License-Identifier: LGPL-2.1-or-later
"""Helpers of the lint tests: the files of the tree, and the report of problems."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77


def is_built(folder):
    """Match directories of tools and build directories, whatever their name."""
    at_top = folder.parent == ROOT
    return (folder.name in (".git", "__pycache__", ".pytest_cache") or (folder / "meson-private").exists()
            or (at_top and folder.name.startswith("build")))


def files(*suffixes, below=""):
    """Return the sorted source files of the tree, of these suffixes if any is given."""
    found = []
    for folder, folders, names in os.walk(ROOT / below):
        folders[:] = [name for name in folders if not is_built(pathlib.Path(folder, name))]
        found += [pathlib.Path(folder, name) for name in names]
    return sorted(path for path in found if path.is_file() and (not suffixes or path.suffix in suffixes))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def without_comments(text):
    """Blank the comments of C source, but keep its lines and string literals."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: m[0] if m[0][0] in "\"'" else " " + "\n" * m[0].count("\n"), text)


PUBLIC, CONTRACTS = ("include/bid",), ("include/bid", "store/api")


def declared_functions(folders):
    """Return the functions that the headers of @folders declare: {name: header}."""
    found = {}
    for header in (header for folder in folders for header in files(".h", below=folder)):
        text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", without_comments(header.read_text()), flags=re.M)
        before = None
        while before != text:
            before, text = text, re.sub(r"\{[^{}]*\}", "", text)
        for statement in text.split(";"):
            match = re.search(r"\b(bid_\w+)\s*\(", statement)
            if match and not statement.lstrip().startswith("typedef"):
                found[match[1]] = name_of(header)
    return found


def skip(reason):
    print(reason)
    sys.exit(SKIP)


def finish(problems, looked_at):
    """End the test. It fails with any problem, and if no file was checked."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems in {looked_at}")
    if not looked_at or str(looked_at).startswith("0 "):
        print("nothing was looked at: the test itself is broken")
        sys.exit(1)
    sys.exit(bool(problems))
