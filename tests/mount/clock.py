# SPDX-License-Identifier: LGPL-2.1-or-later
"""A clock controlled by a test (tests/clock/test_clock.h). Programs with its environment use its time."""
import os
import struct

import tools


class Clock:
    def __init__(self, path):
        path.write_bytes(struct.pack("q", 0))
        self.path = path
        sanitizer = os.environ.get("ASAN_OPTIONS", "")
        # the program contains the sanitizer's runtime, which need not be loaded first
        self.env = {"LD_PRELOAD": str(tools.BUILD / "tests/clock/bid-test-clock.so"), "BID_TEST_CLOCK": str(path),
                    "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0".strip(":")}

    def advance(self, seconds):
        """Move the clock forward; deadlines until then expire within milliseconds."""
        with open(self.path, "r+b", buffering=0) as file:
            offset, = struct.unpack("q", file.read(8))
            file.seek(0)
            file.write(struct.pack("q", offset + int(seconds * 1e9)))
