#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the hand-made files of corpus/stapsdt, which are committed: programs with static probes, valid and malformed ones.

usage: make_stapsdt.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""
import sys

import writer
from make_core import Elf, PT_LOAD, ET_DYN, pad

SHT_PROGBITS, SHT_STRTAB, SHT_NOTE = 1, 3, 7
X86_64, I386, AARCH64 = 62, 3, 183
BASE, TEXT = 0x10, 0x40
NAMES = b"\0.shstrtab\0.stapsdt.base\0.note.stapsdt\0"


class Probed(Elf):
    """The layout of a class and byte order: a program with one segment, and its sections behind it."""

    def probe(self, provider, name, arguments=b"", place=TEXT, base=BASE, semaphore=0, owner=b"stapsdt\0", kind=3):
        texts = b"".join(text + b"\0" for text in (provider, name, arguments) if text is not None)
        return self.note(owner, kind, self.words(place, base, semaphore) + texts)

    def section(self, name, kind, address, offset, size):
        flags, link, info, align, entry = 0, 0, 0, 4, 0
        return self.pack("II", NAMES.index(name), kind) + self.words(flags, address, offset, size) + self.pack("II", link, info) \
            + self.words(align, entry)

    def program(self, notes, machine=X86_64, base=BASE):
        start = self.header_size + self.segment_size
        data = pad(notes + NAMES)
        table = start + len(data)
        sections = bytes(64 if self.wide else 40) + self.section(b".shstrtab\0", SHT_STRTAB, 0, start + len(notes), len(NAMES)) \
            + self.section(b".stapsdt.base\0", SHT_PROGBITS, base, base, 1) \
            + self.section(b".note.stapsdt\0", SHT_NOTE, 0, start, len(notes))
        header = self.ident + self.pack("HHI", ET_DYN, machine, 1) + self.words(0, self.header_size, table) \
            + self.pack("IHHHHHH", 0, self.header_size, self.segment_size, 1, 64 if self.wide else 40, 4, 1)
        return header + self.segment(PT_LOAD, 0, table) + data + sections


def files():
    forms = {f"{'64' if wide else '32'}-{'be' if big else 'le'}": Probed(wide, big) for wide in (True, False)
             for big in (True, False)}
    found = {name: elf.program(elf.probe(b"app", b"start", b"-4@%edi 8@8(%rax) 4@$5", semaphore=TEXT + 4)
                               + elf.probe(b"app", b"end") + elf.probe(b"app", b"start", b"8@%r12", TEXT + 8),
                               X86_64 if elf.wide else I386) for name, elf in forms.items()}
    plain = forms["64-le"]
    return found | {
        "aarch64": plain.program(plain.probe(b"app", b"start", b"-4@x0 8@[sp] 8@[sp, 16] 4@[sp,"), AARCH64),
        "moved": plain.program(plain.probe(b"app", b"start", base=BASE + 0x1000, place=TEXT + 0x1000)),
        "outside": plain.program(plain.probe(b"app", b"start", place=1 << 40) + plain.probe(b"app", b"end", semaphore=1 << 40)),
        "names": plain.program(plain.probe(b"a b", b"x") + plain.probe(b"", b"x") + plain.probe(b"a", b"x=y\n#z")
                               + plain.probe(b"p" * 300, b"x") + plain.probe(b"p" * 80, b"y") + plain.probe(b"a", b"z", b":")),
        "no-arguments": plain.program(plain.probe(b"app", b"start", None)),
        "no-name": plain.program(plain.note(b"stapsdt\0", 3, plain.words(TEXT, BASE, 0) + b"app\0")),
        "short": plain.program(plain.note(b"stapsdt\0", 3, plain.words(TEXT, BASE))),
        "others": plain.program(plain.probe(b"app", b"start", owner=b"GNU\0") + plain.probe(b"app", b"start", kind=2)),
        "many-arguments": plain.program(plain.probe(b"app", b"start", b" ".join([b"8@-120(%r13)"] * 300))),
        "twice": plain.program(plain.probe(b"app", b"start") * 2),
        "none": plain.program(b""),
        "cut": found["64-le"][:-100],
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 8192, __doc__))
