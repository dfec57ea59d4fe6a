# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies of /proc/kcore: those that perf made in the store, and the derived one."""
import errno
import os
import re
import shutil

import pytest

import programs
import tools
from test_perf_kernel import UNKNOWN, table_of

FILES = ["kallsyms", "kcore", "modules"]
OFFERED = "1970010100000000"

MODULES = "first 8192 0 - Live 0xffffffffc0200000\nsecond 4096 0 - Live 0xffffffffc0208000\n"


def host(workdir, name="host"):
    """
    Make the /proc and /sys that perf reads beside a kcore, of a kernel with two modules. Return the build-id and the directory.
    """
    proc, notes = workdir / name / "proc", workdir / name / "sys/kernel"
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


def modules_of(mnt, ident):
    found, = (mnt / "[kernel.kcore]" / ident).glob("*/modules")
    return found.read_text().splitlines()


def test_derived_kcore_copy_is_listed(mount, mode, workdir, store):
    """docs/PERF.md, 9: the symbol table where perf looks first, and the modules that this table names."""
    ident, proc = host(workdir)
    programs.into_store(store, ident, "[kernel.kallsyms]", proc / "kallsyms", "kallsyms")
    mnt = mount()
    top = mnt / "[kernel.kcore]" / ident
    timestamp, = os.listdir(top)
    assert re.fullmatch(r"\d{16}", timestamp)
    with os.scandir(top) as entries:
        assert [entry.is_dir(follow_symlinks=False) for entry in entries] == [True]
    assert sorted(os.listdir(top / timestamp)) == ["kallsyms", "modules"]
    assert (top / timestamp / "kallsyms").read_bytes() == (proc / "kallsyms").read_bytes()
    assert os.stat(top / timestamp / "kallsyms").st_ino == os.stat(mnt.artifact(ident, "kallsyms")).st_ino
    assert [(top / timestamp / "modules").read_text() for _ in range(2)] == [MODULES] * 2
    # the cached modules of a table must not be used for another table
    shorter = workdir / "shorter"
    shorter.write_text("".join(line for line in (proc / "kallsyms").open() if "[second]" not in line))
    os.utime(shorter, ns=(0, (proc / "kallsyms").stat().st_mtime_ns))
    os.replace(shorter, store / "[kernel.kallsyms]" / ident / "kallsyms")
    tools.wait_until(lambda: modules_of(mnt, ident) == MODULES.splitlines()[:1],
                     "the modules of another table")
    # the path works without a lookup of the id before; other ids have none
    assert "[kernel.kcore]" not in os.listdir(mnt.path) and not (mnt / "by-path/[kernel.kcore]").exists()
    assert not (mnt / "[kernel.kcore]" / UNKNOWN).exists()
    # a table that is refused names no modules
    os.truncate(store / "[kernel.kallsyms]" / ident / "kallsyms", 1 << 30)
    tools.wait_until(lambda: not (top / timestamp / "modules").exists(), "the end of the modules")
    # only kernels have a table
    program = programs.small(workdir / "small")
    programs.into_store(store, program.id, program.path, program.path)
    assert not list((mnt / "[kernel.kcore]" / program.id).glob("*/kallsyms"))


def test_perfs_kcore_copy_is_shown(mount, mode, workdir, store, env):
    """perf makes the copy natively; the mount shows it unchanged beside the derived one."""
    ident, proc = host(workdir)
    perf = ["perf", "--buildid-dir", store, "buildid-cache", "-v", "-k", proc / "kcore"]
    done = tools.run(*perf, env=env)
    copy, = (store / "[kernel.kcore]" / ident).iterdir()
    mnt = mount()
    assert copy.name in os.listdir(mnt / "[kernel.kcore]" / ident) and "[kernel.kcore]" in os.listdir(mnt.path)
    mounted = mnt / "[kernel.kcore]" / ident / copy.name
    assert sorted(os.listdir(mounted)) == sorted(os.listdir(copy)) == ["kallsyms", "kcore", "modules"]
    for name in os.listdir(copy):
        assert (mounted / name).read_bytes() == (copy / name).read_bytes(), name
        assert os.stat(mounted / name).st_mode == os.stat(copy / name).st_mode, name
    # perf recognizes the copy by its modules and first address
    done = tools.run("perf", "--buildid-dir", mnt, "buildid-cache", "-v", "-k", proc / "kcore", env=env)
    assert "same kcore found" in done.stdout + done.stderr
    mnt.unmount()
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=env)
    assert sorted(os.listdir(copy)) == ["kallsyms", "kcore", "modules"]


def perf_adds(cache, kcore, env, *options):
    done = tools.run("perf", "--buildid-dir", cache, "buildid-cache", "-v", "-k", kcore, *options, env=env)
    return re.sub(r"\d{16}", "TIMESTAMP", (done.stdout + done.stderr).replace(str(cache), "CACHE"))


@pytest.fixture
def copied(workdir, env):
    """Return the directory of one copy, made by perf natively: `[kernel.kcore]/ID/TIMESTAMP`."""
    ident, proc = host(workdir)
    native = workdir / "native"
    native.mkdir()
    perf_adds(native, proc / "kcore", env)
    copy, = (native / "[kernel.kcore]" / ident).iterdir()
    return copy


def test_truncated_kcore_is_not_served(mount, mode, store, copied):
    """A partial copy, which perf left in the store itself, is not served."""
    shutil.copytree(copied.parents[1], store / "[kernel.kcore]")
    there = store / "[kernel.kcore]" / copied.parent.name / copied.name
    there.joinpath("kcore").chmod(0o600)
    os.truncate(there / "kcore", os.path.getsize(there / "kcore") - 1)
    mnt = mount()
    seen = mnt / there.relative_to(store)
    assert sorted(os.listdir(seen)) == ["kallsyms", "modules"]
    assert tools.errno_of(open, seen / "kcore") == errno.ENOENT


def test_kcore_copy_is_not_writable(mount, mode, workdir, store, copied, env):
    """docs/PERF.md, 13: perf cannot add a copy through the mount, and nobody changes or removes one."""
    ident, proc = host(workdir, "other")
    shutil.copytree(copied.parents[1], store / "[kernel.kcore]")
    programs.into_store(store, ident, "[kernel.kallsyms]", proc / "kallsyms", "kallsyms")
    mnt = mount()
    top = mnt / "[kernel.kcore]"
    derived, own = top / ident / OFFERED, top / copied.parent.name / copied.name
    for act in (lambda: open(derived / "kcore", "wb"), lambda: open(derived / "kallsyms", "wb"),
                lambda: os.unlink(derived / "kallsyms"), lambda: os.rmdir(derived), lambda: os.mkdir(derived / "x"),
                lambda: os.mkdir(top / UNKNOWN), lambda: os.mkdir(top / ident / "2026112108080800"),
                lambda: open(own / "kcore", "wb"), lambda: open(own / ".kcore.x", "wb"), lambda: os.unlink(own / "kcore"),
                lambda: os.rmdir(own), lambda: os.rmdir(own.parent)):
        assert tools.errno_of(act) in (errno.EPERM, errno.EACCES), act
    assert "Couldn't add" in perf_adds(mnt.path, proc / "kcore", env, "-f")
    mnt.unmount()
    assert sorted(path.name for path in (store / "[kernel.kcore]").rglob("*")) == sorted(
        [copied.parent.name, copied.name, *FILES])
