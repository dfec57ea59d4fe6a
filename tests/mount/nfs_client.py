#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NFS client that keeps files open, by libnfs.

usage: nfs_client.py VERSION EXPORT FILE...

Opens the files, prints the SHA-256 of each in a line, and again for each line that it reads, of what it reads by the same handles.
"""
import ctypes
import ctypes.util
import errno
import hashlib
import os
import sys
import time

CHUNK = 65536


class Client:
    def __init__(self, version, export):
        soname = ctypes.util.find_library("nfs")
        self.lib = ctypes.CDLL(soname)
        # until libnfs 6 the buffer came last
        self.buffer_last = int(soname.rsplit(".", 1)[1]) < 16
        self.lib.nfs_init_context.restype = ctypes.c_void_p
        self.lib.nfs_get_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.lib.nfs_init_context())
        self.check(self.lib.nfs_set_version(self.context, version))
        self.check(self.lib.nfs_mount(self.context, b"127.0.0.1", export.encode()))

    def check(self, status):
        if status < 0:
            raise OSError(-status, (self.lib.nfs_get_error(self.context) or b"").decode())
        return status

    def open(self, name):
        handle = ctypes.c_void_p()
        self.check(self.lib.nfs_open(self.context, f"/{name}".encode(), 0, ctypes.byref(handle)))
        return handle

    def read(self, handle):
        content = b""
        buffer = ctypes.create_string_buffer(CHUNK)
        while True:
            place, size = ctypes.c_uint64(len(content)), ctypes.c_uint64(CHUNK)
            arguments = (place, size, buffer) if self.buffer_last else (buffer, size, place)
            got = self.lib.nfs_pread(self.context, handle, *arguments)
            for _ in range(40):
                if got != -errno.EFAULT:
                    break
                # libnfs: the call failed, not what it asked for, as the first ones after a lost connection may
                time.sleep(0.5)
                got = self.lib.nfs_pread(self.context, handle, *arguments)
            self.check(got)
            if got == 0:
                return content
            content += buffer.raw[:got]


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libnfs 6 writes to standard output when it connects again
    client = Client(int(sys.argv[1]), sys.argv[2])
    handles = [client.open(name) for name in sys.argv[3:]]
    print(*[hashlib.sha256(client.read(handle)).hexdigest() for handle in handles], file=answers, flush=True)
    for _ in sys.stdin:
        print(*[hashlib.sha256(client.read(handle)).hexdigest() for handle in handles], file=answers, flush=True)


if __name__ == "__main__":
    main()
