#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What perf's commands take on a writable mount, against the same commands on a directory of perf's own; and debuggers.

usage: bench_perf.py [--ids N] [--rounds N] [--gentle] [--json FILE] BUILD_DIRECTORY

Every figure is a ratio of two runs that took turns: the median over the rounds, with the smallest and the largest. "-l" and
"list" look into every build of a store with N of them: "first" on a mount of which the kernel knows nothing yet, "again" when
more than the second has passed for which it caches names; "no_open" is read-only without passthrough. For "both
cold" the kernel has forgotten perf's own directory and the store, too (all programs of the machine feel that; root): then both
are a first listing. "record's exit phase" is from the end of the recorded program, which tells when that is, to the end of perf:
it looks what was recorded, and files the program and the shared objects that it spent its time in. "all new" is with a cache that
was emptied before. "add" and "remove" write one build that the store lacks, and take it out again. passthrough_hp is libfuse's,
over a directory of perf's own: what it costs that the kernel asks a daemon, whatever that does. gdb and eu-stack walk the stack
of a core, with the mount's debug information and with a directory that has the same files, copied. With --gentle nothing is cold,
and there is no passthrough_hp, whose source is Debian's to give.
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
import figures  # noqa: E402  they are beside this program
import peers  # noqa: E402

ROUNDS = 400_000_000  # of the program that is recorded
OBJECTS = 48  # shared objects of another one
EACH = 2_000_000  # rounds in each, some 6 ms, in which perf takes some samples
CACHED = 1.1  # seconds, more than the kernel caches names


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ids", default=3000, type=int)
    parser.add_argument("--rounds", default=7, type=int)
    parser.add_argument("--gentle", action="store_true")
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
    """Of each round the time on each of the caches, of act(cache, *arguments), or that it returns."""
    rounds_took = []
    warming = rounds > 1  # one is to see that it works
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
    """A program that spends its time in many shared objects, and tells when it ends."""

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
        """How long perf takes to end, with a cache that may have it all."""
        # for events of BPF it has a thread, whose end it waits for, up to a second
        self.perf(cache, "record", "-q", "--no-bpf-event", "-e", "cpu-clock:u", "-o", self.data, self.program, self.ended)
        took = time.monotonic() - float(self.ended.read_text())
        # what had no sample is not filed
        filed = len(list(cache.glob(f"{str(self.program.parent)[1:]}/libwork*.so/*/elf")))
        if filed < OBJECTS * 3 // 4:
            raise SystemExit(f"bench_perf: perf filed {filed} of {OBJECTS} shared objects")
        return took

    def new(self, cache):
        """The same with one that has nothing."""
        self.perf(cache, "buildid-cache", "--purge-all")
        return self.known(cache)


class Debuggers:
    """A core of a program whose debug information is in the store, and in a directory that has all that a mount of it has."""

    def __init__(self, tools, programs, place, store, mounted, env):
        self.tools, self.env, self.core = tools, env, place / "core"
        (place / "shelf").mkdir()
        self.app = programs.split(programs.burn(place / "app", "hot", 5, "-O0"), place / "shelf/app.debug")
        self.native, self.mounted = place / "debug", mounted / "usr/lib/debug"
        programs.into_store(store, self.app.id, self.app.path, self.app.path)
        programs.into_store(store, self.app.id, self.app.path, self.app.debug, kind="debug")
        # perf has filed the debug information of libraries, too, where that is installed, and a debugger reads what it finds
        shutil.copytree(self.mounted, self.native)
        self.gdb(self.native, "break hot", "run", f"generate-core-file {self.core}", "kill", program=self.app.path)

    def gdb(self, debug, *commands, program=None):
        argv = ["gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", f"set debug-file-directory {debug}"]
        argv += [part for command in commands for part in ("-ex", command)]
        return self.tools.run(*argv, *([program] if program else []), env=self.env, status=None, timeout=600,
                              errors="replace").stdout

    def told(self, text):
        if "burn.c" not in text:
            raise SystemExit(f"bench_perf: the debugger found no debug information: {text}")

    def backtrace(self, debug):
        self.told(self.gdb(debug, f"core-file {self.core}", "backtrace", program=self.app.path))

    def stack(self, debug):
        self.told(self.tools.run("eu-stack", "-s", "--core", self.core, "-e", self.app.path, f"--debuginfo-path={debug}",
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
        perf(native, "version")  # perf itself is not what is measured

    told = figures.Figures()
    passthrough, behind = None, place / "behind"
    if why := "needs root" if os.geteuid() else peers.GENTLE if arguments.gentle else peers.build_hp(place / "hp"):
        told.without("passthrough_hp", why)
    else:
        behind.mkdir()
        passthrough = Passthrough(place / "hp", behind, peer)
    caches = (native, mounted, *([peer] if passthrough else []))

    def compare(metric, target, act, *arguments_of_act, **options):
        for took in measure(act, caches, arguments.rounds, *arguments_of_act, **options):
            told.note(metric, "s", {"bidfs": took[mounted], "native": took[native]} |
                      ({"passthrough_hp": took[peer]} if passthrough else {}))
        told.compare("P21", metric, "bidfs", "native", target)
        if passthrough:
            told.compare("P21", metric, "bidfs", "passthrough_hp")

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
            told.without(program, "not installed")
        if "gdb" not in missing:  # which makes the core, too
            debuggers = Debuggers(tools, programs, place, store, mounted, env)
            views = (debuggers.native, debuggers.mounted)
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
        if passthrough:
            passthrough.unmount()
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
