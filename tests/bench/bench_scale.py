#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure how the cost of a mount, and of commands that read the whole store, grows with the number of ids.

usage: bench_scale.py BUILD_DIRECTORY [--ids 100,10000,1000000] [--rounds 5] [--image-in DIRECTORY] [--cold] [--json FILE]

Make one store of each size (make-store) in a new ext4 image, which root mounts. A figure is the ratio to the same operation in the
store itself, or by the named peer; both take turns, and the median over the rounds is printed. The first table has all sizes, the
second one compares the largest store with the targets. Lookups are also compared with lookups in a mount of the smallest store,
which take their turn in each round. With a million ids or more there are three rounds at most, and one round of the slowest parts:
bidctl's commands, the memory of a daemon after a lookup of each id, and cold starts. --cold drops the kernel's names and inodes
before each first lookup, and after all lookups to measure the memory that the daemon frees: this slows all programs of the machine.
"""
import argparse
import contextlib
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import figures  # noqa: E402  a module beside this program

HOT = 50  # names of repeated lookups, as many in each store, so that the processor's caches treat all stores alike
COLD = 2000
PASSES = 400
TIMES = 5  # repetitions in a round, of short operations
MANY, MANY_ROUNDS = 1000000, 3  # in ids, in rounds


def timed(*command):
    begun = time.monotonic()
    subprocess.run([*map(str, command)], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun


def drop(what):
    os.sync()  # dirty pages cannot be dropped, and would keep the disk busy
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(what, encoding="ascii")


def memory_of(pid, which):
    """Return the bytes of a line of /proc/PID/status."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])


def memory_of_a_name():
    """Return the kernel's bytes for a cached name: a FUSE inode and a dentry, without the overhead of the allocator."""
    with open("/proc/slabinfo", encoding="ascii") as file:
        sizes = {words[0]: int(words[3]) for words in map(str.split, file) if words[0] in ("fuse_inode", "dentry")}
    return sum(sizes.values())


class Mount:
    def __init__(self, build, store, point):
        self.program, self.store, self.point = build / "fs" / "mount.bidfs", store, point

    def __enter__(self):
        self.daemon = subprocess.Popen([self.program, self.store, self.point, "-o", "foreground,offline"], stdout=subprocess.PIPE,
                                       text=True, env={**os.environ, "DEBUGINFOD_URLS": ""})
        assert self.daemon.stdout.readline().strip() == str(self.point)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.point], check=True)
        self.daemon.wait()
        self.daemon.stdout.close()

    def memory(self):
        """Return the anonymous resident memory of the daemon in bytes."""
        return memory_of(self.daemon.pid, "RssAnon")


class Bench:
    """The measurements of one store. `smallest` is the mounted Bench of the smallest store; None for the smallest itself."""

    def __init__(self, build, store, point, ids, cold, smallest):
        self.build, self.store, self.point, self.cold, self.smallest = build, store, point, cold, smallest
        self.names_directory = store.with_name(f"{store.name}.names")  # one native directory with as many names
        self.figures = figures.Figures()
        self.ids = [fanout.name + link for fanout in os.scandir(store / ".build-id") for link in os.listdir(fanout)]
        self.random = random.Random(1)
        self.names_directory.mkdir()
        for ident in self.ids:
            os.symlink("x", self.names_directory / ident)

    def lookup(self, paths, times):
        """Return the microseconds of a stat(2)."""
        text = "".join(f"{path}\n" for path in paths)
        program = self.build / "tests" / "bench" / "lookup"
        done = subprocess.run([program, str(times)], input=text, stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout.split()[1])

    def native(self, ident):
        return self.store / ".build-id" / ident[:2] / ident[2:]

    def mounted(self, ident):
        return self.point / "buildid" / ident

    def look_up_hot(self, names, where):
        self.lookup(map(where, names), 1)
        return self.lookup(map(where, names), PASSES)

    def look_up_first(self, names, where):
        if self.cold:
            drop("2")
        return self.lookup(map(where, names), 1)

    def lookups(self):
        """Compare lookups. The smallest store has too few names for a first lookup of its own in each round."""
        shuffled = self.random.sample(self.ids, len(self.ids))
        some, fresh = shuffled[:HOT], shuffled[HOT:HOT + COLD]
        absent = [self.random.randbytes(20).hex() for _ in range(HOT)]
        views = {"native": self.native, "bidfs": self.mounted}
        first = {view: self.look_up_first(fresh, where) for view, where in views.items()}
        names = self.smallest.random.sample(self.smallest.ids, len(self.smallest.ids)) if self.smallest else []
        if names and self.cold:
            first["smallest"] = self.look_up_first(names, self.smallest.mounted)
        self.figures.note("lookup, first", "us", first)
        for _ in range(TIMES):
            hot = {view: self.look_up_hot(some, where) for view, where in views.items()}
            if names:
                hot["smallest"] = self.look_up_hot(names[:HOT], self.smallest.mounted)
            self.figures.note("lookup", "us", hot)
            self.figures.note("lookup of what is not there", "us",
                              {view: self.look_up_hot(absent, where) for view, where in views.items()})

    def floor(self, what, *directories):
        """Return the seconds that the C program `floor` takes for an operation."""
        program = self.build / "tests" / "bench" / "floor"
        done = subprocess.run([program, what, *directories], stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout.split()[1])

    def listings(self):
        """List both sides with the same program, as ls(1) and find(1) spend most of their time on other work."""
        fanouts = list((self.store / ".build-id").iterdir())
        for directories in ((self.names_directory,), fanouts):
            self.floor("names", *directories)
        links, native = self.floor("names", *fanouts), self.floor("names", self.names_directory)
        for name in ("first", "repeated"):
            self.figures.note(f"names, {name}", "s", {"bidfs": self.floor("names", self.point / "buildid"), "directory": native,
                                                      "links": links})
        # find(1) calls stat(2) for directories: links spare it some of these calls, on both sides
        native, took = (timed("find", top / ".build-id", "-type", "f") for top in (self.store, self.point))
        self.figures.note("find -type f in .build-id", "s", {"bidfs": took, "native": native})

    def memory(self, mount, before):
        """
        Note the memory after a listing, a lookup of each id, a lookup of each ELF file, and after the kernel forgot them all.
        Memory of a constant size (as the 2 MiB of cached ELF checks) weighs more in a small store.
        """
        def note(when):
            self.figures.note(f"daemon, {when}", "B/id", {"bidfs": (mount.memory() - before) / len(self.ids)})

        note("all listed")
        self.lookup(map(self.mounted, self.ids), 1)
        note("all looked up")
        self.lookup((self.mounted(ident) / "elf" for ident in self.ids), 1)
        note("all files looked up")
        if self.cold:
            drop("2")
            time.sleep(1)
            note("all forgotten")

    @staticmethod
    def most_memory_of(*command):
        """Return the peak resident MiB of a command, started by a small process, whose memory counts as well."""
        script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", script, *command], stdout=subprocess.PIPE, text=True, check=True)
        return int(done.stdout) / 1024

    def programs(self):
        bidctl = [self.build / "store" / "ctl" / "bidctl", "-s", self.store]
        self.floor("walk", self.store)  # warm the page cache: these figures leave the disk out
        floor, took = self.floor("walk", self.store), timed(*bidctl, "verify")
        self.figures.note("verify", "s", {"bidfs": took, "floor": floor})
        self.figures.note("verify, objects", "k/s", {"bidfs": len(self.ids) / took / 1000})
        begun = time.monotonic()
        with subprocess.Popen([*bidctl, "list"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.figures.note("bidctl list, first line", "s", {"bidfs": time.monotonic() - begun})
            for _ in process.stdout:
                pass
        self.figures.note("bidctl list", "s", {"bidfs": time.monotonic() - begun, "floor": floor})
        self.figures.note("bidctl list, memory", "MiB", {"bidfs": self.most_memory_of(*bidctl, "list")})
        self.figures.note("bidctl show of an abbreviation", "s", {
            "bidfs": timed(*bidctl, "show", self.random.choice(self.ids)[:16])})

    def start(self, metric):
        """Note the time from the start of a mount to its first lookup, and unmount."""
        begun = time.monotonic()
        with Mount(self.build, self.store, self.point):
            os.stat(self.mounted(self.random.choice(self.ids)) / "elf")
            self.figures.note(metric, "s", {"bidfs": time.monotonic() - begun})

    def round(self, last):
        all_of_it = last or len(self.ids) < MANY
        if all_of_it:
            self.programs()
        for _ in range(TIMES):
            self.start("start to first lookup")
        with Mount(self.build, self.store, self.point) as mount:
            before = mount.memory()
            self.listings()
            self.lookups()
            if last:
                self.memory(mount, before)
        # last, because it empties the page cache for all other measurements
        if self.cold and all_of_it:
            for _ in range(TIMES):
                drop("3")
                self.start("start to first lookup, cold")


def growth(benches):
    """Return the table with a line for each figure and a column for each size."""
    names = {metric: views for bench in benches for metric, views in bench.figures.values.items()}
    lines = [f"{'':30} {'':14}" + "".join(f"{len(bench.ids):>12}" for bench in benches) + "  ids"]
    for metric, views in names.items():
        for view in ("bidfs", *(view for view in views if view not in ("bidfs", "smallest"))):
            row = f"{metric:30} {'' if view == 'bidfs' else '/ ' + view:14}"
            for bench in benches:
                values = bench.figures.values.get(metric, {})
                if view not in values:
                    cell = "-"
                elif view == "bidfs":
                    cell = figures.in_unit(bench.figures.median(metric, view), bench.figures.units[metric])
                else:
                    cell = figures.digits(statistics.median(figures.quotients(values["bidfs"], values[view])))
                row += f"{cell:>12}"
            lines.append(row)
    return "\n".join(lines)


def targets(bench, smallest):
    """Compare the largest store with the targets. Rows P8 to P12 speak of a million ids and do not judge smaller stores."""
    def of_many(target):
        return target if len(bench.ids) >= MANY else None

    report = bench.figures
    beside = f"of {len(smallest.ids)} ids"
    for metric in ("lookup", "lookup, first"):
        if "smallest" in report.values[metric]:
            report.values[metric][beside] = report.values[metric].pop("smallest")
    report.compare("P10", "lookup", "bidfs", "native")
    report.compare("P10", "lookup", "bidfs", beside, of_many(1.1))
    report.compare("P10", "lookup, first", "bidfs", "native")
    report.compare("P10", "lookup, first", "bidfs", beside, of_many(1.3))
    report.compare("P10", "lookup of what is not there", "bidfs", "native", of_many(1.6))
    report.compare("P11", "names, first", "bidfs", "directory", of_many(0.9))
    report.compare("P11", "names, repeated", "bidfs", "directory", of_many(0.25))
    report.compare("P11", "find -type f in .build-id", "bidfs", "native", of_many(1.5))
    limits = [("P12", "start to first lookup", of_many(0.05), False), ("P12", "start to first lookup, cold", of_many(0.15), False),
              ("P25", "verify, objects", 150, True)]
    # freed memory has no target
    limits += [("P8", metric, None if "forgotten" in metric else of_many(384), False)
               for metric in report.values if metric.startswith("daemon, ")]
    for row, metric, target, above in limits:
        if metric in report.values:
            report.limit(row, metric, report.units[metric], report.values[metric]["bidfs"], target, above)
    if os.geteuid() == 0:
        report.limit("P8", "kernel, a name that it knows", "B", [memory_of_a_name()])


def curves(benches):
    """Return the plots {plot: {label: [(ids, value)]}}: us for lookups, ms for other times, KiB for the daemon's memory."""
    drawn = {}
    for plot, label, metric, view, scale in (
            ("ids", "known, native", "lookup", "native", 1), ("ids", "known, bidfs", "lookup", "bidfs", 1),
            ("ids", "first, native", "lookup, first", "native", 1), ("ids", "first, bidfs", "lookup, first", "bidfs", 1),
            ("ids", "not there, native", "lookup of what is not there", "native", 1),
            ("ids", "not there, bidfs", "lookup of what is not there", "bidfs", 1),
            ("ids-listing", "one ext4 directory", "names, first", "directory", 1e3),
            ("ids-listing", "bidfs, first", "names, first", "bidfs", 1e3),
            ("ids-listing", "bidfs, repeated", "names, repeated", "bidfs", 1e3),
            ("ids-start", "warm", "start to first lookup", "bidfs", 1e3),
            ("ids-start", "cold", "start to first lookup, cold", "bidfs", 1e3),
            *(("ids-memory", when, f"daemon, {when}", "bidfs", None)
              for when in ("all listed", "all looked up", "all files looked up", "all forgotten"))):
        points = [(len(bench.ids), bench.figures.median(metric, view) * (scale or len(bench.ids) / 1024))
                  for bench in benches if metric in bench.figures.values]
        if points:
            drawn.setdefault(plot, {})[label] = points
    return drawn


@contextlib.contextmanager
def image(directory, ids):
    """Make and mount an ext4 image that stores small files in their inodes and has no journal."""
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
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the figures, and what plots are drawn of")
    arguments = parser.parse_args()
    build, sizes = arguments.build.resolve(), [int(ids) for ids in arguments.ids.split(",")]
    print(figures.machine())
    with tempfile.TemporaryDirectory(dir=arguments.image_in) as top, image(pathlib.Path(top), sum(sizes)) as stores, \
            contextlib.ExitStack() as stack:
        benches = []
        for ids in sizes:
            begun = time.monotonic()
            store, point = stores / str(ids), pathlib.Path(top) / f"mount-{ids}"
            point.mkdir()
            subprocess.run([build / "tests" / "bench" / "make-store", store, str(ids)], check=True, stdout=subprocess.DEVNULL)
            os.sync()
            bench = Bench(build, store, point, ids, arguments.cold, benches[0] if benches else None)
            made = time.monotonic() - begun
            rounds = min(arguments.rounds, MANY_ROUNDS) if ids >= MANY else arguments.rounds
            for turn in range(rounds):
                bench.round(turn == rounds - 1)
            took = time.monotonic() - begun - made
            print(f"{ids} ids: made in {made:.1f} s, measured in {took:.1f}, rounds: {rounds}", flush=True)
            if not benches:
                stack.enter_context(Mount(build, store, point))
            benches.append(bench)
        print(f"\n{growth(benches)}")
        last = benches[-1].figures
        targets(benches[-1], benches[0])
        print(f"\nof {sizes[-1]} ids:\n{last.text()}")
        last.curves = curves(benches)
        if arguments.json:
            last.save(arguments.json)


if __name__ == "__main__":
    main()
