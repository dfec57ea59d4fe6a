#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the changes of corpus/sparse, which are committed: each makes a small ELF file claim to be large.

usage: make_sparse.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""
import struct
import sys

import writer

# fields of fuzz_sparse.c, in its order
SECTION = ("name", "type", "flags", "offset", "size", "link", "entsize", "addralign")
FIELDS = ["type", "phoff", "phnum", "shoff", "shnum", "shstrndx"]
FIELDS += [f"segment{n}.{field}" for n in range(2) for field in ("type", "offset", "filesz", "align")]
FIELDS += [f"section{n}.{field}" for n in range(6) for field in SECTION]
FIELDS += ["namesz", "descsz", "symbol.name", "class", "data", "length", "step", "copies"]

NAMES, SYMBOLS, STRINGS, PROBES = "section1", "section2", "section3", "section5"
PROGBITS, ALTLINK, LONG = (0,), (5, 15), (6, 8)  # a type; among the names ".gnu_debugaltlink", and a text of many MiB


def change(field, power, more=0):
    """Set a field to 2**power and a little more; None sets 0."""
    return struct.pack("<BBb", FIELDS.index(field), 0 if power is None else power + 1, more)


def many(power, more=0):
    """Claim that many sections, in a file that is large enough for them."""
    return change("shnum", None) + change("section0.size", power, more) + change("length", power + 7)


def hole(section, power):
    """Append a section of that many zeros."""
    return change(f"{section}.offset", 13) + change(f"{section}.size", power) + change("length", 50)


def punched(section, power):
    """Append the same section with a byte in each 256 KiB, which does not end a string table as zeros do."""
    return hole(section, power) + change("step", 18)


def copied(power, more=0, name=LONG):
    """Claim that many sections with a name, of 4 KiB each."""
    section = change(f"{PROBES}.type", *PROGBITS) + change(f"{PROBES}.name", *name) + change(f"{PROBES}.size", 12)
    return section + change("copies", power, more)


def long_text(section):
    """Give a section, and its copies, a text of 16 MiB; among names it is a long one."""
    return change(f"{section}.offset", 24) + change(f"{section}.size", 24) + change("length", 25) + change("step", 0)


def files():
    return {
        "plain": b"",
        "long": change("length", 50),
        "cut": change("length", 8),
        "sections-limit": many(17),
        "sections-above": many(17, 1),
        "sections-1m": many(20),
        "sections-4m": many(22),
        "sections-2-32": many(32),
        "sections-most": change("shnum", None) + change("section0.size", 63) + change("length", 50),
        "sections-last": change("shnum", 16, -1) + change("length", 50),
        "segments-most": change("phnum", 16, -1) + change("section0.link", 31) + change("length", 50),
        "table-most": change("shoff", 63) + change("length", 50),
        "names-limit": hole(NAMES, 24),
        "names-4g": hole(NAMES, 32),
        "names-most": hole(NAMES, 63),
        "names-index": change("shstrndx", 16, -1) + change("section0.link", 31),
        "names-packed": hole(NAMES, 20) + change(f"{NAMES}.flags", 11),
        "names-punched-limit": punched(NAMES, 24),
        "names-punched-64m": punched(NAMES, 26),
        "names-punched-512m": punched(NAMES, 29),
        "symbols-punched-512m": punched(SYMBOLS, 29),
        "strings-punched-limit": punched(STRINGS, 24),
        "strings-punched-512m": punched(STRINGS, 29),
        "probes-punched-512m": punched(PROBES, 29),
        "symbols-limit": hole(SYMBOLS, 24),
        "symbols-16g": hole(SYMBOLS, 34),
        "symbols-most": hole(SYMBOLS, 63),
        "strings-limit": hole(STRINGS, 24),
        "strings-4g": hole(STRINGS, 32),
        "probes-limit": hole(PROBES, 21),
        "probes-most": hole(PROBES, 63),
        "note-most": change("descsz", 32, -1) + change("segment0.filesz", 40) + change("length", 50),
        "notes-most": change("type", 1) + change("segment0.type", None) + hole(PROBES, 40),
        "copies-limit": copied(17, -6),
        "copies-above": copied(17, -5),
        "copies-of-notes": change("copies", 16),
        "links-many": copied(16, name=ALTLINK),
        "copies-overlap": copied(7, name=ALTLINK) + long_text(PROBES) + change("length", 40),
        "names-long": copied(7, 72) + long_text(NAMES),
        "names-long-limit": copied(17, -6) + long_text(NAMES),
        "core-notes": change("type", 2) + change("segment0.offset", 13) + change("segment0.filesz", 26) + change("length", 50),
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 1024, __doc__))
