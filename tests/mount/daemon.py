# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount with its daemon, from the start to the final check of the log."""
import collections
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import tools

TROUBLE = re.compile(r"(^|: )(error|warning): |^fuse: ")
CACHED = 1.05  # seconds, more than the kernel caches names and attributes of the store
CRASH = re.compile(r"Sanitizer|runtime error:|Assertion .* failed|stack smashing|double free|corrupted")


def mount_points():
    """Every mount point there is, in the order of mounting."""
    # others' mount points need not be text
    return [os.fsdecode(line.split(b" ")[4]) for line in pathlib.Path("/proc/self/mountinfo").read_bytes().splitlines()]


def is_mounted(path):
    return str(path) in mount_points()


def is_unmounter(pid):
    """Is it the process that unmounts for a daemon, and has its command line?"""
    return pathlib.Path(f"/proc/{pid}/comm").read_text() == "bidfs-unmount\n"


def unmounters_of(pid):
    """The processes that unmount when the daemon `pid` is gone."""
    found = []
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in children.read_text().split() if is_unmounter(child)]
    return found


def daemons_of(path):
    """The processes that serve the mount at `path`, by their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            if os.path.basename(argv[0]) in (b"mount.bidfs", b"bidfs") and os.fsencode(str(path)) in argv \
                    and not is_unmounter(entry.name):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def stopped(m):
    """The daemon of the mount `m` answers nothing."""
    tools.stop(m.pid)
    try:
        yield
    finally:
        m.process.send_signal(signal.SIGCONT)


def requests(m):
    """The number of requests that a daemon without busy polling has read."""
    return int(re.search(r"syscr: (\d+)", pathlib.Path(f"/proc/{m.pid}/io").read_text())[1])


def unmount(path, *options):
    """As an administrator does it, or, with no other option than -l, as a user."""
    user = ["fusermount3", "-u", *("-z" for option in options if option == "-l")]
    argv = ["umount", *options] if tools.IS_ROOT else user
    return subprocess.run([*argv, str(path)], capture_output=True, text=True, check=False)


def users_of(path):
    """The processes that have something of that mount open or mapped, or are in it."""
    users = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            links = [os.readlink(link) for link in (entry / "cwd", *(entry / "fd").iterdir())]
            maps = (entry / "maps").read_text(errors="replace")
            if f" {path}/" in maps or any(link == str(path) or link.startswith(f"{path}/") for link in links):
                users.append(f"{entry.name} ({(entry / 'comm').read_text().strip()})")
    return users


def other_namespaces_with(path):
    """Other mount namespaces that still have the mount, by a process of each: somebody made them while it was there."""
    # the oldest process of each, because a young one may be gone at once
    ours, others = os.stat("/proc/self/ns/mnt").st_ino, {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (number := os.stat(entry / "ns/mnt").st_ino) != ours:
                others.setdefault(number, entry)
    return [entry.name for entry in others.values() if has_mount(entry, path)]


def has_mount(process, path):
    """
    Is there the mount in its namespace? What the process tells of are the mounts below its root directory; whoever enters sees all,
    with more before the path if that of this test is below a root directory, too.
    """
    entered = subprocess.run(["nsenter", f"--mount={process}/ns/mnt", "cat", "/proc/self/mountinfo"], stdin=subprocess.DEVNULL,
                             capture_output=True, check=False).stdout
    with contextlib.suppress(OSError):
        entered += (process / "mountinfo").read_bytes()
    return any(line.split(b" ")[4].endswith(os.fsencode(path)) for line in entered.splitlines())


def stacks_of(pid):
    """What each thread of a process that should have ended is doing."""
    argv = ["gdb", "-p", str(pid), "--batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt"]
    return tools.run(*argv, status=None, errors="replace", timeout=30).stdout


def descriptors_of(pid):
    """What a process has open: what each descriptor leads to, and its flags."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            flags = re.search(r"^flags:\s+(\d+)", (fd.parent.parent / "fdinfo" / fd.name).read_text(), re.M)
            found.append((os.readlink(fd).removesuffix(" (deleted)"), int(flags[1], 8)))
    return found


class Mount:
    """A daemon in the foreground, as a child, with its log in a file."""

    def __init__(self, store, path, options, env, log, program=tools.MOUNT_BIDFS):
        self.store, self.path, self.log_path = pathlib.Path(store), pathlib.Path(path), pathlib.Path(log)
        self.expected, self.permitted, self.permitted_open = [], [], ()
        self.gone = False
        self.options = ["foreground", "log_level=info", *options]
        argv = [str(program), str(store), str(path), "-o", ",".join(self.options)]
        with open(log, "ab") as stderr:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, env=env)
        self.pid = self.process.pid

    def __truediv__(self, name):
        return self.path / name

    def __str__(self):
        return str(self.path)

    def await_ready(self, deadline=30):
        """The daemon's helper prints the mount point when the mount answers; without it, the daemon said why."""
        readable, _, _ = select.select([self.process.stdout], [], [], deadline)
        line = self.process.stdout.readline().decode() if readable else ""
        if line.rstrip("\n") != str(self.path):
            self.die()
            unmount(self.path, "-l")
            raise AssertionError(f"not mounted after {deadline} s: printed {line!r}, log:\n{self.log()}")
        self.held_at_first = self.held()

    def held(self):
        """Counts what the daemon has open and no cache of it keeps: directories, and whatever is in a tree that is a server."""
        options = ",".join(self.options).split(",")
        servers = tuple(option.removeprefix("url=file://") for option in options if option.startswith("url=file://"))
        return collections.Counter(target for target, flags in descriptors_of(self.pid)
                                   if target.startswith("/") and not target.startswith(self.permitted_open)
                                   # O_TMPFILE contains O_DIRECTORY: a download may be in flight
                                   and (flags & os.O_TMPFILE == os.O_DIRECTORY or target.startswith(servers)))

    def leaked(self):
        """What the daemon has open beyond what it had when the mount was ready, if it stays so."""
        end = time.monotonic() + 2
        while (more := self.held() - self.held_at_first) and time.monotonic() < end:
            time.sleep(0.02)
        return dict(more)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def status(self):
        return json.loads((self / ".bidfs/status").read_text())

    def counter(self, name):
        return self.status()["counters"][name]

    def artifact(self, ident, kind="elf"):
        return self / "buildid" / ident / kind

    def link(self, ident):
        """perf's."""
        return self / ".build-id" / ident[:2] / ident[2:]

    def elf_file(self, ident):
        """The debuggers' name for the program."""
        return self / "usr/lib/debug/.build-id" / ident[:2] / ident[2:]

    def debug_file(self, ident):
        return self.elf_file(ident).with_name(f"{ident[2:]}.debug")

    def expect(self, pattern):
        """The log must have a warning or an error that matches."""
        self.expected.append(pattern)

    def permit(self, pattern):
        """The log may have warnings and errors that match."""
        self.permitted.append(pattern)

    def permit_open(self, *paths):
        """Threads may wait for a file system that does not answer, with something of these mounts open, until the daemon ends."""
        self.permitted_open = tuple(str(path) for path in paths)

    def kill(self):
        """As the kernel does when memory is short: what unmounts for the daemon is left, and does so."""
        self.process.kill()
        self.process.wait(20)
        self.process.stdout.close()
        self.gone = True

    def die(self):
        """As a crash of all of it would end it: the mount stays, without a daemon."""
        for pid in unmounters_of(self.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
        self.gone = True

    def unmount(self, deadline=20):
        """End the mount as an administrator does, and look at what the daemon left."""
        if self.gone:
            return
        self.gone = True
        leaked = self.leaked()
        # a program that has ended may take a moment to let go
        end = time.monotonic() + 10
        done = None
        # what was cut off by force, the daemon's helper may have unmounted
        while is_mounted(self.path) and (done := unmount(self.path)).returncode != 0 and time.monotonic() < end:
            time.sleep(0.05)
        busy = done and done.returncode and is_mounted(self.path) and f"{done.stderr.strip()}; in use by {users_of(self.path)}"
        if busy:
            unmount(self.path, "-l")
        try:
            status = self.wait_end(deadline)
        except subprocess.TimeoutExpired:
            mounted, stacks = ", which is too" if is_mounted(self.path) else "", stacks_of(self.pid)
            self.process.kill()
            self.process.wait(10)
            raise AssertionError(f"the daemon was still there {deadline} s after its mount{mounted}; log:\n{self.log()}\n"
                                 f"{stacks}") from None
        self.process.stdout.close()
        assert not leaked, f"the daemon still had open what it had not when its mount was ready: {leaked}"
        assert not busy, f"could not be unmounted: {busy}"
        assert status == 0, f"the daemon ended with {status}; log:\n{self.log()}"
        self.check_log()

    def wait_end(self, deadline):
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(1)
            # such a mount is none of ours any more, and does not end by itself
            if other_namespaces_with(self.path):
                self.permit("fuse: failed to unmount")
                self.process.terminate()
                # it may be ending already, and catch no signal any more
                status = self.process.wait(deadline)
                return 0 if status == -signal.SIGTERM else status
        return self.process.wait(deadline)

    def check_log(self):
        lines = self.log().splitlines()
        crashes = [line for line in lines if CRASH.search(line)]
        assert not crashes, "the daemon crashed:\n" + self.log()
        trouble = [line for line in lines if TROUBLE.search(line)]
        known = self.expected + self.permitted
        strange = [line for line in trouble if not any(re.search(pattern, line) for pattern in known)]
        assert not strange, "the log has what nobody expected:\n" + "\n".join(strange)
        silent = [pattern for pattern in self.expected if not any(re.search(pattern, line) for line in trouble)]
        assert not silent, f"the log does not have what was expected: {silent}\n{self.log()}"

    def end(self, sig=signal.SIGTERM, deadline=30):
        """End the daemon by a signal. Returns its exit status and the seconds it took."""
        begun = time.monotonic()
        self.process.send_signal(sig)
        status = self.process.wait(deadline)
        self.gone = True
        return status, time.monotonic() - begun
