#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What it costs to scan a tree and to add what is in it, against what nobody can do without and against what others do.

usage: bench_scan.py BUILD_DIRECTORY [--tree /usr] [--rounds 5] [--image-in DIRECTORY] [--peers debuginfod,perf]

Every figure is a ratio, of two things that took turns in the same round: the median over the rounds, with the smallest and the
largest. It is time by the clock, unless it says "busy": that is processor time, which other programs disturb less. As root it
hides /usr/lib/debug, of which perf and bidctl take along what belongs to a program, and no floor does. Adding is measured in an
ext4 image of its own, mounted by root: nothing is ever deleted in it, because ext4 is slow to reuse inodes that were deleted a
moment ago.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

SINGLE = 300  # files that are added durably one by one
MAX_SIZE = 1 << 20  # of what is copied into the image


def seconds(*command, **keywords):
    """How long it took to run."""
    begun = time.monotonic()
    done = subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          **keywords)
    took = time.monotonic() - begun
    assert done.returncode in (0, 1), done
    return took


def busy(*command):
    """How much processor time it took, with its start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bench:
    def __init__(self, build):
        self.bidctl = build / "store" / "ctl" / "bidctl"
        self.floor = build / "tests" / "bench" / "floor"
        self.each = build / "tests" / "bench" / "add-each"
        self.figures = {}

    def measured(self, *command, text=None):
        """Seconds, as the program itself has measured them: without its start."""
        done = subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[1])

    def measured_floor(self, *arguments, text=None):
        return self.measured(self.floor, *arguments, text=text)

    def note(self, name, ratio, target, better_above=False):
        self.figures.setdefault(name, (target, better_above, []))[2].append(ratio)

    def report(self):
        for name, (target, better_above, ratios) in self.figures.items():
            median = statistics.median(ratios)
            if target is None:
                verdict = ""
            elif (median >= target) if better_above else (median <= target):
                verdict = f"target {target}: met"
            else:
                missed = target / median if better_above else median / target
                verdict = f"target {target}: missed by {100 * (missed - 1):.0f} %"
            print(f"{name:<66} {median:6.2f}  ({min(ratios):.2f} to {max(ratios):.2f})  {verdict}", flush=True)
        self.figures = {}


@contextlib.contextmanager
def debuginfod(tree, directory):
    """Seconds until debuginfod has scanned the tree into a new database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["debuginfod", "-p", str(port), "-d", str(directory / "debuginfod.sqlite"), "-F", "-t", "0", "-g", "0", str(tree)]
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                time.sleep(0.02)
                assert process.poll() is None, "debuginfod ended"
                with contextlib.suppress(OSError):
                    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
                    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if " " in line)
                    if (int(lines.get('thread_work_total{role="traverse"}', 0)) >= 1
                            and lines.get('thread_busy{role="traverse"}', "0") == "0"
                            and lines.get('thread_work_pending{role="scan"}', "0") == "0"
                            and lines.get('thread_busy{role="scan"}', "0") == "0"):
                        break
            yield time.monotonic() - begun
        finally:
            process.kill()


def bench_scan(bench, tree, rounds, peers, directory):
    """Reading: nothing is new to the store, which is filled first."""
    store = directory / "store"
    store.mkdir()
    cache = store / ".bidfs" / "scan"
    seconds(bench.bidctl, "-s", store, "add", "--link=copy", tree)
    for _ in range(rounds):
        floor = bench.measured_floor("walk", tree)
        took = {}
        for jobs in (1, 2):
            shutil.rmtree(cache)
            took[jobs] = seconds(bench.bidctl, "-s", store, "add", f"--jobs={jobs}", tree)
        bench.note("scan, one thread / walk, open, read 4 bytes", took[1] / floor, 1.2)
        bench.note("scan, two threads: times as fast as one", took[1] / took[2], 1.7, True)
        floor = busy(bench.floor, "walk", tree)
        for jobs, threads in ((1, "one thread"), (2, "two threads")):
            shutil.rmtree(cache)
            bench.note(f"scan, {threads}, busy / walk, open, read 4 bytes, busy",
                       busy(bench.bidctl, "-s", store, "add", f"--jobs={jobs}", tree) / floor, None)
        if "debuginfod" in peers:
            with debuginfod(tree, directory) as other:
                bench.note("scan, two threads: times as fast as debuginfod -F", other / took[2], 8, True)
            (directory / "debuginfod.sqlite").unlink()
        find = seconds("find", tree, "-xdev", "-type", "f")
        again = seconds(bench.bidctl, "-s", store, "add", tree)
        alone = seconds(bench.bidctl, "-s", store, "add", "--jobs=1", tree)
        stats = seconds("find", tree, "-xdev", "-type", "f", "-newermt", "2100-01-01")
        bench.note("rescan / find -type f, which does not stat", again / find, 1.3)
        bench.note("rescan / find -newermt, which does", again / stats, None)
        bench.note("rescan, one thread / find -newermt", alone / stats, None)
    bench.report()


def bench_add(bench, tree, rounds, peers, top):
    """Writing: every round into new stores, beside the files, so that they can be linked."""
    scratch = top / "scratch"
    scratch.mkdir()
    found = subprocess.run([bench.bidctl, "-s", scratch, "add", "--json", tree], stdout=subprocess.PIPE, check=True).stdout
    files, ids = [], set()
    for file in json.loads(found)["files"]:
        if "id" in file and file["id"] not in ids and len(file["id"]) == 40 and file["kind"] == "elf":
            ids.add(file["id"])
            files.append((file["id"], file["file"]))
    listed = "".join(f"{build_id} {path}\n" for build_id, path in files)
    single = files[:SINGLE]
    names = [path for _, path in single]
    print(f"adding {len(files)} ids; one at a time {len(single)}")
    if "perf" in peers:
        print("perf neither examines a file as a whole, nor records where it is from, nor brings it to disk")
    for turn in range(rounds):
        names_of_stores = ("link", "batch", "perf", "ours", "each", "ours-each", "some", "ours-some")
        stores = {name: top / f"{name}-{turn}" for name in names_of_stores}
        for store in stores.values():
            store.mkdir()

        def after_sync(measure, *arguments, **keywords):
            os.sync()
            return measure(*arguments, **keywords)

        link = after_sync(bench.measured_floor, "link", stores["link"], text=listed)
        batch = after_sync(bench.measured_floor, "batch", stores["batch"], text=listed)
        ours = after_sync(seconds, bench.bidctl, "-s", stores["ours"], "add", tree)
        bench.note("add, durable in the end: share of the floor's rate (no sync)", link / ours, 0.6, True)
        bench.note("add, durable in the end / floor with one syncfs", ours / batch, 1.3)
        if "perf" in peers:
            # perf takes a list, and an argument cannot be longer than 128 KiB
            perf = 0.0
            for at in range(0, len(files), 1000):
                some = ",".join(path for _, path in files[at:at + 1000])
                perf += after_sync(seconds, "perf", "--buildid-dir", stores["perf"], "buildid-cache", "-a", some)
            synced = perf + seconds("sync", "-f", stores["perf"])
            bench.note("add: times as fast as perf buildid-cache -a, which is not durable", perf / ours, 3, True)
            bench.note("add: the same, perf with one syncfs in the end", synced / ours, None)
        some = "".join(f"{build_id} {path}\n" for build_id, path in single)
        each = after_sync(bench.measured_floor, "each", stores["each"], text=some)
        ours_each = after_sync(bench.measured, bench.each, stores["ours-each"], text="\n".join(names))
        bench.note("add, durable one by one / floor with fsync of file and directories", ours_each / each, 1.2)
        batch = after_sync(bench.measured_floor, "batch", stores["some"], text=some)
        ours_some = after_sync(seconds, bench.bidctl, "-s", stores["ours-some"], "add", *names)
        bench.note("add, as many by name / floor with fsync of file and directories", ours_some / each, None)
        bench.note("add, as many by name / floor with one syncfs", ours_some / batch, None)
        bench_verify(bench, stores["ours"])
    bench.report()


def bench_verify(bench, store):
    """Of what was read a moment ago, so that the disk has no part in it; without the start of the program, as the floor."""
    verify = [bench.bidctl, "-s", store, "verify"]
    start = min(seconds(bench.bidctl, "--version") for _ in range(5))

    def checking(*options):
        return seconds(*verify, *options) - start

    # so that there are digests to compare with
    seconds(*verify, "--deep", "--repair", "--offline")
    walk, digests = bench.measured_floor("walk", store), bench.measured_floor("hash", store)
    bench.note("verify, one thread / walk, open, read 4 bytes", checking("--jobs=1") / walk, None)
    bench.note("verify, a thread per CPU / the same, one thread", checking() / walk, None)
    one, all_of_them = checking("--deep", "--jobs=1"), checking("--deep")
    bench.note("verify --deep, one thread: share of the rate of reading and hashing", digests / one, 0.95, True)
    bench.note("verify --deep, a thread per CPU: the same, of one thread", digests / all_of_them, None)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


@contextlib.contextmanager
def image(directory, tree):
    """A new ext4 with copies of the tree's small ELF files in it."""
    path, point = directory / "image", directory / "point"
    point.mkdir()
    subprocess.run(["truncate", "-s", "8G", path], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-N", "500000", path], check=True)
    subprocess.run(["mount", "-o", "loop", path, point], check=True)
    try:
        for folder, _, names in os.walk(tree):
            for name in names:
                source = pathlib.Path(folder, name)
                if source.is_symlink() or not source.is_file() or not 64 < source.stat().st_size < MAX_SIZE or not is_elf(source):
                    continue
                there = point / "tree" / source.relative_to(tree)
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, there)
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


# in a mount namespace of its own
HIDE = '[ ! -d /usr/lib/debug ] || mount -t tmpfs none /usr/lib/debug; BENCH_HIDES=1 exec "$@"'


def main():
    if os.geteuid() == 0 and "BENCH_HIDES" not in os.environ:
        os.execvp("unshare", ["unshare", "--mount", "sh", "-euc", HIDE, "sh", sys.executable, *sys.argv])
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--tree", type=pathlib.Path, default="/usr")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--image-in", default="/var/tmp")
    parser.add_argument("--peers", default="debuginfod,perf")
    arguments = parser.parse_args()
    peers = [peer for peer in arguments.peers.split(",") if shutil.which(peer)]
    bench = Bench(arguments.build.resolve())
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the load of this machine is {load:.1f}: two threads may not have two CPUs")
    with tempfile.TemporaryDirectory(dir=arguments.image_in) as top:
        bench_scan(bench, arguments.tree, arguments.rounds, peers, pathlib.Path(top))
    if os.geteuid() != 0:
        print("adding is not measured: needs root, for a file system of its own")
        return
    with tempfile.TemporaryDirectory(dir=arguments.image_in) as top, image(pathlib.Path(top), arguments.tree) as point:
        bench_add(bench, point / "tree", arguments.rounds, peers, point)


if __name__ == "__main__":
    main()
