#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let bidctl watch keep running programs while they start, end and are replaced.

usage: BID_BUILD_ROOT=DIR check_watch.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root are skipped without it.
"""
import contextlib
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import cases
from add_helpers import IDS, NOBODY, call, everything_is_right, readelf_id, running, silent_file_system, sleeper, stored
from bidctl_env import DONE, REFUSED, TIMEOUT, USAGE, Env, build, read_json
from cases import need


class Watch:
    """A bidctl watch that is ready."""

    def __init__(self, env, *arguments, command=(), **keywords):
        self.lines, self.messages, self.arrived = [], [], queue.Queue()
        name = env.home / "notify"
        name.unlink(missing_ok=True)
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.settimeout(TIMEOUT)
        self.notified.bind(str(name))
        name.chmod(0o777)
        self.process = subprocess.Popen([*command, env.bidctl, "-s", env.store, "watch", *arguments], text=True, bufsize=1,
                                        env=env.environment | {"NOTIFY_SOCKET": str(name)}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        self.threads = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.messages))]
        for thread in self.threads:
            thread.start()
        assert self.notification() == "READY=1"

    def read(self, stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))
            self.arrived.put(None)

    def notification(self):
        return self.notified.recv(100).decode()

    def wait_for(self, pattern, lines=None):
        """Wait for a line with @pattern and return it."""
        until = time.monotonic() + TIMEOUT
        while True:
            for line in list(self.lines if lines is None else lines):
                if re.search(pattern, line):
                    return line
            assert time.monotonic() < until, (pattern, self.lines, self.messages)
            with contextlib.suppress(queue.Empty):
                self.arrived.get(timeout=1)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(timeout=TIMEOUT)
        for thread in self.threads:
            thread.join(TIMEOUT)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(TIMEOUT)
        for closed in (self.process.stdout, self.process.stderr, self.notified):
            closed.close()


def need_events():
    need(os.geteuid() == 0, "needs root, to be told of programs that are started")


def case_wrong_usage_is_refused(env):
    for arguments, has in (
            (["watch", "--interval=0"], "'0'"),
            (["watch", "--interval=x"], "'x'"),
            (["watch", "--interval=86401"], "'86401'"),
            (["watch", "file"], "'file'"),
            (["add", "--interval=1", "file"], "'--interval'"),
    ):
        done = env.run(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr and done.stdout == "", done


def case_running_programs_are_added_at_the_start(env):
    """A line for each new file, and the sum."""
    program = sleeper(env.home, "program", IDS[0])
    with running(program, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        with Watch(env, "--interval=3600") as watch:
            assert watch.end() == DONE
        assert any(line.startswith(f"{IDS[0]}\telf\t") and line.endswith(f"\t{program}") for line in watch.lines), watch.lines
        assert f", added {len(watch.lines)}, " in watch.messages[-1] and len(watch.lines) >= 2, watch.messages
        with Watch(env, "--interval=3600", "--json", "--verbose") as again:
            again.end()
    *values, last = [read_json(line) for line in again.lines]
    mine, = [file for value in values for file in value["result"] if file["id"] == IDS[0]]
    assert mine["state"] == "known" and mine["file"] == str(program) and abs(mine["time"] - time.time()) < 3600, mine
    # other processes may have ended meanwhile
    assert last["totals"]["known"] >= 1 and last["result"] == [], last
    assert everything_is_right(env) >= 2


def case_short_lived_programs_are_added(env):
    """Programs that end at once and are deleted, and those started by a script or a loader."""
    need_events()
    with Watch(env, "--interval=3600") as watch:
        assert not any("program starts" in message for message in watch.messages), watch.messages
        for number in range(3):
            program = build(env.home, f"short{number}", IDS[number])
            subprocess.run([program], check=True, timeout=TIMEOUT)
            program.unlink()
            line = watch.wait_for(IDS[number])
            assert line.endswith(f"\t{program}"), line
            assert stored(env, IDS[number]) == env.store / str(program)[1:] / IDS[number]
        script = env.home / "script"
        script.write_text(f"#!{build(env.home, 'interpreter', IDS[3])}\n")
        script.chmod(0o755)
        subprocess.run([script], check=True, timeout=TIMEOUT)
        watch.wait_for(IDS[3])
        assert watch.end() == DONE
    assert everything_is_right(env) >= 4
    assert not any(str(script) in line and "interpreter" not in line for line in watch.lines), "a script is no program"


def case_loaded_libraries_are_added(env):
    """Libraries of a program are kept before they are replaced."""
    need_events()
    library = build(env.home, "libpart.so", IDS[1], ["-shared", "-fPIC"])
    later = build(env.home, "liblater.so", IDS[2], ["-shared", "-fPIC"])
    source = env.home / "host.c"
    source.write_text('#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv)\n{\n'
                      '\tif (!dlopen(argv[1], RTLD_NOW))\n\t\treturn 1;\n\tputs("up");\n\tfflush(stdout);\n\tgetchar();\n'
                      '\tif (!dlopen(argv[2], RTLD_NOW))\n\t\treturn 1;\n\tgetchar();\n\treturn 0;\n}\n')
    host = env.home / "host"
    subprocess.run(["cc", f"-Wl,--build-id=0x{IDS[0]}", "-o", host, source, "-ldl"], check=True, timeout=TIMEOUT)
    # mapped by the loader: found when the program has started
    with Watch(env, "--interval=3600") as watch, running(host, library, later, stdout=subprocess.PIPE) as process:
        watch.wait_for(IDS[0])
        watch.wait_for(IDS[1])
        assert process.stdout.readline() == b"up\n" and watch.end() == DONE
    shutil.rmtree(env.store)
    env.store.mkdir()
    with Watch(env, "--interval=1") as watch, running(host, library, later, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        watch.wait_for(IDS[0])
        watch.wait_for(IDS[1])
        process.stdin.write(b"\n")
        process.stdin.flush()
        watch.wait_for(IDS[2])
        # an upgrade under the running program
        for path, build_id in ((host, IDS[0]), (library, IDS[1]), (later, IDS[2])):
            shutil.copy(env.one, env.home / "new")
            os.rename(env.home / "new", path)
            assert readelf_id(stored(env, build_id) / "elf") == build_id
        assert watch.end() == DONE


def case_each_program_gets_its_time_to_load(env):
    """Each program is scanned after the time it needs to load its libraries, even when several start in a row."""
    need_events()
    source = env.home / "host.c"
    source.write_text('#include <dlfcn.h>\n#include <unistd.h>\nint main(int argc, char **argv)\n{\n'
                      '\tusleep(150000);\n\treturn dlopen(argv[1], RTLD_NOW) ? pause() : 1;\n}\n')
    host = env.home / "host"
    subprocess.run(["cc", "-o", host, source, "-ldl"], check=True, timeout=TIMEOUT)
    libraries = [build(env.home, f"libpart{number}.so", IDS[number], ["-shared", "-fPIC"]) for number in range(3)]
    with Watch(env, "--interval=3600") as watch:
        # one of many, as a busy machine may be too slow for some
        for number, library in enumerate(libraries):
            call("true")
            time.sleep(0.2)
            with running(host, library):
                until = time.monotonic() + 2
                while time.monotonic() < until and not any(IDS[number] in line for line in watch.lines):
                    time.sleep(0.02)
                if any(IDS[number] in line for line in watch.lines):
                    break
        else:
            raise AssertionError((watch.lines, watch.messages))
        assert watch.end() == DONE


def case_file_is_added_only_once(env):
    """Further scans neither read nor add it."""
    program = sleeper(env.home, "program", IDS[0])
    with running(program, stdout=subprocess.PIPE) as process, Watch(env, "--interval=1", "--verbose") as watch:
        assert process.stdout.readline() == b"up\n"
        watch.wait_for(IDS[0])
        for number in range(1, 4):
            other = sleeper(env.home, f"other{number}", IDS[number])
            with running(other, stdout=subprocess.PIPE) as another:
                assert another.stdout.readline() == b"up\n"
                watch.wait_for(IDS[number])
                # the last one comes after a scan of all processes, more than a second after the program was linked
                mine = [line for line in watch.lines if IDS[0] in line]
                time.sleep(1.1)
        # a file is read again until its last change, by the link too, is 20 ms old
        assert " known " not in mine[0] and all(" known " in line for line in mine[1:]), mine
        # the same inode with other bytes
        process.kill()
        process.wait()
        shutil.copyfile(sleeper(env.home, "changed", IDS[5]), program)
        with running(program, stdout=subprocess.PIPE) as another:
            assert another.stdout.readline() == b"up\n"
            watch.wait_for(IDS[5])
        assert watch.end() == DONE
        assert [line for line in watch.lines if IDS[0] in line] == mine, watch.lines


def case_silent_file_system_is_passed_over(env):
    """The other programs are kept, and the watch can end."""
    with silent_file_system(env, sleeper(env.home, "silenced", IDS[0])) as path, Watch(env, "--interval=1") as watch:
        assert str(path) in watch.wait_for("its file system does not answer", watch.messages)
        other = sleeper(env.home, "other", IDS[1])
        with running(other):
            watch.wait_for(IDS[1])
        assert watch.end() == DONE


def case_signal_ends_watch_of_silent_file_system(env):
    """The signal interrupts the wait for the file system."""
    with silent_file_system(env, sleeper(env.home, "silenced", IDS[0])):
        process = subprocess.Popen([env.bidctl, "-s", env.store, "watch"], env=env.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until = time.monotonic() + TIMEOUT
        while not children.read_text(encoding="ascii"):
            assert time.monotonic() < until
            time.sleep(0.005)
        process.terminate()
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == DONE
        assert "does not answer" not in errors, "it waited until the file system's time was over"


def case_unprivileged_watch_polls(env):
    """The watch scans the user's programs at intervals, and reports so."""
    need(os.geteuid() == 0, "needs root, to become somebody else")
    for path in (env.home.parent.parent, env.home.parent):
        path.chmod(0o755)
    os.chown(env.store, NOBODY, NOBODY)
    program = sleeper(env.home, "program", IDS[0])
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with Watch(env, "--interval=1", **as_nobody) as watch:
        watch.wait_for("reports no program starts", watch.messages)
        watch.wait_for("processes of other users", watch.messages)
        with running(program, stdout=subprocess.PIPE, **as_nobody) as process:
            assert process.stdout.readline() == b"up\n"
            program.unlink()
            watch.wait_for(IDS[0])
        assert watch.end() == DONE
        assert len([text for text in watch.messages if "warning: " in text]) == 2, watch.messages
    assert stored(env, IDS[0]) == env.store / str(program)[1:] / IDS[0]


def case_signal_ends_watch_with_a_sum(env):
    """All found programs are kept."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for form in ([], ["--json"]):
            with Watch(env, *form) as watch:
                assert watch.end(number) == DONE
                assert watch.notification() == "STOPPING=1"
            last = (watch.lines if form else watch.messages)[-1]
            if form:
                assert set(read_json(last)["totals"]) == {"seen", "added", "known", "refused", "reasons"}, last
            else:
                assert re.match(r"seen \d+, added \d+, known \d+, refused \d+", last), last
    assert list((env.store / ".bidfs" / "tmp").iterdir()) == []


def case_full_disk_is_reported_once(env):
    """Once there is space again, all programs that still run are kept."""
    need(os.geteuid() == 0, "needs root, for a mount namespace")
    program = sleeper(env.home, "program", IDS[0])
    mount = ["unshare", "-m", "sh", "-euc", 'mount -t tmpfs -o size=200k tmpfs "$1"; shift; exec "$@"', "sh", env.store]
    with running(program, stdout=subprocess.PIPE) as process, Watch(env, "--interval=1", command=mount) as watch:
        assert process.stdout.readline() == b"up\n"
        watch.wait_for("No space left on device: cannot add", watch.messages)
        time.sleep(2.5)
        inside = ["nsenter", "-t", str(watch.process.pid), "-m", "-r"]
        subprocess.run([*inside, "mount", "-o", "remount,size=1g", env.store], check=True, timeout=TIMEOUT)
        watch.wait_for("can add the running programs to", watch.messages)
        watch.wait_for(IDS[0])
        kept = call(*inside, "readelf", "-n", env.store / ".build-id" / IDS[0][:2] / IDS[0][2:] / "elf")
        assert IDS[0] in kept.stdout, kept
        assert watch.end() == DONE
    assert sum("No space left" in message for message in watch.messages) == 1, watch.messages


def case_large_program_is_refused_alone(env):
    """It is reported once; holes of a file need no space."""
    need_events()
    large, sparse = sleeper(env.home, "large", IDS[0]), sleeper(env.home, "sparse", IDS[1])
    with large.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 30)
    os.truncate(sparse, 1 << 32)
    # space for all other running programs
    mount = ["unshare", "-m", "sh", "-euc", 'mount -t tmpfs -o size=900m tmpfs "$1"; shift; exec "$@"', "sh", env.store]
    with running(large, stdout=subprocess.PIPE) as process, running(sparse, stdout=subprocess.PIPE) as other:
        assert process.stdout.readline() == other.stdout.readline() == b"up\n"
        before = large.stat()
        with Watch(env, "--interval=1", "--link=copy", command=mount) as watch:
            watch.wait_for(IDS[1])
            short = build(env.home, "short", IDS[2])
            subprocess.run([short], check=True, timeout=TIMEOUT)
            watch.wait_for(IDS[2])
            time.sleep(2.5)
            assert watch.end() == DONE
    reported = sum("larger than the free space" in message and str(large) in message for message in watch.messages)
    # a changed file is reported again, also one that another test's bidctl has linked into its store
    assert reported == 1 or (reported > 1 and large.stat().st_nlink > 1), (watch.messages, before, large.stat())
    assert not any("cannot add the running" in message or "No space" in message for message in watch.messages), watch.messages


def case_removed_store_is_made_again(env):
    """The store is removed and created again during the watch."""
    program = sleeper(env.home, "program", IDS[0])
    with running(program, stdout=subprocess.PIPE) as process, Watch(env, "--interval=1") as watch:
        assert process.stdout.readline() == b"up\n"
        watch.wait_for(IDS[0])
        os.rename(env.store, env.home / "gone")
        watch.wait_for("cannot add the running programs to", watch.messages)
        env.store.mkdir()
        watch.wait_for("can add the running programs to", watch.messages)
        until = time.monotonic() + TIMEOUT
        while not (env.store / ".build-id" / IDS[0][:2] / IDS[0][2:]).exists():
            assert time.monotonic() < until, "not added to the new store"
            time.sleep(0.1)
        assert watch.end() == DONE


def case_units_are_valid(env):
    """systemd-analyze accepts the units, with their programs in place."""
    need(shutil.which("systemd-analyze"), "no systemd-analyze")
    need(os.access("/run/systemd", os.F_OK) or os.access("/run", os.W_OK), "systemd-analyze needs /run/systemd")
    contrib = pathlib.Path(os.environ["BID_BUILD_ROOT"]) / "contrib"
    for name, *mode in (("bidfs-watch.service", "--system"), ("bidfs-watch.user.service", "--user")):
        text = (contrib / name).read_text()
        unit = env.home / name
        unit.write_text(re.sub(r"^(ExecStart=)\S+", rf"\g<1>{env.bidctl}", text, flags=re.M))
        assert f"{env.bidctl} " in unit.read_text(), text
        verify = ["systemd-analyze", *mode, "--man=no", "verify"]
        done = call(*verify, unit, env=env.environment | {"XDG_RUNTIME_DIR": str(env.home)})
        assert done.returncode == 0 and name not in done.stderr, done
        # the check itself can fail
        unit.write_text(unit.read_text().replace("Type=notify", "Type=nonsense\nNonsense=yes"))
        done = call(*verify, unit, env=env.environment | {"XDG_RUNTIME_DIR": str(env.home)})
        assert "nonsense" in done.stderr, done


def case_confined_unit_makes_hard_links(env):
    """The privileges of the unit suffice for hard links."""
    need(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    unit = (pathlib.Path(os.environ["BID_BUILD_ROOT"]) / "contrib" / "bidfs-watch.service").read_text()
    kept = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].lower().replace("cap_", "+").replace(" ", ",")
    program = build(env.home, "program", IDS[0])
    os.chown(program, NOBODY, NOBODY)
    for path in (env.home.parent.parent, env.home.parent):
        path.chmod(0o755)
    confine = ["setpriv", "--no-new-privs", f"--bounding-set=-all,{kept}", "--inh-caps=-all"]
    with Watch(env, "--interval=3600", command=confine) as watch:
        subprocess.run([program], check=True, timeout=TIMEOUT, user=NOBODY, group=NOBODY, extra_groups=[])
        assert "\thard\t" in watch.wait_for(IDS[0])
        assert watch.end() == DONE
    assert not any("error" in message or "program starts" in message for message in watch.messages), watch.messages


def case_missing_store_is_an_error(env):
    done = env.run("-s", env.home / "none", "watch", status=REFUSED)
    assert "no such store" in done.stderr, done


if __name__ == "__main__":
    cases.main(globals(), Env)
