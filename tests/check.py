#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Build bidfs and run the tests of a list in tests/lists. contrib/check installs the packages and starts this program.

A line of a list is the name of a meson test, a file of tests/mount, or FILE::TEST of such a file. The lists commit and release have
every test, each in one of them. The other lists name tests of commit that run in one more build or on one more system.

An exit status alone proves nothing: a run fails if it has no record, an empty one, fewer tests than the list, or skipped tests
alone.
"""
import argparse
import collections
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests/lists"
DIR = ROOT / "build-check"
LANES = 5  # mount tests at a time: they wait more than they compute
JOBS = 2  # meson tests at a time, beside them
TIME_FACTOR = 3  # the factor for all time limits, as the machine may be busy
HANG = 3600  # seconds after which mount tests hang
REPEATS = 3  # failed tests that are run a second time, alone; if more failed, none is
PROGRAMS = ("bidctl", "mount.bidfs", "bid-test-clock", "make-store")  # programs that mount tests start
TAIL = 60  # lines of a failed test's output that are printed
MACHINES = ("arm64", "i386", "s390x")  # what contrib/check --machines builds for
OPTIONS = {
    "full": [],
    "reduced": ["-Dfuse=disabled", "-Dfetch=disabled", "-Dima=disabled"],
    # libbid.so leaves the symbols of the sanitizers to the program
    "sanitized": ["-Db_sanitize=address,undefined", "-Db_lundef=false"],
    **{arch: ["--cross-file", DIR / f"{arch}.ini"] for arch in MACHINES},
}
SUPPRESSIONS = ROOT / "tests/mount/leaks.supp"
# settings of the user that must not reach the tests
CLEARED = re.compile(r"DEBUGINFOD_.*|BIDFS_BUILD|(https?|all|no)_proxy|CURL_CA_BUNDLE|SSL_CERT_(FILE|DIR)|NETRC", re.I)


def read_list(name):
    lines = (line.partition("#")[0].strip() for line in (LISTS / name).read_text().splitlines())
    return [line for line in lines if line]


def one_line(text):
    return " ".join((text or "").split())


def last_line(text):
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else ""


class Results:
    """The outcome of each test, from several threads."""

    def __init__(self):
        self.lines = []  # (outcome, stage, name, reason)
        self.failed = []  # (stage, name in a list or None) of those that failed
        self.repeated = []  # lines of the tests that failed and were run a second time
        self.lock = threading.Lock()

    def add(self, outcome, stage, name, reason=""):
        with self.lock:
            self.lines.append((outcome, stage, one_line(name), one_line(reason)))

    def fail(self, stage, name, reason, output="", node=None):
        self.add("failed", stage, name, reason)
        self.failed += [(stage, node)]
        text = "".join(f"    {line}\n" for line in (output or "").splitlines()[-TAIL:])
        print(f"--- {stage}: {name}: {one_line(reason)[:200]}\n{text}", end="", flush=True)

    def count(self, outcome, stage=None):
        return sum(line[0] == outcome and stage in (None, line[1]) for line in self.lines)

    def summary(self, stage=None):
        return ", ".join(f"{self.count(outcome, stage)} {outcome}" for outcome in ("passed", "failed", "skipped"))


def log_command(argv, log, **options):
    with open(log, "ab") as output:
        return subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
                              **options).returncode


def programs_of(stage, names):
    """Return the targets, for ninja, that the tests of a list need in a stage."""
    targets = {target["id"]: target for target in json.loads((DIR / stage / "meson-info/intro-targets.json").read_text())}
    tests = meson_tests(stage)
    needed = {target for name in names if name in tests for target in tests[name]["depends"]}
    needed |= {name for name, target in targets.items() if target["name"] in PROGRAMS}
    return [os.path.relpath(filename, DIR / stage) for target in needed for filename in targets[target]["filename"]]


def build(results, stage, names=None):
    """Build a stage, or the part that the tests `names` need. Return whether it is built."""
    begun, directory, log = time.monotonic(), DIR / stage, DIR / f"{stage}-build.log"
    log.unlink(missing_ok=True)
    if (directory / "build.ninja").exists() or not log_command(
            ["meson", "setup", directory, ROOT, "-Dwerror=true", *OPTIONS[stage]], log):
        if not log_command(["ninja", "-C", directory, *(programs_of(stage, names) if names else [])], log):
            print(f"{stage}: built in {time.monotonic() - begun:.0f} s", flush=True)
            return True
    results.fail(stage, "build", f"see '{log}'; an old '{directory}' may be removed", log.read_text(errors="replace"))
    return False


def environment(stage):
    """Return the environment of the tests of a stage."""
    kept = {name: value for name, value in os.environ.items() if not CLEARED.fullmatch(name)}
    (DIR / "home").mkdir(exist_ok=True)
    (DIR / "cache").mkdir(exist_ok=True)
    kernels = DIR / "kernels"
    return kept | ({"BID_TEST_KERNELS": str(kernels)} if kernels.exists() else {}) | {
        "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(DIR / "home"),
        "BID_SOURCE_ROOT": str(ROOT), "BID_BUILD_ROOT": str(DIR / stage), "BID_TEST_PATIENCE": str(TIME_FACTOR),
        "BID_TEST_CACHE": str(DIR / "cache"),
        "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1",
        "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:print_suppressions=0",
        "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    }


def meson_tests(stage):
    """Return the meson tests of a built stage: {name: description}."""
    return {test["name"]: test for test in json.loads((DIR / stage / "meson-info/intro-tests.json").read_text())}


def inner_skips(output):
    """Return the tests that a cmocka program skipped, each with its output: {name: reason}."""
    printed, skips = [], {}
    for line in output.splitlines():
        if line.startswith("[ RUN "):
            printed = []
        elif match := re.match(r"\[\s+SKIPPED \] (\w+)$", line):
            # keep the first: the summary at the end names each test again
            skips.setdefault(match[1], " ".join(printed))
        elif not line.startswith("["):
            printed.append(line)
    return skips


def run_meson(results, stage, names):
    begun, log = time.monotonic(), DIR / stage / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    status = log_command(["meson", "test", "-C", DIR / stage, "--no-rebuild", "--num-processes", JOBS, "--timeout-multiplier",
                          TIME_FACTOR, *names], DIR / f"{stage}-test.log", env=environment(stage))
    tests = [json.loads(line) for line in log.read_text().splitlines() if line.strip()] if log.exists() else []
    for test in tests:
        name, result = test["name"].rpartition(" / ")[2], test["result"]
        output = (test.get("stdout") or "") + (test.get("stderr") or "")
        if result == "SKIP":
            results.add("skipped", stage, name, last_line(output) or "no reason given")
        elif result in ("OK", "EXPECTEDFAIL"):
            results.add("passed", stage, name)
        else:
            results.fail(stage, name, f"{result.lower()}, exit status {test.get('returncode')}: {last_line(output)}", output, name)
        for inner, reason in inner_skips(output).items():
            results.add("skipped", stage, f"{name}: {inner}", reason or "no reason given")
    if len(tests) != len(names):
        results.fail(stage, "meson test", f"{len(tests)} of {len(names)} tests ran, exit status {status}")
    print(f"{stage}: {len(tests)} meson tests in {time.monotonic() - begun:.0f} s", flush=True)


def run_mount(results, stage, nodes, options=(), full=False, may_be_none=False):
    """Run tests of tests/mount; `nodes` are relative to it."""
    begun, report, log = time.monotonic(), DIR / f"{stage}-mount.xml", DIR / f"{stage}-mount.log"
    report.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    status = log_command(["timeout", "--kill-after=30", HANG * (4 if full else 1), sys.executable, "-m", "pytest", "-p",
                          "no:cacheprovider", "-ra", "--durations=40", f"--junitxml={report}", "-o", "junit_family=xunit2",
                          *options, *(ROOT / "tests/mount" / node for node in nodes)], log, cwd=ROOT,
                         env=environment(stage) | ({"BIDFS_FULL": "1"} if full else {}))
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase")) if report.exists() else []
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}: {case.get('name')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if problem is not None:
            output = [problem.text] + [case.findtext(stream) for stream in ("system-out", "system-err")]
            results.fail(stage, name, problem.get("message"), "\n".join(filter(None, output)), name.replace(": ", ".py::", 1))
        elif skipped is not None:
            results.add("skipped", stage, name, skipped.get("message") or "no reason given")
        else:
            results.add("passed", stage, name)
    if (not cases or status not in (0, 1)) and not (may_be_none and status == 5):
        results.fail(stage, "pytest", f"{len(cases)} tests ran, exit status {status}", log.read_text(errors="replace"))
    print(f"{stage}: {len(cases)} mount tests in {time.monotonic() - begun:.0f} s", flush=True)


def run_list(results, stage, names, without=(), full=False):
    """Run the tests of a list in a built stage, all lanes at once."""
    names = [name for name in names if name not in without]
    meson = [name for name in names if not name.startswith("test_")]
    mount = [name for name in names if name.startswith("test_")]
    lanes = []
    if meson:
        lanes.append(threading.Thread(target=run_meson, args=(results, stage, meson)))
    if mount:
        options = ["-n", str(LANES), "--dist=loadfile"]
        options += [f"--deselect=tests/mount/{name}" for name in without if "::" in name]
        lanes.append(threading.Thread(target=run_mount, args=(results, stage, mount, options, full)))
    for lane in lanes:
        lane.start()
    return lanes


def repeat_failed(results, full):
    """Run the failed tests a second time, alone, and report it: a pass then shows that the load of the machine mattered."""
    failed, results.failed = results.failed, []
    if not 0 < len(failed) <= REPEATS or any(node is None for _, node in failed):
        return
    results.repeated = [line for line in results.lines if line[0] == "failed"]
    results.lines = [line for line in results.lines if line[0] != "failed"]
    for stage, node in failed:
        if ".py::" in node:
            run_mount(results, stage, [node], full=full)
        else:
            run_meson(results, stage, [node])


def check_all(results, which):
    """Run the lists. The other builds are built while the full build runs its list."""
    if log_command([ROOT / "contrib/kernels", DIR / "kernels"], DIR / "kernels.log"):
        print("kernels: not downloaded: tests of foreign kernels skip", flush=True)
    release = read_list("release")
    lanes = []
    if build(results, "full"):
        print(f"lists: {len(read_list('commit'))} lines in commit, {len(release)} in release", flush=True)
        if which == "full":
            lanes = run_list(results, "full", read_list("commit") + release, full=True)
        else:
            lanes = run_list(results, "full", read_list("versions" if which == "versions" else "commit"), without=release)
    if which != "versions":
        for stage in ("sanitized", "reduced"):
            if build(results, stage, read_list(stage)):
                lanes += run_list(results, stage, read_list(stage), without=release)
    for lane in lanes:
        lane.join()
    repeat_failed(results, which == "full")
    if which == "full":
        check_machines_apart(results)
    if (DIR / "home").exists() and any((DIR / "home").iterdir()):
        results.fail("check", "home", f"a test wrote into the home of its user: '{DIR / 'home'}'")


def check_machines(results):
    """Build for other machines and run the compiled unit tests under qemu-user."""
    for arch in MACHINES:
        file, log = DIR / f"{arch}.ini", DIR / f"{arch}-packages.log"
        if log_command([ROOT / "contrib/cross", arch, file], log):
            results.fail(arch, "packages", f"contrib/cross failed: see '{log}'", log.read_text(errors="replace"))
        elif build(results, arch):
            run_meson(results, arch, [name for name, test in meson_tests(arch).items() if "bidfs:compiled" in test["suite"]])


def check_machines_apart(results):
    """The same in a Debian of its own, as one test: foreign architectures are not for the dpkg of this machine."""
    log, command = DIR / "machines.log", "git archive HEAD | .ci/debian bookworm contrib/check --machines"
    log.unlink(missing_ok=True)
    if os.geteuid():
        results.add("skipped", "machines", command, "needs root, for .ci/debian")
    elif log_command(["sh", "-c", command], log, cwd=ROOT):
        results.fail("machines", command, f"see '{log}'", log.read_text(errors="replace"))
    else:
        results.add("passed", "machines", command)


def of_files(files):
    """Return the meson tests and the tests of tests/mount that these files contain."""
    meson, mount = [], []
    tests = meson_tests("full")
    sources = {pathlib.Path(source).resolve(): target["filename"][0]
               for target in json.loads((DIR / "full/meson-info/intro-targets.json").read_text())
               for group in target["target_sources"] for source in group.get("sources", [])
               if target["name"].startswith("test-")}
    for file in files:
        path = pathlib.Path(file.partition("::")[0]).resolve()
        if path.parent == ROOT / "tests/mount":
            mount.append(path.name + "".join(file.partition("::")[1:]))
            continue
        words = {str(path), sources.get(path)}
        found = [name for name, test in tests.items() if words & set(test["cmd"])]
        if not found:
            sys.exit(f"check: '{file}': no test is made of it")
        meson += found
    return meson, mount


def check_some(results, name, files):
    """Run single tests in the full build."""
    if not build(results, "full"):
        return
    if name:
        meson = [test for test in meson_tests("full") if name in test]
        mount, options = [""], ["-k", name]
    else:
        meson, mount = of_files(files)
        options = []
    if meson:
        run_meson(results, "full", meson)
    if mount:
        # pytest exits with 5 if it found no test
        run_mount(results, "full", mount, options, may_be_none=bool(name and meson))


def print_end(results, verbose):
    skipped = [line for line in results.lines if line[0] == "skipped"]
    if skipped:
        print("skipped:")
    for (stage, reason), count in collections.Counter((line[1], line[3]) for line in skipped).most_common():
        print(f"  {count}: {stage}: {reason}")
        for line in skipped if verbose else ():
            if (line[1], line[3]) == (stage, reason):
                print(f"    {line[2]}")
    for _, stage, name, reason in results.repeated:
        print(f"repeated: {stage}: {name}: {reason[:160]}")
    if results.count("failed"):
        print("failed:")
    for _, stage, name, reason in [line for line in results.lines if line[0] == "failed"]:
        print(f"  {stage}: {name}: {reason[:160]}")
    print(results.summary())
    return 0 if results.count("passed") and not results.count("failed") else 1


def main():
    parser = argparse.ArgumentParser(prog="contrib/check")
    parser.add_argument("-v", action="store_true", dest="verbose", help="name each skipped test")
    parser.add_argument("--full", action="store_const", const="full", dest="which", default="commit")
    parser.add_argument("--versions", action="store_const", const="versions", dest="which")
    parser.add_argument("--machines", action="store_const", const="machines", dest="which")
    parser.add_argument("-k", metavar="NAME", dest="name", help="run the tests whose names contain NAME")
    parser.add_argument("files", nargs="*", metavar="FILE", help="run the tests of these files")
    args = parser.parse_args()
    # undo nohup(1), or the tested programs would ignore SIGHUP, too
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    DIR.mkdir(exist_ok=True)
    lock = os.open(DIR, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"check: '{DIR}': another check works there")
    results = Results()
    if args.name or args.files:
        check_some(results, args.name, args.files)
    elif args.which == "machines":
        check_machines(results)
    else:
        check_all(results, args.which)
    return print_end(results, args.verbose)


if __name__ == "__main__":
    sys.exit(main())
