#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the pairs of corpus/unstrip, which are committed: an ELF file and its debug file, valid and hostile ones.

usage: make_unstrip.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""
import struct
import sys

import writer

PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS = 1, 2, 3, 7, 8
ALLOC, EXEC = 2, 4
CODE = bytes(range(48))
NOTES = struct.pack("<3I", 4, 20, 3) + b"GNU\0" + bytes(range(20))
SYMBOL = struct.pack("<IBBHQQ", 1, 2, 0, 2, 0x100, 16)


class Section:
    def __init__(self, name, kind, content=b"", flags=0, address=0, **other):
        self.name, self.kind, self.content, self.flags, self.address, self.other = name, kind, content, flags, address, other


def elf(sections, wide=True, big=False, kind=3, **header):
    """Make a file whose only segment spans from the file header to the last section in memory."""
    order = ">" if big else "<"
    head, entry, word = (64, 56, "Q") if wide else (52, 32, "I")
    sections = [Section("", 0), *sections, Section(".shstrtab", STRTAB)]
    names = b""
    offsets = []
    for section in sections:
        offsets.append(len(names))
        names += section.name.encode() + b"\0"
    sections[-1].content = names
    body, places, loaded = b"", [], 0
    for section in sections:
        body += bytes(-len(body) % 8)
        places.append(head + entry + len(body))
        body += b"" if section.kind == NOBITS else section.content
        if section.flags & ALLOC and section.kind != NOBITS:
            loaded = head + entry + len(body)
    body += bytes(-(head + entry + len(body)) % 8)
    table = b""
    for section, name, place in zip(sections, offsets, places):
        field = {"type": section.kind, "offset": place, "size": len(section.content), "link": 0, "info": 0, "align": 1}
        field |= section.other
        if not section.name:
            field |= {"offset": 0}
        table += struct.pack(f"{order}II4{word}II2{word}", name, field["type"], section.flags, section.address, field["offset"],
                             field["size"], field["link"], field["info"], field["align"], 0)
    has = {"phoff": head, "shoff": head + entry + len(body), "phnum": 1, "shnum": len(sections), "shstrndx": len(sections) - 1}
    has |= header
    file = b"\x7fELF" + bytes([1 + wide, 1 + big, 1]) + bytes(9)
    file += struct.pack(f"{order}HHI3{word}I6H", kind, 62, 1, 0, has["phoff"], has["shoff"], 0, head, entry, has["phnum"],
                        64 if wide else 40, has["shnum"], has["shstrndx"])
    if wide:
        file += struct.pack(f"{order}II6Q", 1, 5, 0, 0, 0, loaded, loaded, 4096)
    else:
        file += struct.pack(f"{order}8I", 1, 0, 0, 0, loaded, loaded, 5, 4096)
    return file + body + table


def program(*more):
    return [Section(".note.gnu.build-id", NOTE, NOTES, ALLOC, 0x40), Section(".text", PROGBITS, CODE, ALLOC | EXEC, 0x100), *more]


def debug(*more, text=CODE, **other):
    return [Section(".note.gnu.build-id", NOTE, NOTES, ALLOC, 0x40), Section(".text", NOBITS, text, ALLOC | EXEC, 0x100, **other),
            Section(".debug_info", PROGBITS, b"debug information"), *more]


def symbols(link, kind=SYMTAB, strings=STRTAB):
    return [Section(".symtab", kind, bytes(24) + SYMBOL, link=link, info=1), Section(".strtab", strings, b"\0symbol\0")]


def pair(file, debug_file):
    return struct.pack("<H", len(file)) + file + debug_file


def files():
    file, debug_file = elf(program()), elf(debug(*symbols(5)))
    huge = 1 << 62
    return {
        "pair": pair(file, debug_file),
        "narrow": pair(elf(program(), wide=False), elf(debug(), wide=False)),
        "big-endian": pair(elf(program(), big=True), elf(debug(), big=True)),
        "both-symbols": pair(elf(program(*symbols(4))), debug_file),
        "symbols-left": pair(elf(program(*symbols(4))), elf(debug(*symbols(5, NOBITS, NOBITS)))),
        "symbols-there": pair(elf(program(*symbols(4))), elf(debug())),
        "symbols-strings": pair(elf(program(*symbols(4))), elf(debug(Section(".strtab", STRTAB, b"\0other\0")))),
        "more": pair(elf(program(Section(".gnu_debuglink", PROGBITS, b"a.debug\0"), Section(".gnu_debugdata", PROGBITS, CODE))),
                     debug_file),
        "many-more": pair(elf(program(*[Section(f".{n}", PROGBITS, b"x") for n in range(300)])), debug_file),
        "relocatable": pair(elf(program(), kind=1), elf(debug(), kind=1)),
        "other-type": pair(elf(program(), kind=2), debug_file),
        "other-class": pair(file, elf(debug(), wide=False)),
        "other-order": pair(file, elf(debug(), big=True)),
        "other-size": pair(file, elf(debug(text=CODE + b"x"))),
        "swapped": pair(debug_file, file),
        "same": pair(file, file),
        "no-sections": pair(elf(program(), shoff=0, shnum=0, shstrndx=0), debug_file),
        "no-names": pair(file, elf(debug(), shstrndx=0)),
        "names-beyond": pair(file, elf(debug(), shstrndx=0xfff0)),
        "names-elsewhere": pair(file, elf(debug(), shstrndx=3)),
        "fewer": pair(file, elf([Section(".debug_info", PROGBITS, b"x")])),
        "extra": pair(elf(program(Section(".data", PROGBITS, CODE, ALLOC, 0x200))), debug_file),
        "huge": pair(file, elf(debug(Section(".huge", PROGBITS, b"x", size=huge)))),
        "huge-nobits": pair(file, elf(debug(Section(".huge", NOBITS, b"x", size=huge)))),
        "huge-offset": pair(file, elf(debug(Section(".huge", PROGBITS, b"x", offset=huge)))),
        "huge-align": pair(file, elf(debug(Section(".huge", PROGBITS, b"x", align=huge)))),
        "odd-align": pair(file, elf(debug(Section(".odd", PROGBITS, b"x", align=3)))),
        "overlap": pair(file, elf(debug(*[Section(f".{n}", PROGBITS, b"x", offset=0, size=1024) for n in range(64)]))),
        "segments": pair(elf(program(), phnum=0xffff), debug_file),
        "segments-beyond": pair(elf(program(), phoff=1 << 40), debug_file),
        "cut": pair(file[:-1], debug_file),
        "empty": pair(b"", b""),
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 24576, __doc__))
