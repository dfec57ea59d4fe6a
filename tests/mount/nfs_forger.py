#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFSv3 client that makes up file handles: RFC 1813 by hand, because no library sends what it was not given by the server.

usage: nfs_forger.py EXPORT FILE INODE COUNT

Looks FILE up, whose inode number is INODE, and sends COUNT handles that are like its own, each with GETATTR, ACCESS and READ. Tells
how often the server answered what, as JSON: by the NFS status, or "garbage" if it took the call for none, or "denied" if the
handle is of nothing that it exports. The program fails if an answer is about another file than the handle says, or if READ gives
bytes that are not FILE's own.
"""
import json
import random
import socket
import struct
import sys

PORTMAPPER, MOUNTD, NFS = (100000, 2), (100005, 3), (100003, 3)
GETPORT, MNT, GETATTR, LOOKUP, ACCESS, READ = 3, 1, 1, 3, 4, 6
TCP, HANDLE_MAX, CHUNK, ATTR_SIZE, FILEID_AT = 6, 64, 4096, 84, 52


def opaque(data):
    return struct.pack(">I", len(data)) + data + b"\0" * (-len(data) % 4)


class Connection:
    def __init__(self, program, port):
        self.program, self.xid = program, 0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def receive(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server has hung up")
            data += more
        return data

    def call(self, procedure, arguments):
        """The results; or, as a word, why there are none."""
        self.xid += 1
        # AUTH_SYS: root, who is nobody there
        credentials = struct.pack(">I", 1) + opaque(struct.pack(">I", 0) + opaque(b"forger") + struct.pack(">III", 0, 0, 0))
        message = struct.pack(">IIIIII", self.xid, 0, 2, *self.program, procedure) + credentials + struct.pack(">II", 0, 0)
        message += arguments
        self.socket.sendall(struct.pack(">I", 1 << 31 | len(message)) + message)
        reply, last = b"", False
        while not last:
            mark = struct.unpack(">I", self.receive(4))[0]
            reply, last = reply + self.receive(mark & ~(1 << 31)), bool(mark >> 31)
        xid, kind, denied, _, size = struct.unpack_from(">IIIII", reply)
        assert (xid, kind) == (self.xid, 1), reply.hex()
        if denied:
            return "denied"
        accepted = struct.unpack_from(">I", reply, 20 + size)[0]
        assert accepted in (0, 4), f"accept_stat {accepted}"  # SUCCESS, GARBAGE_ARGS
        return reply[24 + size:] if accepted == 0 else "garbage"


def port_of(program):
    arguments = struct.pack(">IIII", *program, TCP, 0)
    return struct.unpack(">I", Connection(PORTMAPPER, 111).call(GETPORT, arguments))[0]


def take_handle(result):
    status, size = struct.unpack_from(">II", result)
    assert status == 0, f"status {status}"
    return result[8:8 + size]


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
    nfs = Connection(NFS, 2049)
    handle = take_handle(Connection(MOUNTD, port_of(MOUNTD)).call(MNT, opaque(export.encode())))
    for name in path.split("/"):
        handle = take_handle(nfs.call(LOOKUP, opaque(handle) + opaque(name.encode())))
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
        if result is None:
            return None
        at = 4 + ATTR_SIZE * struct.unpack_from(">I", result)[0]
        size = struct.unpack_from(">I", result, at + 8)[0]
        return result[at + 12:at + 12 + size]

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
