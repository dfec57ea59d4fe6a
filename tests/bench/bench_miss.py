#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a miss costs through a mount, beside curl and debuginfod-find with the same server in the same run.

usage: bench_miss.py [--full] [--sizes MB,MB...] [--rounds N] [--herd N] [--misses N] [--json FILE] BUILD_DIRECTORY

The server is nginx with plain files, for what takes time tests/faults/server.py. Every round asks each of them for a build that
nobody has asked for yet, one after the other. The mount's time is from open() to the first byte, which is when the whole file is
here, checked, synced and published. curl's own is what it says, debuginfod-find's is that of its process, which is what a script
pays. What is here is opened once more through the mount that fetched it, and through one in no_open mode. In the table are medians,
and of a ratio, which is made in each round, from what to what.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mount"))

HERD_MB = 50
DELAY_MS = 20


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--full", action="store_true", help="0.1, 10, 100 and 500 MB, and a herd of 1000")
    parser.add_argument("--sizes", type=lambda text: [float(part) for part in text.split(",")], help="in MB (0.1,10,100)")
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--herd", type=int, help="openers of one file of 50 MB (100)")
    parser.add_argument("--misses", default=100, type=int, help="distinct ones at 20 ms of latency")
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the medians of misses, in ms")
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes or [0.1, 10, 100] + [500] * arguments.full
    arguments.herd = arguments.herd or (1000 if arguments.full else 100)
    return arguments


def in_words(seconds):
    """As a time that people read."""
    for unit, name in ((1, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} us"


def quotients(over, under):
    """Of each round: what the machine does meanwhile is in both."""
    return [a / b for a, b in zip(over, under)]


class Table:
    """What is told in the end, and what was wanted: rows P16 to P20."""

    def __init__(self):
        self.lines = [("", "what", "bidfs", "beside", "ratio", "wanted", "met")]

    def add(self, row, what, ours, beside, ratios, wanted="", met=None):
        low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
        told = f"{middle:.3g}" + (f" ({low:.3g} to {high:.3g})" if len(ratios) > 1 else "")
        self.lines.append((row, what, ours, beside, told, wanted, "" if not met else "yes" if met(middle) else "NO"))

    def show(self):
        self.lines.insert(1, tuple("---" for _ in self.lines[0]))
        for line in self.lines:
            print("|", " | ".join(line), "|")


class Shop:
    """Programs of any size under ids of their own, which are offered and asked for."""

    def __init__(self, top, programs):
        self.top, self.files, self.programs = top, top / "files", programs
        self.original = programs.small(top / "original")
        self.made = 0

    def make(self, size=0):
        self.made += 1
        ident = f"{self.made:08x}" * 5
        directory = self.files / "buildid" / ident
        directory.mkdir(parents=True)
        made = self.programs.forge(self.original, ident, directory / "executable")
        missing = size - made.path.stat().st_size
        with open(made.path, "ab") as file:
            for start in range(0, missing, 1 << 20):
                file.write(os.urandom(min(1 << 20, missing - start)))
        return ident

    def forget(self, ident):
        shutil.rmtree(self.files / "buildid" / ident)


def clock(function, *arguments):
    begun = time.monotonic()
    function(*arguments)
    return time.monotonic() - begun


def first_byte(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        if len(os.pread(fd, 1, 0)) != 1:
            raise SystemExit(f"bench_miss: nothing in {path}")
    finally:
        os.close(fd)


def no_file(path):
    with contextlib.suppress(FileNotFoundError):
        os.close(os.open(path, os.O_RDONLY))
        raise SystemExit(f"bench_miss: there is {path}")


class Bench:
    def __init__(self, tools, shop, url, mount, top, table, others=()):
        self.tools, self.shop, self.url, self.mount, self.top, self.table = tools, shop, url, mount, top, table
        self.again = (mount, *others)  # where to open what is here
        self.out = top / "out"
        self.figures = {}  # ms, by size and way: for a plot
        self.env = tools.environment(top, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=str(top / "cache"))

    def name(self, ident, mount=None):
        return (mount or self.mount) / "buildid" / ident / "elf"

    def curl(self, ident, status="200"):
        url = f"{self.url}/buildid/{ident}/executable"
        self.out.mkdir(exist_ok=True)
        done = self.tools.run("curl", "-s", "-o", self.out / ident, "-w", "%{http_code} %{time_total}", url)
        code, seconds = done.stdout.split()
        if code != status:
            raise SystemExit(f"bench_miss: curl got {code}")
        return float(seconds)

    def find(self, ident, status=0):
        return clock(lambda: self.tools.run("debuginfod-find", "executable", ident, env=self.env, status=status))

    def lookup(self, path):
        """The time of a stat(2), without the interpreter's."""
        done = subprocess.run([self.tools.BUILD / "tests/bench/lookup", "10000"], input=f"{path}\n", text=True, check=True,
                              stdout=subprocess.PIPE)
        return float(done.stdout.split()[1]) * 1e-6

    def misses(self, size, rounds):
        rows = {"bidfs": [], "curl": [], "find": []}
        again, found = {mount: [] for mount in self.again}, []
        for _ in range(rounds):
            for way, row in rows.items():
                ident = self.shop.make(int(size * 1e6))
                if way == "bidfs":
                    row.append(clock(first_byte, self.name(ident)))
                    for mount, times in again.items():
                        path = self.name(ident, mount)
                        times.append(clock(lambda path=path: [first_byte(path) for _ in range(100)]) / 100)
                else:
                    row.append(getattr(self, way)(ident))
                if way == "find":
                    found.append(self.find(ident))
                self.shop.forget(ident)
        # only now: each keeps what it fetched, as bidfs does, and none writes into pages that another gave back just before
        for kept in (self.out, self.top / "cache"):
            shutil.rmtree(kept, ignore_errors=True)
        self.figures[size] = {way: statistics.median(row) * 1e3 for way, row in rows.items()}
        ours, curl, find = (statistics.median(rows[way]) for way in rows)
        self.table.add("P16", f"miss of {size:g} MB ({size / ours:.0f} MB/s)", in_words(ours), f"curl -o {in_words(curl)}",
                       quotients(rows["bidfs"], rows["curl"]), "<= 1.25, or 1 ms more",
                       lambda ratio: ratio <= 1.25 or ours <= curl + 1e-3)
        least = 5 if size < 1 else 2 if size >= 100 else 1
        self.table.add("", "", "", f"debuginfod-find {in_words(find)}", quotients(rows["find"], rows["bidfs"]), f">= {least}",
                       lambda ratio: ratio >= least)
        for mount, times in again.items():
            self.table.add("P17", f"open {size:g} MB once more, {mode_of(mount)}", in_words(statistics.median(times)),
                           f"debuginfod-find {in_words(statistics.median(found))}", quotients(found, times), ">= 500",
                           lambda ratio: ratio >= 500)

    def negatives(self, rounds):
        first, curl, find, again, found = [], [], [], [], []
        for number in range(rounds):
            idents = [f"{way}{number:06x}" + "ab" * 16 for way in ("fa", "fb", "fc")]
            first.append(clock(no_file, self.name(idents[0])))
            again.append(self.lookup(self.name(idents[0])))
            curl.append(self.curl(idents[1], "404"))
            find.append(self.find(idents[2], 1))
            found.append(self.find(idents[2], 1))
        told = statistics.median(first)
        self.table.add("P18", "absent, the first time", in_words(told), f"curl {in_words(statistics.median(curl))}",
                       quotients(first, curl), "0.5 ms more", lambda _: told <= statistics.median(curl) + 5e-4)
        self.table.add("", "", "", f"debuginfod-find {in_words(statistics.median(find))}", quotients(find, first))
        told = statistics.median(again)
        self.table.add("", "absent, again", in_words(told), f"debuginfod-find {in_words(statistics.median(found))}",
                       quotients(found, again), "<= 2 us", lambda _: told <= 2e-6)

    def openers(self, n, ident):
        """The time of @n threads, without the interpreter's, which would have them take turns."""
        return float(self.tools.run(self.tools.BUILD / "tests/bench/herd", n, self.name(ident)).stdout)

    def herd(self, n, rounds, requests, cpu):
        rows = {1: ([], []), n: ([], [])}
        asked = []
        for number in range(rounds):
            # by turns the first: what one leaves behind of pages and of writes to the disk is the next one's to pay for
            for openers, (times, spent) in list(rows.items())[::(-1) ** number]:
                ident, before, begun = self.shop.make(HERD_MB * 1000000), requests(), cpu()
                times.append(self.openers(openers, ident))
                spent.append(cpu() - begun)
                asked.append(requests() - before)
                self.shop.forget(ident)
        (alone, cpu_alone), (last, spent) = rows.values()
        self.table.add("P19", f"{n} openers of one file of {HERD_MB} MB: {max(asked)} request", in_words(statistics.median(last)),
                       f"one alone {in_words(statistics.median(alone))}", quotients(last, alone), "<= 1.1, 1 request",
                       lambda ratio: ratio <= 1.1 and max(asked) == 1)
        self.table.add("", "the daemon's processor time", in_words(statistics.median(spent)),
                       f"one alone {in_words(statistics.median(cpu_alone))}", quotients(spent, cpu_alone), "<= 1.2",
                       lambda ratio: ratio <= 1.2)

    def distinct(self, n, rounds):
        """The server of this one is not a fast one."""
        ours, parallel, sequential = [], [], []
        for _ in range(rounds):
            idents = [self.shop.make() for _ in range(n)]
            with concurrent.futures.ThreadPoolExecutor(n) as pool:
                ours.append(clock(lambda: list(pool.map(first_byte, [self.name(ident) for ident in idents]))))
            self.out.mkdir(exist_ok=True)
            lines = [f'url = "{self.url}/buildid/{ident}/executable"\noutput = "{self.out}/{ident}"' for ident in idents]
            config = self.top / "urls"
            config.write_text("\n".join(lines))
            curl = ["curl", "-s", "-K", config]
            parallel.append(clock(lambda: self.tools.run(*curl, "--parallel", "--parallel-max", 8)))
            sequential.append(clock(lambda: self.tools.run(*curl)))
            shutil.rmtree(self.out)
        told = in_words(statistics.median(ours))
        self.table.add("P20", f"{n} distinct misses at {DELAY_MS} ms", told,
                       f"curl --parallel-max 8 {in_words(statistics.median(parallel))}", quotients(parallel, ours), ">= 0.85",
                       lambda ratio: ratio >= 0.85)
        self.table.add("", "", "", f"curl one by one {in_words(statistics.median(sequential))}", quotients(sequential, ours))


def cpu_of(pids):
    """The processor time that they have used, in seconds, by their clocks: /proc/PID/stat counts in hundredths."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def mode_of(mount):
    return json.loads((mount / ".bidfs/status").read_text(encoding="utf-8"))["mode"]


@contextlib.contextmanager
def mounted(tools, place, options, name="mnt"):
    store, path = place / "store", place / name
    store.mkdir(parents=True, exist_ok=True)
    path.mkdir()
    tools.run(tools.MOUNT_BIDFS, store, path, "-o", options, env=tools.environment(place))
    try:
        yield path
    finally:
        tools.run("umount", path)


def main():
    arguments = parse()
    os.environ["BIDFS_BUILD"] = str(arguments.build.resolve())
    import daemon
    import exports
    import programs
    import servers
    import tools

    class Plain(exports.Nginx):
        def site(self, port):
            return f"server {{ listen 127.0.0.1:{port}; root {top}/files; location = / {{ return 404; }} }}"

    top = pathlib.Path(tempfile.mkdtemp(prefix="bench-miss."))
    top.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, top)
        shop = Shop(top, programs)
        nginx = Plain(top / "nginx")
        stack.callback(nginx.stop)
        mount = stack.enter_context(mounted(tools, top / "fast", f"url={nginx.url},wait=0"))
        others = []
        if mode_of(mount) != "no_open":
            others.append(stack.enter_context(mounted(tools, top / "fast", "offline,passthrough=off", "no_open")))
        table = Table()
        bench = Bench(tools, shop, nginx.url, mount, top, table, others)
        first_byte(bench.name(shop.make()))
        for size in arguments.sizes:
            bench.misses(size, arguments.rounds)
        if arguments.json:
            arguments.json.write_text(json.dumps(bench.figures), encoding="ascii")
        bench.negatives(arguments.rounds)
        pids = daemon.daemons_of(mount)
        bench.herd(arguments.herd, arguments.rounds, lambda: nginx.log("access.log").count("/buildid/"), lambda: cpu_of(pids))
        slow = servers.Faults(shop.files / "buildid", [f"delay:{DELAY_MS / 1000}"])
        stack.callback(slow.stop)
        mount = stack.enter_context(mounted(tools, top / "slow", f"url={slow.url},wait=0"))
        Bench(tools, shop, slow.url, mount, top, table).distinct(arguments.misses, arguments.rounds)
        table.show()


if __name__ == "__main__":
    sys.exit(main())
