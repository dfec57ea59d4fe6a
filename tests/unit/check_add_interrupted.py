#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kill bidctl while it adds a tree, or fill the disk: the store then has whole artifacts only.

usage: check_add_interrupted.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root or strace are skipped without it.
"""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

import cases
from add_helpers import IDS, NOBODY, call, everything_is_right, in_namespace, summary, system_tree
from bidctl_env import DONE, TIMEOUT, ERROR, Env, build, divide
from cases import need


def case_kill_leaves_whole_artifacts(env):
    """Killed at any moment, bidctl leaves whole artifacts and no other file."""
    tree, ids = system_tree(env, 40)
    for way in ("copy", "auto"):
        for delay in (0.001, 0.003, 0.005, 0.008, 0.012, 0.02):
            with subprocess.Popen([env.bidctl, "-s", env.store, "add", f"--link={way}", tree], env=env.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(delay)
                process.kill()
            everything_is_right(env)
    env.on_store("add", tree)
    assert everything_is_right(env) == len(ids)
    assert list((env.store / ".bidfs" / "tmp").iterdir()) == [], "something was left behind"


def empty_directories(env):
    return [path for path in env.store.rglob("*") if path.is_dir() and not any(path.iterdir())
            and not {".bidfs", ".build-id"} & set(path.parts)]


def no_links_between(env, tree, log, error, **keywords):
    """Let hard links fail: bidctl tries one, then copies, and a kill during the first copy leaves nothing of the rest."""
    traced_add = ["strace", "-f", "-qq", "-o", log, "-e", "trace=linkat,symlinkat"]
    add = [env.bidctl, "-s", env.store, "add", "--jobs=1", tree]
    call(*traced_add, "-e", "inject=symlinkat:signal=KILL:when=1", *add, env=env.environment, **keywords)
    assert len(list(env.store.rglob("elf"))) == 1 and empty_directories(env) == [], empty_directories(env)
    done = divide(call(*traced_add, *add, env=env.environment, **keywords))
    lines = log.read_text().splitlines()
    assert summary(done)[0][1] == 9 and sum(error in line for line in lines) == 1, (done, lines)


def case_kill_during_copy_leaves_whole_artifacts(env):
    need(shutil.which("strace") and os.path.isdir("/dev/shm"), "no strace, or no /dev/shm")
    need(os.stat("/dev/shm").st_dev != env.home.stat().st_dev, "all is on one file system")
    tree, _ = system_tree(env, 10)
    # bidctl does not try to link private files
    for path in (env.home.parent.parent, env.home.parent, env.home):
        path.chmod(0o755)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        env.store = pathlib.Path(other)
        no_links_between(env, tree, env.home / "log", "EXDEV")
        for path in env.store.iterdir():
            shutil.rmtree(path)
        env.on_store("add", "--link=hard", tree)
        left = [path for path in env.store.iterdir() if path.name != ".bidfs"]
        assert left == [], "of what was refused there is a directory"


def case_kill_beside_other_files_leaves_whole_artifacts(env):
    need(os.geteuid() == 0 and shutil.which("strace"), "needs root, to become somebody else, and strace")
    need(pathlib.Path("/proc/sys/fs/protected_hardlinks").read_text() == "1\n", "links to others' files are allowed")
    tree, _ = system_tree(env, 10)
    for path in (env.home.parent.parent, env.home.parent, env.home):
        path.chmod(0o755)
    log = env.home / "log"
    for path in (env.store, log):
        path.touch()
        os.chown(path, NOBODY, NOBODY)
    no_links_between(env, tree, log, "EPERM", user=NOBODY, group=NOBODY, extra_groups=[])


def many_programs(env, count, others=0):
    """Make a tree of @count programs with ids and long names, each with @others files without an id; return it and the ids."""
    tree = env.home / "many"
    tree.mkdir()
    marker = "5a" * 20
    template = build(env.home, "template", marker).read_bytes()
    assert template.count(bytes.fromhex(marker)) == 1
    ids = {f"{number:040x}" for number in range(1, count + 1)}
    for build_id in ids:
        path = tree / (build_id + "x" * 200)
        path.write_bytes(template.replace(bytes.fromhex(marker), bytes.fromhex(build_id)))
        path.chmod(0o755)
        for number in range(others):
            os.link(env.no_id, tree / f"{build_id}{number}")
    return tree, ids


def add_and_signal(env, number, prefix, stream, *arguments):
    """Run add, send a signal while it blocks on its output in that stream, then read. Return status and output."""
    with subprocess.Popen([*map(str, [*prefix, env.bidctl, "-s", env.store, "add", "-v", *arguments])], env=env.environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        pipe = getattr(process, stream)
        try:
            deadline = time.monotonic() + TIMEOUT
            room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
            while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0] < room - 8192:
                assert time.monotonic() < deadline and process.poll() is None, process.communicate()
                time.sleep(0.02)
            process.send_signal(number)
            done = divide(subprocess.CompletedProcess(arguments, 0, *process.communicate(timeout=TIMEOUT)))
        finally:
            process.kill()
    return process.returncode, done.stdout, done.stderr


def case_interrupt_reports_the_added_files(env):
    """Ctrl-C: bidctl reports the partial result, each added build has its record, and the rest can be added later."""
    count, others = 800, 13
    # refused files are printed at once; the scan waits when it is two queues of 4096 files ahead
    tree, ids = many_programs(env, count, others)
    refused = count * others
    status, output, errors = add_and_signal(env, signal.SIGINT, [], "stderr", "--jobs=1", "--link=copy", tree)
    assert status == 128 + signal.SIGINT and f"interrupted: bidctl did not search all of '{tree}'" in errors, (status, errors)
    *lines, last = output.splitlines()
    added = {line.split("\t", 1)[0] for line in lines}
    seen, added_count, refused_count = map(int, re.match(r"seen (\d+), added (\d+), known 0, refused (\d+)", last).groups())
    assert 0 < added_count == len(added) == seen - refused_count and seen < count + refused and added <= ids, last
    assert everything_is_right(env) == added_count
    assert summary(env.on_store("add", tree))[0] == (count + refused, count - added_count, added_count, refused)
    assert everything_is_right(env) == count


def case_ignored_signal_ends_nothing(env):
    """A signal that the parent ignores stays ignored, as SIGHUP for nohup(1)."""
    tree, ids = many_programs(env, 800)
    status, output, errors = add_and_signal(env, signal.SIGHUP, ["nohup"], "stdout", "--jobs=1", "--link=copy", tree)
    assert status == DONE and f"added {len(ids)}," in output.splitlines()[-1], (status, errors)


def case_full_disk_is_an_error_without_torn_files(env):
    """The store fills up during an addition: an error, no torn file, and all reported files are stored."""
    tree, ids = system_tree(env, 40)
    script = ('mount -t tmpfs -o size=2m tmpfs "$1"; status=0; "$2" -s "$1" --verbose add --link=copy "$3" || status=$?; '
              'for file in $(find "$1" -name elf); do '
              'readelf -n "$file" | grep -q "$(basename $(dirname "$file"))" || echo "torn $file"; done; '
              'echo "stored $(find "$1" -name elf | wc -l)"; exit $status')
    done = in_namespace(script, env.store, env.bidctl, tree, env=env)
    assert done.returncode == ERROR and "no space left" in done.stderr.lower(), done
    assert "\ntorn " not in done.stdout, done.stdout
    reported = len(re.findall(r"^[0-9a-f]+\telf\tadded\tcopy\t", done.stdout, re.M))
    assert 0 < reported <= int(re.search(r"^stored (\d+)$", done.stdout, re.M)[1]) < len(ids), done.stdout


def case_file_above_the_space_is_refused_alone(env):
    """The other files of the tree are added."""
    tree = env.home / "tree"
    tree.mkdir()
    for number in range(5):
        build(tree, f"program{number}", IDS[number])
    with (tree / "program0").open("ab") as file:
        file.write(os.urandom(1 << 20) * 10)
    os.truncate(tree / "program1", 1 << 30)
    script = ('mount -t tmpfs -o size=5m tmpfs "$1"; status=0; "$2" -s "$1" --verbose add --link=copy "$3" || status=$?; '
              'stat -c %s "$1"/"$3"/program1/*/elf >&2; exit $status')
    done = in_namespace(script, env.store, env.bidctl, tree, env=env)
    assert done.returncode == DONE and done.stderr.splitlines()[-1] == str(1 << 30), done
    counts, reasons = summary(done)
    assert counts[1:] == (4, 0, 1) and reasons == {"larger than the free space of the store's file system": 1}, done.stdout


def case_file_operand_above_the_space_is_an_error(env):
    """The next, smaller file is added."""
    large = env.home / "large"
    shutil.copy(env.one, large)
    with large.open("ab") as file:
        file.write(os.urandom(1 << 20) * 10)
    done = in_namespace('mount -t tmpfs -o size=5m tmpfs "$1"; exec "$2" -s "$1" add --link=copy "$3" "$4"', env.store, env.bidctl,
                        large, env.two, env=env)
    assert done.returncode == ERROR and "larger than the free space" in done.stderr, done
    assert done.stdout.endswith("seen 2, added 1, known 0, refused 1\n") or "added 1," in done.stderr, done


if __name__ == "__main__":
    cases.main(globals(), Env)
