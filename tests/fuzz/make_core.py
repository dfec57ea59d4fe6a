#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the hand-made core files of corpus/core, which are committed: one of each class and byte order, and malformed ones.

usage: make_core.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""
import struct
import sys

import writer

PT_LOAD, PT_NOTE, ET_DYN, ET_CORE = 1, 4, 3, 4
NT_BUILD_ID, NT_PRSTATUS, NT_FILE = 3, 1, 0x46494C45
ID = bytes(range(0x10, 0x24))
OTHER = bytes(range(0x80, 0x90))
BASE = 0x10000


def pad(data):
    return data + bytes(-len(data) % 4)


class Elf:
    """The layout of a class and byte order."""

    def __init__(self, wide=True, big=False):
        self.wide, self.order = wide, ">" if big else "<"
        self.ident = b"\x7fELF" + bytes([2 if wide else 1, 2 if big else 1, 1]).ljust(12, b"\0")
        self.header_size, self.segment_size = (64, 56) if wide else (52, 32)

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def words(self, *values):
        return self.pack(f"{len(values)}{'Q' if self.wide else 'I'}", *values)

    def header(self, kind, segments):
        return (self.ident + self.pack("HHI", kind, 62, 1) + self.words(0, self.header_size, 0)
                + self.pack("IHHHHHH", 0, self.header_size, self.segment_size, segments, 0, 0, 0))

    def segment(self, kind, offset, size, address=0):
        if self.wide:
            return self.pack("II6Q", kind, 4, offset, address, 0, size, size, 4)
        return self.pack("8I", kind, offset, address, 0, size, size, 4, 4)

    def note(self, name, kind, desc):
        return self.pack("III", len(name), len(desc), kind) + pad(name) + pad(desc)

    def library(self, ident):
        """Return the first page of a library."""
        note = self.note(b"GNU\0", NT_BUILD_ID, ident) if ident else b""
        at = self.header_size + self.segment_size
        return self.header(ET_DYN, 1) + self.segment(PT_NOTE, at, len(note), at) + note

    def files(self, ranges, names):
        return self.note(b"CORE\0", NT_FILE, self.words(len(ranges), 4096) + b"".join(self.words(*one) for one in ranges)
                         + b"".join(name + b"\0" for name in names))

    def core(self, libraries, notes=None):
        """Return a core of a process that mapped these libraries [(name, id)], each twice."""
        pages = [self.library(ident) for _, ident in libraries]
        starts = [BASE * (number + 1) for number in range(len(pages))]
        if notes is None:
            ranges = [(start + step * 4096, start + (step + 1) * 4096, step) for start in starts for step in (0, 1)]
            notes = (self.note(b"CORE\0", NT_PRSTATUS, bytes(40))
                     + self.files(ranges, [name for name, _ in libraries for _ in (0, 1)]))
        at = self.header_size + self.segment_size * (1 + len(pages))
        segments, data = self.segment(PT_NOTE, at, len(notes)), notes
        for start, page in zip(starts, pages):
            segments += self.segment(PT_LOAD, at + len(data), len(page), start)
            data += page
        return self.header(ET_CORE, 1 + len(pages)) + segments + data


def files():
    two = [(b"/bin/a", ID), (b"/lib/b (deleted)", OTHER)]
    found = {f"{'64' if wide else '32'}-{'be' if big else 'le'}": Elf(wide, big).core(two)
             for wide in (True, False) for big in (True, False)}
    plain = Elf()
    return found | {
        "no-id": plain.core([(b"/bin/a", b"")]),
        "no-files": plain.core([], plain.note(b"CORE\0", NT_PRSTATUS, bytes(40))),
        "none-mapped": plain.core([], plain.files([], [])),
        "too-many": plain.core([], plain.note(b"CORE\0", NT_FILE, plain.words(1 << 60, 4096) + b"/bin/a\0")),
        "few-names": plain.core([], plain.files([(BASE, 2 * BASE, 0)] * 3, [b"/bin/a"])),
        "no-end": plain.core([], plain.note(b"CORE\0", NT_FILE, plain.words(1, 4096, BASE, 2 * BASE, 0) + b"/bin/a")),
        "cut": found["64-le"][:-40],
        "library": plain.library(ID),
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 1024, __doc__))
