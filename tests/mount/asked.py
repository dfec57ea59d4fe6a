# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the kernel asks of a mount's daemon, as the kernel tells it: its trace events of FUSE, which are in Linux since 6.11."""
import collections
import contextlib
import os
import pathlib
import re

import pytest

import tools

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENT = "events/fuse/fuse_request_send"


@contextlib.contextmanager
def counted(mount):
    """Yields a counter that has at the end how often the kernel sent what to the daemon of `mount`: "FUSE_LOOKUP" and the like."""
    if not tools.IS_ROOT or not os.access(TRACING / EVENT / "enable", os.W_OK):
        pytest.skip(f"no '{TRACING / EVENT}' that can be written: needs root, and Linux 6.11")
    instance, sent = TRACING / "instances" / f"bidfs-{os.getpid()}", collections.Counter()
    device = os.minor(os.stat(mount.path).st_dev)
    instance.mkdir()
    try:
        (instance / EVENT / "filter").write_text(f"connection == {device}", encoding="ascii")
        (instance / EVENT / "enable").write_text("1", encoding="ascii")
        yield sent
        (instance / EVENT / "enable").write_text("0", encoding="ascii")
        sent.update(re.findall(r"opcode \d+ \((\w+)\)", (instance / "trace").read_text(encoding="utf-8")))
    finally:
        instance.rmdir()
