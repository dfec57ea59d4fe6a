#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a miss costs through a mount, beside curl and debuginfod-find with the same server in the same run.

usage: bench_miss.py [--sizes MB,MB...] [--rounds N] [--herd N] [--misses N] BUILD_DIRECTORY

The server is nginx with plain files, for what takes time tests/faults/server.py. Every round asks each of them for a build that
nobody has asked for yet, one after the other; told are medians, and from what to what. The mount's time is from open() to the
first byte, which is when the whole file is here, checked, synced and published. curl's own is what it says, debuginfod-find's
is that of its process, which is what a script pays.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mount"))

HERD_MB = 50
DELAY_MS = 20


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sizes", default="0.1,10,100", type=lambda text: [float(part) for part in text.split(",")],
                        help="in MB; 0.1,10,100,500 are the full ones")
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--herd", default=100, type=int, help="openers of one file of 50 MB; 1000 is the full number")
    parser.add_argument("--misses", default=100, type=int, help="distinct ones at 20 ms of latency")
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


def spread(values, unit=1.0, digits=2):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle * unit:.{digits}f} ({low * unit:.{digits}f} to {high * unit:.{digits}f})"


def ratio(over, under):
    """Of each round: what the machine does meanwhile is in both."""
    return spread([a / b for a, b in zip(over, under)])


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
    def __init__(self, tools, shop, url, mount, top):
        self.tools, self.shop, self.url, self.mount, self.top = tools, shop, url, mount, top
        self.out = top / "out"
        self.env = {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(top / "cache")}

    def name(self, ident):
        return self.mount / "buildid" / ident / "elf"

    def curl(self, ident, status="200"):
        url = f"{self.url}/buildid/{ident}/executable"
        done = self.tools.run("curl", "-s", "-o", self.out, "-w", "%{http_code} %{time_total}", url)
        code, seconds = done.stdout.split()
        if code != status:
            raise SystemExit(f"bench_miss: curl got {code}")
        self.out.unlink(missing_ok=True)
        return float(seconds)

    def find(self, ident, status=0):
        return clock(lambda: self.tools.run("debuginfod-find", "executable", ident, env=self.env, status=status))

    def misses(self, size, rounds):
        rows = {"bidfs": [], "curl": [], "find": []}
        for _ in range(rounds):
            for way, row in rows.items():
                ident = self.shop.make(int(size * 1e6))
                if way == "bidfs":
                    row.append(clock(first_byte, self.name(ident)))
                    hit = clock(first_byte, self.name(ident))
                else:
                    row.append(getattr(self, way)(ident))
                self.shop.forget(ident)
                shutil.rmtree(self.top / "cache", ignore_errors=True)
        rate = [size / seconds for seconds in rows["bidfs"]]
        print(f"miss {size:g} MB: bidfs {spread(rows['bidfs'], 1e3)} ms, {spread(rate, 1, 0)} MB/s; curl -o "
              f"{spread(rows['curl'], 1e3)} ms; debuginfod-find {spread(rows['find'], 1e3)} ms")
        print(f"    bidfs/curl {ratio(rows['bidfs'], rows['curl'])}, debuginfod-find/bidfs {ratio(rows['find'], rows['bidfs'])}, "
              f"open once more {hit * 1e6:.0f} us")

    def negatives(self, rounds):
        first, curl, find, again = [], [], [], []
        for number in range(rounds):
            idents = [f"{way}{number:06x}" + "ab" * 16 for way in ("fa", "fb", "fc")]
            first.append(clock(no_file, self.name(idents[0])))
            again.append(clock(lambda: [no_file(self.name(idents[0])) for _ in range(1000)]) / 1000)
            curl.append(self.curl(idents[1], "404"))
            find.append(self.find(idents[2], 1))
        print(f"absent: first {spread(first, 1e3)} ms, curl {spread(curl, 1e3)} ms, debuginfod-find {spread(find, 1e3)} ms; "
              f"again {spread(again, 1e6)} us; bidfs/curl {ratio(first, curl)}")

    def herd(self, n, requests):
        size = HERD_MB * 1000000
        alone = clock(first_byte, self.name(self.shop.make(size)))
        ident = self.shop.make(size)
        before, barrier = requests(), threading.Barrier(n + 1)

        def opener():
            barrier.wait()
            first_byte(self.name(ident))
            return time.monotonic()

        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            waits = [pool.submit(opener) for _ in range(n)]
            barrier.wait()
            begun = time.monotonic()
            last = max(wait.result() for wait in waits) - begun
        print(f"herd: {n} openers of one file of {HERD_MB} MB: {requests() - before} request, the last has it after "
              f"{last / alone:.2f} of the time of one alone")


def distinct(bench, n, rounds):
    """Ratios only: the server of this one is not a fast one."""
    parallel, sequential = [], []
    for _ in range(rounds):
        idents = [bench.shop.make() for _ in range(n)]
        paths = [bench.name(ident) for ident in idents]
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            begun = time.monotonic()
            list(pool.map(first_byte, paths))
            ours = time.monotonic() - begun
        bench.out.mkdir()
        lines = [f'url = "{bench.url}/buildid/{ident}/executable"\noutput = "{bench.out}/{ident}"' for ident in idents]
        config = bench.top / "urls"
        config.write_text("\n".join(lines))
        curl = ["curl", "-s", "-K", config]
        parallel.append(clock(lambda: bench.tools.run(*curl, "--parallel", "--parallel-max", 8)) / ours)
        sequential.append(clock(lambda: bench.tools.run(*curl)) / ours)
        shutil.rmtree(bench.out)
    print(f"{n} distinct misses at {DELAY_MS} ms: speed against curl --parallel-max 8 {spread(parallel)}, against curl one by one "
          f"{spread(sequential)}")


@contextlib.contextmanager
def mounted(tools, place, url):
    store, path = place / "store", place / "mnt"
    store.mkdir(parents=True)
    path.mkdir()
    tools.run(tools.MOUNT_BIDFS, store, path, "-o", f"url={url},wait=0")
    try:
        yield path
    finally:
        tools.run("umount", path)


def main():
    arguments = parse()
    os.environ["BIDFS_BUILD"] = str(arguments.build.resolve())
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
        mount = stack.enter_context(mounted(tools, top / "fast", nginx.url))
        bench = Bench(tools, shop, nginx.url, mount, top)
        first_byte(bench.name(shop.make()))
        for size in arguments.sizes:
            bench.misses(size, arguments.rounds)
        bench.negatives(arguments.rounds)
        bench.herd(arguments.herd, lambda: nginx.log("access.log").count("/buildid/"))
        slow = servers.Faults(shop.files / "buildid", [f"delay:{DELAY_MS / 1000}"])
        stack.callback(slow.stop)
        mount = stack.enter_context(mounted(tools, top / "slow", slow.url))
        bench = Bench(tools, shop, slow.url, mount, top)
        distinct(bench, arguments.misses, arguments.rounds)


if __name__ == "__main__":
    sys.exit(main())
