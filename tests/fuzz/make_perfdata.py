#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the hand-made recordings of corpus/perfdata, which are committed: one of each form that perf writes, and malformed ones.

usage: make_perfdata.py [--check] DIRECTORY

With --check write nothing; the exit status is 1 if the files of DIRECTORY differ.
"""

import struct
import sys

import writer

KERNEL, USER, GUEST = 1, 2, 5
DATA, WITH_ID, SIZED = 1 << 13, 1 << 14, 1 << 15
MMAP, FORK, SAMPLE, MMAP2 = 1, 7, 9, 10
ATTR, TRACING_DATA, BUILD_ID, AUXTRACE, FEATURE, COMPRESSED, COMPRESSED2 = 64, 66, 67, 71, 80, 81, 83
IP, TID, IDENTIFIER = 1, 2, 1 << 16

ID = bytes(range(0x10, 0x24))
OTHER = bytes(range(0x80, 0x94))
DIRECTORY = b"directory of perf.data\n"


def directory(*members):
    """Pack the files data, data.0 ... of a recording into an input for fuzz_perfdata.c."""
    return DIRECTORY + b"".join(struct.pack("<I", len(member)) + member for member in members)


def pad(data, align=8):
    return data + bytes(-len(data) % align)


def frame(content):
    """Return a zstd frame (RFC 8878) of one raw block, so that a flipped bit in it is a flipped bit in the content."""
    block = struct.pack("<I", len(content) << 3 | 1)[:3]
    return b"\x28\xb5\x2f\xfd" + b"\0\x58" + block + content


class Perf:
    """The records of a machine."""

    def __init__(self, big=False):
        self.order = ">" if big else "<"
        self.magic = b"2ELIFREP" if big else b"PERFILE2"

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def record(self, kind, misc, body):
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def sample(self, words=3):
        return self.record(SAMPLE, USER, self.pack(f"{words}Q", *range(words)))

    def mmap(self, name, misc=USER):
        return self.record(MMAP, misc, bytes(32) + pad(name + b"\0"))

    def mmap2(self, name, ident=None, misc=USER):
        which = bytes([len(ident), 0, 0, 0]) + ident.ljust(20, b"\0") if ident else self.pack("2I2Q", 8, 1, 77, 1)
        return self.record(MMAP2, misc | (WITH_ID if ident else 0),
                           bytes(32) + which + self.pack("2I", 5, 2) + pad(name + b"\0") + b"sampleid")

    def build_id(self, name, ident=ID, misc=USER | SIZED, kind=0):
        size = len(ident) if misc & SIZED else 0
        return self.record(kind, misc, self.pack("i", -1) + ident.ljust(20, b"\0") + bytes([size, 0, 0, 0]) + pad(name + b"\0"))

    def table(self):
        return (self.build_id(b"[kernel.kallsyms]", misc=KERNEL | SIZED) + self.build_id(b"/bin/a", OTHER)
                + self.build_id(b"/bin/short", ID[:8]) + self.build_id(b"[vdso]", OTHER, USER))

    def attr(self, kind):
        return bytes(24) + self.pack("Q", kind) + bytes(32)

    def at(self, name, pid, start, length, ident=None, misc=USER):
        """Make a mapping with the path of a file."""
        where = self.pack("2I3Q", pid, pid, start, length, 0)
        found = self.mmap2(name, ident, misc)
        return found[:8] + where + found[8 + len(where):]

    def sampled(self, misc, pid, address, number=1):
        return number * self.record(SAMPLE, misc, self.pack("QII", address, pid, pid))

    def hot(self):
        """Make samples in overlapping mappings, in the kernel, and in a forked process."""
        return (self.sampled(USER, 7, 0x401000, 3) + self.at(b"/bin/a", 7, 0x400000, 0x3000, ID)
                + self.at(b"/bin/b", 7, 0x401000, 0x1000, OTHER) + self.at(b"//anon", 7, 0x402000, 0x1000)
                + self.at(b"[kernel.kallsyms]_text", 2 ** 32 - 1, 2 ** 63, 2 ** 63 - 1, None, KERNEL)
                + self.record(FORK, 0, self.pack("4IQ", 8, 7, 8, 7, 0)) + self.record(FORK, 0, self.pack("4IQ", 7, 8, 7, 8, 0))
                + self.sampled(USER, 8, 0x400000, 2) + self.sampled(USER, 8, 0x900000) + self.sampled(KERNEL, 8, 2 ** 63)
                + self.sampled(USER, 7, 0x402fff) + self.build_id(b"/bin/c", kind=BUILD_ID))

    def hot_file(self, kinds):
        attrs = b"".join(self.attr(kind) + bytes(16) for kind in kinds)
        data, size = self.hot(), len(attrs) // len(kinds)
        words = self.pack("8Q", 104, size, 104, len(attrs), 104 + len(attrs), len(data), 0, 0)
        return self.magic + words + bytes(32) + attrs + data

    def hot_pipe(self, kinds):
        return self.pipe(b"".join(self.record(ATTR, 0, self.attr(kind)) for kind in kinds) + self.hot())

    def mappings(self):
        return (self.mmap(b"[kernel.kallsyms]_text", KERNEL) + self.mmap2(b"/bin/a", ID) + self.mmap2(b"/bin/none")
                + self.sample() + self.mmap2(b"/bin/data", ID[:8], USER | DATA) + self.mmap2(b"//anon")
                + self.mmap2(b"/bin/guest", OTHER, GUEST))

    def header(self, data_size, size=104, features=0, data_at=None, half=False):
        words = [size, 16, size, 16, size + 16 if data_at is None else data_at, data_size, 0, 0]
        bitmap = self.pack("8I", features, *[0] * 7) if half else self.pack("4Q", features, 0, 0, 0)
        return (self.magic + self.pack("8Q", *words) + bitmap)[:size].ljust(size, b"\0") + bytes(16)

    def file(self, data, table=None, **header):
        if table is None:
            return self.header(len(data), **header) + data
        head = self.header(len(data), features=0b1110, **header)
        at = len(head) + len(data) + 48
        return head + data + self.pack("6Q", at, 8, at + 8, len(table), at, 8) + b"tracing!" + table

    def pipe(self, records):
        return self.magic + self.pack("Q", 16) + records

    def compressed(self, content, cuts=(), kind=COMPRESSED):
        """Cut a frame of @content into records."""
        data, records = frame(content), b""
        for begin, end in zip((0, *cuts), (*cuts, len(data))):
            part = data[begin:end]
            records += self.record(kind, 0, pad(self.pack("Q", len(part)) + part) if kind == COMPRESSED2 else part)
        return records

    def jumps(self):
        trap = self.mmap2(b"/bin/trap", OTHER)
        return (self.record(TRACING_DATA, 0, self.pack("2I", len(trap), 0)) + trap
                + self.record(AUXTRACE, 0, self.pack("Q", len(trap)) + bytes(32)) + trap + self.mmap2(b"/bin/a", ID))


def files():
    le, be = Perf(), Perf(big=True)
    found = {}
    for name, perf in (("le", le), ("be", be)):
        found |= {
            f"table-{name}": perf.file(perf.sample(), perf.table()),
            f"mappings-{name}": perf.file(perf.mappings()),
            f"both-{name}": perf.file(perf.mappings(), perf.table()),
            f"pipe-{name}": perf.pipe(perf.mappings() + perf.build_id(b"/bin/b", kind=BUILD_ID)),
            f"feature-{name}": perf.pipe(perf.record(FEATURE, 0, perf.pack("Q", 2) + perf.table())),
            f"compressed-{name}": perf.file(perf.compressed(perf.mappings(), (20, 99)) + perf.sample()),
            f"compressed2-{name}": perf.pipe(perf.compressed(perf.mappings(), (7,), COMPRESSED2) + perf.mmap2(b"/bin/z", OTHER)),
            f"jumps-{name}": perf.pipe(perf.jumps()),
            f"compressed-jumps-{name}": perf.pipe(perf.compressed(perf.jumps())),
            f"hot-{name}": perf.hot_file([IP | TID]),
            f"hot-pipe-{name}": perf.hot_pipe([IP | TID]),
            f"interrupted-{name}": perf.header(0) + perf.mappings(),
        }
    plain = found["both-le"]
    return found | {
        "hot-mixed": le.hot_pipe([IP | TID, IP | TID | IDENTIFIER]),
        "hot-two": le.hot_file([IP | TID, IP | TID]),
        "old-header": le.file(le.mappings(), size=72),
        "first-magic": b"PERFFILE" + plain[8:],
        "first-magic-be": b"PERFFILE" + found["table-be"][8:],
        "half-bitmap-be": be.header(len(be.sample()), features=0b1110, half=True) + found["table-be"][120:],
        "vdso-copy": le.pipe(le.build_id(b"/tmp/perf-vdso.so-a1B2c3", kind=BUILD_ID) + le.mmap2(b"[vdso]")),
        "empty-table": le.file(le.mappings(), b""),
        "nested": le.pipe(le.compressed(le.compressed(le.mappings()))),
        "two-frames": le.pipe(le.compressed(le.mmap2(b"/bin/a", ID)[:50]) + le.compressed(le.mmap2(b"/bin/a", ID)[50:])),
        "no-frame": le.pipe(le.record(COMPRESSED, 0, b"not a frame") + le.mappings()),
        "size-0": le.pipe(le.pack("IHH", SAMPLE, 0, 0) + le.mappings()),
        "size-too-large": le.file(le.pack("IHH", SAMPLE, 0, 65535) + le.mappings(), le.table()),
        "id-too-long": le.file(le.mmap2(b"/bin/a", bytes(21)[:20]).replace(b"\x14\0\0\0", b"\x15\0\0\0"), le.table()),
        "unended-name": le.pipe(le.record(MMAP2, USER, bytes(64) + b"/bin/unended-nam")),
        "aux-too-large": le.file(le.record(AUXTRACE, 0, le.pack("Q", 2 ** 64 - 1)) + le.mappings(), le.table()),
        "overlap": le.file(le.mappings(), le.table(), data_at=104),
        "table-before": plain.replace(le.pack("Q", len(plain) - len(le.table())), le.pack("Q", 120)),
        "table-beyond": plain.replace(le.pack("Q", len(plain) - len(le.table())), le.pack("Q", 2 ** 63)),
        "directory": directory(le.file(le.sample(), le.table()), le.mappings(), le.compressed(le.mappings(), (20,)), b""),
        "cut-header": plain[:60],
        "cut-data": plain[:300],
        "cut-table": plain[:-90],
        "magic": b"PERFILE2",
        "empty": b"",
    }


if __name__ == "__main__":
    sys.exit(writer.run(files(), 2048, __doc__))
