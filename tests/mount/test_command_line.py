# SPDX-License-Identifier: LGPL-2.1-or-later
"""mount.bidfs as a command: mounting, users, and errors. Exit statuses are those of mount.bidfs(8)."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import daemon
import programs
import tools
from namespace import NOBODY, as_user, fuse_device, isolated, mount_program_of_nobody

USAGE, SYSTEM, FAILED = 1, 2, 32  # exit statuses


@pytest.fixture
def program(store, workdir):
    made = programs.small(workdir / "app")
    programs.into_store(store, made.id, "/usr/bin/app", made.path)
    return made


def artifact(path, program):
    return pathlib.Path(str(path)) / "buildid" / program.id / "elf"


def test_mount_returns_and_daemonizes(store, mountpoint, program, env):
    done = tools.run(tools.MOUNT_BIDFS, store, mountpoint, env=env)
    # no waiting: the mount is ready when the command returns
    assert artifact(mountpoint, program).read_bytes() == program.path.read_bytes()
    assert done.stdout == f"{mountpoint}\n" and done.stderr == ""
    assert len(daemon.daemons_of(mountpoint)) == 1
    # the daemon keeps neither the terminal nor the working directory of its caller
    process = pathlib.Path("/proc") / str(daemon.daemons_of(mountpoint)[0])
    assert os.readlink(process / "cwd") == "/"
    assert {os.readlink(process / "fd" / str(fd)) for fd in range(3)} == {"/dev/null"}
    assert os.getsid(int(process.name)) == int(process.name)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_not_reach_the_store(store, mountpoint, program, env, closed):
    """The descriptor of the store must not become a standard stream, which the daemon replaces with /dev/null."""
    done = tools.run("sh", "-c", f'exec "$@" {closed}', "sh", tools.MOUNT_BIDFS, store, mountpoint, env=env, status=None)
    # the mount point could not be printed, which is an error; the mount works
    assert done.returncode == (SYSTEM if ">&- " in closed else 0), done.stderr
    assert artifact(mountpoint, program).read_bytes() == program.path.read_bytes()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_unmounts(mount, sig):
    mnt = mount()
    status = mnt.end(sig)
    assert status == 0
    assert not daemon.is_mounted(mnt.path)
    mnt.check_log()


@pytest.fixture
def helper(needs_root):
    """Install mount.bidfs as the helper of mount(8) in /sbin; tests of another build wait for their turn."""
    installed = json.loads((tools.BUILD / "meson-info/intro-installed.json").read_text()).values()
    paths = [pathlib.Path("/sbin") / name for name in {pathlib.Path(path).name for path in installed}
             if name.startswith("mount.") and name.endswith("bidfs")]
    directory = os.open("/sbin", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        for path in paths:
            if path.exists() and not path.samefile(tools.MOUNT_BIDFS):
                pytest.skip(f"another mount.bidfs is installed as '{path}'")
        ours = [path for path in paths if not path.is_symlink() and not path.exists()]
        for path in ours:
            path.symlink_to(tools.MOUNT_BIDFS)
        yield
        for path in ours:
            path.unlink()
    finally:
        os.close(directory)


@pytest.mark.parametrize("kind", ["bidfs", "fuse.bidfs"])
def test_mount_command_mounts(helper, store, mountpoint, program, env, kind):
    """Mount by the name of the helper, and by the type in /proc/mounts."""
    done = tools.run("mount", "-t", kind, store, mountpoint, "-o", "log_level=info,ro,noatime", env=env)
    assert done.stdout.strip() == str(mountpoint)
    assert artifact(mountpoint, program).exists()
    found = tools.run("findmnt", "-n", "-o", "SOURCE,FSTYPE,OPTIONS", mountpoint).stdout.split()
    assert found[:2] == [str(store), "fuse.bidfs"]
    assert {"ro", "nosuid", "nodev", "noatime"} <= set(found[2].split(","))


def test_fstab_line_mounts(helper, store, mountpoint, program, env, workdir):
    fstab = workdir / "fstab"
    fstab.write_text(f"{store}\t{mountpoint}\tbidfs\tnoauto,_netdev,nofail,x-systemd.automount,comment=x,allow_other\t0\t0\n")
    tools.run("mount", "-T", fstab, mountpoint, env=env)
    assert artifact(mountpoint, program).read_bytes() == program.path.read_bytes()


def test_fstab_line_mounts_the_view_on_usr_lib_debug(helper, store, program, env, workdir):
    """The line of docs/TOOLS.md."""
    line, = re.findall(r"^/.* 0$", (tools.ROOT / "docs/TOOLS.md").read_text(), re.MULTILINE)
    fstab = workdir / "fstab"
    fstab.write_text(line.replace("/var/lib/bidfs", str(store)) + "\n")
    found = f"/usr/lib/debug/.build-id/{program.id[:2]}/{program.id[2:]}"
    isolated(f"mount -T {fstab} /usr/lib/debug; cmp {found} {program.path}; umount /usr/lib/debug", env)


def test_view_on_its_lower_store_shows_both_stores_by_id(store, mountpoint, program, env, workdir):
    installed = programs.small(workdir / "installed")
    where = mountpoint / ".build-id" / installed.id[:2] / f"{installed.id[2:]}.debug"
    where.parent.mkdir(parents=True)
    shutil.copyfile(installed.path, where)
    tools.run(tools.MOUNT_BIDFS, "-o", f"view=debug,lower={mountpoint}", store, mountpoint, env=env)
    assert sorted(os.listdir(mountpoint)) == [".bidfs", ".build-id", "buildid"]
    readme = (mountpoint / ".bidfs/README").read_text()
    assert "M/.build-id " in readme and "by-path" not in readme and "usr/lib/debug/" not in readme
    assert where.read_bytes() == installed.path.read_bytes()
    assert (mountpoint / ".build-id" / program.id[:2] / program.id[2:]).read_bytes() == program.path.read_bytes()
    assert (mountpoint / ".build-id/..").stat().st_ino == mountpoint.stat().st_ino
    assert str(mountpoint) in tools.run(tools.BIDCTL, "status", env=env).stdout
    tools.run(tools.BIDCTL, "umount", mountpoint, env=env)
    assert where.exists() and not (mountpoint / ".bidfs").exists()


def test_fake_option_mounts_nothing(store, mountpoint, env):
    done = tools.run(tools.MOUNT_BIDFS, "-f", store, mountpoint, env=env)
    assert done.stdout == done.stderr == ""
    assert not daemon.is_mounted(mountpoint)
    assert daemon.daemons_of(mountpoint) == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_unwritable_output_is_an_error(env, option):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([tools.MOUNT_BIDFS, option], stdout=full, stderr=subprocess.PIPE, text=True, env=env, check=False)
    expected = "mount.bidfs: error: No space left on device: cannot write to standard output\n"
    assert done.returncode == SYSTEM and done.stderr == expected, done


def test_help_and_version(env):
    for option in ("--help", "-h"):
        text = tools.run(tools.MOUNT_BIDFS, option, env=env).stdout
        assert text.startswith("Usage: mount.bidfs") and "-o url=URL" in text
    for option in ("--version", "-V"):
        assert re.fullmatch(r"mount\.bidfs \d+\.\d+\.\d+([+-]\S+)?\n", tools.run(tools.MOUNT_BIDFS, option, env=env).stdout)


def refused(env, *arguments, program=tools.MOUNT_BIDFS, prefix=()):
    """Run a command that must fail with one line and without a mount. Return status and message."""
    done = tools.run(*prefix, program, *arguments, status=None, env=env)
    lines = done.stderr.splitlines()
    assert done.returncode > 0, f"{arguments}: {done}"
    assert done.stdout == "" and len(lines) == 1, f"{arguments}: {done}"
    return done.returncode, lines[0].removeprefix("mount.bidfs: error: ")


def test_bad_store_or_mount_point_is_refused(store, mountpoint, env, workdir):
    (workdir / "file").touch()
    (workdir / "full").mkdir()
    (workdir / "full/file").touch()
    (store / "inside").mkdir()
    (mountpoint / "store").mkdir()
    missing = workdir / "missing"
    cases = [
        ([missing, mountpoint], f"no such store: '{missing}'.*mkdir -p"),
        ([workdir / "file", mountpoint], f"not a directory: '{workdir}/file'.*name a"),
        ([store, missing], f"no such mount point '{missing}'.*mkdir -p"),
        ([store, workdir / "file"], f"not a directory: '{workdir}/file'.*name an empty directory"),
        ([store, workdir / "full"], f"not empty: '{workdir}/full'.*nonempty"),
        ([store, "/proc"], "already mounted: .*'/proc'.*umount"),
        ([store, store / "inside"], "overlap.*mount outside"),
        ([mountpoint / "store", mountpoint], "overlap.*mount outside"),
    ]
    for arguments, wanted in cases:
        status, message = refused(env, *arguments)
        assert status == FAILED and re.search(wanted, message), message
    # valid values in the same places are accepted
    shutil.rmtree(mountpoint / "store")
    tools.run(tools.MOUNT_BIDFS, "-f", store, mountpoint, env=env)
    tools.run(tools.MOUNT_BIDFS, "-f", "-o", "nonempty", store, workdir / "full", env=env)


def test_default_store_is_created(mountpoint, env):
    """perf and 'bidctl add' create it, too; a store that was named may be misspelt and is not created."""
    store = pathlib.Path(env["HOME"], ".debug")
    # a check of the options says so and creates nothing
    done = tools.run(tools.MOUNT_BIDFS, "-f", "none", mountpoint, env=env)
    assert done.stdout == done.stderr == "" and not store.exists()
    nowhere = env | {"HOME": f"{env['HOME']}/nowhere"}
    assert refused(nowhere, "none", mountpoint)[1].startswith(f"no such store: '{nowhere['HOME']}/.debug'")
    tools.run(tools.MOUNT_BIDFS, "none", mountpoint, env=env)
    assert os.listdir(mountpoint / "buildid") == [] and store.stat().st_mode & 0o777 == 0o755
    shutil.rmtree(store)
    assert refused(env, store, mountpoint / "buildid")[1].startswith(f"no such store: '{store}'")
    assert not store.exists()


def test_missing_openat2_is_reported(store, mountpoint, env):
    """A seccomp filter, as of RestrictSUIDSGID= in systemd, may refuse it: fail at the start, not at the first lookup."""
    if tools.is_sanitized():
        pytest.skip("the leak sanitizer traces its own process, which fails under strace")
    # a read-only mount needs it, too, or would take every file for absent
    for status, *argv in ((FAILED, tools.MOUNT_BIDFS, store, mountpoint), (3, tools.BIDCTL, "-s", store, "list")):
        done = tools.run("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e", "inject=openat2:error=ENOSYS",
                         *argv, env=env, status=status)
        assert f"{argv[0].name}: error: no openat2(2), " in done.stderr and "Linux 5.6" in done.stderr


def test_second_mount_is_refused(mount, store, env, workdir):
    mnt = mount()
    message = refused(env, store, mnt.path)[1]
    assert message.startswith(f"already mounted: there is a file system of type 'fuse.bidfs' on '{mnt.path}'")
    # a store may be mounted twice, at different directories
    (workdir / "other").mkdir()
    tools.run(tools.MOUNT_BIDFS, "-f", store, workdir / "other", env=env)


def test_dead_mount_is_refused(mount, store, env):
    mnt = mount()
    mnt.die()
    for arguments in ((store, mnt.path), (mnt.path, "/tmp")):
        status, message = refused(env, *arguments)
        assert status == FAILED and "daemon died" in message and f"umount -l {mnt.path}" in message, message
    # the suggested remedy works
    assert daemon.unmount(mnt.path, "-l").returncode == 0
    tools.run(tools.MOUNT_BIDFS, "-f", store, mnt.path, env=env)


@pytest.mark.parametrize("by", ["mount point", "store"])
def test_umount_command_unmounts(mount, store, env, by):
    mnt = mount()
    argv = [tools.BIDCTL, "-s", store, "umount", *([mnt.path] if by == "mount point" else [])]
    done = tools.run(*argv, env=env | {"PATH": "/nowhere"}, status=3)
    assert re.fullmatch(r"bidctl: error: .*: cannot run it: '(umount|fusermount3)'\n", done.stderr), done.stderr
    assert daemon.is_mounted(mnt.path)
    tools.run(*argv, env=env)
    assert not daemon.is_mounted(mnt.path)


def test_add_of_a_tree_leaves_mounts_of_bidfs_out(mount, store, workdir, env):
    tree, other = workdir / "tree", workdir / "other"
    tree.mkdir()
    other.mkdir()
    served, added = programs.small(workdir / "served"), programs.small(tree / "added", 2)
    programs.into_store(store, served.id, "/usr/bin/served", served.path)
    mnt = mount(at=tree / "mnt")
    done = tools.run(tools.BIDCTL, "-s", other, "add", mnt.path, env=env, status=1)
    assert f"it is a store, or a mount of bidfs: '{mnt.path}'" in done.stderr, done.stderr
    tools.run(tools.BIDCTL, "-s", other, "add", "--cross", tree, env=env)
    assert [path.parent.name for path in other.rglob("elf")] == [added.id]


BAD_OPTIONS = {
    "frobnicate": "unknown option 'frobnicate'",
    "ur=x": "unknown option 'ur' - did you mean 'url'?",
    "offlien": "unknown option 'offlien' - did you mean 'offline'?",
    "frobnicate=1": "unknown option 'frobnicate'",
    "auto noauto": "unknown option 'auto noauto'",
    "wait": "the option 'wait' needs a value, as in 'wait=...'",
    "url": "the option 'url' needs a value",
    "remount": "unmount it and mount it anew",
    "ro,wait=2,color": "unknown option 'color'",
    "url=ftp://example.org": "not a server's URL: 'ftp://example.org'",
    "url=ftp://tmp": "not a server's URL: 'ftp://tmp'",
    "url=ftp://user:secret@tmp": "not a server's URL: 'ftp://tmp'",
    "url=": "not a server's URL: ''",
    "url=http://": "not a server's URL",
    "url=file:///a?b": "not a server's URL: .* no query",
    "wait=-1": "bad value '-1' for the option 'wait': it must be a number from 0 to 86400",
    "wait=": "bad value '' for the option 'wait'",
    "wait=soon": "bad value 'soon'",
    "wait=1s": "bad value '1s'",
    "wait=99999999999999999999": "bad value '9+'",
    "max_threads=0": "bad value '0'",
    "max_threads=65": "bad value '65'",
    "busy_poll=1001": "bad value '1001' for the option 'busy_poll': it must be a number from 0 to 1000",
    "max_size=1X": "bad value '1X'",
    "max_size=9999999999G": "bad value '9999999999G'",
    "max_size=9999999T": "bad value '9999999T'",
    "max_size=G": "bad value 'G'",
    "cache_size=1 T": "bad value '1 T' for the option 'cache_size': it must be a number of bytes, with or without a suffix",
    "min_free=": "bad value ''",
    "min_free=-1": "bad value '-1'",
    "max_size=1KK": "bad value '1KK'",
    "errors=maybe": "bad value 'maybe' for the option 'errors'",
    "passthrough=perhaps": "bad value 'perhaps'",
    "log_level=loud": "bad value 'loud'",
}


@pytest.mark.parametrize("option", BAD_OPTIONS)
def test_bad_option_is_refused(store, mountpoint, env, option):
    status, message = refused(env, store, mountpoint, "-o", option)
    assert status == USAGE and re.search(BAD_OPTIONS[option], message), message
    assert re.search("see 'mount.bidfs --help'|did you mean|it must|it needs|anew with the new options", message), message


def test_foreign_mount_option_is_accepted(store, mountpoint, env):
    good = "rw,defaults,_netdev,noauto,nofail,x-systemd.automount,X-mount.mkdir,comment=hello,wait=0,max_size=2G,cache_size=3T," \
        "url=http://127.0.0.1:1,url=http://127.0.0.1:2/\\,comma,errors=strict,passthrough=auto,log_level=error,,noexec"
    assert tools.run(tools.MOUNT_BIDFS, "-n", "-v", "-t", "bidfs", "-f", store, mountpoint, "-o", good, env=env).stderr == ""
    sloppy = tools.run(tools.MOUNT_BIDFS, "-f", store, mountpoint, "-o", "frobnicate", "-s", env=env)
    assert sloppy.stderr == "mount.bidfs: warning: unknown option 'frobnicate' ignored\n"


@pytest.mark.parametrize("options", ["noatime", "nodiratime", "noatime,nodiratime", "default_permissions,auto_unmount,kernel_cache",
                                     "subtype=bidfs,user=root,nofail,x-systemd.requires=network-online.target"])
def test_common_mount_options_are_accepted(mount, store, options):
    """libfuse parses them, too, even without -f."""
    assert store.name in mount(*options.split(",")).status()["store"]


def test_options_of_other_fuse_file_systems_are_ignored_with_a_warning(mount, store):
    options = {"fsname=bid": "shows the store", "subtype=sshfs": "shows 'fuse.bidfs'", "max_read=131072": "the kernel chooses",
               "umask=022": "mode that it has in the store", "uid=0": "owner", "attr_timeout=1": "may cache"}
    mnt = mount(*options)
    for option, reason in options.items():
        mnt.expect(f"option '{option.partition('=')[0]}' ignored: .*{reason}")
    found = tools.run("findmnt", "-n", "-o", "SOURCE,FSTYPE", mnt.path).stdout.split()
    assert found == [str(store), "fuse.bidfs"]


def test_allow_root_of_a_user_is_ignored_with_a_warning(needs_root, store, mountpoint, workdir, env):
    mine = mount_program_of_nobody(workdir, mountpoint)
    warnings = [isolated(f"{user} {mine} -f {store} {mountpoint} -o allow_root || true", env).stderr
                for user in ("", as_user(NOBODY))]
    assert "allow_root" not in warnings[0]
    assert "option 'allow_root' ignored: it lets root in alone" in warnings[1] and "name 'allow_other'" in warnings[1]


def test_missing_file_server_is_warned_of(mount):
    """Only trees on the root file system are checked: another file system may hang."""
    mnt = mount("url=file:///usr/typo")
    mnt.expect("No such file or directory: '/usr/typo': bidfs fetches nothing from 'file:///usr/typo' until it is there")


BAD_ARGUMENTS = {
    "a b c": "too many arguments: 'c'",
    "-Z": "no such option: '-Z'",
    "-vZ a": "no such option: '-Z'",
    "--frobnicate": "no such option: '--frobnicate'",
    "-o": "the option '-o' needs an argument",
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS)
def test_bad_argument_is_refused(env, arguments):
    status, message = refused(env, *arguments.split())
    assert status == USAGE and message == f"{BAD_ARGUMENTS[arguments]}: see 'mount.bidfs --help'", message


def test_passthrough_on_fails_without_support(store, mountpoint, env):
    missing = tools.why_no_passthrough()
    if missing:
        for options in [], ["-f"]:
            status, message = refused(env, store, mountpoint, "-o", "passthrough=on", *options)
            assert status == FAILED and "cannot mount with 'passthrough=on'" in message
        assert not daemon.is_mounted(mountpoint)
    else:
        tools.run(tools.MOUNT_BIDFS, store, mountpoint, "-o", "passthrough=on", env=env)
        assert '"mode": "passthrough"' in (mountpoint / ".bidfs/status").read_text()


def test_short_mount_point_is_refused_for_writing(needs_root, store, env):
    """perf writes before the start of a build-id directory name with less than 5 characters."""
    done = isolated(f"{tools.MOUNT_BIDFS} {store} /mnt", env, status=FAILED)
    assert re.fullmatch(r"mount\.bidfs: error: mount point too short: '/mnt': .*name a longer one\n", done.stderr)
    isolated(f"mount -t tmpfs none /mnt; mkdir /mnt/b; {tools.MOUNT_BIDFS} {store} /mnt/b; umount /mnt/b", env)


def test_missing_fuse_device_is_reported(needs_root, store, mountpoint, env):
    script = f"mount -t tmpfs none /dev; mknod /dev/null c 1 3; {tools.MOUNT_BIDFS} {store} {mountpoint}"
    done = isolated(script, env, status=FAILED)
    assert re.fullmatch(r"mount\.bidfs: error: no '/dev/fuse' - .*modprobe fuse.*--device /dev/fuse.*\n", done.stderr)
    # with /dev/fuse the same command works
    isolated(script.replace("null c 1 3;", "null c 1 3; mknod /dev/fuse c 10 229;") + f"; umount {mountpoint}", env)


DEFAULTS = "mount -t tmpfs none /run; "


def test_default_store_and_mount_point_are_used(needs_root, env, workdir):
    home, run = workdir / "home", workdir / "run"
    (home / ".debug").mkdir()
    (workdir / "perf").mkdir()
    run.mkdir()
    env["XDG_RUNTIME_DIR"] = str(run)
    show = f"{tools.MOUNT_BIDFS} | while read at; do echo $at; grep -o '\"store\": \"[^\"]*' $at/.bidfs/status; umount $at; done"
    assert isolated(DEFAULTS + show, env).stdout == f'{run}/bid\n"store": "{home}/.debug\n'
    assert isolated(DEFAULTS + "mkdir /run/bidfs; " + show, env).stdout == f'/run/bidfs\n"store": "{home}/.debug\n'
    (home / ".perfconfig").write_text(f"[buildid]\n\tdir = {workdir}/perf\n")
    assert isolated(DEFAULTS + show, env).stdout == f'{run}/bid\n"store": "{workdir}/perf\n'
    del env["XDG_RUNTIME_DIR"]
    done = isolated(DEFAULTS + f"{tools.MOUNT_BIDFS}", env, status=USAGE)
    assert re.fullmatch(r"mount\.bidfs: error: no mount point named.*name one\n", done.stderr)


def test_unprivileged_user_mounts_by_fusermount(needs_root, store, program, mountpoint, env, workdir):
    """The user has no privileges but the setuid fusermount3."""
    secret = programs.small(workdir / "secret", 7)
    programs.into_store(store, secret.id, "/root/secret", secret.path).chmod(0o600)
    mine, user = mount_program_of_nobody(workdir, mountpoint), as_user(NOBODY)
    done = isolated(f"""
        {fuse_device(workdir)}
        {user} {mine} {store} {mountpoint}
        {user} cmp {artifact(mountpoint, program)} {program.path}
        {user} grep -o '"mode": ".*"' {mountpoint}/.bidfs/status
        {user} cat {artifact(mountpoint, secret)} >/dev/null || echo refused
        {user} fusermount3 -u {mountpoint}
        ! findmnt -n {mountpoint}""", env)
    assert done.stdout == f'{mountpoint}\n"mode": "no_open"\nrefused\n'
    assert "Permission denied" in done.stderr
    # options that need privileges are refused
    os.chmod(store, 0o700)
    done = isolated(f"{fuse_device(workdir)}; {user} {mine} {store} {mountpoint}", env, status=FAILED)
    assert re.fullmatch(f"mount\\.bidfs: error: permission denied: '{store}' - .*give you the rights.*\n", done.stderr)
    os.chmod(store, 0o755)
    done = isolated(f"{fuse_device(workdir, 600)}; {user} {mine} {store} {mountpoint}", env, status=FAILED)
    assert re.fullmatch(r"mount\.bidfs: error: no access to '/dev/fuse' - .*chmod 666.*\n", done.stderr)


def test_file_mode_holds_for_other_users(needs_root, mount, mode, store, program, workdir):
    """The mode of a stored file is checked for each user, even if another user has just read the file."""
    alice, bob = 20001, 20002
    private = programs.small(workdir / "private", 5)
    stored = programs.into_store(store, private.id, "/home/alice/private", private.path)
    os.chown(stored, alice, alice)
    stored.chmod(0o700)
    shared, closed = mount("allow_other"), mount()

    def read(user, path):
        wanted = private if private.id in str(path) else program
        return tools.run(*as_user(user).split(), "cmp", path, wanted.path, status=None)

    for _ in range(2):
        assert read(alice, artifact(shared, private)).returncode == 0
        assert "Permission denied" in read(bob, artifact(shared, private)).stderr
        assert "Permission denied" in read(bob, shared / "home/alice/private" / private.id / "elf").stderr
        assert read(bob, artifact(shared, program)).returncode == 0
    # without allow_other other users cannot enter the mount
    assert "Permission denied" in read(bob, artifact(closed, program)).stderr
    assert artifact(closed, program).read_bytes() == program.path.read_bytes()
