#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What perf's commands take on a writable mount, against the same commands on a directory of perf's own; and debuggers.

usage: bench_perf.py [--ids N] [--rounds N] [--json FILE] BUILD_DIRECTORY

Every figure is a ratio of two runs that took turns: the median over the rounds, with the smallest and the largest. "-l" and
"list" look into every build of a store with N of them: "first" on a mount of which the kernel knows nothing yet, "again" when
more than the second has passed for which it believes what is not watched. For "both cold" the kernel has forgotten perf's own
directory and the store, too (all programs of the machine feel that; root): then both are a first listing.
"add" and "remove" write one build that the store
lacks, and take it out again. gdb and eu-stack walk the stack of a core, with the debug information of a directory as
/usr/lib/debug, and with the mount's.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "mount")]
import figures  # noqa: E402  it is beside this program

ROUNDS = 400_000_000  # of the program that is recorded
BELIEVED = 1.1  # seconds, by the kernel, of what is not watched


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ids", default=3000, type=int)
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the figures")
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


def fill(programs, place, stores, number):
    """`number` builds, each at a path of its own: "list" opens them there."""
    first = programs.small(place / "small")
    for index in range(number):
        ident = hashlib.sha1(str(index).encode()).hexdigest()  # over all directories of links, as real ones are
        build = programs.forge(first, ident, place / f"p{index}")
        build.path.chmod(0o755)
        for store in stores:
            programs.into_store(store, ident, build.path, build.path)


def forget():
    """All that the kernel keeps of file systems."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def measure(act, caches, rounds, *arguments, undo=None, before=None):
    """Of each round the time on each of the caches, of act(cache, *arguments)."""
    rounds_took = []
    for turn in range(rounds + 1):
        took = {}
        for cache in caches if turn % 2 else caches[::-1]:
            if before:
                before()
            begun = time.monotonic()
            act(cache, *arguments)
            took[cache] = time.monotonic() - begun
            if undo:
                act(cache, *undo)
        if turn > 0:  # the first warms up
            rounds_took.append(took)
    return rounds_took


class Debuggers:
    """A core of a program whose debug information is elsewhere: in a directory of its own, and in the store."""

    def __init__(self, tools, programs, place, store, env):
        self.tools, self.env, self.core = tools, env, place / "core"
        (place / "shelf").mkdir()
        self.app = programs.split(programs.burn(place / "app", "hot", 5, "-O0"), place / "shelf/app.debug")
        self.native = place / "debug"
        debug = self.native / ".build-id" / self.app.id[:2] / f"{self.app.id[2:]}.debug"
        debug.parent.mkdir(parents=True)
        shutil.copy(self.app.debug, debug)
        programs.into_store(store, self.app.id, self.app.path, self.app.path)
        programs.into_store(store, self.app.id, self.app.path, self.app.debug, kind="debug")
        self.gdb(self.native, "break hot", "run", f"generate-core-file {self.core}", "kill", program=self.app.path)

    def gdb(self, debug, *commands, program=None):
        argv = ["gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", f"set debug-file-directory {debug}"]
        argv += [part for command in commands for part in ("-ex", command)]
        return self.tools.run(*argv, *([program] if program else []), env=self.env, status=None, errors="replace").stdout

    def told(self, text):
        if "burn.c" not in text:
            raise SystemExit(f"bench_perf: the debugger found no debug information: {text}")

    def backtrace(self, debug):
        self.told(self.gdb(debug, f"core-file {self.core}", "backtrace", program=self.app.path))

    def stack(self, debug):
        self.told(self.tools.run("eu-stack", "-s", "--core", self.core, "-e", self.app.path, f"--debuginfo-path={debug}",
                                 env=self.env, status=None).stdout)


def main():
    arguments = parse()
    os.environ["BIDFS_BUILD"] = str(arguments.build.resolve())
    import programs
    import tools

    if not shutil.which("perf"):
        raise SystemExit("bench_perf: no perf: install it (contrib/deps test)")
    place = pathlib.Path(tempfile.mkdtemp(prefix="bench-perf-", dir="/var/tmp"))
    native, store, mounted = place / "native", place / "store", place / "mounted"
    for directory in (native, store, mounted, place / "home"):
        directory.mkdir()
    env = tools.environment(place / "home")

    def perf(cache, *rest):
        return tools.run("perf", "--buildid-dir", cache, *rest, env=env, cwd=place, timeout=600)

    burn, extra = programs.burn(place / "burn", "hot"), programs.burn(place / "extra", "cold", 2)
    data = place / "perf.data"
    record = ["record", "-q", "-e", "cpu-clock", "-o", data, burn.path, ROUNDS]

    def anew():
        tools.run("umount", mounted)
        tools.run(tools.MOUNT_BIDFS, store, mounted)

    def cold():
        anew()
        forget()
        perf(native, "version")  # perf itself is not what is measured

    told = figures.Figures()
    tools.run(tools.MOUNT_BIDFS, store, mounted)
    try:
        caches = (native, mounted)
        for cache in caches:
            perf(cache, *record)
        fill(programs, place, (native, store), arguments.ids)
        add, remove = ["buildid-cache", "-a", extra.path], ["buildid-cache", "-r", extra.path]
        listings = ["buildid-cache", "-l"], ["list", "sdt"]
        for name, command, target, undo, before in (
                ("report", ["report", "--stdio", "-i", data], 1.05, None, None),
                ("script", ["script", "-i", data], 1.05, None, None),
                ("annotate", ["annotate", "--stdio", "-i", data, "hot"], 1.05, None, None),
                ("record, nothing new", [*record[:4], "-o", place / "again.data", burn.path, ROUNDS // 10], None, None, None),
                ("add and remove", add, None, remove, None),
                *((f"{' '.join(listing)}, first", listing, None, None, anew) for listing in listings),
                *((f"{' '.join(listing)}, first, both cold", listing, None, None, cold) for listing in listings
                  if os.geteuid() == 0),
                *((f"{' '.join(listing)}, again", listing, None, None, lambda: time.sleep(BELIEVED)) for listing in listings)):
            metric = f"perf {name}"
            for took in measure(perf, caches, arguments.rounds, *command, undo=undo, before=before):
                told.note(metric, "s", {"bidfs": took[mounted], "native": took[native]})
            told.compare("P21", metric, "bidfs", "native", target)
        missing = [program for program in ("gdb", "eu-stack") if not shutil.which(program)]
        for program in missing:
            told.without(program, "not installed")
        if "gdb" not in missing:  # which makes the core, too
            debuggers = Debuggers(tools, programs, place, store, env)
            views = (debuggers.native, mounted / "usr/lib/debug")
            for metric, act in (("gdb, backtrace of a core", debuggers.backtrace), ("eu-stack of a core", debuggers.stack)):
                if metric.split()[0].strip(",") not in missing:
                    for took in measure(act, views, arguments.rounds):
                        told.note(metric, "s", {"bidfs": took[views[1]], "native": took[views[0]]})
                    told.compare("P21", metric, "bidfs", "native", 1.05)
        print(f"{figures.machine()}, {arguments.ids} ids\n{told.text()}")
        if arguments.json:
            told.save(arguments.json)
    finally:
        tools.run("umount", mounted)
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
