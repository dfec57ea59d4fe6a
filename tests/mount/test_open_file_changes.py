# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stored file is changed, moved or removed while it is open."""
import errno
import json
import mmap
import os
import shutil
import subprocess
import time

import pytest

import programs
import tools
from daemon import CACHED, descriptors_of
from fetching import read

BALLAST = "-DBALLAST=4000000"
CHUNK = 65536
MAY_HAVE = 128  # descriptors of a daemon
KEPT = MAY_HAVE // 4  # cached descriptors: raise_limit() in fs/fuse/session.c

every_mode = pytest.mark.parametrize("mode", tools.READ_MODES, indirect=True)


def stored(store, program, path="/usr/bin/app"):
    programs.into_store(store, program.id, path, program.path)
    return store / path[1:] / program.id / "elf"


@pytest.mark.parametrize("lose", [lambda elf: elf.rename(elf.parent / "elsewhere"), lambda elf: elf.unlink()],
                         ids=["rename", "unlink"])
def test_open_file_survives_removal_and_eviction(mount, mode, store, workdir, lose):
    """perf -r and -u and an eviction remove the name; an open descriptor keeps reading."""
    program = programs.small(workdir / "app", 1, BALLAST)
    content = program.read()
    elf = stored(store, program)
    mnt = mount()
    path = mnt.artifact(program.id)
    with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert file.read(CHUNK) == content[:CHUNK]
        lose(elf)
        assert os.fstat(file.fileno()).st_size == len(content)
        assert os.pread(file.fileno(), len(content), 0) == content
        assert mapped[:] == content
        tools.wait_until(lambda: not path.exists(), "the name is gone")
        assert os.pread(file.fileno(), 16, len(content) - 16) == content[-16:]


@every_mode
def test_file_changed_in_place_is_not_served(mount, mode, store, workdir):
    """A file is changed in place while open, and a valid copy appears elsewhere: a new open gets the copy."""
    program, other = programs.small(workdir / "app", 1), programs.small(workdir / "other", 2)
    right, wrong = program.read(), bytearray(program.read())
    wrong[right.index(bytes.fromhex(program.id))] ^= 0xff
    elf = stored(store, program)
    lower = workdir / "lower"
    lower.mkdir()
    programs.into_store(lower, program.id, "/usr/bin/app", program.path)
    mnt = mount(f"lower={lower}")
    mnt.permit("wrong content")
    path = mnt.artifact(program.id)
    with open(path, "rb", buffering=0) as first:
        assert first.read(16) == right[:16]
        with open(elf, "r+b") as file:
            file.write(wrong)
        for _ in range(3):
            assert path.read_bytes() == right
    assert path.read_bytes() == right
    assert other.id != program.id


def other_content(content, how):
    """Return the same build with other bytes at its end, of the same or a larger size."""
    return content[:-16] + b"\xff" * 16 if how == "same size" else content + b"\0" * 16


@every_mode
@pytest.mark.parametrize("how", ["same size", "larger"])
@pytest.mark.parametrize("held", [False, True], ids=["closed", "held"])
def test_replaced_file_is_served_to_new_opens(mount, mode, store, workdir, how, held):
    """
    A repair, which keeps the bad file apart, or an update replaces the file: new opens read the new file, and existing descriptors
    the old one.
    """
    program = programs.small(workdir / "app", 1, BALLAST)
    old = program.read()
    new = other_content(old, how)
    elf = stored(store, program)
    mnt = mount()
    path = mnt.artifact(program.id)
    with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == old
        if not held:
            mapped.close()
            file.close()
        (workdir / "new").write_bytes(new)
        (workdir / "new").chmod(0o755)
        elf.rename(elf.parent / "apart")
        os.rename(workdir / "new", elf)
        tools.wait_until(lambda: path.read_bytes() == new, "the new file is served")
        for name in (path, mnt.elf_file(program.id)):
            assert name.read_bytes() == new and name.stat().st_size == len(new)
        # without passthrough pages belong to the inode, and two files of the same id and size share one
        if held and (mode, how) != ("no_open", "same size"):
            assert os.fstat(file.fileno()).st_size == len(old)
            assert os.pread(file.fileno(), len(old) + 16, 0) == old and mapped[:] == old
    assert path.read_bytes() == new


def reads(path):
    """Return the content, or None if the old file was opened, which the first read detects in no_open mode."""
    try:
        return path.read_bytes()
    except OSError as error:
        assert error.errno == errno.ESTALE
        return None


@every_mode
@pytest.mark.parametrize("how", ["same size", "larger"])
def test_replaced_file_is_served_after_fd_cache_eviction(mount, mode, with_descriptors, store, workdir, how):
    """The daemon has closed its descriptor of the old file, but a reader has it open."""
    program = programs.small(workdir / "app", 1)
    old, new = program.read(), other_content(program.read(), how)
    elf = stored(store, program)
    others = [f"{number:040x}" for number in range(KEPT + 1)]
    for other in others:
        programs.into_store(store, other, f"/usr/bin/{other}", programs.forge(program, other, workdir / "forged").path)
    mnt = mount(program=with_descriptors(MAY_HAVE))
    path = mnt.artifact(program.id)
    with open(path, "rb", buffering=0) as file:
        assert file.read() == old
        for other in others:
            assert mnt.artifact(other).read_bytes()
        (workdir / "new").write_bytes(new)
        (workdir / "new").chmod(0o755)
        os.rename(workdir / "new", elf)
        tools.wait_until(lambda: reads(path) == new, "the new file is served")
        assert path.read_bytes() == new
        if mode != "no_open":
            assert os.pread(file.fileno(), len(old) + 16, 0) == old
            assert os.fstat(file.fileno()).st_size == len(old)


def drop_descriptor(mnt, clock, elf):
    """Let the daemon close its descriptor of a file without a reader."""
    def holds():
        return str(elf) in [target for target, _ in descriptors_of(mnt.pid)]

    assert holds()
    tools.wait_until(lambda: clock.advance(61) or not holds(), "the descriptor is closed")


@every_mode
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "dropped"])
@pytest.mark.parametrize("how", ["same size", "larger"])
def test_file_replaced_between_lookup_and_open_is_read_whole(mount, mode, clock, store, workdir, how, kept):
    """The open reads the file of the lookup while the daemon has its descriptor, else the other one, with its attributes."""
    if mode == "no_open" and not kept:
        pytest.skip("without handles, an inode keeps its descriptor")
    program = programs.small(workdir / "app", 1, BALLAST)
    old, elf = program.read(), stored(store, program)
    new = other_content(old, how)
    mnt = mount(env_more=clock.env)
    path = mnt.artifact(program.id)
    looked_up = os.open(path, os.O_PATH)
    if not kept:
        drop_descriptor(mnt, clock, elf)
    (workdir / "between").write_bytes(old)
    (workdir / "new").write_bytes(new)
    elf.rename(elf.parent / "apart")
    for name in ("between", "new"):
        (workdir / name).chmod(0o755)
        os.rename(workdir / name, elf)
    with open(f"/proc/self/fd/{looked_up}", "rb", buffering=0) as file:
        content = file.read(len(new) + 16)
        assert content == (old if kept else new)
        assert os.fstat(file.fileno()).st_size == len(content)
        assert os.fstat(file.fileno()).st_ino == os.fstat(looked_up).st_ino
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert mapped[:] == content
        # an open of the old file, which is back, must not read the new one's pages
        (elf.parent / "apart").rename(elf)
        tools.wait_until(lambda: path.stat().st_mtime_ns == elf.stat().st_mtime_ns, "the old one is back")
        assert path.read_bytes() == old and os.pread(file.fileno(), len(new) + 16, 0) == content
    os.close(looked_up)


@every_mode
@pytest.mark.parametrize("state", ["kept", "opened", "dropped"])
def test_file_moved_away_between_lookup_and_open_is_read(mount, mode, clock, faults, store, workdir, state):
    """The daemon has its descriptor, or downloads the file again. The sandbox lets nobody open the file by its new name."""
    if mode == "no_open" and state == "dropped":
        pytest.skip("without handles, an inode keeps its descriptor")
    program = programs.small(workdir / "app", 1)
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}", env_more=clock.env)
    looked_up = os.open(mnt.artifact(program.id), os.O_PATH)
    assert server.count(program.id) == 1
    elf = next(store.glob(f"**/{program.id}/elf"))
    if state == "opened":
        assert mnt.artifact(program.id).read_bytes() == program.read()
    if state == "dropped":
        drop_descriptor(mnt, clock, elf)
    # the next file might get the inode of a removed one
    elf.rename(workdir / "evicted")
    with open(f"/proc/self/fd/{looked_up}", "rb") as file:
        assert file.read() == program.read()
        assert os.fstat(file.fileno()).st_size == len(program.read())
    assert server.count(program.id) == (2 if state == "dropped" else 1)
    os.close(looked_up)


@every_mode
@pytest.mark.parametrize("elsewhere", [True, False], ids=["stored twice", "stored once"])
def test_open_of_file_moved_away_while_open(mount, mode, store, workdir, elsewhere):
    """
    The first handle reads the moved file. With passthrough, an open by name finds another file of the store, or none if the
    sandbox forbids the moved one.
    """
    if mode == "no_open":
        pytest.skip("the kernel sends no OPEN")
    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    mnt = mount()
    path = mnt.artifact(program.id)
    with open(path, "rb", buffering=0) as file:
        shutil.copyfile(program.path, workdir / "copy")
        (store / "usr/bin/app" / program.id / "elf").rename(workdir / "moved")
        if elsewhere:
            (workdir / "copy").rename(store / "usr/bin/app" / program.id / "elf")
        assert read(path) == program.read() or (mode == "passthrough" and not elsewhere and read(path) == errno.ENOENT)
        assert file.read() == program.read()


@every_mode
def test_removed_open_file_survives_fd_cache_eviction(needs_root, mount, mode, with_descriptors, store, workdir):
    """Many other files are opened; the open file keeps its content and attributes."""
    if mode == "no_open":
        pytest.skip("only an open is a handle")
    program = programs.small(workdir / "app", 1)
    elf, old = stored(store, program), program.read()
    others = [f"{number:040x}" for number in range(2 * KEPT)]
    for other in others:
        programs.into_store(store, other, f"/usr/bin/{other}", programs.forge(program, other, workdir / "forged").path)
    mnt = mount(program=with_descriptors(MAY_HAVE))
    for path in (mnt.artifact(program.id), mnt / "by-path/usr/bin/app" / program.id):
        with open(path, "rb", buffering=0) as file:
            st = os.fstat(file.fileno())
            for other in others:
                assert mnt.artifact(other).read_bytes()
            elf.rename(elf.parent / "elsewhere")
            tools.wait_until(lambda path=path: not path.is_file(), "the name is gone")
            for _ in range(2):
                time.sleep(CACHED)
                now = os.fstat(file.fileno())
                assert (now.st_ino, now.st_size, now.st_mtime_ns) == (st.st_ino, st.st_size, st.st_mtime_ns)
                assert os.pread(file.fileno(), len(old) + 16, 0) == old
        (elf.parent / "elsewhere").rename(elf)
        tools.wait_until(path.is_file, "the name is back")
        assert path.read_bytes() == old


@every_mode
def test_derived_table_in_memory_opens_twice(mount, mode, store, workdir):
    """A symbol table derived from a private file is not stored: each open derives it again."""
    kernel = programs.kernel(workdir / "vmlinux", "work", 0xffffffff81000000, 1 << 20)
    stored(store, kernel, "/[kernel.kallsyms]").chmod(0o600)
    mnt = mount()
    path = mnt.artifact(kernel.id, "kallsyms")
    with open(path, "rb", buffering=0) as file:
        table = file.read()
        assert b" work_0\n" in table
        for _ in range(2):
            assert path.read_bytes() == table
    assert not list(store.glob("**/kallsyms"))


def test_status_shows_any_store_name(mount, workdir):
    store = os.fsencode(workdir) + b"/st\xff\n8"
    os.mkdir(store)
    mnt = mount(on=os.fsdecode(store))
    status = json.loads((mnt / ".bidfs/status").read_text())
    assert status["store"].endswith("\n8") and "\ufffd" in status["store"]


def test_mount_protects_files_below_private_directories(needs_root, mount, workdir):
    """Only a directory above the store protects the files; the mount does, too."""
    program = programs.small(workdir / "app", 1)
    closed, opened = workdir / "closed", workdir / "opened"
    for directory, mode in ((closed, 0o700), (opened, 0o755)):
        (directory / "store").mkdir(parents=True)
        stored(directory / "store", program)
        directory.chmod(mode)

    def as_nobody(mnt):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", mnt.artifact(program.id)],
                              capture_output=True, check=False)

    mnt = mount("allow_other", on=opened / "store")
    assert as_nobody(mnt).stdout == program.read()
    mnt = mount("allow_other", on=closed / "store")
    mnt.expect("closed to other users")
    refused = as_nobody(mnt)
    assert refused.returncode != 0 and b"Permission denied" in refused.stderr and not refused.stdout
    assert mnt.artifact(program.id).read_bytes() == program.read()


def test_daemon_inherits_no_lock_of_its_caller(mountpoint, store):
    """A lock on a descriptor of a script ends with the script."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        subprocess.run([tools.MOUNT_BIDFS, store, mountpoint, "-o", "offline"], check=True, capture_output=True, close_fds=False)
    finally:
        os.close(write)
    try:
        os.set_blocking(read, False)
        assert os.read(read, 1) == b"", "the daemon holds the other end"
    finally:
        os.close(read)


@every_mode
@pytest.mark.limit(60)
def test_more_files_than_cached_descriptors_read_right(mount, mode, store, workdir):
    """Read more files than the daemon caches descriptors, again and again."""
    sample = programs.small(workdir / "app", 1)
    contents, elfs = {}, {}
    for number in range(700):
        ident = f"{number:040x}"
        forged = programs.forge(sample, ident, workdir / "forged")
        elfs[ident] = programs.into_store(store, ident, f"/usr/bin/app{number}", forged.path)
        contents[ident] = forged.read()
    mnt = mount()
    for turn in range(3):
        for ident, content in contents.items():
            assert mnt.artifact(ident).read_bytes() == content
        changed = list(contents)[turn::7]
        for ident in changed:
            contents[ident] += b"\0" * 16
            (workdir / "other").write_bytes(contents[ident])
            (workdir / "other").chmod(0o755)
            os.rename(workdir / "other", elfs[ident])
        tools.wait_until(lambda idents=changed: all(mnt.artifact(ident).stat().st_size == len(contents[ident]) for ident in idents),
                         "the new sizes")
