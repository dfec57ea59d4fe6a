# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that are open while their name is removed or replaced, and their end at the last close."""
import contextlib
import errno
import os
import pathlib
import time

import pytest

import tools
from perf_cache import perf, view  # noqa: F401  fixtures
from perf_cache import objdir_of
from test_publish import placed


def read_again(descriptor, size, offset):
    """Read from the file system, past the kernel's page cache."""
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return os.pread(descriptor, size, offset)


def published(view, workdir, perf):
    return placed(view, perf.burn)


def renamed(view, workdir, perf):
    os.rename(workdir / ".elf.tmp", workdir / "elf")


def unlinked(view, workdir, perf):
    os.unlink(workdir / ".elf.tmp")


@pytest.mark.parametrize("name, how", [("elf", published), (".elf.tmp", renamed), (".elf.tmp", unlinked)])
def test_writer_keeps_the_file_after_its_name_changes(view, perf, name, how):
    """The name changes in the middle of a read, which returns exactly the written bytes."""
    workdir, content = objdir_of(view, perf.burn), perf.burn.read()
    workdir.mkdir(parents=True)
    half = len(content) // 2
    with open(workdir / name, "wb") as writer:
        file = os.open(workdir / name, os.O_RDONLY)
        writer.write(content)
    assert read_again(file, half, 0) == content[:half]
    how(view, workdir, perf)
    time.sleep(1.1)  # the kernel's cached attributes expire
    assert read_again(file, len(content), half) == content[half:]
    assert os.fstat(file).st_size == len(content)
    if how is unlinked:
        assert not (workdir / name).exists() and not view.artifact(perf.burn.id).exists()
    else:
        assert (workdir / "elf").stat().st_ino != os.fstat(file).st_ino
        assert (workdir / "elf").read_bytes() == placed(view, perf.burn).read_bytes() == content
    os.close(file)


def test_closed_unlinked_file_frees_its_space(view):
    """The daemon keeps no descriptor of it, and a removed file's space is free again."""
    def kept():
        number = 0
        for path in pathlib.Path(f"/proc/{view.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                number += "/.bidfs/tmp/" in os.readlink(path)
        return number

    content, ids = b"ffffffff81000000 T _text\n" * 100, [f"{number:02x}" * 20 for number in range(1, 31)]
    for number, ident in enumerate(ids):
        directory = view / "[kernel.kallsyms]" / ident
        directory.mkdir(parents=True)
        name = "kallsyms" if number % 3 == 0 else ".tmp"
        with open(directory / name, "wb", buffering=0) as file:
            file.write(content)
            assert kept() > 0
            if number % 3 == 1:
                os.unlink(directory / name)
            elif number % 3 == 2:
                os.rename(directory / name, directory / "kallsyms")
            assert os.fstat(file.fileno()).st_size == len(content)
    for ident in [ident for number, ident in enumerate(ids) if number % 3 != 1]:
        tools.wait_until(view.artifact(ident, "kallsyms").exists, "its place")
    tools.wait_until(lambda: kept() == 0, "the end of what nobody has open")


def test_unlinked_file_stays_writable(view, store, perf):
    """Its writes and reads work, it is not published, and a file that took its name stays unchanged."""
    workdir, content = objdir_of(view, perf.burn), perf.burn.read()
    workdir.mkdir(parents=True)
    half = len(content) // 2
    with open(workdir / "elf", "w+b", buffering=0) as file:
        file.write(content[:half])
        os.unlink(workdir / "elf")
        file.write(content[half:])
        assert read_again(file.fileno(), len(content), 0) == content
        # a link to the open file does not publish it either
        argv = ["ln", "-L", f"/proc/self/fd/{file.fileno()}", workdir / "elf"]
        refused = tools.run(*argv, pass_fds=[file.fileno()], status=1).stderr
        assert os.strerror(errno.ENOENT) in refused or os.strerror(errno.ESTALE) in refused
    assert not (workdir / "elf").exists() and not view.artifact(perf.burn.id).exists()
    with open(workdir / ".elf.tmp", "w+b", buffering=0) as file:
        file.write(content)
        os.rename(workdir / ".elf.tmp", workdir / "elf")
        assert tools.errno_of(os.pwrite, file.fileno(), b"garbage", 0x800) == errno.EPERM
        os.utime(file.fileno())
        assert read_again(file.fileno(), len(content), 0) == content
    view.unmount()
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=perf.env).stderr


def test_file_removed_at_close_stays_removed(view):
    """The daemon sees the last close during the removal of the name."""
    content, ids = b"ffffffff81000000 T _text\n" * 100, [f"{number:02x}" * 20 for number in range(1, 41)]

    def remove(ident):
        os.unlink(view / "[kernel.kallsyms]" / ident / "kallsyms")

    for ident in ids:
        directory = view / "[kernel.kallsyms]" / ident
        directory.mkdir(parents=True)
        (directory / "kallsyms").write_bytes(content)
        remove(ident)
    time.sleep(1)
    assert [ident for ident in ids if (view / "[kernel.kallsyms]" / ident / "kallsyms").exists()] == []
    assert [ident for ident in ids if view.artifact(ident, "kallsyms").exists()] == []
