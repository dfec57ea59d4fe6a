#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run perf, several bidctls and a reader on one store at once: no wrong byte, no crash, and a final repair succeeds.

usage: check_concurrent.py BIDCTL [--seconds=N]

perf adds and removes; bidctl adds, updates, removes, evicts, checks, repairs, and fetches if it can.
"""
import argparse
import collections
import contextlib
import errno
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from bidctl_env import ID_NOT_STORED, TIMEOUT, ERROR, Env, build, server

IDS = [f"{digit:02x}" * 20 for digit in (0x11, 0x22, 0x33, 0x44)]
# expected exit statuses of bidctl: found, not found, refused; the bits of verify; and 3 for a file that disappeared meanwhile
TOLERATED = set(range(0, 128)) - {2}


class Crowd:
    """Threads that run programs until the time is over, and at least until each program has done its work once."""

    def __init__(self, env, seconds):
        self.env = env
        self.end = time.monotonic() + seconds
        self.last = time.monotonic() + 10 * seconds
        self.faults = []
        self.done = {}
        self.reads = collections.defaultdict(collections.Counter)  # reader -> result -> count
        self.ended = collections.defaultdict(collections.Counter)  # command -> exit status -> count
        self.troubled = []  # outputs of programs with an unexpected status
        self.threads = []

    def came_to_something(self, name):
        if name in self.reads:
            return self.reads[name]["read"] > 0
        ended = set(self.ended.get(name, ()))
        # verify and gc end with 1 for findings, and for a limit that open files exceed
        return 0 in ended or (name in ("verify", "gc") and ended - {ERROR} != set())

    def is_over(self):
        now = time.monotonic()
        return now >= self.last or (now >= self.end and all(self.came_to_something(thread.name) for thread in self.threads))

    def loop(self, name, step):
        def run():
            generator = random.Random(name)
            for number in itertools.count():
                if self.is_over() or self.faults:
                    break
                try:
                    step(generator)
                except (AssertionError, OSError, subprocess.SubprocessError) as error:
                    self.faults.append(f"{name}: {error!r}")
                self.done[name] = number + 1
        self.threads.append(threading.Thread(target=run, name=name))

    def program(self, *arguments):
        run = subprocess.run([*map(str, arguments)], env=self.env.environment, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, errors="replace", timeout=TIMEOUT)
        self.ended[threading.current_thread().name][run.returncode] += 1
        if run.returncode == ERROR:
            self.troubled.append(run.stderr.strip())
        assert run.returncode in TOLERATED, f"exit status {run.returncode}: {arguments}\n{run.stdout}{run.stderr}"
        return run

    def bidctl(self, *arguments):
        return self.program(self.env.bidctl, "--store", self.env.store, *arguments)

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()


def make_programs(env):
    """Make two programs for each id, with and without symbols: return {id: [paths]}, and the bytes that an id may have."""
    found, right = {}, {}
    for number, build_id in enumerate(IDS):
        first = build(env.home, f"program{number}", build_id)
        second = pathlib.Path(shutil.copy(first, env.home / f"copy{number}"))
        stripped = env.home / f"stripped{number}"
        subprocess.run(["strip", "-o", stripped, first], check=True, timeout=TIMEOUT)
        found[build_id] = [first, second, stripped]
        right[build_id] = {first.read_bytes(), stripped.read_bytes()}
    right[ID_NOT_STORED] = {env.stripped.read_bytes()}
    return found, right


def perfs_name(top, build_id):
    return top / ".build-id" / build_id[:2] / build_id[2:] / "elf"


def check_reader(crowd, name, right, path_of):
    """Read the file that @path_of returns for an id, again and again."""
    def read(generator):
        # leave processor time to the others
        time.sleep(0.001)
        build_id = generator.choice(sorted(right))
        try:
            content = path_of(generator, build_id).read_bytes()
        except OSError as error:
            crowd.reads[name][errno.errorcode[error.errno]] += 1
            return
        assert content in right[build_id], f"{len(content)} wrong bytes under '{build_id}'"
        crowd.reads[name]["read"] += 1
    crowd.loop(name, read)


def together(env, perf, seconds, url, caches=(), readers=None):
    """
    Run all programs on the store of @env. perf also uses the caches @caches; @readers {name: path_of} reads by further names.
    Return the bytes that each id may have.
    """
    found, right = make_programs(env)
    crowd = Crowd(env, seconds)
    any_of = lambda generator: generator.choice(found[generator.choice(IDS)])

    if perf:
        cache = lambda g: [perf, "--buildid-dir", g.choice([env.store, *caches]), "buildid-cache"]
        crowd.loop("perf-add", lambda g: crowd.program(*cache(g), "-a", any_of(g)))
        crowd.loop("perf-remove", lambda g: crowd.program(*cache(g), "-r", any_of(g)))
    crowd.loop("add", lambda g: crowd.bidctl("add", "--link=" + g.choice(["auto", "copy"]), any_of(g), any_of(g)))
    crowd.loop("remove", lambda g: crowd.bidctl("remove", g.choice([any_of(g), g.choice(IDS)])))
    crowd.loop("update", lambda g: crowd.bidctl("update", any_of(g)))
    crowd.loop("verify", lambda g: crowd.bidctl("verify", "--deep", *g.choice([[], ["--repair", "--offline"]])))
    crowd.loop("gc", lambda g: crowd.bidctl("gc", "--cache-size=1"))
    if url:
        crowd.loop("get", lambda g: crowd.bidctl("get", f"--url={url}", ID_NOT_STORED, "elf"))
    for name, path_of in ({"reader": lambda g, build_id: perfs_name(env.store, build_id)} | (readers or {})).items():
        check_reader(crowd, name, right, path_of)
    crowd.run()
    print(", ".join(f"{name} {number}" for name, number in sorted(crowd.done.items())))
    print(", ".join(f"{name}: {dict(reads)}" for name, reads in crowd.reads.items()))
    for text in sorted(set(crowd.troubled)):
        print(f"{crowd.troubled.count(text)} times: {text}")
    for name, ended in sorted(crowd.ended.items()):
        print(f"{name}: {dict(ended)}")
    assert not crowd.faults, "\n".join(crowd.faults)
    for name, ended in crowd.ended.items():
        assert crowd.came_to_something(name), f"'{name}' never did what it is for: {dict(ended)}"
        # others remove the file that get has downloaded
        if name not in ("get", "verify"):
            assert ended[ERROR] <= max(3, sum(ended.values()) / 4), f"'{name}' fails too often: {dict(ended)}"
    assert all(reads["read"] for reads in crowd.reads.values()) and all(crowd.done.values()), "nothing was done"
    return right


def check_afterwards(env, right):
    """Repair the store, check it, and remove everything."""
    # an added file may be in transit for a moment, but no writer is left now
    crowd = Crowd(env, 0)
    done = crowd.bidctl("verify", "--deep", "--repair", "--offline")
    print(done.stdout, end="")
    assert not done.returncode & 64, f"not all could be repaired\n{done.stdout}{done.stderr}"
    assert "wrong: " not in done.stdout and "corrupt: " not in done.stdout, done.stdout
    done = crowd.bidctl("verify", "--deep")
    assert done.returncode == 0, f"repaired, and not clean\n{done.stdout}{done.stderr}"
    assert os.listdir(env.store / ".bidfs" / "tmp") == []
    for build_id in right:
        crowd.bidctl("remove", build_id)
    left = [path for path in env.files() if not path.endswith("/probes")]
    assert left == [], left


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bidctl")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--no-fetch", action="store_true")
    arguments = parser.parse_args()
    perf = shutil.which("perf")
    if not shutil.which("cc") or not shutil.which("strip"):
        print("skipped: needs cc and strip")
        return 77
    if not perf:
        print("without perf, which is not installed")
    with tempfile.TemporaryDirectory(prefix="bidctl-concurrent.") as top:
        top = pathlib.Path(os.path.realpath(top))
        (top / "built").mkdir()
        (top / "env").mkdir()
        env = Env(os.path.realpath(arguments.bidctl), top / "built", top / "env")
        try:
            with contextlib.nullcontext() if arguments.no_fetch else server(env) as url:
                right = together(env, perf, arguments.seconds, url)
            check_afterwards(env, right)
        except AssertionError as error:
            print(f"FAILED: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
