#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run pyflakes: undefined names, and tests replaced by a namesake."""
import ast
import re

from lint import files, finish, name_of, skip

try:
    from pyflakes import checker, messages
except ImportError:
    skip("needs python3-pyflakes")


def is_python(path):
    if path.suffix:
        return path.suffix == ".py"
    with open(path, "rb") as file:
        return re.match(rb"#!.*\bpython3?\b", file.readline(100)) is not None


def fixtures(tree):
    """Return the fixtures that pytest finds by name."""
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            and any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)}


trees = {path: ast.parse(path.read_bytes()) for path in files() if is_python(path)}
known = set().union(*map(fixtures, trees.values()))
problems = []
for path, tree in trees.items():
    for message in checker.Checker(tree, name_of(path)).messages:
        about_name = isinstance(message, (messages.UnusedImport, messages.RedefinedWhileUnused))
        if not about_name or str(message.message_args[0]).rpartition(".")[2] not in known:
            problems.append(str(message))
finish(problems, f"{len(trees)} files")
