#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare a program's --help with its manual pages: options.py PROGRAM PAGE

Options ("-s", "--store"), mount options ("-o url") and commands must be the same. A command has a page of its own beside PAGE,
PROGRAM-COMMAND.1, with its options; its help names that page. In a page, which is mdoc(7), only the head of a list item documents
an option; a mention in the text does not. The help's summary is the description behind .Nd.
"""
import pathlib
import re
import shlex
import subprocess
import sys

from lint import finish


def options_in(words):
    """Return the options in the head of an item: "-o" with its name is one, and so is each name after a comma."""
    mount, found = False, set()
    for word in words:
        name = re.split(r"[=\[]", word.strip(","))[0]
        if word == "-o":
            mount = True
        elif mount and re.fullmatch(r"[a-z]\w*", name):
            found.add(f"-o {name}")
            mount = word.endswith(",")
        elif re.fullmatch(r"-[A-Za-z]|--[a-z][a-z-]*", name):
            found.add(name)
    return found


def help_of(*command):
    return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout


def in_help(text):
    """Return the names by their section of the help."""
    found, section = {}, ""
    for line in text.splitlines():
        # an item is indented a little; its explanation follows two blanks, or stands on a line with more indentation
        item = re.match(r" {2,8}(\S.*?)(?:  |$)", line)
        if line and not line.startswith(" "):
            section = line
        elif item and item[1].startswith("-"):
            words = item[1].split()
            # an argument that fills its column is followed by one blank
            found.setdefault(section, set()).update(
                options_in(words[:2] if words[0] == "-o" and not words[1].endswith(",") else words))
        elif item and section == "Commands:":
            found.setdefault(section, set()).add(f"command {item[1].split()[0]}")
    return found


def head_of(line):
    r"""
    Return the words of an mdoc item's head, with macros resolved as far as options need it: "Fl s , Fl \-store Ns = Ns Ar DIR".
    """
    words, macro, joined = [], "", False
    for token in shlex.split(line.replace("\\-", "-").replace("\\&", "").replace("'", "")):
        if token in ("Fl", "Cm", "Ar", "Ns", "Op", "Pa", "Oo", "Oc", "No", "Li", "Sy"):
            joined = joined or token == "Ns"
            macro = token if token != "Ns" else macro
            continue
        if token == "," and words:
            words[-1] += ","
            continue
        # only a literal word can be the name of an option
        text = f"-{token}" if macro == "Fl" else token.upper() if macro == "Ar" else token
        if joined and words:
            words[-1] += token
        else:
            words.append(text)
        joined = False
    return words


def in_page(page):
    found, section, depth = set(), "", 0
    with open(page, encoding="utf-8") as lines:
        for line in lines:
            macro, _, rest = line.rstrip("\n").partition(" ")
            depth += {".Bl": 1, ".El": -1}.get(macro, 0)
            if macro in (".Sh", ".Ss"):
                section = rest.strip('"').lower()
            elif macro == ".It" and depth == 1 and section == "commands":
                found.add(f"command {head_of(rest)[0]}")
            elif macro == ".It" and depth == 1 and "option" in section:
                words = head_of(rest)
                found |= options_in(words if words[0].startswith("-") else ["-o", *words])
    return found


def compare(command, page, helped):
    documented = in_page(page)
    problems = [f"'{option}' is in '{command} --help' and not in '{page}'" for option in sorted(helped - documented)]
    problems += [f"'{option}' is in '{page}' and not in '{command} --help'" for option in sorted(documented - helped)]
    print(f"{page}: {', '.join(sorted(helped | documented))}")
    return problems, helped & documented


def check_command(program, name, shared, page):
    """Check the page of a command."""
    if not page.is_file():
        return [f"'{name}' has no page '{page}'"]
    text = help_of(program, name)
    problems, _ = compare(f"{program} {name}", page, set().union(*in_help(text).values()) - shared)
    if f"{page.stem}({page.suffix[1:]})" not in text:
        problems.append(f"'{program} {name} --help' does not name the page '{page.name}'")
    summary = text.splitlines()[1].rstrip(".")
    if f"\n.Nd {summary[0].lower()}{summary[1:]}\n" not in page.read_text():
        problems.append(f"'{page.name}' describes '{name}' behind .Nd with other words than '{summary}'")
    return problems


def main():
    program, page = sys.argv[1], pathlib.Path(sys.argv[2])
    sections = in_help(help_of(program))
    commands = {name.split()[1] for name in sections.get("Commands:", ())}
    # the help of a program with commands may name the options of each
    shared = set().union(*(names for section, names in sections.items()
                           if not re.fullmatch(r"Options of (\w+):", section) or section.split()[-1][:-1] not in commands))
    problems, both = compare(program, page, shared)
    for option in ("--help", "--version"):
        if option not in both:
            problems.append(f"'{option}' was not found in both: the comparison itself is broken")
    for name in sorted(commands):
        problems += check_command(program, name, shared, page.with_name(f"{page.stem}-{name}.1"))
    finish(problems, f"{len(both)} names, {len(commands)} commands")


if __name__ == "__main__":
    main()
