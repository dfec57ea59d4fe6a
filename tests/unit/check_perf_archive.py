#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Exchange archives between bidctl and the installed perf: each unpacks the other's, and perf reads a profile with the result.

usage: check_perf_archive.py BIDCTL [CASE...]
"""
import os
import pathlib
import re
import shutil
import subprocess

import cases
from bidctl_env import DONE, REFUSED, TIMEOUT, Env

PROGRAM = """
#include <string.h>
#include <time.h>
__attribute__((noinline)) unsigned burns_time(unsigned n) { volatile unsigned sum = 0; while (n--) sum += n; return sum; }
int main(void)
{
	struct timespec time;
	char text[64];

	memset(text, 1, sizeof(text));
	for (int i = 0; i < 2000000; i++)
		clock_gettime(CLOCK_MONOTONIC, &time); /* in the vDSO, if there is one */
	return burns_time(300000000u) == text[0];
}
"""


class PerfEnv(Env):
    """A recording of a program whose symbols only perf record's store has; it is made once and copied."""

    def __init__(self, bidctl, built, directory):
        super().__init__(bidctl, built, directory)
        cases.need(shutil.which("perf"), "no perf")
        self.data, self.archive = self.home / "perf.data", self.home / "perf.data.tar.bz2"
        kept = built / "recorded"
        if not kept.exists():
            self.record()
            kept.mkdir()
            shutil.copytree(self.store, kept / "store", symlinks=True)
            for path in (self.data, self.home / "gone"):
                shutil.copy2(path, kept)
        else:
            shutil.copytree(kept / "store", self.store, symlinks=True, dirs_exist_ok=True)
            for name in ("perf.data", "gone"):
                shutil.copy2(kept / name, self.home)
        self.report = self.symbols(self.store)
        assert "burns_time" in str(self.report), self.report

    def record(self):
        source, program = self.home / "burn.c", self.home / "burn"
        source.write_text(PROGRAM)
        subprocess.run(["cc", "-g", "-O1", "-o", program, source], check=True, timeout=TIMEOUT)
        recorded = self.perf("record", "-e", "cpu-clock:u", "-o", self.data, "--", program, status=None)
        cases.need(recorded.returncode in (0, 1) and self.data.exists(), f"perf does not record here: {recorded.stderr.strip()}")
        # this perf may store a sampled vDSO
        self.on_store("add", "--perf-data", self.data)
        program.rename(self.home / "gone")

    def perf(self, *arguments, store=None, status=0):
        done = subprocess.run(["perf", "--buildid-dir", store or self.store, *map(str, arguments)], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.home, timeout=TIMEOUT)
        assert status is None or done.returncode == status, done
        return done

    def symbols(self, store):
        """Return perf's report of the recording with that store."""
        text = self.perf("report", "-i", self.data, "--stdio", "--sort", "dso,symbol", store=store).stdout
        return [line for line in text.splitlines() if line and line[0] != "#"]  # the last line is a random tip

    def perf_archive(self):
        done = self.perf("archive", self.data, status=None)
        cases.need("archive" not in done.stderr or "not a perf-command" not in done.stderr, "perf archive is not installed")
        assert self.archive.exists(), done


def case_unarchive_takes_perfs_archive(env):
    env.perf_archive()
    other = env.home / "other"
    other.mkdir()
    assert "burns_time" not in str(env.symbols(other)), "symbols come from elsewhere"
    done = env.run("--store", other, "unarchive", env.archive)
    assert re.match(r"added [1-9]\d*, known \d+, refused 0, ", done.stdout), done.stdout
    assert env.symbols(other) == env.report
    # perf's archive lacks builds without samples
    lacking = env.rows("missing", "--perf-data", env.data, "--store", other, status=None)
    assert [row["path"] for row in lacking if row["name"] not in ("[vdso]", "[kernel.kallsyms]")] == [], lacking
    assert env.run("--store", other, "verify", "--deep").stdout.count("\n") == 1


def case_archive_all_of_perf_is_taken(env):
    """perf 6.8 and later pack the recording, and the builds into an inner archive."""
    env.perf("archive", "--all", env.data, status=None)
    path = next(env.home.glob("perf.all-*.tar.bz2"), None)
    cases.need(path, "this perf has no perf archive --all")
    other = env.home / "other"
    other.mkdir()
    done = env.run("--store", other, "unarchive", path)
    assert re.match(r"added [1-9]\d*, known \d+, refused 0, ", done.stdout) and done.stderr == "", done
    assert env.symbols(other) == env.report


def case_build_with_two_paths_is_taken_once(env):
    """perf packs a build sampled under two paths twice, as hard links to themselves."""
    one, two = env.home / "one", env.home / "two"
    for path in (one, two):
        shutil.copy(env.home / "gone", path)
    env.perf("record", "-e", "cpu-clock:u", "-o", env.data, "--", "sh", "-c", f"{one}; {two}; true")
    env.perf_archive()
    packed = subprocess.run(["tar", "tvf", env.archive], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
    again = re.findall(r"^h.* (\S+) link to \1$", packed, re.M)
    cases.need(again, "this perf names each build once")
    assert any(name.startswith(".build-id/") for name in again) and any(name.endswith("/probes") for name in again), packed
    other = env.home / "other"
    other.mkdir()
    done = env.run("--store", other, "unarchive", env.archive)
    assert re.match(r"added [1-9]\d*, known [1-9]\d*, refused 0, ", done.stdout) and done.stderr == "", done
    assert env.symbols(other) == env.symbols(env.store)


def case_perf_unpacks_an_archive(env):
    """By the command that perf archive prints, and by perf archive --unpack if available."""
    env.on_store("archive", "--perf-data", env.data, "-o", env.archive)
    other = env.home / ".debug"
    other.mkdir()
    done = env.perf("archive", "--unpack", env.archive, status=None, store=other)
    if not (other / ".build-id").exists():
        done = subprocess.run(["tar", "xvf", env.archive, "-C", other], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT)
        assert done.stderr == "", done.stderr
    assert env.symbols(other) == env.report, (env.symbols(other), env.report)
    lists = [sorted(env.perf("buildid-cache", "--list", store=store).stdout.splitlines()) for store in (env.store, other)]
    # perf always stores the running kernel's symbols
    assert [line for line in lists[0] if " [kernel" not in line] == lists[1] != [], lists


def case_archive_has_perfs_members(env):
    """The same names and bytes as in perf's archive of the recording."""
    env.perf_archive()
    ours, theirs = env.home / "ours", env.home / "theirs"
    for place, path in ((theirs, env.archive), (ours, env.home / "ours.tar.gz")):
        place.mkdir()
        if place == ours:
            env.on_store("archive", "--perf-data", env.data, "-o", path)
        subprocess.run(["tar", "xf", path, "-C", place], check=True, timeout=TIMEOUT)
    compared = 0
    for path in theirs.rglob("*"):
        same = ours / path.relative_to(theirs)
        if path.is_symlink():
            assert os.readlink(path) == os.readlink(same)
        elif path.is_file() and path.stat().st_size > 0:
            assert path.read_bytes() == same.read_bytes(), path
            compared += path.name == "elf"
    assert compared > 0


def case_missing_agrees_with_perf(env):
    """`perf buildid-cache --missing` lists builds of a recording that the cache lacks."""
    empty = env.home / "empty"
    empty.mkdir()
    for store, lacking in ((env.store, False), (empty, True)):
        theirs = {line.split()[0] for line in env.perf("buildid-cache", "--missing", env.data, store=store).stdout.splitlines()
                  if re.match(r"[0-9a-f]{40} ", line)}
        done = env.run("--store", store, "missing", "--perf-data", env.data, status=REFUSED if lacking else DONE)
        ours = {line.split()[0] for line in done.stdout.splitlines()}
        # perf lists sampled builds only, and accepts the file at the path as the cached one
        assert theirs <= ours, (theirs, ours)
        assert bool(ours) == lacking
    names = [row["path"] for row in env.rows("missing", "--lower", empty, "--perf-data", env.data)]
    assert names == []


def case_update_and_remove_agree_with_perf(env):
    """On stores of perf: -u replaces the files of the build, -r removes them."""
    program = env.home / "gone"
    for how, ours in (("-u", "update"), ("-r", "remove")):
        trees = []
        for index, command in enumerate((how, ours)):
            store = env.home / f"{ours}{index}"
            store.mkdir()
            env.perf("buildid-cache", "-a", program, store=store)
            if index:
                env.run("--store", store, command, program)
            else:
                env.perf("buildid-cache", command, program, store=store)
            trees.append(sorted((str(path.relative_to(store)), path.read_bytes()) for path in store.rglob("*")
                                if path.is_file() and not path.is_symlink() and ".bidfs" not in path.parts
                                and ".build-id" not in path.parts and path.name != "probes"))
        assert trees[0] == trees[1], [[name for name, _ in tree] for tree in trees]
        assert bool(trees[0]) == (ours == "update")
    assert pathlib.Path(program).exists()


if __name__ == "__main__":
    cases.main(globals(), PerfEnv, tools=["cc", "objcopy", "tar", "bzip2"])
