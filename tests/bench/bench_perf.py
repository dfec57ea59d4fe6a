#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure perf's commands and debuggers on a writable mount, against the same commands on perf's own cache directory.

usage: bench_perf.py [--ids N] [--rounds N] [--gentle] [--json FILE] BUILD_DIRECTORY

A figure is the ratio of two runs that take turns: the median over the rounds, with the smallest and the largest.

"-l", "list": each reads every build of a store with N builds. "first": a fresh mount, unknown to the kernel. "again": after the
kernel's name cache expired (1 s). "no_open": read-only, without passthrough. "both cold": the page cache is dropped as well, so
that perf's own directory and the store are cold, too (needs root; slows all programs of the machine).
"record's exit phase": from the end of the recorded program, which writes that time down, to the end of perf. perf then stores the
program and the shared objects that have samples. "all new": into an emptied cache.
"add and remove": one build that the store lacks.
passthrough_hp: libfuse's example over perf's own directory; the cost of any FUSE daemon.
gdb, eu-stack: the backtrace of a core, with the debug information of the mount and with a copy of the same files.

With --gentle no cache is dropped and passthrough_hp is left out, as its source needs a download from Debian.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "mount")]
import figures  # noqa: E402  modules beside this program
import peers  # noqa: E402

ROUNDS = 400_000_000  # loops of the recorded program
OBJECTS = 48  # shared objects of the program with many
EACH = 2_000_000  # loops in each, some 6 ms, enough for some samples
CACHED = 1.1  # seconds, longer than the kernel caches names


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ids", default=3000, type=int)
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--gentle", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="where to leave the figures")
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


def fill(programs, place, stores, number):
    """Add `number` builds to the stores, each at a path of its own, as "list" opens them there."""
    first = programs.small(place / "small")
    for index in range(number):
        ident = hashlib.sha1(str(index).encode()).hexdigest()  # spread over all fan-out directories, as real ids are
        build = programs.forge(first, ident, place / f"p{index}")
        build.path.chmod(0o755)
        for store in stores:
            programs.into_store(store, ident, build.path, build.path)


def forget():
    """Drop the page cache and the kernel's cached names and inodes."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


def measure(act, caches, rounds, *arguments, undo=None, before=None):
    """Return for each round {cache: seconds} of act(cache, *arguments); a float that act returns replaces the measured time."""
    rounds_took = []
    warming = rounds > 1  # a single round only shows that the command works
    for turn in range(rounds + warming):
        took = {}
        for cache in caches if turn % 2 else caches[::-1]:
            if before:
                before()
            begun = time.monotonic()
            own = act(cache, *arguments)
            took[cache] = own if isinstance(own, float) else time.monotonic() - begun
            if undo:
                act(cache, *undo)
        if turn > 0 or not warming:
            rounds_took.append(took)
    return rounds_took


class Passthrough:
    """libfuse's passthrough_hp over a directory."""

    def __init__(self, program, source, mounted):
        self.argv, self.mounted, self.process = [program, "--foreground", source, mounted], mounted, None

    def mount(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.mounted):
            if self.process.poll() is not None:
                raise SystemExit("bench_perf: passthrough_hp does not mount")
            time.sleep(0.01)

    def unmount(self):
        subprocess.run(["umount", self.mounted], check=True)
        self.process.wait(20)


class Recorded:
    """A program that spends its time in many shared objects and writes down when it ends."""

    MAIN = """
        #include <stdio.h>
        #include <time.h>
        {declarations}
        int main(int argc, char **argv)
        {{
        	struct timespec end;
        	FILE *file = fopen(argv[argc - 1], "w");
        	{calls}
        	clock_gettime(CLOCK_MONOTONIC, &end);
        	return !file || fprintf(file, "%ld.%09ld", (long)end.tv_sec, end.tv_nsec) < 0 || fclose(file) != 0;
        }}
    """

    def __init__(self, programs, place, perf):
        self.perf, self.data, self.ended = perf, place / "exit.data", place / "ended"
        names = [f"work{number}" for number in range(OBJECTS)]
        objects = [programs.compile_c("burn.c", place / f"lib{name}.so", "-shared", "-fPIC", f"-DHOT={name}", f"-DSEED={number}",
                                      f"-Dmain=main_{name}") for number, name in enumerate(names)]
        source = place / "recorded.c"
        source.write_text(self.MAIN.format(declarations="".join(f"unsigned long {name}(unsigned long); " for name in names),
                                           calls="".join(f"{name}({EACH}); " for name in names)))
        self.program = programs.compile_c(source, place / "recorded", "-Wl,--no-as-needed", *map(str, objects))

    def known(self, cache):
        """Return the seconds that perf takes to end, with the cache as it is."""
        # the thread for BPF events takes up to a second to end
        self.perf(cache, "record", "-q", "--no-bpf-event", "-e", "cpu-clock:u", "-o", self.data, self.program, self.ended)
        took = time.monotonic() - float(self.ended.read_text())
        # perf stores objects with samples only
        stored = len(list(cache.glob(f"{str(self.program.parent)[1:]}/libwork*.so/*/elf")))
        if stored < OBJECTS * 3 // 4:
            raise SystemExit(f"bench_perf: perf stored {stored} of {OBJECTS} shared objects")
        return took

    def new(self, cache):
        """Return the same with an emptied cache."""
        self.perf(cache, "buildid-cache", "--purge-all")
        return self.known(cache)


class Debuggers:
    """A core of a program whose debug information is in the store, and a directory with a copy of the mount's files."""

    def __init__(self, tools, programs, place, store, mounted, env):
        self.tools, self.env, self.core = tools, env, place / "core"
        (place / "shelf").mkdir()
        self.app = programs.split(programs.burn(place / "app", "hot", 5, "-O0"), place / "shelf/app.debug")
        self.native, self.mounted = place / "debug", mounted / "usr/lib/debug"
        programs.into_store(store, self.app.id, self.app.path, self.app.path)
        programs.into_store(store, self.app.id, self.app.path, self.app.debug, kind="debug")
        # the copy includes the debug information of libraries that perf stored, as a debugger reads that, too
        shutil.copytree(self.mounted, self.native)
        self.gdb(self.native, "break hot", "run", f"generate-core-file {self.core}", "kill", program=self.app.path)

    def gdb(self, debug, *commands, program=None):
        argv = ["gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", f"set debug-file-directory {debug}"]
        argv += [part for command in commands for part in ("-ex", command)]
        return self.tools.run(*argv, *([program] if program else []), env=self.env, status=None, timeout=600,
                              errors="replace").stdout

    def check_output(self, text):
        if "burn.c" not in text:
            raise SystemExit(f"bench_perf: the debugger found no debug information: {text}")

    def backtrace(self, debug):
        self.check_output(self.gdb(debug, f"core-file {self.core}", "backtrace", program=self.app.path))

    def stack(self, debug):
        self.check_output(self.tools.run("eu-stack", "-s", "--core", self.core, "-e", self.app.path, f"--debuginfo-path={debug}",
                                 env=self.env, status=None, timeout=600).stdout)


def main():
    arguments = parse()
    os.environ["BIDFS_BUILD"] = str(arguments.build.resolve())
    import programs
    import tools

    if not shutil.which("perf"):
        raise SystemExit("bench_perf: no perf: install it (contrib/deps test)")
    place = pathlib.Path(tempfile.mkdtemp(prefix="bench-perf-", dir="/var/tmp"))
    native, store, mounted, peer = place / "native", place / "store", place / "mounted", place / "passthrough_hp"
    for directory in (native, store, mounted, peer, place / "home"):
        directory.mkdir()
    env = tools.environment(place / "home")

    def perf(cache, *rest):
        return tools.run("perf", "--buildid-dir", cache, *rest, env=env, cwd=place, timeout=600)

    burn, extra = programs.burn(place / "burn", "hot"), programs.burn(place / "extra", "cold", 2)
    data = place / "perf.data"
    record = ["record", "-q", "-e", "cpu-clock", "-o", data, burn.path, ROUNDS]

    def remount(*options):
        tools.run("umount", mounted)
        tools.run(tools.MOUNT_BIDFS, *options, store, mounted)

    def anew():
        remount()
        if passthrough:
            passthrough.unmount()
            passthrough.mount()

    def expire():
        time.sleep(CACHED)

    def cold():
        anew()
        forget()
        perf(native, "version")  # warm perf itself, which is not measured

    report = figures.Figures()
    passthrough, behind = None, place / "behind"
    if why := "needs root" if os.geteuid() else peers.GENTLE if arguments.gentle else peers.build_hp(place / "hp"):
        report.without("passthrough_hp", why)
    else:
        behind.mkdir()
        passthrough = Passthrough(place / "hp", behind, peer)
    caches = (native, mounted, *([peer] if passthrough else []))

    def compare(metric, target, act, *arguments_of_act, **options):
        for took in measure(act, caches, arguments.rounds, *arguments_of_act, **options):
            report.note(metric, "s", {"bidfs": took[mounted], "native": took[native]} |
                      ({"passthrough_hp": took[peer]} if passthrough else {}))
        report.compare("P21", metric, "bidfs", "native", target)
        if passthrough:
            report.compare("P21", metric, "bidfs", "passthrough_hp")

    tools.run(tools.MOUNT_BIDFS, store, mounted)
    if passthrough:
        passthrough.mount()
    try:
        recorded = Recorded(programs, place, perf)
        for name, act in (("all new", recorded.new), ("nothing new", recorded.known)):
            compare(f"perf record's exit phase, {name}", 1.05, act)
        for cache in caches:
            perf(cache, *record)
        fill(programs, place, (native, store, *([behind] if passthrough else [])), arguments.ids)
        add, remove = ["buildid-cache", "-a", extra.path], ["buildid-cache", "-r", extra.path]
        listings = ["buildid-cache", "-l"], ["list", "sdt"], ["list"]
        for name, command, target, undo, before in (
                ("report", ["report", "--stdio", "-i", data], 1.05, None, None),
                ("script", ["script", "-i", data], 1.05, None, None),
                ("annotate", ["annotate", "--stdio", "-i", data, "hot"], 1.05, None, None),
                ("add and remove", add, None, remove, None),
                *((f"{' '.join(listing)}, first", listing, 1.05, None, anew) for listing in listings),
                *((f"{' '.join(listing)}, first, both cold", listing, 1.05, None, cold) for listing in listings
                  if os.geteuid() == 0 and not arguments.gentle),
                *((f"{' '.join(listing)}, again", listing, 1.05, None, expire) for listing in listings)):
            compare(f"perf {name}", target, perf, *command, undo=undo, before=before)
        remount("-o", "ro,passthrough=off")
        for listing in listings:
            compare(f"perf {' '.join(listing)}, again, no_open", 1.05, perf, *listing, before=expire)
        remount()
        missing = [program for program in ("gdb", "eu-stack") if not shutil.which(program)]
        for program in missing:
            report.without(program, "not installed")
        if "gdb" not in missing:  # gdb makes the core that both debuggers read
            debuggers = Debuggers(tools, programs, place, store, mounted, env)
            views = (debuggers.native, debuggers.mounted)
            for metric, act in (("gdb, backtrace of a core", debuggers.backtrace), ("eu-stack of a core", debuggers.stack)):
                if metric.split()[0].strip(",") not in missing:
                    for took in measure(act, views, arguments.rounds):
                        report.note(metric, "s", {"bidfs": took[views[1]], "native": took[views[0]]})
                    report.compare("P21", metric, "bidfs", "native", 1.05)
        print(f"{figures.machine()}, {arguments.ids} ids\n{report.text()}")
        if arguments.json:
            report.save(arguments.json)
    finally:
        tools.run("umount", mounted)
        if passthrough:
            passthrough.unmount()
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
