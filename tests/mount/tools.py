# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that run programs, wait for conditions, and check the abilities of this machine."""
import functools
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BIDFS_BUILD") or os.environ.get("BID_BUILD_ROOT") or ROOT / "build").resolve()
MOUNT_BIDFS = BUILD / "fs/mount.bidfs"
BIDCTL = BUILD / "store/ctl/bidctl"
FAULTS = ROOT / "tests/faults/server.py"

# factor for all time limits, for slow or busy hosts
PATIENCE = int(os.environ.get("BID_TEST_PATIENCE") or 1)

IS_ROOT = os.geteuid() == 0


class TimeLimit(Exception):
    """The time limit of a test, which ends each wait."""


def environment(home, **more):
    """Return the environment of tested programs: the C locale, and no server."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("ASAN_", "UBSAN_", "LSAN_", "TSAN_"))}
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "dumb",
            "DEBUGINFOD_URLS": "", "DEBUGINFOD_CACHE_PATH": f"{home}/debuginfod-cache", **kept, **more}


def run(*argv, status=0, **options):
    """
    Run a program to its end. An exit status other than `status` (None: any) fails the test with the program's output. A test of a
    program that is not installed is skipped.
    """
    if "/" not in str(argv[0]) and not shutil.which(argv[0], path=(options.get("env") or os.environ).get("PATH")):
        pytest.skip(f"needs {argv[0]}")
    done = subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, capture_output=True, text=options.pop("text", True),
                          errors=options.pop("errors", None), check=False, **options)
    assert status is None or done.returncode == status, \
        f"{' '.join(map(str, argv))}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def rows(done):
    """Return the result of bidctl --json."""
    return json.loads(done.stdout)["result"]


def wait_until(condition, what):
    """Poll until the condition holds, and return its value."""
    try:
        while not (result := condition()):
            time.sleep(0.01)
    except TimeLimit as limit:
        raise AssertionError(f"{what}: {limit}") from None
    return result


def await_status(env, store, *words):
    """Wait until `bidctl status` prints all of these. A mount that does not answer within 2 s has no state in it."""
    def is_complete():
        text = run(BIDCTL, "--store", store, "status", env=env).stdout
        return all(word in text for word in words)

    wait_until(is_complete, f"{words} in the status")


def stop(pid):
    """Stop a process and wait until no thread of it runs."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    wait_until(lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()),
               f"process {pid} stopped")


def errno_of(function, *args, **kwargs):
    """Return the errno of a failing call, or 0."""
    try:
        result = function(*args, **kwargs)
    except OSError as error:
        return error.errno
    if hasattr(result, "close"):
        result.close()
    return 0


def version(text):
    return tuple(int(number) for number in re.match(r"[\d.]+", text)[0].strip(".").split("."))


@functools.cache
def is_sanitized():
    """Return whether the tested programs are built with the address sanitizer."""
    return b"__asan_init" in MOUNT_BIDFS.read_bytes()


@functools.cache
def why_no_passthrough():
    """Return what passthrough lacks here, or None."""
    libfuse = run("pkg-config", "--modversion", "fuse3").stdout.strip()
    if version(libfuse) < (3, 17):
        return f"passthrough needs libfuse 3.17, this is {libfuse}"
    if version(platform.release()) < (6, 9):
        return f"passthrough needs Linux 6.9, this is {platform.release()}"
    if not IS_ROOT:
        return "passthrough needs CAP_SYS_ADMIN, and this is not root"
    return None


MODES = ("daemon",) if why_no_passthrough() else ("passthrough", "daemon")
READ_MODES = (*MODES, "no_open")  # for tests that do not write to their mounts
