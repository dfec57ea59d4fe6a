#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Count the system calls that each build costs commands that read a whole store, a figure that is the same on all machines.

usage: check_syscalls.py BIDCTL

Exit status: 0 if all costs are below their limits, 1 if not, 77 without strace.
"""
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

FEW, MANY = 100, 600
BUILDS_OF_A_PATH = 10
TIMEOUT = 120
DISARMING_MORE = 20

# system calls for each build: a directory with an ELF file, and perf's link to it
LIMITS = {
    # the link; the directory: open, stat, close; and a stat for each of five files
    ("list",): 9.1,
    ("list", "--json"): 9.1,
    ("list", "--by=size"): 9.1,
    ("list", "--by=time"): 9.1,
    ("list", "--by=path"): 9.1,
    # the directory: open, two reads, close; the file: open, stat, read, capabilities, close; the link; and a tenth of the directory
    # of the path
    ("verify", "--jobs=1"): 10.6,
    # the whole file is read at once, after a look for holes
    ("verify", "--deep", "--jobs=1"): 13.6,
}

# builds with a path of their own
ADDED_LIMITS = {
    ("verify", "--jobs=1"): 14.2,
    ("verify", "--deep", "--jobs=1"): 18.2,
}


def image(ident):
    """Return the smallest ELF file with an id."""
    note = struct.pack("<III4s", 4, len(ident), 3, b"GNU\0") + ident
    segment = struct.pack("<IIQQQQQQ", 4, 4, 64 + 56, 0, 0, len(note), len(note), 4)
    return struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0) + segment + note


def ident_of(number):
    """Return an id; all ids share the first byte, so that the cost of link directories does not count."""
    return b"\xab" + hashlib.sha1(str(number).encode()).digest()[:18] + b"\x01"


def fill(store, builds):
    for number in range(builds):
        ident = ident_of(number)
        directory = store / "usr" / "lib" / f"lib{number // BUILDS_OF_A_PATH}.so" / ident.hex()
        directory.mkdir(parents=True)
        (directory / "elf").write_bytes(image(ident))
        link = store / ".build-id" / ident.hex()[:2] / ident.hex()[2:]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(directory, link.parent))


def run(*command):
    # the leak sanitizer traces its own process, which fails under strace
    environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0", "DEBUGINFOD_URLS": ""}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT)


def add(bidctl, store, tree, builds):
    store.mkdir()
    tree.mkdir()
    for number in range(builds):
        (tree / f"lib{number}.so").write_bytes(image(ident_of(number)))
    run(bidctl, "--store", store, "add", tree)


def syncs(bidctl, store, tree, log):
    """Count the syncfs calls of an addition of copies: one for at most 8000 files."""
    store.mkdir()
    run("strace", "-f", "-qq", "-e", "trace=syncfs", "-o", log, bidctl, "--store", store, "add", "--link=copy", tree)
    return sum(" syncfs(" in line for line in log.read_text(encoding="utf-8", errors="replace").splitlines())


def calls(bidctl, store, command, log):
    """Count the system calls of a command."""
    run("strace", "-f", "-qq", "-o", log, bidctl, "--store", store, *command)
    # do not count the second half of an interrupted call, nor calls that manage memory and locks
    return sum("resumed>" not in line and not any(f" {name}(" in line for name in ("futex", "mmap", "munmap", "brk", "madvise"))
               for line in log.read_text(encoding="utf-8", errors="replace").splitlines())


def disarming(bidctl, store, program, log):
    """Count the system calls of adding a program whose stored copy is setuid: its known names need no search."""
    elf = store / "usr" / "lib" / "lib0.so" / ident_of(0).hex() / "elf"
    program.write_bytes(image(ident_of(0)))
    run(bidctl, "--store", store, "add", "--link=copy", program)
    elf.chmod(0o4755)
    n = calls(bidctl, store, ("add", program), log)
    assert elf.stat().st_mode & 0o7777 == 0o444
    return n


def main():
    bidctl = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("strace"):
        print("skipped: no strace")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        for builds in (FEW, MANY):
            fill(top / f"plain-{builds}", builds)
            add(bidctl, top / f"added-{builds}", top / f"tree-{builds}", builds)
        for kind, limits in (("plain", LIMITS), ("added", ADDED_LIMITS)):
            for command, limit in limits.items():
                few, many = (calls(bidctl, top / f"{kind}-{builds}", command, top / "log") for builds in (FEW, MANY))
                each = (many - few) / (MANY - FEW)
                print(f"bidctl {' '.join(command)}, {kind}: {each:.2f} calls a build, {limit} at most")
                failed += not 0 < each <= limit
        few, many = (disarming(bidctl, top / f"plain-{builds}", top / "program", top / "log") for builds in (FEW, MANY))
        print(f"bidctl add of what is setuid in the store: {few} calls with {FEW} builds, {many} with {MANY}")
        failed += many > few + DISARMING_MORE
        n = syncs(bidctl, top / "copies", top / f"tree-{MANY}", top / "log")
        print(f"bidctl add --link=copy of {MANY}: {n} times syncfs, once wanted")
        failed += n != 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
