# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel's switch for io_uring, which is one for the whole machine."""
import contextlib
import fcntl
import pathlib

PARAMETER = pathlib.Path("/sys/module/fuse/parameters/enable_uring")


@contextlib.contextmanager
def kept():
    """What it is, which nobody changes as long as this lasts, but who does it."""
    with open(PARAMETER, "r+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.read()


@contextlib.contextmanager
def allowed():
    """The kernel offers it, as long as this lasts: to mounts that are made meanwhile, which keep it. Others who do so wait."""
    with kept() as before:
        try:
            PARAMETER.write_text("Y", encoding="ascii")
            yield
        finally:
            PARAMETER.write_text(before, encoding="ascii")
