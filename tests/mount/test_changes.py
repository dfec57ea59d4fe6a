# SPDX-License-Identifier: LGPL-2.1-or-later
"""What lies under an id is changed, moved or removed while it is being read."""
import errno
import json
import mmap
import os
import subprocess

import pytest

import programs
import tools

BALLAST = "-DBALLAST=4000000"
CHUNK = 65536


def stored(store, program, path="/usr/bin/app"):
    programs.into_store(store, program.id, path, program.path)
    return store / path[1:] / program.id / "elf"


def served(path):
    """What an open gets; None where it is refused, because the file that others still hold was changed."""
    try:
        return path.read_bytes()
    except OSError as error:
        assert error.errno == errno.ESTALE
        return None


@pytest.mark.parametrize("lose", [lambda elf: elf.rename(elf.parent / "elsewhere"), lambda elf: elf.unlink()],
                         ids=["rename", "unlink"])
def test_a_reader_keeps_what_it_opened(mount, mode, store, place, lose):
    """perf -r and -u, and an eviction, take the name away; who reads goes on reading."""
    program = programs.small(place / "app", 1, BALLAST)
    content = program.read()
    elf = stored(store, program)
    m = mount()
    path = m.artifact(program.id)
    with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert file.read(CHUNK) == content[:CHUNK]
        lose(elf)
        assert os.fstat(file.fileno()).st_size == len(content)
        assert os.pread(file.fileno(), len(content), 0) == content
        assert mapped[:] == content
        tools.wait_until(lambda: not path.exists(), "the name is gone")
        assert os.pread(file.fileno(), 16, len(content) - 16) == content[-16:]


def test_never_the_bytes_of_a_file_that_was_changed(mount, mode, store, place):
    """A file is open and changed in place (row R17), and a right copy turns up elsewhere: an open gets the copy, or nothing."""
    program, other = programs.small(place / "app", 1), programs.small(place / "other", 2)
    right, wrong = program.read(), bytearray(program.read())
    wrong[right.index(bytes.fromhex(program.id))] ^= 0xff
    elf = stored(store, program)
    lower = place / "lower"
    lower.mkdir()
    programs.into_store(lower, program.id, "/usr/bin/app", program.path)
    m = mount(f"lower={lower}")
    m.permit("wrong content")
    path = m.artifact(program.id)
    with open(path, "rb", buffering=0) as first:
        assert first.read(16) == right[:16]
        with open(elf, "r+b") as file:
            file.write(wrong)
        for _ in range(3):
            assert served(path) in (right, None)
    # the changed file is let go of in the background
    tools.wait_until(lambda: served(path) == right, "the copy is served")
    assert other.id != program.id


def test_status_of_a_store_with_any_name(mount, place):
    store = os.fsencode(place) + b"/st\xff\n8"
    os.mkdir(store)
    m = mount(on=os.fsdecode(store))
    status = json.loads((m / ".bidfs/status").read_text())
    assert status["store"].endswith("\n8") and "\ufffd" in status["store"]


def test_others_get_no_further_than_below_the_mount(needs_root, mount, place):
    """What is protected by a directory above the store alone is protected in the mount."""
    program = programs.small(place / "app", 1)
    closed, opened = place / "closed", place / "opened"
    for directory, mode in ((closed, 0o700), (opened, 0o755)):
        (directory / "store").mkdir(parents=True)
        stored(directory / "store", program)
        directory.chmod(mode)

    def as_nobody(m):
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", m.artifact(program.id)],
                              capture_output=True, check=False)

    m = mount("allow_other", on=opened / "store")
    assert as_nobody(m).stdout == program.read()
    m = mount("allow_other", on=closed / "store")
    m.expect("not open to others")
    refused = as_nobody(m)
    assert refused.returncode != 0 and b"Permission denied" in refused.stderr and not refused.stdout
    assert m.artifact(program.id).read_bytes() == program.read()


def test_the_daemon_keeps_nothing_of_its_caller(mount, place, store):
    """A lock that a script holds ends with the script."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        point = place / "point"
        point.mkdir()
        subprocess.run([tools.MOUNT_BIDFS, store, point, "-o", "offline"], check=True, capture_output=True, close_fds=False,
                       timeout=20)
    finally:
        os.close(write)
    try:
        os.set_blocking(read, False)
        assert os.read(read, 1) == b"", "the daemon holds the other end"
    finally:
        os.close(read)
        tools.run("umount", point)


@pytest.mark.limit(60)
def test_files_that_come_back(mount, mode, store, place):
    """More of them than a daemon keeps at hand, read again and again, while other files take their places."""
    sample = programs.small(place / "app", 1)
    contents, elfs = {}, {}
    for number in range(700):
        ident = f"{number:040x}"
        forged = programs.forge(sample, ident, place / "forged")
        elfs[ident] = programs.into_store(store, ident, f"/usr/bin/app{number}", forged.path)
        contents[ident] = forged.read()
    m = mount()
    for turn in range(3):
        for ident, content in contents.items():
            assert m.artifact(ident).read_bytes() == content
        changed = list(contents)[turn::7]
        for ident in changed:
            contents[ident] += b"\0" * 16
            (place / "other").write_bytes(contents[ident])
            (place / "other").chmod(0o755)
            os.rename(place / "other", elfs[ident])
        tools.wait_until(lambda idents=changed: all(m.artifact(ident).stat().st_size == len(contents[ident]) for ident in idents),
                         "the new sizes", 20)
