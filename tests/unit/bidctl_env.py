# SPDX-License-Identifier: LGPL-2.1-or-later
"""The environment of tests of bidctl: a home, compiled programs, a store, bidctl, and a server."""
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request

DONE, REFUSED, USAGE, ERROR = 0, 1, 2, 3
TIMEOUT = 60
SUMMARY = re.compile(r"(dry run: )?(seen|added|removed|replaced|named|needed|packed|names|fetched|restored|dropped|files|builds) "
                     r"\d")
SERVER = pathlib.Path(__file__).resolve().parent.parent / "faults" / "server.py"

# full ids with pairs that share a prefix of 8 digits, and of 9
ID_ONE = "abcdef0112345678901234567890123456789012"
ID_TWO = "abcdef0198765432109876543210987654321098"
ID_ODD = "abcdef0198000000000000000000000000000000"
ID_FAR = "1234567890123456789012345678901234567890"
ID_SHORT = "fedcba9876543210"
ID_NOT_STORED = "00112233445566778899aabbccddeeff00112233"

COMPILED = {}  # {name: content of the program}


def divide(done):
    """Move the summary, which follows the messages on standard error, to done.summary, and append it to done.stdout."""
    lines = done.stderr.splitlines(keepends=True)
    done.summary = "".join(line for line in lines if SUMMARY.match(line))
    done.stderr = "".join(line for line in lines if not SUMMARY.match(line))
    done.stdout += done.summary
    return done


def read_json(text):
    """Parse and check the JSON of a command."""
    value = json.loads(text)
    assert list(value) == ["schema", "command", "result", "totals", "errors"] and value["schema"] == "bidfs.v1", value
    assert all(list(error) == ["subject", "reason", "errno"] and error["subject"] for error in value["errors"]), value["errors"]
    return value


def build(directory, name, build_id, flags=()):
    """Compile a program with that id."""
    path = directory / name
    source = directory / f"{name}.c"
    source.write_text(f'const char name[] = "{name}";\nint main(void) {{ return name[0] == 0; }}\n')
    build_id_flag = f"-Wl,--build-id={'0x' + build_id if build_id else 'none'}"
    subprocess.run(["cc", "-g", build_id_flag, *flags, "-o", path, source], check=True, timeout=TIMEOUT)
    return path


def build_once(directory, name, build_id, flags=()):
    """Call build(), or copy the program that an earlier case compiled under that name."""
    path = directory / name
    if name not in COMPILED:
        COMPILED[name] = build(directory, name, build_id, flags).read_bytes()
    path.write_bytes(COMPILED[name])
    path.chmod(0o755)
    return path


@functools.cache
def programs(directory):
    found = {
        "one": build_once(directory, "one", ID_ONE),
        "two": build_once(directory, "two", ID_TWO),
        "odd": build_once(directory, "odd", ID_ODD),
        "far": build_once(directory, "far", ID_FAR),
        "short": build_once(directory, "short", ID_SHORT),
        "stripped": build_once(directory, "stripped", ID_NOT_STORED, ["-s"]),
        "no_id": build_once(directory, "no_id", None),
    }
    text = directory / "text"
    text.write_text("this is no program\n")
    cut = directory / "cut"
    cut.write_bytes(found["one"].read_bytes()[:5000])
    return {**found, "text": text, "cut": cut}


class Env:
    """A home directory, programs to add, and bidctl."""

    def __init__(self, bidctl, built, directory):
        self.bidctl = bidctl
        self.home = directory / "home"
        self.store = directory / "store"
        self.home.mkdir()
        self.store.mkdir()
        for name, path in programs(built).items():
            setattr(self, name, path)
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C",
                            "PERF_CONFIG_NOSYSTEM": "1", "DEBUGINFOD_URLS": ""}
        # options of a sanitizer, if bidctl was built with one
        self.environment |= {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}

    def run(self, *arguments, status=DONE, **environment):
        """Run bidctl; check its exit status, and that each error is one line."""
        done = subprocess.run([self.bidctl, *map(str, arguments)], env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="surrogateescape", timeout=TIMEOUT)
        assert status in (None, done.returncode), \
            f"exit status {done.returncode}, not {status}: {arguments}\n{done.stdout}{done.stderr}"
        if done.returncode == USAGE:
            done.stderr, hint, done.hint = done.stderr.rpartition("Try 'bidctl ")
            assert hint, f"no hint where to read on: {done.stderr!r}"
        divide(done)
        for line in done.stderr.splitlines():
            assert re.match(r"bidctl: (error|warning): \S|  (and )?[0-9a-f]", line), f"not a message: {line!r}"
        assert "\033" not in done.stdout + done.stderr, "colours in a pipe"
        return done

    def on_store(self, *arguments, **keywords):
        return self.run("--store", self.store, *arguments, **keywords)

    def json(self, *arguments, **keywords):
        """Return the JSON output: {"schema", "command", "result", "totals", "errors"}."""
        return read_json(self.on_store("--json", *arguments, **keywords).stdout)

    def rows(self, *arguments, **keywords):
        return self.json(*arguments, **keywords)["result"]

    def row(self, *arguments, **keywords):
        found, = self.rows(*arguments, **keywords)
        return found

    def totals(self, *arguments, **keywords):
        return self.json(*arguments, **keywords)["totals"]

    def one_error(self, *arguments, status, has):
        done = self.on_store(*arguments, status=status)
        assert done.stdout == "" or "--json" in arguments, done.stdout
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr

    def on_terminal(self, *arguments, columns=120, **environment):
        """Run bidctl on a terminal; return its status and output."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        with subprocess.Popen([self.bidctl, *map(str, arguments)], env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            text = b""
            with contextlib.suppress(OSError):  # EIO is the end of a terminal
                while chunk := os.read(ours, 65536):
                    text += chunk
            process.wait(TIMEOUT)
        os.close(ours)
        return process.returncode, text.decode()

    def files(self):
        """Return the files of the store outside of .bidfs."""
        return sorted(str(path.relative_to(self.store)) for path in self.store.rglob("*")
                      if path.is_file() and ".bidfs" not in path.parts)


@contextlib.contextmanager
def server(env, *behaviours):
    """Run a server that has "stripped" as executable and its debug information."""
    root = env.home / "served"
    (root / ID_NOT_STORED).mkdir(parents=True, exist_ok=True)
    shutil.copy(env.stripped, root / ID_NOT_STORED / "executable")
    unstripped = build_once(env.home, "unstripped", ID_NOT_STORED)
    subprocess.run(["objcopy", "--only-keep-debug", unstripped, root / ID_NOT_STORED / "debuginfo"], check=True, timeout=TIMEOUT)
    arguments = [item for behaviour in behaviours for item in ("--behaviour", behaviour)]
    with subprocess.Popen([sys.executable, SERVER, "--root", root, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def stats(url):
    """Return the counters of the server."""
    return json.load(urllib.request.urlopen(f"{url}/control/stats", timeout=TIMEOUT))


def request_count(url):
    """Return the number of requests to the server."""
    return stats(url)["requests"]


def interrupted(env, url, *arguments, caught=signal.SIGINT):
    """Run bidctl, send it a signal during its request to the silent server at @url, and check that it ends. Return its output."""
    process = subprocess.Popen([env.bidctl, "-s", env.store, *arguments], env=env.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + TIMEOUT
    while request_count(url) == 0:
        assert time.monotonic() < deadline and process.poll() is None, "it never asked"
        time.sleep(0.02)
    process.send_signal(caught)
    done = divide(subprocess.CompletedProcess(arguments, 0, *process.communicate(timeout=TIMEOUT)))
    assert process.returncode == 128 + caught and done.stderr == "", (process.returncode, done)
    return done.stdout
