#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFS client that keeps reading by its file handles.

usage: nfs_client.py VERSION EXPORT FILE...

Look up the files, and print the SHA-256 of each in one line. For each line on standard input, read the same handles again over a
new connection, and print the same; a refused read becomes "status" and the NFS status.
"""
import hashlib
import struct
import sys

from nfs_rpc import NFS3, NFS4, PORT, READ, Connection, data_of, look_up, look_up4, opaque, read4

CHUNK = 65536


class Refused(Exception):
    pass


def check(status):
    if status:
        raise Refused(f"status {status}")


def read3(nfs, handle, offset):
    result = nfs.call(READ, opaque(handle) + struct.pack(">QI", offset, CHUNK))
    check(struct.unpack_from(">I", result)[0])
    return data_of(result[4:])


def read_on4(nfs, handle, offset):
    status, data = read4(nfs, handle, offset, CHUNK)
    check(status)
    return data


def digest(read, nfs, handle):
    content = b""
    while more := read(nfs, handle, len(content)):
        content += more
    return hashlib.sha256(content).hexdigest()


def main():
    program, find, read = {"3": (NFS3, look_up, read3), "4": (NFS4, look_up4, read_on4)}[sys.argv[1]]
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
