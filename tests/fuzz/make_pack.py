#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write the hand-made inputs of corpus/pack, which are committed: how many records a pack has, and what is done to it.

usage: make_pack.py [--check] DIRECTORY

With --check nothing is written, and the exit status is 1 if DIRECTORY holds other files than these.
"""
import struct
import sys

import writer

BYTE, LENGTH, NUMBER, CUT = range(4)
HEADER, ENTRY = 48, 32


def change(kind, at, number=0):
    return struct.pack("=QII", number, at, kind)


def pack(eights, *changes, mended=False):
    """A pack of 8 * @eights records; with @mended the sum of its header is right after the changes. @eights is odd for that."""
    assert eights % 2 == mended
    return bytes([eights]) + b"".join(changes)


def index(entry, field):
    return HEADER + ENTRY * entry + {"key": 0, "offset": 16, "len": 24}[field]


WANTED = {
    "none": pack(0),
    "whole": pack(2),
    "blocks": pack(130),
    "blocks-mended": pack(131, mended=True),
    "magic": pack(2, change(BYTE, 0)),
    "version": pack(1, change(LENGTH, 8, 2), mended=True),
    "order": pack(1, change(LENGTH, 12, 0x04030201), mended=True),
    "more-than-there-are": pack(1, change(NUMBER, 16, 9), mended=True),
    "as-many-as-can-be-said": pack(1, change(NUMBER, 16, 2**64 - 1), mended=True),
    "fewer": pack(1, change(NUMBER, 16, 7), mended=True),
    "another-size": pack(1, change(NUMBER, 24, 2**63), mended=True),
    "index-sum": pack(1, change(NUMBER, 32, 1), mended=True),
    "cut-in-the-header": pack(2, change(CUT, 47)),
    "cut-in-the-index": pack(1, change(CUT, index(3, "len")), mended=True),
    "cut-in-a-text": pack(1, change(CUT, index(8, "key") + 20), mended=True),
    "key-out-of-order": pack(131, change(NUMBER, index(700, "key"), 2**64 - 1), mended=True),
    "keys-all-alike": pack(1, *(change(NUMBER, index(i, "key") + part, 5) for i in range(8) for part in (0, 8)), mended=True),
    "offset-of-another": pack(1, change(NUMBER, index(2, "offset"), index(8, "key")), mended=True),
    "offset-behind-the-end": pack(1, change(NUMBER, index(2, "offset"), 2**63 - 1), mended=True),
    "offset-negative": pack(1, change(NUMBER, index(2, "offset"), 2**64 - 1), mended=True),
    "length-none": pack(1, change(LENGTH, index(2, "len"), 0), mended=True),
    "length-too-large": pack(1, change(LENGTH, index(2, "len"), 2**32 - 1), mended=True),
    "length-of-two": pack(1, change(LENGTH, index(2, "len"), 80), mended=True),
    "text": pack(2, change(BYTE, index(16, "key") + 3, ord("z"))),
}

sys.exit(writer.run(WANTED, 1024, __doc__))
