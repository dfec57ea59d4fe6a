# SPDX-License-Identifier: LGPL-2.1-or-later
"""perf's copies of /proc/kcore: those that perf makes, natively and through the mount, and the derived one."""
import errno
import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

import programs
import tools
from daemon import is_mounted
from test_perf_kernel import UNKNOWN, table_of

FILES = ["kallsyms", "kcore", "modules"]
OFFERED = "1970010100000000"

MODULES = "first 8192 0 - Live 0xffffffffc0200000\nsecond 4096 0 - Live 0xffffffffc0208000\n"


def host(place, name="host"):
    """
    Make the /proc and /sys that perf reads beside a kcore, of a kernel with two modules. Return the build-id and the directory.
    """
    proc, notes = place / name / "proc", place / name / "sys/kernel"
    for directory in (proc, notes):
        directory.mkdir(parents=True)
    kernel = programs.kernel(proc / "kcore", "part", 0xffffffff81000000, 1 << 20, 1 << 16)
    tools.run("objcopy", "-O", "binary", "--only-section=.note.gnu.build-id", kernel.path, notes / "notes")
    loaded = [("0210", "t", "early", "first"), ("0010", "t", "init", "first"), ("10f0", "T", "late", "first"),
              ("4000", "d", "data", "first"), ("8000", "T", "other", "second")]
    (proc / "kallsyms").write_text(table_of(kernel) + "".join(
        f"ffffffffc020{at} {letter} {name}\t[{module}]\n" for at, letter, name, module in loaded))
    (proc / "modules").write_text(MODULES)
    return kernel.id, proc


def modules_of(m, ident):
    found, = (m / "[kernel.kcore]" / ident).glob("*/modules")
    return found.read_text().splitlines()


def test_derived_kcore_copy_is_listed(mount, mode, place, store):
    """docs/PERF.md, 9: the symbol table where perf looks first, and the modules that this table names."""
    ident, proc = host(place)
    programs.into_store(store, ident, "[kernel.kallsyms]", proc / "kallsyms", "kallsyms")
    m = mount()
    top = m / "[kernel.kcore]" / ident
    timestamp, = os.listdir(top)
    assert re.fullmatch(r"\d{16}", timestamp)
    with os.scandir(top) as entries:
        assert [entry.is_dir(follow_symlinks=False) for entry in entries] == [True]
    assert sorted(os.listdir(top / timestamp)) == ["kallsyms", "modules"]
    assert (top / timestamp / "kallsyms").read_bytes() == (proc / "kallsyms").read_bytes()
    assert os.stat(top / timestamp / "kallsyms").st_ino == os.stat(m.artifact(ident, "kallsyms")).st_ino
    assert [(top / timestamp / "modules").read_text() for _ in range(2)] == [MODULES] * 2
    # the cached modules of a table must not be used for another table
    shorter = place / "shorter"
    shorter.write_text("".join(line for line in (proc / "kallsyms").open() if "[second]" not in line))
    os.utime(shorter, ns=(0, (proc / "kallsyms").stat().st_mtime_ns))
    os.replace(shorter, store / "[kernel.kallsyms]" / ident / "kallsyms")
    tools.wait_until(lambda: modules_of(m, ident) == MODULES.splitlines()[:1],
                     "the modules of another table")
    # the path works without a lookup of the id before; other ids have none
    assert "[kernel.kcore]" not in os.listdir(m.path) and not (m / "by-path/[kernel.kcore]").exists()
    assert not (m / "[kernel.kcore]" / UNKNOWN).exists()
    # only kernels have a table
    program = programs.small(place / "small")
    programs.into_store(store, program.id, program.path, program.path)
    assert not list((m / "[kernel.kcore]" / program.id).glob("*/kallsyms"))


def test_perfs_kcore_copy_is_shown(mount, mode, place, store, env):
    """perf makes the copy natively; the mount shows it unchanged beside the derived one."""
    ident, proc = host(place)
    perf = ["perf", "--buildid-dir", store, "buildid-cache", "-v", "-k", proc / "kcore"]
    done = tools.run(*perf, env=env)
    copy, = (store / "[kernel.kcore]" / ident).iterdir()
    m = mount()
    assert copy.name in os.listdir(m / "[kernel.kcore]" / ident) and "[kernel.kcore]" in os.listdir(m.path)
    mounted = m / "[kernel.kcore]" / ident / copy.name
    assert sorted(os.listdir(mounted)) == sorted(os.listdir(copy)) == ["kallsyms", "kcore", "modules"]
    for name in os.listdir(copy):
        assert (mounted / name).read_bytes() == (copy / name).read_bytes(), name
        assert os.stat(mounted / name).st_mode == os.stat(copy / name).st_mode, name
    # perf recognizes the copy by its modules and first address
    done = tools.run("perf", "--buildid-dir", m, "buildid-cache", "-v", "-k", proc / "kcore", env=env)
    assert "same kcore found" in done.stdout + done.stderr
    m.unmount()
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=env)
    assert sorted(os.listdir(copy)) == ["kallsyms", "kcore", "modules"]


@pytest.fixture(params=["beside", "in place"])
def view(request, mount, mode, store):
    """Mount for writing, at a separate directory or over the store itself."""
    return mount(at=store) if request.param == "in place" else mount()


def files_of(top):
    """Return mode and bytes of each file of the copies below `top`, by the order of their timestamps."""
    copies = sorted(path for path in top.glob("*/*") if path.name != OFFERED)
    return [{path.name: (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) for path in copy.iterdir()} for copy in copies]


def perf_adds(cache, kcore, env, *options):
    done = tools.run("perf", "--buildid-dir", cache, "buildid-cache", "-v", "-k", kcore, *options, env=env)
    return re.sub(r"\d{16}", "TIMESTAMP", (done.stdout + done.stderr).replace(str(cache), "CACHE"))


def test_perf_adds_kcore_copy(view, place, store, env):
    """
    docs/PERF.md, 13: the output and the files are those of a native run; so are those of a second run, and of a forced one, which
    makes another copy.
    """
    ident, proc = host(place)
    native = place / "native"
    native.mkdir()
    for options in ([], [], ["-f"]):
        wanted, got = (perf_adds(cache, proc / "kcore", env, *options) for cache in (native, view.path))
        assert got == wanted, options
        wanted = files_of(native / "[kernel.kcore]")
        assert files_of(view / "[kernel.kcore]") == wanted, options
    assert [sorted(copy) for copy in wanted] == [FILES] * 2
    top = view / "[kernel.kcore]"
    assert sorted(os.listdir(top)) == [ident] and "[kernel.kcore]" in os.listdir(view.path)
    # perf cannot purge the copy, so the user removes it
    shutil.rmtree(sorted((top / ident).iterdir())[1])
    view.unmount()
    assert files_of(store / "[kernel.kcore]") == wanted[:1]
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=env)
    assert not list((store / ".bidfs/tmp").iterdir())


def test_kcore_of_running_kernel_is_used_by_perf(mount, mode, place, store, env, needs_root):
    """perf reads code from the real /proc/kcore."""
    try:
        with open("/proc/kcore", "rb") as file:
            file.read(4096)
        pathlib.Path("/proc/modules").read_text(encoding="ascii")
    except OSError as trouble:
        pytest.skip(f"perf copies /proc/kcore with /proc/modules, which cannot be read here: {trouble}")
    native = place / "native"
    native.mkdir()
    m = mount()
    wanted, got = (perf_adds(cache, "/proc/kcore", env) for cache in (native, m.path))
    assert got == wanted
    wanted, got = ([sorted(copy) for copy in files_of(cache / "[kernel.kcore]")] for cache in (native, m))
    assert got == wanted


@pytest.fixture
def copied(place, env):
    """Return the directory of one copy, made by perf natively: `[kernel.kcore]/ID/TIMESTAMP`."""
    ident, proc = host(place)
    native = place / "native"
    native.mkdir()
    perf_adds(native, proc / "kcore", env)
    copy, = (native / "[kernel.kcore]" / ident).iterdir()
    return copy


COPIES = {
    "cp": lambda source, target: tools.run("cp", "-r", source, target),
    "cp -a": lambda source, target: tools.run("cp", "-a", source, target),
    "tar": lambda source, target: subprocess.run(f"tar -C '{source.parent}' -c . | tar -C '{target}' -x --no-same-owner",
                                                 shell=True, check=True),
    "mv": lambda source, target: tools.run("mv", source, target),
}


@pytest.mark.parametrize("how", COPIES)
def test_kcore_copy_is_copied_into_the_mount(view, store, copied, how):
    """Other programs copy, too: each file under its final name, in one piece or many, with mode and times set after it."""
    wanted = files_of(copied.parents[1])
    target = view / "[kernel.kcore]" / copied.parent.name
    os.makedirs(target)
    COPIES[how](copied, target)
    assert {path.name for path in target.iterdir()} == {copied.name}
    tools.wait_until(lambda: all((target / copied.name / name).exists() for name in FILES) and
                     sorted(os.listdir(target / copied.name)) == FILES, "the whole copy")
    assert files_of(view / "[kernel.kcore]") == wanted
    view.unmount()
    assert files_of(store / "[kernel.kcore]") == wanted


def test_signal_during_kcore_copy_loses_nothing(view, store, copied):
    """A published file survives the signal, and no file is reported lost."""
    wanted = files_of(copied.parents[1])
    target = view / "[kernel.kcore]" / copied.parent.name
    os.makedirs(target)
    COPIES["cp -a"](copied, target)
    tools.wait_until(lambda: all((target / copied.name / name).exists() for name in FILES) and
                     sorted(os.listdir(target / copied.name)) == FILES, "the whole copy")
    assert view.end()[0] == 0
    view.check_log()
    tools.wait_until(lambda: not is_mounted(view.path), "the end of the mount")
    assert files_of(store / "[kernel.kcore]") == wanted


def test_kcore_appears_when_it_is_complete(view, store, copied):
    """Readers of mount and store see no partial kcore."""
    content = (copied / "kcore").read_bytes()
    target = view / "[kernel.kcore]" / copied.parent.name / copied.name
    os.makedirs(target)
    descriptor = os.open(target / "kcore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    half = len(content) // 2
    os.pwrite(descriptor, content[:half], 0)
    assert os.listdir(target) == []
    os.pwrite(descriptor, content[half:], half)
    os.fchmod(descriptor, 0o444)
    os.close(descriptor)
    assert os.listdir(target) == ["kcore"] and (target / "kcore").read_bytes() == content
    assert stat.S_IMODE(os.stat(target / "kcore").st_mode) == 0o444
    # perf removes a copy that it gives up
    descriptor = os.open(target / "modules", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    os.write(descriptor, b"half a li")
    os.unlink(target / "modules")
    os.close(descriptor)
    assert tools.errno_of(os.rmdir, target) == errno.ENOTEMPTY
    os.unlink(target / "kcore")
    os.rmdir(target)
    os.rmdir(target.parent)
    view.unmount()
    assert not (store / "[kernel.kcore]" / copied.parent.name).exists()


def test_truncated_kcore_is_not_served(mount, mode, store, copied):
    """A partial copy, which perf left in the store itself, is not served and disappears with its directory."""
    shutil.copytree(copied.parents[1], store / "[kernel.kcore]")
    there = store / "[kernel.kcore]" / copied.parent.name / copied.name
    there.joinpath("kcore").chmod(0o600)
    os.truncate(there / "kcore", os.path.getsize(there / "kcore") - 1)
    (there / ".kallsyms.aB3dEf").write_text("left behind")
    m = mount()
    seen = m / there.relative_to(store)
    assert sorted(os.listdir(seen)) == ["kallsyms", "modules"]
    assert tools.errno_of(open, seen / "kcore") == errno.ENOENT
    shutil.rmtree(seen)
    assert not there.exists()


def test_truncated_kcore_fails_close(view, copied):
    content = (copied / "kcore").read_bytes()
    target = view / "[kernel.kcore]" / copied.parent.name / copied.name
    os.makedirs(target)
    view.expect("refused as")
    descriptor = os.open(target / "kcore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    os.write(descriptor, content[:-1])
    assert tools.errno_of(os.close, descriptor) == errno.EBADMSG
    assert os.listdir(target) == []
    view.unmount()


def test_derived_kcore_copy_is_not_overwritten(view, place, store, env):
    """The derived copy comes from other files of the store: nothing can be written to it or created in it."""
    ident, proc = host(place)
    directory = view / "[kernel.kallsyms]" / ident
    os.makedirs(directory)
    (directory / ".kallsyms.aB3dEf").write_bytes((proc / "kallsyms").read_bytes())
    os.link(directory / ".kallsyms.aB3dEf", directory / "kallsyms")
    os.unlink(directory / ".kallsyms.aB3dEf")
    top = view / "[kernel.kcore]"
    offered = top / ident / OFFERED
    tools.wait_until(offered.exists, "the copy that is offered")
    for act in (lambda: open(offered / "kcore", "wb"), lambda: open(offered / "kallsyms", "wb"),
                lambda: os.unlink(offered / "kallsyms"), lambda: os.rmdir(offered), lambda: open(offered / ".kallsyms.x", "wb"),
                lambda: os.mkdir(offered / "x"), lambda: os.mkdir(top / "x"),
                lambda: os.mkdir(top / ident / "x"), lambda: os.mkdir(top / UNKNOWN / OFFERED)):
        assert tools.errno_of(act) in (errno.EPERM, errno.ENOENT), act
    os.mkdir(top / UNKNOWN)
    assert tools.errno_of(os.mkdir, top / UNKNOWN / OFFERED) == errno.EPERM
    os.makedirs(top / ident / "2026112108080800")
    # a file of another name is refused in a copy
    with open(top / ident / "2026112108080800/.x", "wb"):
        pass
    for name in ("elf", "probes", "x"):
        assert tools.errno_of(os.link, top / ident / "2026112108080800/.x", top / ident / "2026112108080800" / name) == errno.EXDEV
        assert tools.errno_of(open, top / ident / "2026112108080800" / name, "wb") == errno.EPERM
    os.unlink(top / ident / "2026112108080800/.x")
    view.unmount()
    assert os.listdir(store / "[kernel.kcore]" / ident / "2026112108080800") == []



def test_read_only_mount_refuses_kcore(mount, place, env):
    """perf gets the errors of a read-only disk."""
    _, proc = host(place)
    m = mount("ro")
    assert "Couldn't add" in perf_adds(m.path, proc / "kcore", env)
    assert tools.errno_of(os.makedirs, m / "[kernel.kcore]" / UNKNOWN) == errno.EROFS
