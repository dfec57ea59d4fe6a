#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFS client that makes up file handles.

usage: nfs_forger.py VERSION EXPORT FILE INODE COUNT

Looks up FILE, which has the inode number INODE. Sends COUNT handles similar to the file's, each with GETATTR, ACCESS and READ.
Prints the number of each response as JSON: by NFS status, "garbage" for a call that the server could not decode, or "denied" for a
handle outside its exports. The program fails if a response is about another file than the handle's, or if READ returns bytes that
are not FILE's own.
"""
import json
import random
import struct
import sys

from nfs_rpc import (ACCESS, ACCESS4, GETATTR, GETATTR4, NFS3, NFS4, PORT, PUTFH, READ, Connection, compound, data_of, look_up,
                     look_up4, opaque, opaque_in, read4)

CHUNK, FILEID_AT, FILEID4, EVERYTHING = 4096, 52, 20, 0x3f


class Nfs3Requests:
    """Requests of NFSv3; each returns a status or an error word, and a result."""

    handle_max = 64

    def __init__(self):
        self.nfs = Connection(NFS3, PORT)

    def look_up(self, export, path):
        return look_up(self.nfs, export, path)

    def ask(self, procedure, handle, rest=b""):
        result = self.nfs.call(procedure, opaque(handle) + rest)
        return (result, None) if isinstance(result, str) else (struct.unpack_from(">I", result)[0], result[4:])

    def fileid(self, handle):
        status, result = self.ask(GETATTR, handle)
        return status, struct.unpack_from(">Q", result, FILEID_AT)[0] if status == 0 else None

    def access(self, handle):
        return self.ask(ACCESS, handle, struct.pack(">I", EVERYTHING))

    def read(self, handle):
        status, result = self.ask(READ, handle, struct.pack(">QI", 0, CHUNK))
        return status, data_of(result) if status == 0 else None


class Nfs4Requests:
    """The same requests of NFSv4."""

    handle_max = 128

    def __init__(self):
        self.nfs = Connection(NFS4, PORT)

    def look_up(self, export, path):
        return look_up4(self.nfs, export, path)

    def fileid(self, handle):
        status, result = compound(self.nfs, (PUTFH, opaque(handle)), (GETATTR4, struct.pack(">II", 1, 1 << FILEID4)))
        # skip the bitmap of returned attributes
        at = 4 + 4 * struct.unpack_from(">I", result)[0] if status == 0 else 0
        return status, struct.unpack(">Q", opaque_in(result, at))[0] if status == 0 else None

    def access(self, handle):
        return compound(self.nfs, (PUTFH, opaque(handle)), (ACCESS4, struct.pack(">I", EVERYTHING)))

    def read(self, handle):
        return read4(self.nfs, handle, 0, CHUNK)


class Forger:
    def __init__(self, handle, handle_max, inode):
        self.handle, self.handle_max, self.chance = handle, handle_max, random.Random(29)
        # the kernel's FUSE handle has the inode number here, and NFS-Ganesha wraps that handle
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
            lambda: handle + chance.randbytes(chance.randrange(1, self.handle_max + 9 - len(handle))),
            lambda: chance.randbytes(len(handle)),
            lambda: chance.randbytes(chance.randrange(self.handle_max + 9)),
        ][number % 8]()


def main():
    version, export, path = sys.argv[1:4]
    inode, count = int(sys.argv[4]), int(sys.argv[5])
    nfs = {"3": Nfs3Requests, "4": Nfs4Requests}[version]()
    handle = nfs.look_up(export, path)
    forger = Forger(handle, nfs.handle_max, inode)
    answers = {}

    def noted(answer):
        status, result = answer
        answers[status] = answers.get(status, 0) + 1
        return result

    own = noted(nfs.read(handle))
    assert noted(nfs.fileid(handle)) == inode and own
    answers.clear()
    for number in range(count):
        forged = forger.forge(number)
        fileid = noted(nfs.fileid(forged))
        assert fileid is None or fileid == forger.number_of(forged), forged.hex()
        noted(nfs.access(forged))
        content = noted(nfs.read(forged))
        assert content is None or (forger.number_of(forged) == inode and content == own), forged.hex()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
