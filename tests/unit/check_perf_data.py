#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Record with the installed perf in each form that it can write, and compare bidctl's reading with perf's and readelf's.

usage: check_perf_data.py BIDCTL

Exit status: 0 if all agree, 1 if not, 77 without perf, a compiler, or the right to record. A form that this perf does not have is
named; the oldest forms must exist.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from bidctl_env import read_json

TIMEOUT = 60
SKIP = 77
ID = "facade00112233445566778899aabbccddeeff00"
OTHER_ID = "facade99112233445566778899aabbccddeeff00"
SOURCE = """
#include <time.h>
int main(void)
{
	volatile unsigned sum = 0;
	clock_t end = clock() + CLOCKS_PER_SEC * MS / 1000;

	while (clock() < end)
		for (unsigned i = 0; i < 100000; i++)
			sum += i;
	return 0;
}
"""
# name: commands that record; FILE and PROGRAM are replaced
FORMS = {
    "default": "perf record -o FILE -- PROGRAM",
    "buildid-mmap": "perf record --buildid-mmap -o FILE -- PROGRAM",
    "no-buildid": "perf record -B -o FILE -- PROGRAM",
    "compressed": "perf record -z -o FILE -- PROGRAM",
    "compressed-mmap": "perf record -z --buildid-mmap -o FILE -- PROGRAM",
    "call-graph": "perf record -g -o FILE -- PROGRAM",
    "redirected": "perf record -o - -- PROGRAM >FILE",
    "piped": "perf record --buildid-mmap -o - -- PROGRAM | cat >FILE",
    "injected": "perf record -o - -- PROGRAM | perf inject -b >FILE",
    "injected-file": "perf record -o FILE.0 -- PROGRAM; perf inject -b -i FILE.0 -o FILE",
    "injected-over": "perf record -o - -- PROGRAM >FILE.0; perf inject -b -i FILE.0 -o FILE",
    "threads": "perf record --threads -o FILE -- PROGRAM",
    "threads-compressed": "perf record --threads -z --buildid-mmap -o FILE -- PROGRAM",
    "switched": "perf record --switch-output=signal --buildid-mmap -o FILE -- PROGRAM; mv FILE.2* FILE",
}
NEEDED = {"default", "no-buildid", "redirected", "injected"}
# forms in which the program has samples
WITH_IDS = {"default", "buildid-mmap", "compressed-mmap", "call-graph", "piped", "injected", "injected-file", "injected-over",
            "threads", "threads-compressed", "switched"}


class Env:
    def __init__(self, bidctl, top):
        self.bidctl, self.top = bidctl, top
        self.program = top / "program"
        self.environment = {"HOME": str(top), "PATH": os.environ["PATH"], "LC_ALL": "C", "PERF_CONFIG_NOSYSTEM": "1",
                            "DEBUGINFOD_URLS": ""}
        self.environment |= {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}

    def build(self, build_id, milliseconds=250):
        """Compile the program, which runs for that time."""
        source = self.top / "program.c"
        source.write_text(SOURCE)
        self.program.unlink(missing_ok=True)
        subprocess.run(["cc", f"-DMS={milliseconds}", f"-Wl,--build-id=0x{build_id}", "-o", self.program, source], check=True,
                       timeout=TIMEOUT)

    def shell(self, command):
        return subprocess.run(["sh", "-c", command], env=self.environment, cwd=self.top, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False,
                              timeout=TIMEOUT)

    def record(self, form):
        """Return the recording, or None if this perf cannot make it."""
        file = self.top / f"{form}.data"
        command = FORMS[form].replace("FILE", str(file)).replace("PROGRAM", str(self.program))
        done = self.shell(command)
        if file.exists() and (file.is_dir() or file.stat().st_size > 0):
            return file
        print(f"{form}: not with this perf: {(done.stderr.strip().splitlines() or ['nothing was written'])[0]}")
        return None

    def read(self, file, stdin=None, store=None):
        """Read the recording with bidctl and a new store; return exit status and JSON."""
        store = store or pathlib.Path(tempfile.mkdtemp(prefix="store.", dir=self.top))
        done = subprocess.run([self.bidctl, "--store", store, "--json", "add", "--perf-data", "-" if stdin else file],
                              env=self.environment, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode in (0, 1), f"exit status {done.returncode}: {done.stderr}"
        value = read_json(done.stdout)
        return done.returncode, value["totals"] | {"builds": value["result"]}, store


def ids_of_perf(env, file):
    """Return the sampled builds {(id, name)} that perf reads."""
    done = env.shell(f"perf buildid-list -i '{file}'")
    rows = [line.split(" ", 1) for line in done.stdout.splitlines() if re.match(r"[0-9a-f]{40} ", line)]
    return {(build_id, re.sub(r"\](_s?text)$", "]", name)) for build_id, name in rows}


def id_of_readelf(path):
    text = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", text)[1]


def check_form(env, form, file):
    status, read, store = env.read(file)
    ours = {(build["id"], build["path"]) for build in read["builds"] if build["id"]}
    perfs = ids_of_perf(env, file)
    # perf names a vDSO by its copied file
    perfs = {(build_id, re.sub(r"^/tmp/perf-(vdso\w*)\.so-\w{6}$", r"[\1]", name)) for build_id, name in perfs}
    assert perfs <= ours, f"perf reads more: {perfs - ours}"
    assert not read["truncated"] and not read["unfinished"], read
    # perf inject up to 6.1 overwrites the first records of a stream with a header
    assert read["damaged"] == 0 or form == "injected-over", read
    for build in read["builds"]:
        if build["id"] and build["path"].startswith("/"):
            assert build["id"] == id_of_readelf(build["path"]), build
            assert build["state"] in ("added", "known"), build
            elf = store / build["path"][1:] / build["id"] / "elf"
            assert elf.read_bytes() == pathlib.Path(build["path"]).read_bytes(), elf
    if form in WITH_IDS:
        assert (ID, str(env.program)) in ours, f"the program is missing: {ours}"
        assert status == (1 if read["damaged"] else 0), read
    elif not ours:
        assert status == 1, "nothing is known of what ran, and it says that all is well"
    assert env.read(file, store=store)[1]["added"] == 0, "it was added twice"
    return len(ours)


def samples_of_perf(env, file):
    """Return {name: samples}; the name is the last component of a path."""
    done = env.shell(f"perf report -i '{file}' -F sample,dso --stdio")
    rows = re.findall(r"^ *(\d+) +(\S+) *$", done.stdout, re.MULTILINE)
    assert rows, done
    return {name: int(samples) for samples, name in rows}


def check_samples(env, file):
    """Compare the sample counts and their order with perf's, from a file and from a pipe."""
    perfs = samples_of_perf(env, file)
    store = pathlib.Path(tempfile.mkdtemp(prefix="store.", dir=env.top))
    for source in (file,) if file.is_dir() else (file, "-"):
        command = [env.bidctl, "--store", store, "--json", "get", "--offline", "--perf-data", source, "debuginfo"]
        with open(os.devnull if file.is_dir() else file, "rb") as opened:
            done = subprocess.run(command, env=env.environment, stdin=opened, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT,
                                  check=False)
        items = read_json(done.stdout)["result"]
        ours = {os.path.basename(item["path"]): item["samples"] for item in items}
        assert ours == {name: perfs.get(name, 0) for name in ours} and ours["program"] > 0, (ours, perfs)
        assert list(ours.values()) == sorted(ours.values(), reverse=True), ours


def check_streamed(env, file):
    """A file is read equally through a pipe and from standard input, in any form."""
    _, _, store = env.read(file)
    _, direct, _ = env.read(file, store=store)
    with subprocess.Popen(["cat", file], stdout=subprocess.PIPE) as cat:
        _, piped, _ = env.read(None, stdin=cat.stdout, store=store)
    with open(file, "rb") as opened:
        _, given, _ = env.read(None, stdin=opened, store=store)
    if direct["damaged"]:
        # only a file that can be read twice shows the samples behind the damage, so the order may differ
        for read in direct, piped, given:
            read["builds"].sort(key=lambda build: build["path"])
    assert direct["builds"] == piped["builds"] == given["builds"], (direct, piped, given)
    assert direct["time"] == given["time"] and piped["time"] is None


def check_replaced(env, file):
    """Another build at the recorded path is reported as such, and so is a file without an id."""
    recorded = file.stat().st_mtime
    try:
        env.build(OTHER_ID)
        os.utime(env.program, (recorded + 100, recorded + 100))
        status, read, store = env.read(file)
        build = next(build for build in read["builds"] if build["path"] == str(env.program))
        assert (status, build["state"], build["id"], build["found_id"]) == (1, "replaced", ID, OTHER_ID), build
        assert build["mtime"] == int(recorded + 100) and read["time"] == int(recorded), (build, read)
        assert not list(store.glob(f"**/{ID}")) and not list(store.glob(f"**/{OTHER_ID}")), "it was added"
        env.program.unlink()
        status, read, _ = env.read(file)
        build = next(build for build in read["builds"] if build["path"] == str(env.program))
        assert (status, build["state"]) == (1, "missing"), build
    finally:
        env.build(ID)


def check_killed(env):
    """A killed perf record leaves no table of builds; the records are read."""
    file = env.top / "killed.data"
    with subprocess.Popen(["perf", "record", "-m", "1", "-F", "5000", "-o", file, "--", env.program], env=env.environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + TIMEOUT
        # with such a small buffer perf writes during the recording
        while not file.exists() or file.stat().st_size < 8192:
            assert time.monotonic() < deadline and process.poll() is None, "it wrote nothing before its end"
            time.sleep(0.005)
        process.kill()
    _, read, _ = env.read(file)
    assert read["unfinished"] and read["damaged"] == 0, read


def main():
    bidctl = os.path.realpath(sys.argv[1])
    for tool in ("perf", "cc", "readelf"):
        if not shutil.which(tool):
            print(f"skipped: needs {tool}")
            return SKIP
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="perfdata.") as top:
        env = Env(bidctl, pathlib.Path(os.path.realpath(top)))
        env.build(ID)
        files = {form: env.record(form) for form in FORMS}
        if files["default"] is None:
            print("skipped: perf may not record here")
            return SKIP
        assert all(files[form] for form in NEEDED), "perf cannot write what every perf can"
        checks = [(form, lambda form=form: check_form(env, form, files[form])) for form in FORMS if files[form]]
        checks += [(f"{form}, streamed", lambda form=form: check_streamed(env, files[form]))
                   for form in FORMS if files[form] and files[form].is_file()]
        checks += [(f"{form}, samples", lambda form=form: check_samples(env, files[form]))
                   for form in FORMS if files[form] and form in WITH_IDS - {"injected-over"}]
        checks += [("replaced", lambda: check_replaced(env, files["default"])), ("killed", lambda: check_killed(env))]
        for name, check in checks:
            try:
                count = check()
                passed += 1
                print(f"ok {name}" + (f": {count} ids" if count is not None else ""))
            except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, StopIteration) as error:
                failed += 1
                print(f"FAILED {name}, line {error.__traceback__.tb_next.tb_lineno}: {error!r}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
