#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the cost of a mount, and of a look through the whole store, grows with the number of ids.

usage: bench_scale.py BUILD_DIRECTORY [--ids 100,10000,1000000] [--rounds 5] [--image-in DIRECTORY] [--cold] [--json FILE]

Makes one store of each size (make-store), in an ext4 image of its own: root mounts it. A figure is a ratio to the same thing done
in the store itself, or by the peer that is named; the two take turns, and told is the median over the rounds, with the smallest and
the largest. --cold drops the kernel's names and inodes before each cold lookup, and to see what the daemon gives back: all programs
of the machine feel that.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HOT = 1000  # names that are looked up again and again
COLD = 2000
PASSES = 20


def timed(*command):
    begun = time.monotonic()
    subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def drop(what):
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(what, encoding="ascii")


def memory_of(pid, which):
    """Bytes."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])


class Figures:
    """Ratios by name, told when all rounds are over."""

    def __init__(self, ids):
        self.ids, self.ratios = ids, {}

    def note(self, name, ratio, target=None, above=False):
        self.ratios.setdefault(name, (target, above, []))[2].append(ratio)

    def report(self):
        for name, (target, above, ratios) in self.ratios.items():
            median = statistics.median(ratios)
            verdict = ""
            if target is not None:
                met = median >= target if above else median <= target
                verdict = f"target {target:g}: " + ("met" if met else "missed")
            print(f"{self.ids:>8}  {name:<58} {median:9.2f}  ({min(ratios):.2f} to {max(ratios):.2f})  {verdict}", flush=True)


class Mount:
    def __init__(self, build, store, point):
        self.program, self.store, self.point = build / "fs" / "mount.bidfs", store, point

    def __enter__(self):
        begun = time.monotonic()
        self.daemon = subprocess.Popen([self.program, self.store, self.point, "-o", "foreground,offline"], stdout=subprocess.PIPE,
                                       text=True, env={**os.environ, "DEBUGINFOD_URLS": ""})
        assert self.daemon.stdout.readline().strip() == str(self.point)
        self.ready = time.monotonic() - begun
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.point], check=True)
        self.daemon.wait()
        self.daemon.stdout.close()

    def memory(self):
        """Bytes of its own, in memory."""
        return memory_of(self.daemon.pid, "RssAnon")


class Bench:
    def __init__(self, build, store, point, ids, cold):
        self.build, self.store, self.point, self.cold = build, store, point, cold
        self.one = store.with_name(f"{store.name}.names")  # one directory with as many names
        self.figures = Figures(ids)
        self.curve = {}  # us of lookups in each round, by name: for a plot
        self.ids = [fan.name + link for fan in os.scandir(store / ".build-id") for link in os.listdir(fan)]
        self.random = random.Random(1)
        self.one.mkdir()
        for ident in self.ids:
            (self.one / ident).symlink_to("x")

    def lookup(self, paths, times):
        """Microseconds of a stat(2)."""
        text = "".join(f"{path}\n" for path in paths)
        program = self.build / "tests" / "bench" / "lookup"
        done = subprocess.run([program, str(times)], input=text, stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout.split()[1])

    def native(self, ident):
        return self.store / ".build-id" / ident[:2] / ident[2:]

    def mounted(self, ident):
        return self.point / "buildid" / ident

    def compare(self, names, times, before=None):
        for where in (self.native, self.mounted):
            if before:
                before()
            else:
                self.lookup(map(where, names), 1)
            yield self.lookup(map(where, names), times)

    def lookups(self):
        shuffled = self.random.sample(self.ids, len(self.ids))
        hot = min(HOT, len(self.ids) // 2)
        some = shuffled[:hot]
        native, mounted = self.compare(some, PASSES)
        self.figures.note("lookup, hot / native", mounted / native, 1.1)
        self.curve.setdefault("hot, native", []).append(native)
        self.curve.setdefault("hot, bidfs", []).append(mounted)
        absent = [self.random.randbytes(20).hex() for _ in range(len(some))]
        native, mounted = self.compare(absent, PASSES)
        self.figures.note("lookup of what is not there, hot / native", mounted / native, 1.6)
        fresh = shuffled[hot:hot + COLD]
        native, mounted = self.compare(fresh, 1, (lambda: drop("2")) if self.cold else (lambda: None))
        self.figures.note("lookup, first / native" + (", both cold" if self.cold else ", warm"), mounted / native)
        self.figures.note("lookup, first, us", mounted)
        self.curve.setdefault("first, bidfs", []).append(mounted)

    def floor(self, what, *directories):
        """Seconds of what is done by hand."""
        program = self.build / "tests" / "bench" / "floor"
        done = subprocess.run([program, what, *directories], stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout.split()[1])

    def listings(self):
        """By one program on both sides: what ls(1) and find(1) do with names takes longer than to read them."""
        self.floor("names", self.one)
        links, one = self.floor("names", *(self.store / ".build-id").iterdir()), self.floor("names", self.one)
        for name, target in (("first", 0.9), ("repeated", 0.25)):
            took = self.floor("names", self.point / "buildid")
            self.figures.note(f"all names read, {name} / of one ext4 directory", took / one, target)
            self.figures.note(f"all names read, {name} / those of the links", took / links)
        # of directories find(1) asks more than the name: where there are links it does not, here and there
        native, took = (timed("find", top / ".build-id", "-type", "f") for top in (self.store, self.point))
        self.figures.note("find -type f in .build-id / in the store's", took / native, 1.5)

    def memory(self, mount, before):
        """
        After a listing, after a lookup of every id, of its ELF file, too, and after the kernel forgot them. The target is for a
        million: what does not grow with the ids, as the 2 MiB of what files were found to be, is more of few.
        """
        target = 64 if len(self.ids) >= 1000000 else None
        self.figures.note("daemon after listing, bytes an id", (mount.memory() - before) / len(self.ids), target)
        self.lookup(map(self.mounted, self.ids), 1)
        self.figures.note("daemon after looking all up, bytes an id", (mount.memory() - before) / len(self.ids), target)
        self.lookup((self.mounted(ident) / "elf" for ident in self.ids), 1)
        self.figures.note("daemon after looking all files up, bytes an id", (mount.memory() - before) / len(self.ids), target)
        if self.cold:
            drop("2")
            time.sleep(1)
            self.figures.note("daemon after all were forgotten, bytes an id", (mount.memory() - before) / len(self.ids), 1)

    @staticmethod
    def most_memory_of(*command):
        """MiB. What starts a program counts, too, so that is one that has less."""
        script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", script, *command], stdout=subprocess.PIPE, text=True, check=True)
        return int(done.stdout) / 1024

    def programs(self):
        bidctl = [self.build / "store" / "ctl" / "bidctl", "-s", self.store]
        floor = self.floor("walk", self.store)
        took = timed(*bidctl, "verify")
        self.figures.note("verify / walk, open, read 4 bytes, one thread", took / floor)
        self.figures.note("verify, thousands of objects a second", len(self.ids) / took / 1000, 150, True)
        begun = time.monotonic()
        with subprocess.Popen([*bidctl, "list"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.figures.note("bidctl list, first line, ms", 1000 * (time.monotonic() - begun))
            for _ in process.stdout:
                pass
        self.figures.note("bidctl list / walk, open, read 4 bytes", (time.monotonic() - begun) / floor)
        self.figures.note("bidctl list, MiB of memory", self.most_memory_of(*bidctl, "list"))
        self.figures.note("bidctl show of an abbreviation, ms", 1000 * timed(*bidctl, "show", self.random.choice(self.ids)[:16]))

    def round(self, last):
        if self.cold:
            drop("3")
        with Mount(self.build, self.store, self.point) as mount:
            begun = time.monotonic()
            os.stat(self.mounted(self.random.choice(self.ids)) / "elf")
            self.figures.note("start to first lookup" + (", cold" if self.cold else "") + ", ms",
                              1000 * (mount.ready + time.monotonic() - begun), 150 if self.cold else 50)
            before = mount.memory()
            self.listings()
            self.lookups()
            if last:
                self.memory(mount, before)
        self.programs()


@contextlib.contextmanager
def image(directory, ids):
    """An ext4 that keeps small files in their inodes, and does no more than make them."""
    path, point = directory / "image", directory / "stores"
    point.mkdir()
    subprocess.run(["truncate", "-s", f"{1 + ids * 12 // 1000000}G", path], check=True)
    features = ["-I", "512", "-O", "inline_data,^has_journal", "-N", str(10000 + ids * 5)]
    subprocess.run(["mkfs.ext4", "-q", *features, path], check=True)
    subprocess.run(["mount", "-o", "loop,noinit_itable", path, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ids", default="100,10000,1000000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--image-in", default="/var/tmp")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the medians of lookups, in us")
    arguments = parser.parse_args()
    build, sizes = arguments.build.resolve(), [int(ids) for ids in arguments.ids.split(",")]
    print(f"the load of this machine is {os.getloadavg()[0]:.1f}, it has {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory(dir=arguments.image_in) as top, image(pathlib.Path(top), sum(sizes)) as stores:
        point = pathlib.Path(top) / "mount"
        point.mkdir()
        curves = {}
        for ids in sizes:
            store = stores / str(ids)
            subprocess.run([build / "tests" / "bench" / "make-store", store, str(ids)], check=True)
            os.sync()
            bench = Bench(build, store, point, ids, arguments.cold)
            for turn in range(arguments.rounds):
                bench.round(turn == arguments.rounds - 1)
            bench.figures.report()
            curves[ids] = {name: statistics.median(values) for name, values in bench.curve.items()}
        if arguments.json:
            arguments.json.write_text(json.dumps(curves), encoding="ascii")


if __name__ == "__main__":
    main()
