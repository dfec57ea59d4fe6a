#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFSv3 client that makes up file handles.

usage: nfs_forger.py EXPORT FILE INODE COUNT

Looks FILE up, whose inode number is INODE, and sends COUNT handles that are like its own, each with GETATTR, ACCESS and READ. Tells
how often the server answered what, as JSON: by the NFS status, or "garbage" if it took the call for none, or "denied" if the
handle is of nothing that it exports. The program fails if an answer is about another file than the handle says, or if READ gives
bytes that are not FILE's own.
"""
import json
import random
import struct
import sys

from nfs_rpc import ACCESS, GETATTR, NFS3, PORT, READ, Connection, data_of, look_up, opaque

HANDLE_MAX, CHUNK, FILEID_AT = 64, 4096, 52


class Forger:
    def __init__(self, handle, inode):
        self.handle, self.chance = handle, random.Random(29)
        # as the kernel's FUSE encodes the number: the server keeps that in its own handle
        self.at = handle.find(struct.pack("=II", inode >> 32, inode & 0xffffffff))
        assert self.at >= 0, f"there is no {inode:x} in {handle.hex()}"

    def number_of(self, handle):
        upper, lower = struct.unpack_from("=II", handle.ljust(self.at + 8, b"\0"), self.at)
        return upper << 32 | lower

    def flipped(self, begin, end):
        forged, at = bytearray(self.handle), self.chance.randrange(begin, end)
        forged[at] ^= 1 << self.chance.randrange(8)
        return bytes(forged)

    def forge(self, number):
        chance, handle = self.chance, self.handle
        return [
            lambda: self.flipped(0, len(handle)),
            lambda: self.flipped(self.at, self.at + 8),
            lambda: handle[:self.at] + chance.randbytes(8) + handle[self.at + 8:],
            lambda: handle[:self.at] + chance.randbytes(len(handle) - self.at),
            lambda: handle[:chance.randrange(len(handle))],
            lambda: handle + chance.randbytes(chance.randrange(1, HANDLE_MAX + 9 - len(handle))),
            lambda: chance.randbytes(len(handle)),
            lambda: chance.randbytes(chance.randrange(HANDLE_MAX + 9)),
        ][number % 8]()


def main():
    export, path, inode, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    nfs = Connection(NFS3, PORT)
    handle = look_up(nfs, export, path)
    forger = Forger(handle, inode)
    answers = {}

    def ask(procedure, forged, rest=b""):
        result = nfs.call(procedure, opaque(forged) + rest)
        status = result if isinstance(result, str) else str(struct.unpack_from(">I", result)[0])
        answers[status] = answers.get(status, 0) + 1
        return result[4:] if status == "0" else None

    def fileid(attributes):
        return struct.unpack_from(">Q", attributes, FILEID_AT)[0]

    def read(forged):
        result = ask(READ, forged, struct.pack(">QI", 0, CHUNK))
        return None if result is None else data_of(result)

    own = read(handle)
    assert fileid(ask(GETATTR, handle)) == inode and own
    answers.clear()
    for number in range(count):
        forged = forger.forge(number)
        attributes = ask(GETATTR, forged)
        assert attributes is None or fileid(attributes) == forger.number_of(forged), forged.hex()
        ask(ACCESS, forged, struct.pack(">I", 0x3f))
        content = read(forged)
        assert content is None or (forger.number_of(forged) == inode and content == own), forged.hex()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
