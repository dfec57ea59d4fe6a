#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Check names in pages: files and functions in the pages for developers ("FUNCTION @ FILE" in a chain of calls, `function()`, file.c),
and the keys in docs/JSON.md.
"""
import re

from lint import ROOT, files, finish, name_of

PAGES = ["docs/ARCHITECTURE.md", "docs/DESIGN.md"] + [name_of(page) for page in files(".md", below="docs/flows")]
DEFINITION = r"^\w[^\n;=]*\b{}\([^;]*?\)\s*\{{"


def main():
    sources = {name_of(path): path.read_text() for path in files(".c", ".h") if "tests" not in path.parts}
    everything = "\n".join(sources.values())
    problems, looked_at = [], 0
    for page in PAGES:
        for number, line in enumerate((ROOT / page).read_text().split("\n"), 1):
            chain = re.match(r"\s*(\w+(?:, (?:or )?\w+)*) @ (\S+\.c)\b", line)
            names = re.findall(r"\w+", chain[1].replace(" or ", " ")) if chain else []
            source = sources.get(chain[2], "") if chain else ""
            problems += [f"{page}:{number}: {chain[2]} has no function '{name}'" for name in names
                         if not re.search(DEFINITION.format(name), source, re.M)]
            called = re.findall(r"\b(\w+)\(\)", line)
            problems += [f"{page}:{number}: there is no function '{name}'" for name in called if f"{name}(" not in everything]
            named = re.findall(r"[\w/]+\.[ch]\b", line)
            problems += [f"{page}:{number}: there is no file '{name}'" for name in named
                         if not any(f"/{path}".endswith(f"/{name}") for path in sources)]
            looked_at += len(names) + len(called) + len(named)
    strings = set(re.findall(r'"(\w+)"', everything))
    keys = {key for row in re.findall(r"^\|.*\|(.*)\|$", (ROOT / "docs/JSON.md").read_text(), re.M)
            for key in re.findall(r"`([a-z_]+)`", row)}
    problems += [f"docs/JSON.md: no source has the key '{key}'" for key in sorted(keys - strings)]
    finish(problems, f"{looked_at + len(keys)} names")


if __name__ == "__main__":
    main()
