#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure the scan of a tree and the adding of its files, against a floor (the system calls alone) and against other programs.

usage: bench_scan.py BUILD_DIRECTORY [--tree /usr] [--rounds 5] [--image-in DIRECTORY] [--peers debuginfod,perf] [--gentle] [--json
FILE]

A figure is the ratio of two programs that take turns in each round: the median over the rounds, with the smallest and the largest.
Times are elapsed times; "busy" is processor time, which other programs disturb less. Root measures a scan from the disk as well and
empties the page cache of the whole machine for it (not with --gentle). Root also hides /usr/lib/debug: perf and bidctl would read
the debug information there, but the floor would not. Files are added to an ext4 image, which root mounts; nothing is deleted in it,
because ext4 is slow to reuse inodes that were deleted a moment ago. "others write" means that a program rewrites a large file on
the same file system meanwhile. "two floors" is the time of the floor for one tree while another floor runs.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import figures  # noqa: E402  a module beside this program

COLD_ROUNDS = 2
SINGLE = 300  # files that are added durably one by one
BUSY = 1400  # files that are added while others write
MAX_SIZE = 1 << 20  # bytes, largest file that is copied into the image


def seconds(*command, **keywords):
    """Return the elapsed seconds of a command."""
    begun = time.monotonic()
    done = subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          **keywords)
    took = time.monotonic() - begun
    assert done.returncode in (0, 1), done
    return took


def busy(*command):
    """Return the processor seconds of a command, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bench:
    def __init__(self, build, gentle):
        self.gentle = gentle
        self.bidctl = build / "store" / "ctl" / "bidctl"
        self.floor = build / "tests" / "bench" / "floor"
        self.each = build / "tests" / "bench" / "add-each"
        self.figures = figures.Figures()

    def measured(self, *command, text=None):
        """Return the seconds that the program itself measured, without its start."""
        done = subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[1])

    def measured_floor(self, *arguments, text=None):
        return self.measured(self.floor, *arguments, text=text)

    def two_floors(self, *arguments):
        """Return the seconds for one tree while two floors run, each on the whole tree."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return max(pool.map(lambda _: self.measured_floor(*arguments), range(2))) / 2


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")


@contextlib.contextmanager
def debuginfod(tree, directory):
    """Run debuginfod over the tree and yield the seconds that its first scan took."""
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
    """Scan a tree whose files the store already has."""
    store = directory / "store"
    store.mkdir()
    cache = store / ".bidfs" / "scan"
    seconds(bench.bidctl, "-s", store, "add", "--link=copy", tree)

    def scan(measure, jobs):
        shutil.rmtree(cache)
        return measure(bench.bidctl, "-s", store, "add", f"--jobs={jobs}", tree)

    for turn in range(rounds):
        took = {"floor": bench.measured_floor("walk", tree), "one thread": scan(seconds, 1), "two threads": scan(seconds, 2)}
        if "debuginfod" in peers:
            with debuginfod(tree, directory) as took["debuginfod -F"]:
                pass
            (directory / "debuginfod.sqlite").unlink()
        bench.figures.note("scan", "s", took)
        took = {"floor": busy(bench.floor, "walk", tree), "one thread": scan(busy, 1), "two threads": scan(busy, 2)}
        bench.figures.note("scan, busy", "s", took)
        names = ["find", tree, "-xdev", "-type", "f"]
        bench.figures.note("scan again", "s", {
            "find": seconds(*names), "find -newermt": seconds(*names, "-newermt", "2100-01-01"),
            "two threads": seconds(bench.bidctl, "-s", store, "add", tree),
            "one thread": seconds(bench.bidctl, "-s", store, "add", "--jobs=1", tree)})
        if os.geteuid() == 0 and turn < COLD_ROUNDS and not bench.gentle:
            drop_caches()
            floor = bench.measured_floor("walk", tree)
            shutil.rmtree(cache)
            drop_caches()
            took = seconds(bench.bidctl, "-s", store, "add", tree)
            bench.figures.note("scan, from the disk", "s", {"floor": floor, "two threads": took})
    compare = bench.figures.compare
    compare("P13", "scan", "one thread", "floor", 1.2)
    compare("P13", "scan", "two threads", "one thread", 1.7, above=True, faster=True)
    compare("P13", "scan", "two threads", "debuginfod -F", 8, above=True, faster=True)
    compare("P13", "scan, busy", "one thread", "floor")
    compare("P13", "scan, busy", "two threads", "floor")
    compare("P13", "scan, from the disk", "two threads", "floor")
    compare("P13", "scan again", "two threads", "find", 1.3)
    compare("P13", "scan again", "two threads", "find -newermt")
    compare("P13", "scan again", "one thread", "find -newermt")


def bench_add(bench, tree, rounds, peers, top):
    """Add a tree to new stores in each round. The stores are on the file system of the tree, so that they can link its files."""
    scratch = top / "scratch"
    scratch.mkdir()
    found = subprocess.run([bench.bidctl, "-s", scratch, "add", "--json", tree], stdout=subprocess.PIPE, check=True).stdout
    files, ids = [], set()
    for file in json.loads(found)["result"]:
        if file["id"] and file["id"] not in ids and len(file["id"]) == 40 and file["kind"] == "elf":
            ids.add(file["id"])
            files.append((file["id"], file["file"]))
    listed = "".join(f"{build_id} {path}\n" for build_id, path in files)
    single = files[:SINGLE]
    names = [path for _, path in single]
    bench.figures.notes.append(f"adding {len(files)} ids; one by one {len(single)}. perf neither examines a file as a whole, nor "
                               "records where it is from, nor brings it to disk")
    for turn in range(rounds):
        names_of_stores = ("link", "batch", "perf", "ours", "each", "ours-each", "some", "ours-some")
        stores = {name: top / f"{name}-{turn}" for name in names_of_stores}
        for store in stores.values():
            store.mkdir()

        def after_sync(measure, *arguments, **keywords):
            os.sync()
            return measure(*arguments, **keywords)

        took = {"floor": after_sync(bench.measured_floor, "link", stores["link"], text=listed),
                "floor, syncfs": after_sync(bench.measured_floor, "batch", stores["batch"], text=listed),
                "bidctl add": after_sync(seconds, bench.bidctl, "-s", stores["ours"], "add", tree)}
        if "perf" in peers:
            # perf takes a list, and an argument cannot be longer than 128 KiB
            perf = 0.0
            for at in range(0, len(files), 1000):
                some = ",".join(path for _, path in files[at:at + 1000])
                perf += after_sync(seconds, "perf", "--buildid-dir", stores["perf"], "buildid-cache", "-a", some)
            took["perf"] = perf
            took["perf, sync"] = perf + seconds("sync", "-f", stores["perf"])
        bench.figures.note("add a tree", "s", took)
        some = "".join(f"{build_id} {path}\n" for build_id, path in single)
        each = after_sync(bench.measured_floor, "each", stores["each"], text=some)
        bench.figures.note("add one by one", "s", {
            "floor": each, "bid_store_add": after_sync(bench.measured, bench.each, stores["ours-each"], text="\n".join(names))})
        bench.figures.note("add as many by name", "s", {
            "floor": each, "floor, syncfs": after_sync(bench.measured_floor, "batch", stores["some"], text=some),
            "bidctl add": after_sync(seconds, bench.bidctl, "-s", stores["ours-some"], "add", *names)})
        bench_verify(bench, stores["ours"])
    bench_busy(bench, files, top, rounds, peers)
    compare = bench.figures.compare
    compare("P14", "add a tree", "bidctl add", "perf", 3, above=True, faster=True)
    compare("P14", "add a tree", "bidctl add", "perf, sync", 1.5, above=True, faster=True)
    compare("P14", "add a tree", "bidctl add", "floor", 0.6, above=True, faster=True)
    compare("P14", "add a tree", "bidctl add", "floor, syncfs", 1.3)
    compare("P22", "add one by one", "bid_store_add", "floor", 1.2)
    compare("P22", "add as many by name", "bidctl add", "floor")
    compare("P22", "add as many by name", "bidctl add", "floor, syncfs", 1.3)
    compare("P25", "check of names", "one thread", "floor")
    compare("P25", "check of names", "two threads", "one thread", faster=True)
    compare("P25", "check of all bytes", "one thread", "floor", faster=True)
    compare("P25", "check of all bytes", "two threads", "one thread", faster=True)
    compare("P25", "check of all bytes", "two threads", "two floors", 0.95, above=True, faster=True)


@contextlib.contextmanager
def writer(directory):
    """Keep the file system of the directory busy: rewrite a file of 256 MiB, without a sync."""
    script = 'while :; do dd if=/dev/zero of="$0/busy" bs=1M count=256 conv=notrunc status=none; done'
    with subprocess.Popen(["sh", "-c", script, directory]) as process:
        try:
            time.sleep(2)  # the first dirty pages
            yield
        finally:
            process.kill()
    (directory / "busy").unlink()


def bench_busy(bench, files, top, rounds, peers):
    """Add files while another program writes to the same file system: syncfs(2) waits for its data, too."""
    some = files[:BUSY]
    listed = "".join(f"{build_id} {path}\n" for build_id, path in some)
    names = [path for _, path in some]
    metric = f"add {len(some)} by name, others write"
    for turn in range(rounds):
        stores = {name: top / f"busy-{name}-{turn}" for name in ("batch", "late", "perf", "ours")}
        for store in stores.values():
            store.mkdir()
        os.sync()
        with writer(top):
            took = {"floor, syncfs": bench.measured_floor("batch", stores["batch"], text=listed),
                    "floor, fsync": bench.measured_floor("late", stores["late"], text=listed),
                    "bidctl add": seconds(bench.bidctl, "-s", stores["ours"], "add", *names)}
            if "perf" in peers:
                took["perf, sync"] = sum(seconds("perf", "--buildid-dir", stores["perf"], "buildid-cache", "-a", ",".join(
                    names[at:at + 1000])) for at in range(0, len(names), 1000)) + seconds("sync", "-f", stores["perf"])
        bench.figures.note(metric, "s", took)
    for other, target in (("floor, syncfs", 1.3), ("floor, fsync", None)):
        bench.figures.compare("P22", metric, "bidctl add", other, target)
    bench.figures.compare("P14", metric, "bidctl add", "perf, sync", 1.5, above=True, faster=True)


def bench_verify(bench, store):
    """Check a store in the page cache. The start of the program is subtracted, as the floor has none."""
    verify = [bench.bidctl, "-s", store, "verify"]
    start = min(seconds(bench.bidctl, "--version") for _ in range(5))

    def checking(*options):
        return seconds(*verify, *options) - start

    # record the digests that --deep compares with
    seconds(*verify, "--deep", "--repair", "--offline")
    bench.figures.note("check of names", "s", {
        "floor": bench.measured_floor("walk", store), "one thread": checking("--jobs=1"), "two threads": checking("--jobs=2")})
    bench.figures.note("check of all bytes", "s", {
        "floor": bench.measured_floor("hash", store), "one thread": checking("--deep", "--jobs=1"),
        "two floors": bench.two_floors("hash", store), "two threads": checking("--deep", "--jobs=2")})


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


@contextlib.contextmanager
def image(directory, tree):
    """Make and mount an ext4 image with copies of the tree's small ELF files."""
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


# run in a mount namespace
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
    parser.add_argument("--gentle", action="store_true", help="empty no cache")
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the figures")
    arguments = parser.parse_args()
    bench = Bench(arguments.build.resolve(), arguments.gentle)
    peers = arguments.peers.split(",")
    for peer in [peer for peer in peers if not shutil.which(peer)]:
        bench.figures.without(peer, "not installed")
        peers.remove(peer)
    with tempfile.TemporaryDirectory(dir=arguments.image_in) as top:
        bench_scan(bench, arguments.tree, arguments.rounds, peers, pathlib.Path(top))
    if os.geteuid() != 0:
        bench.figures.without("adding", "needs root, for a file system of its own")
    else:
        with tempfile.TemporaryDirectory(dir=arguments.image_in) as top, image(pathlib.Path(top), arguments.tree) as point:
            bench_add(bench, point / "tree", arguments.rounds, peers, point)
    print(f"{figures.machine()}\nthe floor is tests/bench/floor, the tree '{arguments.tree}'")
    print(bench.figures.text())
    if arguments.json:
        bench.figures.save(arguments.json)


if __name__ == "__main__":
    main()
