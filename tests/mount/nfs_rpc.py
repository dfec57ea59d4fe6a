# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handmade NFS calls (RFC 5531, 1813 and 7530): no library sends made-up handles, or reads by a handle alone."""
import socket
import struct

PORTMAPPER, MOUNTD, NFS3, NFS4 = (100000, 2), (100005, 3), (100003, 3), (100003, 4)
GETPORT, MNT, GETATTR, LOOKUP, ACCESS, READ = 3, 1, 1, 3, 4, 6
COMPOUND, ACCESS4, GETATTR4, GETFH, LOOKUP4, PUTFH, PUTROOTFH, READ4 = 1, 3, 9, 10, 15, 22, 24, 25
TCP, PORT, ATTR_SIZE = 6, 2049, 84
ANONYMOUS = bytes(16)  # the anonymous state id, with which NFSv4 reads a file that is not open


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
        """Return the results, or an error word."""
        self.xid += 1
        # AUTH_SYS of root, whom the server maps to nobody
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
    """Return the handle of a file by NFSv3."""
    handle = take_handle(Connection(MOUNTD, port_of(MOUNTD)).call(MNT, opaque(export.encode())))
    for name in path.split("/"):
        handle = take_handle(nfs.call(LOOKUP, opaque(handle) + opaque(name.encode())))
    return handle


def compound(nfs, *operations):
    """
    Run operations of NFSv4, each (number, arguments). Return the status, or an error word, and the results of the last operation;
    the other operations must have none.
    """
    arguments = opaque(b"") + struct.pack(">II", 0, len(operations))
    result = nfs.call(COMPOUND, arguments + b"".join(struct.pack(">I", number) + rest for number, rest in operations))
    if isinstance(result, str):
        return result, None
    status, _, count = struct.unpack_from(">III", result)
    return status, result[12 + 8 * count:]


def look_up4(nfs, export, path):
    """Return the handle of a file by NFSv4."""
    names = [(LOOKUP4, opaque(name.encode())) for name in f"{export}/{path}".strip("/").split("/")]
    status, result = compound(nfs, (PUTROOTFH, b""), *names, (GETFH, b""))
    assert status == 0, f"status {status}"
    return opaque_in(result)


def read4(nfs, handle, offset, size):
    """Return the status and the read bytes."""
    status, result = compound(nfs, (PUTFH, opaque(handle)), (READ4, ANONYMOUS + struct.pack(">QI", offset, size)))
    return status, opaque_in(result, 4) if status == 0 else None


def opaque_in(result, at=0):
    return result[at + 4:at + 4 + struct.unpack_from(">I", result, at)[0]]


def data_of(result):
    """Return the bytes of a READ result of NFSv3, without its status."""
    at = 4 + ATTR_SIZE * struct.unpack_from(">I", result)[0]
    size = struct.unpack_from(">I", result, at + 8)[0]
    return result[at + 12:at + 12 + size]
