# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turn recordings of the running kernel into recordings of another kernel. The pipe form permits new and altered records."""
import struct

import tools

MMAP, HEADER_BUILD_ID = 1, 67  # perf, lib/perf/include/perf/event.h
KERNEL, HAS_SIZE = 1, 0x8000
HEADER = 16  # pipe form: tools/perf/util/header.c


def record_kernel(env):
    """Return a recording in pipe form with samples mostly of the kernel, or the reason why none can be made."""
    done = tools.run("perf", "record", "-q", "-N", "--no-buildid-mmap", "-e", "cpu-clock:k", "-o", "-", "dd", "if=/dev/zero",
                     "of=/dev/null", "bs=1", "count=200000", status=None, env=env, text=False)
    stream = Stream(done.stdout) if done.returncode == 0 else None
    if not stream or not stream.kernel():
        raise LookupError(f"perf cannot record the kernel here: {done.stderr.decode(errors='replace').strip()[:200]}")
    return stream


def padded(text):
    return text + bytes(8 - len(text) % 8)


def record(kind, misc, payload):
    """Return a record, padded to 8 bytes as newer perf requires."""
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def build_id(name, ident):
    """Return a perf_record_header_build_id for the kernel file `name`."""
    content = bytes.fromhex(ident)
    return record(HEADER_BUILD_ID, KERNEL | HAS_SIZE, struct.pack("<i20sB3x", -1, content, len(content)) + padded(name.encode()))


def mmap(like, name, start, size):
    """Return a perf_record_mmap that maps `name` as kernel code, at the time of the record `like`."""
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
        """Return index, start and size of the record that maps the kernel."""
        for number, data in enumerate(self.records):
            kind, misc, _ = struct.unpack_from("<IHH", data)
            if kind == MMAP and misc & 7 == KERNEL and data[40:].startswith(b"[kernel.kallsyms]"):
                return number, *struct.unpack_from("<QQ", data, 16)
        return None

    def save(self, path, ident, module=None):
        """
        Write the recording as one of the kernel `ident`. With `module` (name, id, address) the kernel's code from that address on
        belongs to the module.
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
