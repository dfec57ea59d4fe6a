# SPDX-License-Identifier: LGPL-2.1-or-later
"""A mount and its daemon, from the start to the final check of the log."""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import tools

COMPLAINT = re.compile(r"(^|: )(error|warning): |^fuse: ")
CACHED = 1.05  # seconds, longer than the kernel caches names and attributes of the store
CRASH = re.compile(r"Sanitizer|runtime error:|Assertion .* failed|stack smashing|double free|corrupted")


def mount_points():
    """Return all mount points in the order of mounting."""
    # a foreign mount point need not be text
    return [os.fsdecode(line.split(b" ")[4]) for line in pathlib.Path("/proc/self/mountinfo").read_bytes().splitlines()]


def is_mounted(path):
    return str(path) in mount_points()


def is_unmount_helper(pid):
    """Return whether the process is the unmount helper of a daemon, which shares its command line."""
    return pathlib.Path(f"/proc/{pid}/comm").read_text() == "bidfs-unmount\n"


def unmount_helpers_of(pid):
    """Return the unmount helpers of a daemon."""
    found = []
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in children.read_text().split() if is_unmount_helper(child)]
    return found


def daemons_of(path):
    """Return the processes that serve the mount at `path`, by their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            if os.path.basename(argv[0]) in (b"mount.bidfs", b"bidfs") and os.fsencode(str(path)) in argv \
                    and not is_unmount_helper(entry.name):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def stopped(mnt):
    """Stop the daemon of @mnt for the duration of a block."""
    tools.stop(mnt.pid)
    try:
        yield
    finally:
        mnt.process.send_signal(signal.SIGCONT)


def requests(mnt):
    """Return the number of requests that a daemon without busy polling has read."""
    return int(re.search(r"syscr: (\d+)", pathlib.Path(f"/proc/{mnt.pid}/io").read_text())[1])


def unmount(path, *options):
    """Unmount as root with umount, or with "-l" alone as a user with fusermount3."""
    user = ["fusermount3", "-u", *("-z" for option in options if option == "-l")]
    argv = ["umount", *options] if tools.IS_ROOT else user
    return subprocess.run([*argv, str(path)], capture_output=True, text=True, check=False)


def users_of(path):
    """Return the processes with open or mapped files or a working directory in that mount."""
    users = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # the list of our own descriptors has that of the list, which is closed
            links = [os.readlink(link) for link in (entry / "cwd", *(entry / "fd").iterdir()) if link.is_symlink()]
            maps = (entry / "maps").read_text(errors="replace")
            if f" {path}/" in maps or any(link == str(path) or link.startswith(f"{path}/") for link in links):
                users.append(f"{entry.name} ({(entry / 'comm').read_text().strip()})")
    return users


def other_namespaces_with(path):
    """Return the mount namespaces that copied the mount, by one process of each."""
    # take the oldest process of each, as a young one may end at once
    ours, others = os.stat("/proc/self/ns/mnt").st_ino, {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (number := os.stat(entry / "ns/mnt").st_ino) != ours:
                others.setdefault(number, entry)
    return [entry.name for entry in others.values() if has_mount(entry, path)]


def has_mount(process, path):
    """
    Return whether the mount is in the namespace of the process. /proc/PID/mountinfo shows mounts below the process's root only, and
    /proc of another PID namespace does not show who enters: read our /proc from the namespace's root. A path is longer there if the
    test itself runs in a chroot.
    """
    entered = subprocess.run(["nsenter", f"--mount={process}/ns/mnt", "--wd=/proc/self", "cat", "mountinfo"],
                             stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    return any(line.split(b" ")[4].endswith(os.fsencode(path)) for line in entered.splitlines())


def stacks_of(pid):
    """Return the kernel stack of each thread of a process that should have ended."""
    argv = ["gdb", "-p", str(pid), "--batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt"]
    return tools.run(*argv, status=None, errors="replace").stdout


def descriptors_of(pid):
    """Return the descriptors of a process, with their targets and flags."""
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

    def await_ready(self):
        """Wait until the mount helper prints the mount point; without that line, fail with the daemon's message."""
        line = self.process.stdout.readline().decode()
        if line.rstrip("\n") != str(self.path):
            self.die()
            unmount(self.path, "-l")
            raise AssertionError(f"not mounted: printed {line!r}, log:\n{self.log()}")
        self.held_at_first = self.held()

    def held(self):
        """Count the open descriptors that no cache of the daemon explains: directories, and files of file:// servers."""
        options = ",".join(self.options).split(",")
        servers = tuple(option.removeprefix("url=file://") for option in options if option.startswith("url=file://"))
        return collections.Counter(target for target, flags in descriptors_of(self.pid)
                                   if target.startswith("/") and not target.startswith(self.permitted_open)
                                   # O_TMPFILE contains O_DIRECTORY: a download may be in flight
                                   and (flags & os.O_TMPFILE == os.O_DIRECTORY or target.startswith(servers)))

    def leaked(self):
        """Return the descriptors that the daemon holds beyond those at the time of mounting."""
        return dict(self.held() - self.held_at_first)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def status(self):
        return json.loads((self / ".bidfs/status").read_text())

    def counter(self, name):
        return self.status()["counters"][name]

    def artifact(self, ident, kind="elf"):
        return self / "buildid" / ident / kind

    def link(self, ident):
        """Return the path that perf uses."""
        return self / ".build-id" / ident[:2] / ident[2:]

    def elf_file(self, ident):
        """Return the path that debuggers use."""
        return self / "usr/lib/debug/.build-id" / ident[:2] / ident[2:]

    def debug_file(self, ident):
        return self.elf_file(ident).with_name(f"{ident[2:]}.debug")

    def expect(self, pattern):
        """Require a warning or an error in the log that matches."""
        self.expected.append(pattern)

    def permit(self, pattern):
        """Permit warnings and errors in the log that match."""
        self.permitted.append(pattern)

    def permit_open(self, *paths):
        """Permit open files until the daemon ends, for threads that wait for a hung file system."""
        self.permitted_open = tuple(str(path) for path in paths)

    def kill(self):
        """Kill the daemon as the kernel does without memory; the unmount helper survives and unmounts."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.gone = True

    def die(self):
        """Kill the daemon and its unmount helper: the mount stays, without a daemon."""
        for pid in unmount_helpers_of(self.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.gone = True

    def unmount(self):
        """Unmount as an administrator does, and check for leaks of the daemon."""
        if self.gone:
            return
        self.gone = True
        try:
            tools.wait_until(lambda: not self.leaked(), "end of descriptors that were not open at first")
            # an ended process may take a moment to close its files; the unmount helper unmounts an aborted mount
            tools.wait_until(lambda: not is_mounted(self.path) or unmount(self.path).returncode == 0, "an unmount")
            status = self.wait_end()
        except (AssertionError, tools.TimeLimit) as error:
            state = f"open: {self.leaked()}; mounted: {is_mounted(self.path)}, in use by {users_of(self.path)}"
            stacks = stacks_of(self.pid)
            unmount(self.path, "-l")
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the daemon did not end: {error}; {state}; log:\n{self.log()}\n{stacks}") from None
        self.process.stdout.close()
        assert status == 0, f"the daemon ended with {status}; log:\n{self.log()}"
        self.check_log()

    def wait_end(self):
        """Wait for the end of an unmounted daemon. Return its exit status."""
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(1)
            # a lazily unmounted mount does not end by itself
            if other_namespaces_with(self.path):
                self.permit("fuse: failed to unmount")
                self.process.terminate()
                # a daemon that is ending may catch no further signal
                status = self.process.wait()
                return 0 if status == -signal.SIGTERM else status

    def check_log(self):
        lines = self.log().splitlines()
        crashes = [line for line in lines if CRASH.search(line)]
        assert not crashes, "the daemon crashed:\n" + self.log()
        complaints = [line for line in lines if COMPLAINT.search(line)]
        known = self.expected + self.permitted
        strange = [line for line in complaints if not any(re.search(pattern, line) for pattern in known)]
        assert not strange, "the log has what nobody expected:\n" + "\n".join(strange)
        silent = [pattern for pattern in self.expected if not any(re.search(pattern, line) for line in complaints)]
        assert not silent, f"the log does not have what was expected: {silent}\n{self.log()}"

    def end(self, sig=signal.SIGTERM):
        """End the daemon with a signal. Return its exit status."""
        self.process.send_signal(sig)
        self.gone = True
        return self.process.wait()
