#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFS client that reads on by its handles.

usage: nfs_client.py VERSION EXPORT FILE...

Looks the files up and prints the SHA-256 of each in a line, and again for each line that it reads, over a connection of its own, of
what it reads by the same handles, or "status" and which, if that is refused. NFSv4 (RFC 7530) is read without an open: what is open
is a state of the server, and not asked for.
"""
import hashlib
import struct
import sys

from nfs_rpc import NFS3, NFS4, PORT, READ, Connection, data_of, look_up, opaque

CHUNK = 65536
COMPOUND, PUTROOTFH, LOOKUP4, GETFH, PUTFH, READ4 = 1, 24, 15, 10, 22, 25
ANONYMOUS = bytes(16)


class Refused(Exception):
    pass


def check(status):
    if status:
        raise Refused(f"status {status}")


def compound(nfs, *operations):
    """What the last of NFSv4's operations gives, each of which is a number and arguments; those before it give nothing."""
    arguments = opaque(b"") + struct.pack(">II", 0, len(operations))
    result = nfs.call(COMPOUND, arguments + b"".join(struct.pack(">I", number) + rest for number, rest in operations))
    status, _, count = struct.unpack_from(">III", result)
    check(status)
    return result[12 + 8 * count:]


def look_up4(nfs, export, path):
    names = [(LOOKUP4, opaque(name.encode())) for name in f"{export}/{path}".strip("/").split("/")]
    result = compound(nfs, (PUTROOTFH, b""), *names, (GETFH, b""))
    return result[4:4 + struct.unpack_from(">I", result)[0]]


def read3(nfs, handle, offset):
    result = nfs.call(READ, opaque(handle) + struct.pack(">QI", offset, CHUNK))
    check(struct.unpack_from(">I", result)[0])
    return data_of(result[4:])


def read4(nfs, handle, offset):
    result = compound(nfs, (PUTFH, opaque(handle)), (READ4, ANONYMOUS + struct.pack(">QI", offset, CHUNK)))
    return result[8:8 + struct.unpack_from(">I", result, 4)[0]]


def digest(read, nfs, handle):
    content = b""
    while more := read(nfs, handle, len(content)):
        content += more
    return hashlib.sha256(content).hexdigest()


def main():
    program, find, read = {"3": (NFS3, look_up, read3), "4": (NFS4, look_up4, read4)}[sys.argv[1]]
    nfs = Connection(program, PORT)
    handles = [find(nfs, sys.argv[2], name) for name in sys.argv[3:]]
    print(*[digest(read, nfs, handle) for handle in handles], flush=True)
    for _ in sys.stdin:
        nfs = Connection(program, PORT)
        try:
            print(*[digest(read, nfs, handle) for handle in handles], flush=True)
        except Refused as status:
            print(status, flush=True)


if __name__ == "__main__":
    main()
