# SPDX-License-Identifier: LGPL-2.1-or-later
"""R28: limits of a daemon under foreign control, and normal work within them."""
import contextlib
import errno
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

import daemon
import programs
import tools
from fetching import read
from namespace import NOBODY, as_user, fuse_device, isolated, mount_program_of_nobody

DENIED = {errno.EPERM, errno.EACCES}
REFUSED = DENIED | {errno.ENOSYS}  # the error of seccomp
# programs that the sanitizers start when the daemon ends
SANITIZERS = {"trace", "signal", "clone", "read-beside", "list-beside", "read-process"}


def has_ended(pid):
    """Return whether the process ended; it may stay a zombie, without a parent that reaps it."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture(scope="session")
def inside(tmp_path_factory):
    """Build the library that is preloaded into the daemon, src/inside.c."""
    return programs.compile_c("inside.c", tmp_path_factory.mktemp("inside") / "inside.so", "-shared", "-fPIC")


@pytest.fixture
def confined(mount):
    """Skip unless this machine can confine a daemon."""
    reason = mount().status()
    if reason["sandbox"] == "none":
        pytest.skip(reason["sandbox_reason"])


@pytest.fixture
def probed(mount, inside, workdir, store, env):
    """
    Return a function that mounts with the preloaded library and returns the mount, and a function that runs the attempts: {name:
    (tags, errno)}.
    """
    beside = workdir / "beside"
    beside.mkdir()
    theirs, ours = ("file", "old", "theirs", "text"), ("mine", "mine2", "text")
    for path in (*(beside / name for name in theirs), *(store / name for name in ours)):
        path.write_text("neither a program nor a script\n")
        path.chmod(0o755)
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(subprocess.Popen(["sleep", "1000"]))
        stack.callback(victim.kill)
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        abstract, service = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        abstract.bind(f"\0{workdir}")
        service.bind(f"{beside}/socket")
        for listener in (listening, abstract, service):
            listener.listen()

        def make(*options, **more):
            mnt = mount("offline", *options, env_more={
                "LD_PRELOAD": str(inside), "PROBE_BESIDE": str(beside), "PROBE_STORE": str(store), "PROBE_VICTIM": str(victim.pid),
                "PROBE_PORT": str(listening.getsockname()[1]), "PROBE_SOCKET": str(workdir),
                # the sanitizer would insist on being the first library
                "ASAN_OPTIONS": f"{env.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0", **more})

            def probe():
                mnt.process.send_signal(signal.SIGUSR1)
                tools.wait_until(lambda: "\nprobed\n" in mnt.log(), "the probes")
                return {name: (tags.split(), int(number))
                        for name, tags, number in re.findall(r"^probe (\S+) (.*) (\d+)$", mnt.log(), re.M)}

            return mnt, probe

        yield make


def expected(tags, status):
    """Return whether the sandbox with this status must refuse an attempt with these tags."""
    version = re.search(r"landlock (\d+)", status["sandbox"])
    for tag in tags:
        if tag == "S" and "seccomp" in status["sandbox"] or tag == "N" and version and status["mode"] == "daemon":
            return True
        if tag.startswith("L") and version and int(version[1]) >= int(tag[1:] or 1):
            return True
    return False


def test_sandbox_refuses_every_attempt(probed, mode):
    """Try each attempt that the sandbox should refuse; the daemon keeps serving."""
    mnt, probe = probed()
    status = mnt.status()
    results = probe()
    must = {name for name, (tags, _) in results.items() if expected(tags, status)}
    if tools.is_sanitized():
        must -= SANITIZERS
    assert len(results) >= 65 and len(must) >= (60 if "seccomp" in status["sandbox"] else 20 if status["sandbox"] != "none" else 0)
    let = {name: os.strerror(results[name][1]) for name in must if results[name][1] not in REFUSED}
    assert not let, f"'{status['sandbox']}' let through {let}"
    assert mnt.status()["counters"] == status["counters"]


def test_attempts_succeed_without_sandbox(probed):
    """The refusals above come from the sandbox."""
    mnt, probe = probed("sandbox=off")
    assert (mnt.status()["sandbox"], mnt.status()["sandbox_reason"]) == ("none", "switched off by sandbox=off")
    refused = {name for name, (tags, number) in probe().items() if number in DENIED and (tools.IS_ROOT or "R" not in tags)}
    assert not refused, refused


def test_missing_landlock_is_reported(needs_root, probed, mount, store, workdir, env):
    """As on an older kernel: the rest of the sandbox works, status names the reason, and sandbox=on fails."""
    mnt, probe = probed(PROBE_NO_LANDLOCK="1")
    status = mnt.status()
    assert status["sandbox"] == "seccomp" and "landlock" in status["sandbox_reason"]
    results = probe()
    let = {name: os.strerror(number) for name, (tags, number) in results.items()
           if "S" in tags and number not in REFUSED and not (name in SANITIZERS and tools.is_sanitized())}
    assert not let, let


def test_sandbox_on_is_complete_or_fails(mount, store, mountpoint, env):
    """sandbox=on mounts with the complete sandbox, or names the missing part."""
    reason = mount().status()["sandbox_reason"]
    done = tools.run(tools.MOUNT_BIDFS, store, mountpoint, "-o", "sandbox=on", env=env, status=None)
    if reason:
        assert done.returncode == 32 and done.stderr == f"mount.bidfs: error: {reason}: cannot mount with 'sandbox=on'\n"
        assert not daemon.is_mounted(mountpoint)
    else:
        assert done.returncode == 0 and '"sandbox_reason": ""' in (mountpoint / ".bidfs/status").read_text()


def test_all_threads_are_confined(confined, mount, faults, workdir):
    """The main thread, and those of downloads, broker and FUSE requests."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}", "cache_size=1G")
    assert read(mnt.artifact(program.id)) == program.read()
    threads = [(path / "status").read_text() for path in pathlib.Path(f"/proc/{mnt.pid}/task").iterdir()]
    assert len(threads) >= 5
    for text in threads:
        assert "\nNoNewPrivs:\t1\n" in text
        assert ("\nSeccomp:\t2\n" in text) == ("seccomp" in mnt.status()["sandbox"])
        # root's capabilities over files, and the one that passthrough needs
        assert int(re.search(r"CapPrm:\t(\w+)", text)[1], 16) & ~0x120000f == 0


@pytest.mark.parametrize("way", ["umount", "umount -l", "fusermount3 -u", "SIGTERM", "SIGINT", "SIGKILL"])
def test_every_end_of_the_daemon_unmounts(confined, mount, mode, way, workdir):
    """No mount and no unmount helper is left."""
    mnt = mount()
    (helper,) = daemon.unmount_helpers_of(mnt.pid)
    if way.startswith("SIG"):
        # signal the process group, as a terminal does; the unmount helper ignores it until it has unmounted
        if way != "SIGKILL":
            os.kill(helper, getattr(signal, way))
        status = mnt.end(getattr(signal, way))
        assert status == (-signal.SIGKILL if way == "SIGKILL" else 0)
    else:
        if way.startswith("umount") and not tools.IS_ROOT:
            pytest.skip("needs root")
        # `bidctl status` of other tests opens each mount for a moment
        tools.wait_until(lambda: tools.run(*way.split(), mnt.path, status=None).returncode == 0, way)
        assert mnt.wait_end() == 0
        mnt.gone = True
    if way != "SIGKILL":
        assert not daemon.is_mounted(mnt.path), "the daemon has ended, so the mount has"
    tools.wait_until(lambda: not daemon.is_mounted(mnt.path), "the end of the mount")
    tools.wait_until(lambda: has_ended(helper), "the end of what unmounts")
    mnt.check_log()


def test_background_daemon_logs_to_syslog(needs_root, confined, store, workdir, env):
    """The unmount helper logs in the daemon's name, because the daemon has no socket for it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(f"{workdir}/log")
        log.settimeout(20 * tools.PATIENCE)
        (workdir / "mnt").mkdir()
        (workdir / "dev").mkdir()
        done = isolated(f"""
            mount -t tmpfs none {workdir}/dev
            for file in null fuse urandom; do touch {workdir}/dev/$file; mount --bind /dev/$file {workdir}/dev/$file; done
            touch {workdir}/dev/log
            mount --bind {workdir}/log {workdir}/dev/log
            mount --rbind {workdir}/dev /dev
            {tools.MOUNT_BIDFS} {store} {workdir}/mnt -o log_level=info
            pgrep -x mount.bidfs
            umount {workdir}/mnt
            # the end of this shell kills what runs in its namespace, also the helper that logs
            while pgrep -x mount.bidfs >/dev/null; do sleep 0.1; done""", env)
        pid = done.stdout.split()[-1]
        assert re.search(rf"<30>.* mount\.bidfs\[{pid}\]: mounted '{store}'", log.recv(4096).decode())


def test_helper_leaves_a_later_mount_alone(confined, mount, store):
    """A user unmounts the dead mount and mounts again before the unmount helper does."""
    first = mount()
    (helper,) = daemon.unmount_helpers_of(first.pid)
    tools.stop(helper)
    first.end(signal.SIGKILL)
    assert daemon.unmount(first.path, "-l").returncode == 0
    second = mount(at=first.path)
    os.kill(helper, signal.SIGCONT)
    tools.wait_until(lambda: has_ended(helper), "the end of what unmounts")
    assert second.status()["store"] == str(store)


def test_killed_daemon_ends_open_files_without_a_wait(confined, mount, workdir, store):
    """Files are open when the dead mount is removed: with passthrough reads succeed, without it they fail, and none hangs."""
    program = programs.small(workdir / "app", 1, "-DBALLAST=3000000")
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    mnt = mount()
    with open(mnt.artifact(program.id), "rb", buffering=0) as file:
        passthrough = mnt.status()["mode"] == "passthrough"
        mnt.end(signal.SIGKILL)
        tools.wait_until(lambda: not daemon.is_mounted(mnt.path), "the end of the mount")
        number = tools.errno_of(file.read)
        assert number in (0, errno.ENOTCONN) and (number == 0 or not passthrough)


def test_file_server_mounted_later_is_read(needs_root, store, workdir, env):
    """A Landlock rule does not cover later mounts on its directory; trees of file:// servers may be mounted later."""
    program = programs.small(workdir / "app")
    tree = workdir / "made/buildid" / program.id
    tree.mkdir(parents=True)
    shutil.copy(program.path, tree / "executable")
    (workdir / "later").mkdir()
    (workdir / "mnt").mkdir()
    isolated(f"""{tools.MOUNT_BIDFS} {store} {workdir}/mnt -o url=file://{workdir}/later
        mount --bind {workdir}/made {workdir}/later
        cmp {workdir}/mnt/buildid/{program.id}/elf {program.path}
        umount {workdir}/mnt""", env)


def test_file_server_directory_alone_is_allowed(mount, store, workdir):
    """The rule covers the tree, and not its siblings."""
    program = programs.small(workdir / "app")
    tree = workdir / "made/buildid" / program.id
    tree.mkdir(parents=True)
    shutil.copy(program.path, tree / "executable")
    mnt = mount(f"url=file://{workdir}/made")
    assert read(mnt.artifact(program.id)) == program.read()


def test_killed_daemon_of_a_user_unmounts(needs_root, confined, store, env, workdir):
    """A user's confined daemon cannot call fusermount3(1); its mount still ends with it."""
    point = workdir / "mnt"
    mine, user = mount_program_of_nobody(workdir, point), as_user(NOBODY)
    wait = f"for i in $(seq 200); do findmnt -n {point} || break; sleep 0.05; done; ! findmnt -n {point}"
    done = isolated(f"""
        {fuse_device(workdir)}
        for signal in TERM KILL; do
            {user} {mine} {store} {point}
            {user} grep -o '"sandbox": ".*"' {point}/.bidfs/status
            kill -$signal $(pgrep -x mount.bidfs)
            {wait}
        done""", env)
    assert done.stdout.count('"sandbox": "landlock') == 2, done.stdout
