# SPDX-License-Identifier: LGPL-2.1-or-later
"""Helpers of the tests of `bidctl add`: trees of programs, and running processes."""
import contextlib
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import time

from bidctl_env import TIMEOUT, build, divide
from cases import Skip, need

NOBODY = 65534
SLEEPER = '#include <unistd.h>\nint main(void) { write(1, "up\\n", 3); for (;;) pause(); }\n'
HEADLESS = """#include <pthread.h>
#include <unistd.h>
static void *sleeps(void *none) { for (;;) pause(); return none; }
int main(void) { pthread_t thread; pthread_create(&thread, NULL, sleeps, NULL); pthread_exit(NULL); }
"""
# a file system with one program, which stops responding once a given file exists
SILENT = """#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int program;
static void answer(void) { while (access(getenv("SILENT"), F_OK) == 0) usleep(20000); }
static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *file)
{
	answer();
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFDIR | 0755;
	return strcmp(path, "/") == 0 ? 0 : strcmp(path, "/program") ? -ENOENT : fstat(program, st);
}
static int open_it(const char *path, struct fuse_file_info *file) { answer(); return 0; }
static int read_it(const char *path, char *buffer, size_t size, off_t at, struct fuse_file_info *file)
{
	answer();
	return pread(program, buffer, size, at);
}
int main(int argc, char **argv)
{
	struct fuse_operations operations = { .getattr = get_attributes, .open = open_it, .read = read_it };
	program = open(getenv("PROGRAM"), O_RDONLY);
	return fuse_main(argc, argv, &operations, NULL);
}
"""
RUN = secrets.token_hex(19)
# names of this run alone, as tests that scan all processes see those of other tests
IDS = [f"{number:02x}" + RUN for number in range(1, 40)]


def call(*command, env=None, **keywords):
    """Run a command, and return its outcome whatever the status."""
    return subprocess.run([*map(str, command)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="surrogateescape", timeout=TIMEOUT, check=False, **keywords)


def let_nobody_in(env):
    """Let other users pass through the parents of the home."""
    need(os.geteuid() == 0, "needs root, to become somebody else")
    for path in (env.home.parent.parent, env.home.parent):
        path.chmod(0o755)


def as_nobody(env, *arguments):
    """Run bidctl on the store as a user without privileges."""
    return divide(call(env.bidctl, "-s", env.store, *arguments, env=env.environment, user=NOBODY, group=NOBODY,
                       extra_groups=[]))


def without_leaks(env):
    """Return an environment without the leak sanitizer, which fails under strace because it traces its own process."""
    options = ":".join(filter(None, [env.environment.get("ASAN_OPTIONS"), "detect_leaks=0"]))
    return env.environment | {"ASAN_OPTIONS": options}


def summary(done):
    """Return the counts of the last line, and the reasons behind them."""
    match = re.fullmatch(r"seen (\d+), added (\d+), known (\d+), refused (\d+)(?:: (.*))?", done.stdout.splitlines()[-1])
    assert match, done.stdout
    # a reason may contain a comma
    reasons = dict(reversed(reason.split(" ", 1)) for reason in re.split(r", (?=\d)", match[5])) if match[5] else {}
    return tuple(int(number) for number in match.groups()[:4]), {why: int(number) for why, number in reasons.items()}


def readelf_id(path):
    match = re.search(r"Build ID: ([0-9a-f]+)", call("readelf", "-n", path).stdout)
    return match[1] if match else None


def link_of(env, build_id):
    return env.store / ".build-id" / build_id[:2] / build_id[2:]


def entry_of(env, path, build_id):
    return env.store / str(path)[1:] / build_id


def stored(env, build_id):
    """Return the target of perf's link for that id."""
    link = link_of(env, build_id)
    return pathlib.Path(os.path.normpath(link.parent / os.readlink(link)))


def everything_is_right(env):
    """Check that every file under an id has that id, and return the number of files."""
    files = [path for name in ("elf", "debug") for path in env.store.rglob(name)
             if path.is_file() and ".bidfs" not in path.parts]
    for path in files:
        assert readelf_id(path) == path.parent.name, path
    return len(files)


def read_if_any(path):
    """Return the content of a /proc file, or nothing after an error."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except ProcessLookupError:
        return ""


def system_tree(env, count=40):
    """Copy programs of this system, each with an id of its own, and return them."""
    tree = env.home / "tree"
    (tree / "bin").mkdir(parents=True)
    ids = set()
    for path in sorted(pathlib.Path("/usr/bin").iterdir()):
        if not path.is_file() or path.is_symlink() or path.stat().st_size > 1 << 20:
            continue
        build_id = readelf_id(path)
        if build_id and build_id not in ids:
            shutil.copy(path, tree / "bin")
            ids.add(build_id)
        if len(ids) == count:
            break
    return tree, ids


def module_tree(env, directory):
    """Copy compressed modules of distributions; other compressed files are not wanted."""
    directory.mkdir(parents=True)
    packers = {"plain": None, "gnu": ["gzip"], "xzip": ["xz"], "zst": ["zstd", "-q", "--rm"]}
    suffixes = {"gnu": ".gz", "xzip": ".xz", "zst": ".zst"}
    ids = {}
    for number, (name, packer) in enumerate(packers.items()):
        if packer and not shutil.which(packer[0]):
            continue
        built = build(env.home, f"{name}.ko", IDS[number])
        path = directory / f"{name}.ko"
        shutil.copy(built, path)
        if packer:
            subprocess.run([*packer, path], check=True, timeout=TIMEOUT)
            path = path.with_name(path.name + suffixes[name])
        ids[path] = (IDS[number], built)
    shutil.copy(env.one, directory / "page.1")
    subprocess.run(["gzip", directory / "page.1"], check=True, timeout=TIMEOUT)
    return ids


def in_namespace(script, *arguments, env):
    """Run a shell script as root in a new mount namespace."""
    need(os.geteuid() == 0, "needs root, for a mount namespace")
    done = call("unshare", "-m", "sh", "-euc", script, "sh", *arguments, env=env.environment)
    if "unshare failed" in done.stderr:
        raise Skip(done.stderr.strip())
    return divide(done)


@contextlib.contextmanager
def running(*command, **keywords):
    with subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, **keywords) as process:
        try:
            yield process
        finally:
            process.kill()


def sleeper(directory, name, build_id, text=SLEEPER):
    source = directory / f"{name}.c"
    source.write_text(text)
    path = directory / name
    subprocess.run(["cc", "-O", "-pthread", f"-Wl,--build-id=0x{build_id}", "-o", path, source], check=True, timeout=TIMEOUT)
    return path


@contextlib.contextmanager
def silent_file_system(env, program):
    """Start @program on a file system that then stops responding; yield its path."""
    need(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "needs root and FUSE")
    flags = call("pkg-config", "--cflags", "--libs", "fuse3")
    need(flags.returncode == 0, "needs libfuse")
    source, server, point, silent = (env.home / name for name in ("silent.c", "silent", "point", "silence"))
    source.write_text(SILENT)
    subprocess.run(["cc", "-D_FILE_OFFSET_BITS=64", "-o", server, source, *flags.stdout.split()], check=True, timeout=TIMEOUT)
    point.mkdir()
    environment = os.environ | {"SILENT": str(silent), "PROGRAM": str(program)}
    with subprocess.Popen([server, "-f", "-o", "attr_timeout=0,entry_timeout=0", point], env=environment) as process:
        try:
            while not (point / "program").exists():
                need(process.poll() is None, "cannot mount")
                time.sleep(0.02)
            with running(point / "program", stdout=subprocess.PIPE) as sleeping:
                assert sleeping.stdout.readline() == b"up\n"
                silent.touch()
                try:
                    yield point / "program"
                finally:
                    silent.unlink()
        finally:
            call("umount", "-l", point)
            process.kill()


@contextlib.contextmanager
def headless(directory, name, build_id):
    """Start a program whose first thread has ended while a second one sleeps."""
    path = sleeper(directory, name, build_id, HEADLESS)
    with running(path) as process:
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        until = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < until and read_if_any(maps):
            time.sleep(0.01)
        assert process.poll() is None and not read_if_any(maps), "its first thread runs"
        yield path, process
