# SPDX-License-Identifier: LGPL-2.1-or-later
"""R29: file handles as NFS servers keep them: over a remount, over a restart of the daemon, and forged ones."""
import ctypes
import errno
import os
import random
import signal
import struct

import pytest

import programs
import tools

FULL = bool(os.environ.get("BIDFS_FULL"))
AT_FDCWD = -100
HANDLE_MAX = 128
LIBC = ctypes.CDLL(None, use_errno=True)


class FileHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * HANDLE_MAX)]


def handle_of(path):
    """Call name_to_handle_at(2); return (type, bytes)."""
    handle, mount_id = FileHandle(bytes=HANDLE_MAX), ctypes.c_int()
    if LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount_id), 0) < 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at", str(path))
    return handle.type, bytes(handle.handle[:handle.bytes])


def open_handle(mount, handle, flags=os.O_RDONLY):
    """Call open_by_handle_at(2); return a descriptor."""
    wanted = FileHandle(bytes=len(handle[1]), type=handle[0], handle=(ctypes.c_ubyte * HANDLE_MAX)(*handle[1]))
    root = os.open(mount.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = LIBC.open_by_handle_at(root, ctypes.byref(wanted), flags)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return fd
    finally:
        os.close(root)


def read_handle(mount, handle):
    with open(open_handle(mount, handle), "rb") as file:
        return file.read()


def inode_of_handle(mount, handle):
    fd = open_handle(mount, handle, os.O_PATH)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


@pytest.fixture
def builds(workdir, store):
    """Store some programs, one of them with a separate debug file."""
    made = [programs.small(workdir / f"app{seed}", seed) for seed in range(4)]
    made.append(programs.split(programs.small(workdir / "split", 9), workdir / "split.debug"))
    for number, program in enumerate(made):
        programs.into_store(store, program.id, f"/usr/bin/deep/er/app{number}", program.path)
    programs.into_store(store, made[-1].id, "/usr/bin/deep/er/app4", made[-1].debug, "debug")
    return made


def restart(mount, at, how):
    """Mount the store again at the same directory."""
    if how == "kill":
        at.die()
        tools.run("umount", "-l", at.path)
    else:
        at.unmount()
    return mount(at=at.path)


@pytest.mark.parametrize("how", ["unmount", "kill"])
def test_handles_are_valid_after_a_restart(needs_root, mount, mode, builds, how):
    mnt = mount()
    contents = {}
    for program in builds:
        contents[handle_of(mnt.artifact(program.id))] = program.read()
        contents[handle_of(mnt.elf_file(program.id))] = program.read()
    contents[handle_of(mnt.artifact(builds[-1].id, "debuginfo"))] = builds[-1].debug.read_bytes()
    names = ["", "buildid", f"buildid/{builds[0].id}", f"buildid/{builds[0].id}/info", f"buildid/{builds[0].id}/section",
             ".build-id", f".build-id/{builds[0].id[:2]}", f".build-id/{builds[0].id[:2]}/{builds[0].id[2:]}", "by-path",
             "usr/lib/debug/.build-id", f"debug/.build-id/{builds[0].id[:2]}", ".bidfs", ".bidfs/README", ".bidfs/status"]
    inodes = {handle_of(mnt / name): os.stat(mnt / name, follow_symlinks=False).st_ino for name in names}
    assert len(inodes) == len(names), "two names have one handle"

    mnt = restart(mount, mnt, how)
    for handle, content in contents.items():
        assert read_handle(mnt, handle) == content
    for handle, inode in inodes.items():
        assert inode_of_handle(mnt, handle) == inode


def test_handles_of_paths_and_sections_are_stale_after_a_restart(needs_root, mount, mode, store, workdir, builds):
    """Handles of original paths, sections, sources and kcore copies are valid only with the daemon that returned them."""
    sources = store / ".bidfs/source" / builds[0].id[:2] / builds[0].id[2:] / "usr/src"
    sources.mkdir(parents=True)
    (sources / "a.c").write_text("int a;\n")
    copy = store / "[kernel.kcore]" / builds[1].id / "2026112108080800"
    copy.mkdir(parents=True)
    (copy / "modules").write_text("a 1\n")
    mnt = mount()
    directory = mnt / "buildid" / builds[0].id
    paths = [mnt / "usr", mnt / "usr/bin/deep", mnt / f"usr/bin/deep/er/app0/{builds[0].id}", mnt / "by-path/usr/bin/deep",
             mnt / "debug",
             directory / "source/usr", directory / "source/usr/src/a.c", directory / "section/.text",
             mnt / copy.relative_to(store), mnt / copy.relative_to(store) / "modules"]
    handles = {path: handle_of(path) for path in paths}
    for path, handle in handles.items():
        assert inode_of_handle(mnt, handle) == os.stat(path, follow_symlinks=False).st_ino

    mnt = restart(mount, mnt, "kill")
    for path, handle in handles.items():
        assert tools.errno_of(open_handle, mnt, handle, os.O_PATH) == errno.ESTALE, path
    # an NFS client then looks the path up again
    for path, handle in handles.items():
        assert handle_of(path) == handle and inode_of_handle(mnt, handle) == os.stat(path, follow_symlinks=False).st_ino


def test_handle_of_padded_short_id_is_valid_after_a_restart(needs_root, mount, store, workdir):
    short = programs.small(workdir / "short", 8, f"-Wl,--build-id=0x{'ab' * 8}")
    programs.into_store(store, short.id, "/usr/bin/short", short.path)
    mnt = mount()
    handle = handle_of(mnt.artifact(f"{short.id:0<40}"))
    mnt = restart(mount, mnt, "kill")
    assert read_handle(mnt, handle) == short.read()


@pytest.mark.parametrize("parent", ["buildid", "usr/lib/debug/.build-id"])
def test_directory_is_reached_by_its_handle_alone(needs_root, mount, builds, parent):
    """The kernel has no name of the path cached and looks up ".." as far as the root, and a name in each directory."""
    mnt = mount()
    path = f"{mnt}/{parent}/{builds[0].id if parent == 'buildid' else builds[0].id[:2]}"
    handle, names = handle_of(path), set(os.listdir(path))
    mnt = restart(mount, mnt, "unmount")
    fd = open_handle(mnt, handle, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert set(os.listdir(fd)) == names and os.readlink(f"/proc/self/fd/{fd}") == path
    finally:
        os.close(fd)


def test_handle_of_removed_file_is_stale(needs_root, mount, store, builds):
    mnt = mount()
    handles = [handle_of(mnt.artifact(builds[0].id)), handle_of(mnt / "buildid" / builds[0].id)]
    mnt.unmount()
    tools.run(tools.BIDCTL, "-s", store, "remove", builds[0].id)
    mnt = mount(at=mnt.path)
    for handle in handles:
        assert tools.errno_of(open_handle, mnt, handle) == errno.ESTALE


@pytest.mark.limit(600 if FULL else 60)
def test_handle_of_every_id_opens_its_file(needs_root, mount, mode, memory):
    """Another daemon opens a handle of each id of a large store, and the content fits the id. BIDFS_FULL=1 uses ten thousand."""
    count = int(os.environ.get("BID_TEST_IDS", "10000" if FULL else "1000"))
    tools.run(tools.BUILD / "tests/bench/make-store", memory / "store", count)
    mnt = mount(on=memory / "store")
    handles = {ident: handle_of(mnt.artifact(ident)) for ident in os.listdir(mnt / "buildid")}
    assert len(set(handles.values())) == count
    mnt = restart(lambda at: mount(at=at, on=memory / "store"), mnt, "kill")
    for ident, handle in handles.items():
        assert bytes.fromhex(ident) in read_handle(mnt, handle)


def test_handle_is_valid_again_after_a_new_download(needs_root, mount, mode, faults, store, workdir):
    """The handle is stale without the file. After the download a new daemon, which has no table of handles, opens it."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(program.id).read_bytes() == program.read()
    handle = handle_of(mnt.artifact(program.id))
    mnt.unmount()
    tools.run(tools.BIDCTL, "-s", store, "remove", program.id)
    mnt = mount(f"url={server.url}", at=mnt.path)
    assert tools.errno_of(open_handle, mnt, handle) == errno.ESTALE
    assert mnt.artifact(program.id).read_bytes() == program.read()
    assert read_handle(mnt, handle) == program.read() and handle_of(mnt.artifact(program.id)) == handle
    assert server.count(program.id) == 2


@pytest.mark.limit(1200 if FULL else 120)
def test_forged_handles_are_stale(needs_root, mount, mode, builds):
    """Any number is stale, or opens the file of that number, and the daemon survives. BIDFS_FULL=1 tries a million."""
    mnt = mount()
    kind, sample = handle_of(mnt.artifact(builds[0].id))
    chance = random.Random(29)
    count = 1000000 if FULL else 20000
    opened = 0
    for number in range(count):
        if number % 2:
            forged = chance.randbytes(len(sample))
        else:
            # numbers near a valid one: other bits, the same generation
            forged = bytearray(sample)
            forged[chance.randrange(8)] ^= 1 << chance.randrange(8)
        try:
            fd = open_handle(mnt, (kind, bytes(forged)), os.O_PATH)
        except OSError as error:
            assert error.errno == errno.ESTALE, (bytes(forged).hex(), error)
            continue
        opened += 1
        upper, lower = struct.unpack_from("=II", forged)
        assert os.fstat(fd).st_ino == upper << 32 | lower
        os.close(fd)
    assert opened < count / 100
    assert mnt.artifact(builds[0].id).read_bytes() == builds[0].read()
    assert mnt.end(signal.SIGTERM) == 0
