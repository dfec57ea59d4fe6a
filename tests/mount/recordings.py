# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of the running kernel, turned into ones of another kernel. The stream permits new and altered records."""
import struct

import tools

MMAP, HEADER_BUILD_ID = 1, 67  # perf, lib/perf/include/perf/event.h
KERNEL, HAS_SIZE = 1, 0x8000
HEADER = 16  # of a stream, tools/perf/util/header.c


def record_kernel(env):
    """A stream whose samples are of the kernel for the most part; or a reason why there can be none."""
    done = tools.run("perf", "record", "-q", "-N", "--no-buildid-mmap", "-e", "cpu-clock:k", "-o", "-", "dd", "if=/dev/zero",
                     "of=/dev/null", "bs=1", "count=200000", status=None, env=env, text=False)
    stream = Stream(done.stdout) if done.returncode == 0 else None
    if not stream or not stream.kernel():
        raise LookupError(f"perf cannot record the kernel here: {done.stderr.decode(errors='replace').strip()[:200]}")
    return stream


def padded(text):
    return text + bytes(8 - len(text) % 8)


def record(kind, misc, payload):
    """Of a multiple of 8 bytes, or newer perf does not take it."""
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def build_id(name, ident):
    """perf_record_header_build_id: which build `name`, of the kernel's, is."""
    content = bytes.fromhex(ident)
    return record(HEADER_BUILD_ID, KERNEL | HAS_SIZE, struct.pack("<i20sB3x", -1, content, len(content)) + padded(name.encode()))


def mmap(like, name, start, size):
    """perf_record_mmap: `name` is code of the kernel's, in that place, since when the record `like` was made."""
    when = like[40 + len(padded(like[40:].split(b"\0")[0])):]
    return record(MMAP, KERNEL, struct.pack("<iIQQQ", -1, 0, start, size, 0) + padded(name.encode()) + when)


class Stream:
    def __init__(self, content):
        self.header, self.records, at = content[:HEADER], [], HEADER
        while at < len(content):
            size = struct.unpack_from("<H", content, at + 6)[0]
            self.records.append(content[at:at + size])
            at += size

    def kernel(self):
        """Number, start and size of the record that says where the kernel is."""
        for number, one in enumerate(self.records):
            kind, misc, _ = struct.unpack_from("<IHH", one)
            if kind == MMAP and misc & 7 == KERNEL and one[40:].startswith(b"[kernel.kallsyms]"):
                return number, *struct.unpack_from("<QQ", one, 16)
        return None

    def save(self, path, ident, module=None):
        """
        As a recording of the kernel `ident`, whichever it was; with `module`, a triple of name, id and address, the upper part of
        the kernel from that address on is said to be that module.
        """
        number, start, size = self.kernel()
        records = list(self.records)
        added = [build_id("[kernel.kallsyms]", ident)]
        if module:
            name, its_ident, address = module
            shorter = bytearray(records[number])
            struct.pack_into("<Q", shorter, 24, address - start)
            records[number] = bytes(shorter)
            added += [build_id(name, its_ident), mmap(shorter, name, address, start + size - address)]
        records[number + 1:number + 1] = added
        path.write_bytes(self.header + b"".join(records))
        return path
