#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the hand-made ELF files of corpus/note, which are committed: files that installed compilers and linkers do not make.

usage: make_note.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""

import struct
import sys

import writer

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PT_LOAD, PT_NOTE, PN_XNUM = 1, 4, 0xffff
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS = 1, 2, 3, 7, 8
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
NT_GNU_ABI_TAG, NT_GNU_BUILD_ID, NT_GNU_PROPERTY = 1, 3, 5

SHA1 = bytes(range(0x10, 0x24))
OTHER = bytes(range(0x80, 0x94))


def pad(data, align):
    return data + bytes(-len(data) % align)


class Elf:
    """An ELF file under construction; finish() writes its header."""

    def __init__(self, bits=64, big=False, kind=ET_DYN):
        self.wide, self.kind, self.big = bits == 64, kind, big
        self.order = ">" if big else "<"
        self.phdrs, self.sections = [], []
        self.body = b""
        self.phdr_room = 0
        self.ehdr = {}

    @property
    def ehdr_size(self):
        return 64 if self.wide else 52

    @property
    def phentsize(self):
        return 56 if self.wide else 32

    @property
    def shentsize(self):
        return 64 if self.wide else 40

    def reserve(self, count):
        """Reserve space for program headers behind the file header, as linkers do."""
        self.phdr_room = count
        return self

    def note(self, desc, kind=NT_GNU_BUILD_ID, owner=b"GNU\0", align=4):
        head = struct.pack(self.order + "3I", len(owner), len(desc), kind)
        return pad(pad(head + owner, align) + desc, align)

    def add(self, data, align=4):
        """Append bytes; return their offset."""
        start = self.ehdr_size + self.phdr_room * self.phentsize
        self.body += bytes(-(start + len(self.body)) % align)
        offset = start + len(self.body)
        self.body += data
        return offset

    def segment(self, offset, size, kind=PT_NOTE, align=4, flags=4):
        fields = (kind, flags, offset, offset, offset, size, size, align) if self.wide else \
            (kind, offset, offset, offset, size, size, flags, align)
        self.phdrs.append(struct.pack(self.order + ("2I6Q" if self.wide else "8I"), *fields))
        return self

    def section(self, name, offset, size, kind=SHT_NOTE, align=4, flags=SHF_ALLOC, link=0):
        self.sections.append((name, kind, flags, offset, size, align, link))
        return self

    def pack_section(self, name, kind, flags, offset, size, align, link=0, info=0):
        form = self.order + ("2I4Q2I2Q" if self.wide else "10I")
        return struct.pack(form, name, kind, flags, 0, offset, size, link, info, align, 0)

    def finish(self, phnum=None, shnum=None, zero_size=0, zero_info=0, names_flags=0, **ehdr):
        """Write section headers and file header."""
        shoff, count, names_index = 0, 0, 0
        if self.sections:
            names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in self.sections) + b".shstrtab\0"
            names_offset = self.add(names)
            table, at = [self.pack_section(0, 0, 0, 0, zero_size, 0, 0, zero_info)], 1
            for name, kind, flags, offset, size, align, link in self.sections:
                table.append(self.pack_section(at, kind, flags, offset, size, align, link))
                at += len(name) + 1
            table.append(self.pack_section(at, SHT_STRTAB, names_flags, names_offset, len(names), 1))
            shoff = self.add(b"".join(table), 8)
            count, names_index = len(table), len(table) - 1
        values = {
            "e_phoff": self.ehdr_size if self.phdrs else 0, "e_phentsize": self.phentsize if self.phdrs else 0,
            "e_shoff": shoff, "e_shentsize": self.shentsize if shoff else 0,
            "e_type": self.kind, "e_machine": 62 if self.wide else 3, **ehdr,
        }
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 2 if self.big else 1, 1]) + bytes(9)
        header = ident + struct.pack(
            self.order + ("2HI3QI6H" if self.wide else "2H5I6H"), values["e_type"], values["e_machine"], 1, 0,
            values["e_phoff"], values["e_shoff"], 0, self.ehdr_size,
            values["e_phentsize"], len(self.phdrs) if phnum is None else phnum,
            values["e_shentsize"], count if shnum is None else shnum, names_index)
        room = self.phdr_room * self.phentsize
        return header + b"".join(self.phdrs).ljust(room, b"\0")[:room] + self.body


def linked(bits=64, big=False, desc=SHA1, align=4, **finish):
    """Make the file that a linker writes: one note in a segment and a section, and a little code."""
    elf = Elf(bits, big).reserve(2)
    note = elf.note(desc, align=align)
    offset = elf.add(note, align)
    text = elf.add(b"\x90" * 8)
    elf.segment(offset, len(note), align=align).segment(text, 8, kind=PT_LOAD, flags=5)
    elf.section(".note.gnu.build-id", offset, len(note), align=align)
    elf.section(".text", text, 8, kind=SHT_PROGBITS, flags=SHF_ALLOC | SHF_EXECINSTR)
    return elf.finish(**finish)


def segments_only(bits=64, big=False):
    elf = Elf(bits, big).reserve(1)
    note = elf.note(SHA1)
    return elf.segment(elf.add(note), len(note)).finish()


def sections_only(bits=64, big=False):
    elf = Elf(bits, big, kind=ET_REL)
    note = elf.note(SHA1)
    return elf.section(".note.gnu.build-id", elf.add(note), len(note)).finish()


def stale_segments(bits=64):
    """Make a file of eu-strip -f: the segment keeps the offset of another file, where no notes are."""
    elf = Elf(bits).reserve(1)
    note = elf.note(SHA1)
    offset = elf.add(note)
    info = elf.add(b"\xffdwarf\xff\xff" * 8)
    elf.segment(info + 4, len(note))
    elf.section(".note.gnu.build-id", offset, len(note)).section(".debug_info", info, 64, kind=SHT_PROGBITS, flags=0)
    return elf.section(".text", 0, 4096, kind=SHT_NOBITS, flags=SHF_ALLOC | SHF_EXECINSTR).finish()


def stale_segments_past_end():
    elf = Elf().reserve(1)
    note = elf.note(SHA1)
    offset = elf.add(note)
    return elf.segment(0x100000, len(note)).section(".note.gnu.build-id", offset, len(note)).finish()


def several_notes(align=4):
    """Make a segment of three notes, the last one with the id, with padding of @align bytes."""
    elf = Elf().reserve(1)
    notes = elf.note(b"\2\0\0\xc0\4\0\0\0\3\0\0\0\0\0\0\0", NT_GNU_PROPERTY, align=align)
    notes += elf.note(b"like", NT_GNU_BUILD_ID, b"Go\0\0", align=align) + elf.note(SHA1, align=align)
    offset = elf.add(notes, align)
    return elf.segment(offset, len(notes), align=align).section(".note", offset, len(notes), align=align).finish()


def two_ids():
    """Make sections and segments that name two ids in opposite order: the order of the sections counts."""
    elf = Elf().reserve(2)
    first, second = elf.note(OTHER), elf.note(SHA1)
    at_first, at_second = elf.add(first), elf.add(second)
    elf.segment(at_first, len(first)).segment(at_second, len(second))
    return elf.section(".note.b", at_second, len(second)).section(".note.a", at_first, len(first)).finish()


def bad_note_behind(sections):
    """Place a note that is longer than its segment behind the id."""
    elf = Elf().reserve(1)
    notes = elf.note(SHA1) + struct.pack("<3I", 4, 4000, NT_GNU_ABI_TAG) + b"GNU\0"
    offset = elf.add(notes)
    elf.segment(offset, len(notes))
    if sections:
        elf.section(".note", offset, len(notes))
    return elf.finish()


def hidden_note():
    """Place a malformed note before the id, so that nobody can tell where the next note begins."""
    elf = Elf().reserve(1)
    notes = struct.pack("<3I", 0xfffffff0, 0xfffffff0, NT_GNU_BUILD_ID) + b"GNU\0" + elf.note(SHA1)
    return elf.segment(elf.add(notes), len(notes)).finish()


def sections_without_id():
    """Make a valid segment with the id, and a note section without it."""
    elf = Elf().reserve(1)
    note, tag = elf.note(SHA1), elf.note(bytes(16), NT_GNU_ABI_TAG)
    offset, other = elf.add(note), elf.add(tag)
    return elf.segment(offset, len(note)).section(".note.ABI-tag", other, len(tag)).finish()


def no_note_sections():
    """Make a malformed segment, and sections without notes: the segment must be ignored."""
    elf = Elf().reserve(1)
    notes = elf.note(SHA1) + b"\xff" * 12
    offset = elf.add(notes)
    return elf.segment(offset, len(notes)).section(".data", offset, len(notes), kind=SHT_PROGBITS).finish()


def extended(bits=64):
    """Put numbers that do not fit the header into the section header at index 0."""
    elf = Elf(bits).reserve(1)
    note = elf.note(SHA1)
    offset = elf.add(note)
    elf.segment(offset, len(note)).section(".note.gnu.build-id", offset, len(note))
    return elf.finish(phnum=PN_XNUM, shnum=0, zero_size=3, zero_info=1)


def extended_sections():
    elf = Elf(kind=ET_REL)
    note = elf.note(SHA1)
    return elf.section(".note.gnu.build-id", elf.add(note), len(note)).finish(shnum=0, zero_size=3)


def sections_at_0():
    """Make a file with a count of section headers at offset 0: the file header is not a table."""
    elf = Elf()
    note = elf.note(SHA1)
    elf.add(elf.pack_section(0, SHT_NOTE, SHF_ALLOC, 128, len(note), 4) + note)
    return elf.finish(shnum=2, e_shentsize=64)


def altlink(name, desc):
    elf = Elf()
    note = elf.note(SHA1)
    offset = elf.add(note)
    link = elf.add(name + desc)
    info = elf.add(b"\4\0\0\0debug")
    symbols = elf.add(bytes(48), 8)
    elf.section(".note.gnu.build-id", offset, len(note)).section(".gnu_debugaltlink", link, len(name + desc), SHT_PROGBITS, 1, 0)
    elf.section(".debug_info", info, 9, SHT_PROGBITS, 1, 0).section(".symtab", symbols, 48, SHT_SYMTAB, 8, 0)
    return elf.section(".text", offset, 4096, SHT_NOBITS, 16, SHF_ALLOC | SHF_EXECINSTR).finish()


def core():
    elf = Elf(kind=ET_CORE).reserve(1)
    note = elf.note(SHA1)
    return elf.segment(elf.add(note), len(note)).finish()


def files():
    plain = linked()
    return {
        "linked-64le": plain,
        "linked-64be": linked(big=True),
        "linked-32le": linked(32),
        "linked-32be": linked(32, True),
        "segments-64be": segments_only(big=True),
        "segments-32le": segments_only(32),
        "sections-64le": sections_only(),
        "sections-32be": sections_only(32, True),
        "stale-64le": stale_segments(),
        "stale-32le": stale_segments(32),
        "stale-past-end": stale_segments_past_end(),
        "several-align4": several_notes(4),
        "several-align8": several_notes(8),
        "two-ids": two_ids(),
        "bad-note-behind-segments": bad_note_behind(False),
        "bad-note-behind-sections": bad_note_behind(True),
        "hidden-note": hidden_note(),
        "sections-without-id": sections_without_id(),
        "no-note-sections": no_note_sections(),
        "extended-64": extended(),
        "extended-32": extended(32),
        "extended-sections": extended_sections(),
        "sections-at-0": sections_at_0(),
        "core": core(),
        "id-0": linked(desc=b""),
        "id-1": linked(desc=b"\xab"),
        "id-6": linked(desc=SHA1[:6]),
        "id-8": linked(desc=SHA1[:8]),
        "id-64": linked(desc=bytes(range(64))),
        "id-65": linked(desc=bytes(range(65))),
        "altlink": altlink(b"/usr/lib/debug/.dwz/x.debug\0", OTHER),
        "altlink-without-id": altlink(b"x.debug\0", b""),
        "altlink-unended": altlink(b"x.debug", b""),
        "cut-ident": plain[:10],
        "cut-header": plain[:40],
        "cut-segments": plain[:100],
        "cut-note": plain[:192],
        "cut-sections": plain[:-32],
        "class-0": plain[:4] + b"\0" + plain[5:],
        "data-3": plain[:5] + b"\3" + plain[6:],
        "odd-phentsize": linked(e_phentsize=40),
        "odd-shentsize": linked(e_shentsize=72),
        "phoff-wraps": linked(e_phoff=2 ** 64 - 8),
        "shoff-wraps": linked(e_shoff=2 ** 64 - 8),
        "count-past-end": linked(e_phentsize=40, e_shoff=2 ** 63 - 1, shnum=0),
        "count-of-35-bits": linked(shnum=0, zero_size=2 ** 34),
        "names-compressed": linked(names_flags=SHF_COMPRESSED),
        "empty": b"",
        "magic": b"\x7fELF",
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 1024, __doc__))
