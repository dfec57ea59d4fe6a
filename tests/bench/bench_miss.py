#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure cache misses of a mount beside curl and debuginfod-find, with the same server in the same run.

usage: bench_miss.py [--full] [--sizes MB,MB...] [--rounds N] [--herd N,N...] [--misses N,N...] [--json FILE] BUILD_DIRECTORY

The server is nginx with plain files; a server with latency is tests/faults/server.py. Each round fetches a new build with each
client in turn. The time of the mount is that from open() to the first byte, at which the whole file is downloaded, verified, synced
and published. The time of curl is its own figure, that of debuginfod-find is the time of its process, as a script would see it.
Each file is then opened again, through the mount that fetched it and through a mount in no_open mode. The table has medians; a
ratio is the median of the ratios of all rounds, with their range. Misses of 500 MB and a thousand distinct misses have three rounds
at most.
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
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "mount")]
import figures  # noqa: E402  a module beside this program

HERD_MB = 50
LARGE_MB, MANY_MISSES, LARGE_ROUNDS = 500, 1000, 3
DELAY_MS = 20
AT_ONCE = 8  # parallel transfers by curl
ONE_BY_ONE = 100  # most misses that curl fetches one by one


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--full", action="store_true", help="500 MB, a herd of 1000, and 1, 10 and 1000 distinct misses, too")
    parser.add_argument("--sizes", type=lambda text: [float(part) for part in text.split(",")], help="in MB (0.1,10,100)")
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--herd", type=lambda text: [int(part) for part in text.split(",")],
                        help="openers of one file of 50 MB (100)")
    parser.add_argument("--misses", type=lambda text: [int(part) for part in text.split(",")],
                        help="distinct ones at 20 ms of latency (100)")
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the figures, and what plots are drawn of")
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes or [0.1, 10, 100] + [500] * arguments.full
    arguments.herd = arguments.herd or [100] + [1000] * arguments.full
    arguments.misses = arguments.misses or ([1, 10, 100, 1000] if arguments.full else [100])
    return arguments


class ServedBuilds:
    """A directory of programs, each of its own size and id, which a server offers."""

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
            # the next client must not pay for writing this file back
            os.fsync(file.fileno())
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
    def __init__(self, tools, served, url, mount, top, report, others=()):
        self.tools, self.served, self.url, self.mount, self.top, self.report = tools, served, url, mount, top, report
        self.again = (mount, *others)  # mounts in which a downloaded file is opened again
        self.out = top / "out"
        self.missing = [peer for peer in ("curl", "debuginfod-find") if not shutil.which(peer)]
        self.env = tools.environment(top, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=str(top / "cache"))

    def name(self, ident, mount=None):
        return (mount or self.mount) / "buildid" / ident / "elf"

    def more(self, metric, view, seconds):
        """Return the ratio that stands for @seconds more than the median of @view."""
        return 1 + seconds / self.report.median(metric, view) if view in self.report.values[metric] else 0

    def present(self, took):
        """Return those of @took ({view: function}) whose program is installed."""
        return {view: act for view, act in took.items() if view == "bidfs" or view.split()[0].strip(",") not in self.missing}

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

    def lookup(self, path, *how):
        """Return the time of a stat(2), or with "read" of open and read, as a C program measures it."""
        done = subprocess.run([self.tools.BUILD / "tests/bench/lookup", "10000", *how], input=f"{path}\n", text=True, check=True,
                              stdout=subprocess.PIPE)
        return float(done.stdout.split()[1]) * 1e-6

    def misses(self, size, rounds):
        metric = f"miss of {size:g} MB"
        for turn in range(rounds):
            took, again = {}, {}
            ways = list(self.present({"bidfs": lambda ident: clock(first_byte, self.name(ident)), "curl -o": self.curl,
                                      "debuginfod-find": self.find}).items())
            first = turn % len(ways)
            for way, ask in ways[first:] + ways[:first]:
                ident = self.served.make(int(size * 1e6))
                took[way] = ask(ident)
                if way == "bidfs":
                    again |= {mode_of(mount): self.lookup(self.name(ident, mount), "read") for mount in self.again}
                if way == "debuginfod-find":
                    again[way] = self.find(ident)
                self.served.forget(ident)
            self.report.note(metric, "s", took)
            self.report.note(f"{size:g} MB once more", "s", again)
        # clean up last: all clients keep their files until here, and no client writes into pages that another has just freed
        for kept in (self.out, self.top / "cache"):
            shutil.rmtree(kept, ignore_errors=True)
        for way, values in self.report.values[metric].items():
            self.report.curves.setdefault("miss-sizes", {}).setdefault(way, []).append((size, statistics.median(values) * 1e3))
        # targets exist for these sizes, and for two of them against debuginfod-find
        of_row = size in (0.1, 10, 100, 500)
        self.report.compare("P16", metric, "bidfs", "curl -o", 1.25 if of_row else None)
        if of_row:
            self.report.compare("P16", metric, "bidfs", "curl -o", self.more(metric, "curl -o", 1e-3), wanted="<= +1 ms")
        self.report.compare("P16", metric, "bidfs", "debuginfod-find", {0.1: 5, 100: 2}.get(size), above=True, faster=True)
        for mount in self.again:
            self.report.compare("P17", f"{size:g} MB once more", mode_of(mount), "debuginfod-find", 500, above=True, faster=True)

    def negatives(self, rounds):
        for number in range(rounds):
            idents = [f"{way}{number:06x}" + "ab" * 16 for way in ("fa", "fb", "fc")]
            first = {"bidfs": lambda: clock(no_file, self.name(idents[0])), "curl": lambda: self.curl(idents[1], "404"),
                     "debuginfod-find": lambda: self.find(idents[2], 1)}
            self.report.note("absent, the first time", "s", {view: ask() for view, ask in self.present(first).items()})
            again = {"bidfs": lambda: self.lookup(self.name(idents[0])), "debuginfod-find": first["debuginfod-find"]}
            self.report.note("absent, again", "s", {view: ask() for view, ask in self.present(again).items()})
        self.report.compare("P18", "absent, the first time", "bidfs", "curl", self.more("absent, the first time", "curl", 5e-4),
                          wanted="<= +0.5 ms")
        self.report.compare("P18", "absent, the first time", "bidfs", "debuginfod-find", faster=True)
        self.report.limit("P18", "absent, again", "s", self.report.values["absent, again"]["bidfs"], 2e-6)
        self.report.compare("P18", "absent, again", "bidfs", "debuginfod-find", faster=True)

    def openers(self, n, ident):
        """Return the time that @n threads of a C program take; Python threads would take turns."""
        return float(self.tools.run(self.tools.BUILD / "tests/bench/herd", n, self.name(ident)).stdout)

    def herd(self, n, rounds, requests, cpu):
        request_counts = []
        alone, many = "one alone", f"{n} openers"
        for turn in range(rounds):
            took, spent = {}, {}
            # views take turns as the first: the second one pays for pages and writeback of the first
            for view, openers in ((alone, 1), (many, n))[::(-1) ** turn]:
                ident, before, begun = self.served.make(HERD_MB * 1000000), requests(), cpu()
                took[view] = self.openers(openers, ident)
                spent[view] = cpu() - begun
                request_counts.append(requests() - before)
                self.served.forget(ident)
            self.report.note(f"one file of {HERD_MB} MB, {n} openers", "s", took)
            self.report.note(f"the daemon's time for {n} openers", "s", spent)
        self.report.compare("P19", f"one file of {HERD_MB} MB, {n} openers", many, alone, 1.1)
        self.report.compare("P19", f"the daemon's time for {n} openers", many, alone, 1.2)
        self.report.limit("P19", f"requests to the server for {n}", "", [max(request_counts)], 1)

    def distinct(self, n, rounds):
        """Fetch @n small files at once, and one by one, from a server with latency."""
        metric = f"{n} misses at {DELAY_MS} ms"
        config, curl = self.top / "urls", ["curl", "-s", "-K", self.top / "urls"]
        at_once, one_by_one = f"curl, {AT_ONCE} at once", "curl, one by one"

        def open_all(names):
            with concurrent.futures.ThreadPoolExecutor(n) as pool:
                list(pool.map(first_byte, names))

        for turn in range(rounds):
            idents = [self.served.make() for _ in range(n)]
            names = [self.name(ident) for ident in idents]
            config.write_text("\n".join(f'url = "{self.url}/buildid/{ident}/executable"\noutput = "{self.out}/{ident}"'
                                        for ident in idents))
            ways = {"bidfs": lambda names=names: open_all(names),
                    at_once: lambda: self.tools.run(*curl, "--parallel", "--parallel-max", AT_ONCE, timeout=600)}
            if n <= ONE_BY_ONE:
                ways[one_by_one] = lambda: self.tools.run(*curl, timeout=600)
            took = {}
            for way, act in list(self.present(ways).items())[::(-1) ** turn]:
                self.out.mkdir(exist_ok=True)
                took[way] = clock(act)
                shutil.rmtree(self.out)
            for ident in idents:
                self.served.forget(ident)
            self.report.note(metric, "s", took)
        for way in self.report.values[metric]:
            self.report.curves.setdefault("misses", {}).setdefault(way, []).append((n, self.report.median(metric, way) * 1e3))
        self.report.compare("P20", metric, "bidfs", at_once, 0.85 if n == 100 else None, above=True, faster=True)
        if n <= ONE_BY_ONE:
            self.report.compare("P20", metric, "bidfs", one_by_one, faster=True)


def cpu_of(pids):
    """Return the processor time of @pids in seconds. Their clocks are finer than /proc/PID/stat, which counts in hundredths."""
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

    if not shutil.which("nginx", path=tools.environment("/")["PATH"]):
        raise SystemExit("bench_miss: no nginx, which is the server: install it (contrib/deps test)")
    top = pathlib.Path(tempfile.mkdtemp(prefix="bench-miss."))
    top.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, top)
        served = ServedBuilds(top, programs)
        nginx = Plain(top / "nginx")
        stack.callback(nginx.stop)
        mount = stack.enter_context(mounted(tools, top / "fast", f"url={nginx.url},wait=0"))
        others = []
        if mode_of(mount) != "no_open":
            others.append(stack.enter_context(mounted(tools, top / "fast", "offline,ro,passthrough=off", "no_open")))
        report = figures.Figures()
        bench = Bench(tools, served, nginx.url, mount, top, report, others)
        for peer in bench.missing:
            report.without(peer, "not installed")
        first_byte(bench.name(served.make()))
        for size in arguments.sizes:
            bench.misses(size, min(arguments.rounds, LARGE_ROUNDS) if size >= LARGE_MB else arguments.rounds)
        report.without("a first part of a file before all of it is here", "there is no such mode: it is served when it was checked")
        bench.negatives(arguments.rounds)
        pids = daemon.daemons_of(mount)
        for openers in arguments.herd:
            bench.herd(openers, arguments.rounds, lambda: nginx.log("access.log").count("/buildid/"), lambda: cpu_of(pids))
        slow = servers.Faults(served.files / "buildid", [f"delay:{DELAY_MS / 1000}"])
        stack.callback(slow.stop)
        mount = stack.enter_context(mounted(tools, top / "slow", f"url={slow.url},wait=0"))
        for misses in arguments.misses:
            rounds = min(arguments.rounds, LARGE_ROUNDS) if misses >= MANY_MISSES else arguments.rounds
            Bench(tools, served, slow.url, mount, top, report).distinct(misses, rounds)
        print(f"{figures.machine()}\n{report.text()}")
        if arguments.json:
            report.save(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
