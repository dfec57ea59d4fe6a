# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of NFS by hand, RFC 5531 and 1813: no library sends what it was not given by the server, or reads on by a handle alone."""
import socket
import struct

PORTMAPPER, MOUNTD, NFS3, NFS4 = (100000, 2), (100005, 3), (100003, 3), (100003, 4)
GETPORT, MNT, GETATTR, LOOKUP, ACCESS, READ = 3, 1, 1, 3, 4, 6
TCP, PORT, ATTR_SIZE = 6, 2049, 84


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
        credentials = struct.pack(">I", 1) + opaque(struct.pack(">I", 0) + opaque(b"client") + struct.pack(">III", 0, 0, 0))
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


def look_up(nfs, export, path):
    """The handle of a file, by NFSv3."""
    handle = take_handle(Connection(MOUNTD, port_of(MOUNTD)).call(MNT, opaque(export.encode())))
    for name in path.split("/"):
        handle = take_handle(nfs.call(LOOKUP, opaque(handle) + opaque(name.encode())))
    return handle


def data_of(result):
    """What READ of NFSv3 has read, after its status."""
    at = 4 + ATTR_SIZE * struct.unpack_from(">I", result)[0]
    size = struct.unpack_from(">I", result, at + 8)[0]
    return result[at + 12:at + 12 + size]
