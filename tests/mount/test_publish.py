# SPDX-License-Identifier: LGPL-2.1-or-later
"""Written files, by any writer: the store gets only complete files with the id of their name, and they stay as they are."""
import contextlib
import errno
import fcntl
import os
import pathlib
import platform
import shutil
import time

import pytest

import programs
import tools
from daemon import is_mounted
from perf_cache import perf, view  # noqa: F401  fixtures
from perf_cache import objdir_of, Perf, perf_files, write_as_perf
from test_perf import why_no_recording

BAD = {
    "another build": lambda perf: perf.other.read(),
    "a build without id": lambda perf: perf.plain.read_bytes(),
    "no ELF file": lambda perf: b"not an ELF file",
    "nothing": lambda perf: b"",
    "a part": lambda perf: perf.burn.read()[:-500],
}


def placed(mnt, program):
    """Return the path of the program's file; a process that inherited its descriptor ends before the file is published."""
    tools.wait_until(mnt.artifact(program.id).exists, "its place")
    return mnt.artifact(program.id)


@pytest.mark.parametrize("what", BAD)
def test_file_without_its_id_is_refused(view, perf, store, what):
    """docs/PERF.md, 7: a file must have the id of its directory, whoever writes it."""
    content = BAD[what](perf)
    directory = objdir_of(view, perf.burn)
    view.expect("cannot publish")
    for kind in ("elf", "debug"):
        assert tools.errno_of(write_as_perf, directory, content, kind) == errno.EBADMSG, kind
        assert not (directory / kind).exists()
    assert not view.link(perf.burn.id).is_symlink()
    # the same steps with the right bytes succeed
    write_as_perf(directory, perf.burn.read())
    assert (directory / "elf").read_bytes() == perf.burn.read()
    tools.wait_until(view.link(perf.burn.id).is_symlink, "perf's link")
    assert sorted(os.listdir(directory)) == ["elf"]
    view.unmount()
    assert sorted(path for path in perf_files(store)) == sorted([f"{str(perf.burn.path)[1:]}/{perf.burn.id}/elf",
                                                                 f".build-id/{perf.burn.id[:2]}/{perf.burn.id[2:]}"])


def test_every_way_of_writing_publishes(view, perf):
    """Other writers than perf write under the final name, or rename to it."""
    content, directory = perf.burn.read(), objdir_of(view, perf.burn)
    os.makedirs(directory)
    with open(directory / "elf", "wb") as file:
        half = len(content) // 2
        file.seek(half)
        file.write(content[half:])
        file.flush()
        file.seek(0)
        file.write(content[:half])
    assert (directory / "elf").read_bytes() == content
    assert placed(view, perf.burn).read_bytes() == content
    other = objdir_of(view, perf.other)
    os.makedirs(other)
    (other / ".elf.AbCdEf").write_bytes(perf.other.read())
    os.rename(other / ".elf.AbCdEf", other / "elf")
    assert sorted(os.listdir(other)) == ["elf"]
    assert view.artifact(perf.other.id).read_bytes() == perf.other.read()


UNPACK = {
    "cp": 'cp -af "$1/." "$2"',
    "tar": 'tar -cf - -C "$1" . | tar -xf - -C "$2"',
    "links": 'tar -cf - -C "$1" .build-id/$3 | tar -xf - -C "$2"',
    "definitions first": 'cd "$1" && tar -cf - $(find . -name probes) $(find . -name elf) .build-id | tar -xf - -C "$2"',
    "bsdtar": 'bsdtar -cf - -C "$1" . | bsdtar -xf - -C "$2"',
}


@pytest.fixture
def cache(perf):
    """Make a native cache for a copy: a program with definitions."""
    path = perf.workdir / "cache"
    path.mkdir()
    perf.run(path, "buildid-cache", "-a", perf.other.path)
    perf.run(path, "probe", "-q", "-n", "-x", perf.other.path, "--cache", "--add", "mine=hot_other")
    return path


@pytest.mark.parametrize("how", UNPACK)
def test_copied_cache_gives_the_same_tree(view, mode, store, perf, cache, how):
    """Links are replaced, without effects on other files: a second path stays, and so do definitions that only the mount has."""
    kept = b"p:my/keep 0x1159\n"
    perf.run(view, "buildid-cache", "-a", perf.burn.path)
    perf.run(view, "buildid-cache", "-a", perf.copy.path)
    perf.run(cache, "buildid-cache", "-a", perf.burn.path)
    probes = objdir_of(view, perf.burn) / "probes"
    probes.write_bytes(kept)

    tools.run("sh", "-euc", UNPACK[how], "sh", cache, view, f"{perf.burn.id[:2]}/{perf.burn.id[2:]}")
    for program in [perf.burn] if how == "links" else [perf.burn, perf.other]:
        link = view / ".build-id" / program.id[:2] / program.id[2:]
        tools.wait_until((link / "elf").exists, "the program")
        assert (link / "elf").read_bytes() == program.read(), os.readlink(link)
        assert placed(view, program).read_bytes() == program.read()
    assert objdir_of(view, perf.copy, perf.burn.id).is_dir()
    # perf writes definitions if it finds probes, and the copy of the cache overwrites them
    if not (cache / probes.relative_to(view.path)).exists():
        assert probes.read_bytes() == kept
    if how != "links":
        assert b"mine" in (objdir_of(view, perf.other) / "probes").read_bytes()
    perf.run(view, "buildid-cache", "-r", perf.burn.path)
    assert not (view / ".build-id" / perf.burn.id[:2] / perf.burn.id[2:]).exists()
    # the mount invalidates the other names in the kernel a moment later
    tools.wait_until(lambda: not view.artifact(perf.burn.id).exists(), "the build's end")
    # no link leads to the other path any more
    shutil.rmtree(objdir_of(view, perf.copy, perf.burn.id))
    view.unmount()
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=perf.env).stderr


def archived(env):
    """Make once for all tests: a program, a native cache filled by a recording, and its perf archive. Return them."""
    workdir = programs.cache() / f"archived-{platform.release()}"
    far, done = workdir / "far", workdir / "done"
    with open(f"{workdir}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(workdir, ignore_errors=True)
            far.mkdir(parents=True)
            perf = Perf(workdir, env)
            perf.record(far)
            perf.run(far, "archive", perf.data)
            done.touch()
    (archive,) = workdir.glob("perf.data.tar*")
    return programs.Program(workdir / "burn"), far, archive


def test_unpacked_archive_gives_the_same_tree(view, store, env):
    """Unpack as perf archive --unpack does, or as perf archive says where it cannot."""
    if reason := why_no_recording():
        pytest.skip(reason)
    burn, far, archive = archived(env)
    tools.run("perf", "--buildid-dir", view, "buildid-cache", "-a", burn.path, env=env)
    tools.run("tar", "-xf", archive, "-C", view)
    for link in far.glob(".build-id/*/*"):
        if (link / "elf").exists():
            assert (view / link.relative_to(far) / "elf").read_bytes() == (link / "elf").read_bytes()
    assert placed(view, burn).read_bytes() == burn.read()
    view.unmount()
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=env).stderr


def write_in_parts(mnt, program):
    content, workdir = program.read() + b"and more", objdir_of(mnt, program)
    workdir.mkdir(parents=True)
    quarter, end = len(content) // 4, len(program.read())
    with open(workdir / "elf", "wb", buffering=0) as file:
        for start, stop in ((0, quarter), (2 * quarter, end)):
            os.pwrite(file.fileno(), content[start:stop], start)
            os.stat(workdir / "elf")
            assert not mnt.artifact(program.id).exists()
        os.pwrite(file.fileno(), content[quarter:2 * quarter], quarter)
        os.stat(workdir / "elf")
        tools.run("true", pass_fds=[file.fileno()])
        assert not mnt.artifact(program.id).exists()
        # EPERM once the file is published
        assert tools.errno_of(os.pwrite, file.fileno(), content[end:], end) == 0
    assert placed(mnt, program).read_bytes() == content


def test_file_is_published_at_its_last_close(view, store, perf):
    """A reader, or a process that inherits the descriptor, does not end the writing."""
    write_in_parts(view, programs.burn(perf.workdir / "large", "hot_large", 5, "-static"))
    view.unmount()
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=perf.env).stderr


@pytest.fixture
def beneath(store):
    """Return a path of the store that no later mount covers."""
    descriptor = os.open(store, os.O_PATH)
    yield pathlib.Path(f"/proc/self/fd/{descriptor}")
    os.close(descriptor)


def test_closed_file_survives_a_kill(beneath, view, store, perf):
    """The file is published when close(2) returns."""
    workdir = objdir_of(view, perf.burn)
    workdir.mkdir(parents=True)
    shutil.copyfile(perf.burn.path, workdir / "elf")
    assert (beneath / workdir.relative_to(view.path) / "elf").exists()
    view.kill()
    tools.wait_until(lambda: not is_mounted(view.path), "the end of the mount")
    assert (store / workdir.relative_to(view.path) / "elf").read_bytes() == perf.burn.read()


@pytest.mark.parametrize("content, offset", [(b"", 0), (b"junk", 0), (b"junk", 1 << 20)], ids=["empty", "junk", "with a hole"])
def test_refused_file_fails_close_and_leaves_no_name(view, perf, content, offset):
    """perf would take the file for that of its build. An empty file is refused at RELEASE, which returns no error."""
    workdir = objdir_of(view, perf.burn)
    view.expect("cannot publish")
    workdir.mkdir(parents=True)
    descriptor = os.open(workdir / "elf", os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(descriptor, content, offset)
    assert tools.errno_of(os.close, descriptor) == (errno.EBADMSG if content else 0)
    # the daemon sees the last close a moment after the writer
    tools.wait_until(lambda: not (workdir / "elf").exists(), "the end of what was refused")
    assert not view.artifact(perf.burn.id).exists() and os.listdir(workdir) == []
    workdir.rmdir()
    perf.run(view.path, "buildid-cache", "-a", perf.burn.path)
    assert placed(view, perf.burn).read_bytes() == perf.burn.read()


@pytest.mark.parametrize("how", ["close", "link", "rename", "inherited"])
def test_publish_error_reaches_the_writer_and_the_log(beneath, mount, mode, perf, how):
    """A link in place of the directory causes an error, as a full disk would. No name is left."""
    mnt = mount()
    workdir = objdir_of(mnt, perf.burn)
    workdir.mkdir(parents=True)
    mnt.expect("cannot publish .*/elf'")
    name = workdir / (".elf.AbCdEf" if how in ("link", "rename") else "elf")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(descriptor, perf.burn.read())
    os.fsync(descriptor)
    stored = beneath / workdir.relative_to(mnt.path)
    stored.rmdir()
    stored.symlink_to("nowhere")
    if how == "close":
        assert tools.errno_of(os.close, descriptor) == errno.ENOTDIR
    elif how == "inherited":
        tools.run("true", pass_fds=[descriptor])
        assert tools.errno_of(os.close, descriptor) == errno.ENOTDIR
    else:
        os.close(descriptor)
        assert tools.errno_of(getattr(os, how), name, workdir / "elf") == errno.ENOTDIR
    tools.wait_until(lambda: not os.path.lexists(workdir / "elf"), "the end of the name")
    assert not mnt.artifact(perf.burn.id).exists()
    mnt.unmount()
    assert len([line for line in mnt.log().splitlines() if "cannot publish" in line]) == 1


@pytest.fixture
def ext4(needs_root, workdir):
    """Return a file system whose directories can be immutable."""
    image, there = workdir / "ext4.image", workdir / "ext4"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    there.mkdir()
    tools.run("mkfs.ext4", "-q", image)
    if tools.run("mount", "-o", "loop", image, there, status=None).returncode:
        pytest.skip("needs a loop device")
    (there / "store").mkdir()
    yield there / "store"
    tools.run("umount", "-l", there)


@pytest.mark.parametrize("how", ["close", "link"])
def test_immutable_directory_fails_publishing(ext4, mount, mode, perf, how):
    mnt = mount(on=ext4)
    objdir = objdir_of(mnt, perf.burn)
    objdir.mkdir(parents=True)
    mnt.expect("Operation not permitted: cannot publish .*/elf'")
    stored = ext4 / objdir.relative_to(mnt.path)
    tools.run("chattr", "+i", stored)
    try:
        name = objdir / (".elf.AbCdEf" if how == "link" else "elf")
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(descriptor, perf.burn.read())
        if how == "close":
            assert tools.errno_of(os.close, descriptor) == errno.EPERM
        else:
            os.close(descriptor)
            assert tools.errno_of(os.link, name, objdir / "elf") == errno.EPERM
        tools.wait_until(lambda: not os.path.lexists(objdir / "elf"), "the end of the name")
        assert not mnt.artifact(perf.burn.id).exists()
    finally:
        tools.run("chattr", "-i", stored)
    mnt.unmount()


def test_fsync_of_a_published_file_succeeds(view, perf):
    objdir = objdir_of(view, perf.burn)
    objdir.mkdir(parents=True)
    descriptor = os.open(objdir / "elf", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(descriptor, perf.burn.read())
    os.close(os.dup(descriptor))
    assert view.artifact(perf.burn.id).exists()
    os.fsync(descriptor)
    os.close(descriptor)
    with open(view.artifact(perf.burn.id), "rb") as file:
        os.fsync(file.fileno())


def test_rmdir_waits_for_an_open_writer(view, perf):
    """The directory looks empty, because temporary names are not listed."""
    directory = objdir_of(view, perf.burn)
    directory.mkdir(parents=True)
    with open(directory / ".elf.AbCdEf", "wb", buffering=0) as file:
        file.write(perf.burn.read())
        assert tools.errno_of(os.rmdir, directory) == errno.ENOTEMPTY
        os.link(directory / ".elf.AbCdEf", directory / "elf")
    assert (directory / "elf").read_bytes() == perf.burn.read()


def test_published_file_is_not_writable(view, perf):
    """perf removes the temporary name, by which the file cannot be written either."""
    workdir, content = objdir_of(view, perf.burn), perf.burn.read()
    workdir.mkdir(parents=True)
    with open(workdir / ".elf.tmp", "w+b", buffering=0) as file:
        file.write(content)
        os.link(workdir / ".elf.tmp", workdir / "elf")
        assert tools.errno_of(os.pwrite, file.fileno(), b"garbage", 0x800) == errno.EPERM
        assert tools.errno_of(os.ftruncate, file.fileno(), 100) == errno.EPERM
        assert tools.errno_of(os.fchmod, file.fileno(), 0o777) == errno.EPERM
        os.utime(file.fileno())
    os.unlink(workdir / ".elf.tmp")
    assert view.artifact(perf.burn.id).read_bytes() == (workdir / "elf").read_bytes() == content


def test_mv_publishes(view, perf):
    """coreutils rename with RENAME_NOREPLACE."""
    workdir = objdir_of(view, perf.burn)
    workdir.mkdir(parents=True)
    shutil.copyfile(perf.burn.path, workdir / ".elf.tmp")
    tools.run("mv", workdir / ".elf.tmp", workdir / "elf")
    assert os.listdir(workdir) == ["elf"] and view.artifact(perf.burn.id).read_bytes() == perf.burn.read()


@pytest.mark.parametrize("steps", ["install -m 755 $0 $1", "head -c 5000 $0 >$1; tail -c +5001 $0 >>$1"], ids=["install", "in two"])
def test_mv_of_file_written_in_steps_publishes(view, perf, steps):
    """mount.bidfs(8): under its final name the file would be checked after the first step."""
    workdir = objdir_of(view, perf.burn)
    workdir.mkdir(parents=True)
    tools.run("sh", "-ec", f"{steps}; mv $1 $2", perf.burn.path, workdir / ".elf.tmp", workdir / "elf")
    assert os.listdir(workdir) == ["elf"] and view.artifact(perf.burn.id).read_bytes() == perf.burn.read()


def test_signal_drops_open_temporary_files(view, perf):
    """An open file may be incomplete; the log names it."""
    workdir = objdir_of(view, perf.burn)
    workdir.mkdir(parents=True)
    descriptor = os.open(workdir / "elf", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(descriptor, perf.burn.read())
    view.expect("the daemon ended before a program had closed")
    assert view.end() == 0
    view.check_log()
    with contextlib.suppress(OSError):
        os.close(descriptor)
    tools.wait_until(lambda: not is_mounted(view.path), "the end of the mount")
    assert not (view.store / workdir.relative_to(view.path) / "elf").exists()


def test_link_before_its_target_is_accepted(view, store, perf):
    """cp(1) may create the link first, and then uses it, whatever the kernel has cached."""
    link, directory = view / ".build-id" / perf.burn.id[:2] / perf.burn.id[2:], objdir_of(view, perf.burn)
    text = f"../../{directory.relative_to(view.path)}"
    os.symlink(text, link)
    for _ in range(20):
        os.chown(link, os.getuid(), os.getgid(), follow_symlinks=False)
        assert os.readlink(link) == text and not link.exists() and not view.artifact(perf.burn.id).exists()
        time.sleep(0.01)
    # every listed name exists
    assert perf.burn.id in os.listdir(view / "buildid") and os.listdir(view / "buildid" / perf.burn.id) == ["info"]
    os.unlink(link)
    assert not os.path.lexists(link) and not os.path.lexists(store / link.relative_to(view.path))
    os.symlink(text, link)
    directory.mkdir(parents=True)
    shutil.copyfile(perf.burn.path, directory / "elf")
    tools.wait_until((link / "elf").exists, "the program")
    assert (link / "elf").read_bytes() == placed(view, perf.burn).read_bytes() == perf.burn.read()


def test_removed_link_stays_removed_and_leaves_the_files(mount, mode, store, workdir):
    """unlink(2) removes the link of any number of builds, and nothing else."""
    first, links, dirs = programs.small(workdir / "first"), [], []
    for number in range(41):
        build = programs.forge(first, f"{number:08x}{first.id[8:]}", workdir / f"app{number}")
        programs.into_store(store, build.id, f"/usr/bin/app{number}", build.path)
        links.append(pathlib.Path(build.id[:2], build.id[2:]))
        dirs.append((pathlib.Path("usr/bin", f"app{number}", build.id), build))
    mnt = mount("offline")
    for link in links:
        assert (mnt / ".build-id" / link / "elf").exists()
    for link in links:
        os.unlink(mnt / ".build-id" / link)
    for path, build in dirs:
        assert os.listdir(mnt / path) == ["elf"] and (mnt / path / "elf").read_bytes() == build.read()
        assert not mnt.artifact(build.id).exists()
    assert [link for link in links for top in (mnt, store) if os.path.lexists(top / ".build-id" / link)] == []
    # a new link leads to the files that are still stored
    os.symlink(f"../../{dirs[0][0]}", mnt / ".build-id" / links[0])
    assert (mnt / ".build-id" / links[0] / "elf").read_bytes() == dirs[0][1].read()
    tools.wait_until(mnt.artifact(dirs[0][1].id).exists, "the build")


def test_rmdir_of_a_build_with_files_is_refused(view, perf):
    """After the removal of its link as well, because files may have been added meanwhile."""
    perf.run(view, "buildid-cache", "-a", perf.burn.path)
    directory = objdir_of(view, perf.burn)
    (directory / "probes").write_bytes(b"p:my/keep 0x1159\n")
    os.unlink(view.link(perf.burn.id))
    assert tools.errno_of(os.rmdir, directory) == errno.ENOTEMPTY
    assert sorted(os.listdir(directory)) == ["elf", "probes"] and (directory / "elf").read_bytes() == perf.burn.read()
    os.unlink(directory / "elf")
    assert tools.errno_of(os.rmdir, directory) == errno.ENOTEMPTY
    os.unlink(directory / "probes")
    os.rmdir(directory)
    assert not directory.exists() and not view.artifact(perf.burn.id).exists()


def test_open_directory_survives_other_removals(view):
    """The name is removed and created again; then 300 others are removed."""
    top = view / "opt/things"
    top.mkdir(parents=True)
    (top / "kept").mkdir()
    gone = os.open(top / "kept", os.O_RDONLY)
    os.rmdir(top / "kept")
    (top / "kept").mkdir()
    kept = os.open(top / "kept", os.O_RDONLY)
    for number in range(300):
        (top / f"other{number % 3}").mkdir()
        os.rmdir(top / f"other{number % 3}")
    os.stat(top / "kept")
    assert os.listdir(kept) == [] and os.path.samestat(os.fstat(kept), os.stat(top / "kept"))
    assert tools.errno_of(os.listdir, gone) in (0, errno.ENOENT)
    os.mkdir("below", dir_fd=kept)
    assert os.listdir(top / "kept") == ["below"]
    os.close(kept)
    os.close(gone)


def test_derived_probes_are_unlinked_and_written_anew(view, perf):
    """tar(1) unlinks an existing file and creates it with O_EXCL."""
    perf.run(view, "buildid-cache", "-a", perf.probed.path)
    probes = objdir_of(view, perf.probed) / "probes"
    with contextlib.suppress(FileNotFoundError):
        (view.store if view.store != view.path else view.path).joinpath(probes.relative_to(view.path)).unlink()
    for _ in range(2):
        if probes.exists():
            os.unlink(probes)
        descriptor = os.open(probes, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, b"p:my/own 0x1159\n")
        os.close(descriptor)
        assert probes.read_bytes() == b"p:my/own 0x1159\n"


def test_symbol_table_is_published_at_close(mount, mode):
    """The content does not show its end; the close of the writer does."""
    mnt, ident, lines = mount(), "ab" * 20, b"ffffffff81000000 T _text\n" * 1000
    directory = mnt / "[kernel.kallsyms]" / ident
    os.makedirs(directory)
    with open(directory / "kallsyms", "wb", buffering=0) as file:
        file.write(lines[:8192])
        assert (directory / "kallsyms").stat().st_size == 8192
        assert (directory / "kallsyms").read_bytes() == lines[:8192]
        file.write(lines[8192:])
    tools.wait_until(lambda: (directory / "kallsyms").exists() and mnt.artifact(ident, "kallsyms").exists(), "the symbol table")
    assert mnt.artifact(ident, "kallsyms").read_bytes() == lines


def test_shell_redirection_publishes(mount, mode, perf):
    """A shell closes a second descriptor of a redirection before anything is written; then each program closes its own."""
    mnt, ident, source = mount(), "ab" * 20, perf.workdir / "table"
    source.write_bytes(b"ffffffff81000000 T _text\n" * 1000)
    table, elf = mnt / "[kernel.kallsyms]" / ident / "kallsyms", objdir_of(mnt, perf.burn) / "elf"
    for path in (table, elf):
        os.makedirs(path.parent)
    # cut within a line, as a table that ends with a line counts as complete when a slow second program starts late
    tools.run("sh", "-euc", '(head -c 110 "$1"; tail -c +111 "$1") >"$2"', "sh", source, table)
    tools.run("sh", "-euc", 'cat "$1" >"$2"', "sh", perf.burn.path, elf)
    tools.wait_until(lambda: table.exists() and mnt.artifact(ident, "kallsyms").exists(), "the table")
    tools.wait_until(lambda: elf.exists() and mnt.artifact(perf.burn.id).exists(), "the program")
    assert mnt.artifact(ident, "kallsyms").read_bytes() == source.read_bytes()
    assert mnt.artifact(perf.burn.id).read_bytes() == elf.read_bytes() == perf.burn.read()


@pytest.mark.parametrize("content", [b"0000000000000000 T _text\n" * 1000, b"hello\n"], ids=["hidden", "no table"])
def test_table_without_addresses_is_refused(mount, mode, store, content):
    """A later table with addresses is accepted."""
    mnt, ident, good = mount(), "ab" * 20, b"ffffffff81000000 T _text\n"
    directory = mnt / "[kernel.kallsyms]" / ident
    mnt.expect("cannot publish")
    assert tools.errno_of(write_as_perf, directory, content, "kallsyms") == errno.EBADMSG
    assert not (directory / "kallsyms").exists() and not mnt.artifact(ident, "kallsyms").exists()
    write_as_perf(directory, good, "kallsyms")
    tools.wait_until(mnt.artifact(ident, "kallsyms").exists, "the symbol table")
    assert mnt.artifact(ident, "kallsyms").read_bytes() == good
    # it also replaces a table without addresses that perf stored natively
    other = programs.into_store(store, "cd" * 20, "[kernel.kallsyms]", content, "kallsyms")
    assert not mnt.artifact("cd" * 20, "kallsyms").exists()
    mnt.expect("quarantined")
    write_as_perf(mnt / "[kernel.kallsyms]" / ("cd" * 20), good, "kallsyms")
    tools.wait_until(mnt.artifact("cd" * 20, "kallsyms").exists, "the symbol table")
    assert mnt.artifact("cd" * 20, "kallsyms").read_bytes() == other.read_bytes() == good


def test_unmount_publishes_quiescent_files(mount, mode, perf, store):
    """No reader looks at the file before the unmount."""
    mnt, lines = mount(), b"ffffffff81000000 T _text\n"
    for directory, name, content in ((objdir_of(mnt, perf.burn), "elf", perf.burn.read()),
                                     (mnt / "[kernel.kallsyms]" / ("ab" * 20), "kallsyms", lines)):
        os.makedirs(directory)
        (directory / name).write_bytes(content)
    mnt.unmount()
    assert (store / str(perf.burn.path)[1:] / perf.burn.id / "elf").read_bytes() == perf.burn.read()
    assert (store / "[kernel.kallsyms]" / ("ab" * 20) / "kallsyms").read_bytes() == lines


def overwrite(path):
    with open(path, "r+b", buffering=0) as file:
        file.write(b"x")


def test_file_with_an_id_is_immutable(view, perf):
    perf.run(view.path, "buildid-cache", "-a", perf.burn.path)
    elf = objdir_of(view, perf.burn) / "elf"
    for call in (lambda: os.truncate(elf, 1), lambda: overwrite(elf), lambda: open(elf, "wb")):
        assert tools.errno_of(call) == errno.EPERM
    # write bits are never shown; the owner may set times
    os.chmod(elf, 0o755)
    os.utime(elf, (5, 5))
    assert elf.stat().st_mode & 0o777 & ~0o555 == 0 and elf.stat().st_mtime == 5
    assert tools.errno_of(os.chown, elf, 1, 1) == errno.EPERM
    os.chown(elf, elf.stat().st_uid, elf.stat().st_gid)
    os.chmod(elf, 0o500)
    assert elf.stat().st_mode & 0o777 == 0o500
    assert elf.read_bytes() == perf.burn.read()
    for path in (view / "buildid/new", view / "by-path/new", view / ".bidfs/new", view / "usr/lib/debug/.build-id/ab/new"):
        assert tools.errno_of(os.mkdir, path) in (errno.EPERM, errno.ENOENT), path
    for path in (view / "file", view / ".build-id/ab/cdef", view / "usr/file"):
        assert tools.errno_of(open, path, "w") == errno.EPERM, path
    assert tools.errno_of(os.symlink, "/etc/passwd", view / ".build-id/ab/cdef") == errno.EINVAL
    assert tools.errno_of(os.symlink, "../../../../etc/abcdef", view / ".build-id/ab/cdef") == errno.EINVAL


@pytest.mark.parametrize("options", [[], ["--inplace"], ["--delay-updates"]], ids=lambda options: " ".join(options) or "plain")
def test_rsync_of_a_cache_gives_the_same_tree(view, perf, cache, store, options):
    """rsync(1) writes under temporary names, in place, or in a temporary directory."""
    if not shutil.which("rsync"):
        pytest.skip("rsync is missing")
    perf.run(cache, "buildid-cache", "-a", perf.burn.path)
    tools.run("rsync", "-a", *options, f"{cache}/", f"{view}/")
    wanted = perf_files(cache, False)
    assert {path: what for path, what in perf_files(view.path, False).items() if path in wanted} == wanted
    # a second run copies nothing
    tools.run("rsync", "-a", *options, f"{cache}/", f"{view}/")
    view.unmount()
    assert {path: what for path, what in perf_files(store, False).items() if not path.startswith(".bidfs/")} == wanted
    assert "found 0" in tools.run(tools.BIDCTL, "--store", store, "verify", env=perf.env).stderr


@pytest.mark.parametrize("content", [b"", b"#own\np:my/own 0x1129\n"], ids=["empty", "text"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
def test_temporary_name_becomes_probes(view, perf, there, content):
    """Write and rename."""
    perf.run(view, "buildid-cache", "-a", perf.burn.path)
    probes = objdir_of(view, perf.burn) / "probes"
    if there:
        probes.write_bytes(b"p:my/keep 0x1159\n" * 10)
    elif probes.exists():
        probes.unlink()
    (probes.parent / ".probes.AbCdEf").write_bytes(content)
    os.rename(probes.parent / ".probes.AbCdEf", probes)
    assert probes.read_bytes() == content and not (probes.parent / ".probes.AbCdEf").exists()


def test_file_moves_from_a_temporary_directory(view, perf):
    """As rsync --delay-updates: a file in the temporary directory is not published under its name there."""
    workdir = objdir_of(view, perf.burn)
    (workdir / ".~tmp~").mkdir(parents=True)
    shutil.copyfile(perf.burn.path, workdir / ".~tmp~/elf")
    assert not view.artifact(perf.burn.id).exists()
    os.rename(workdir / ".~tmp~/elf", workdir / "elf")
    (workdir / ".~tmp~").rmdir()
    # the kernel caches absent names for a second
    tools.wait_until(view.artifact(perf.burn.id).exists, "the published file under its id")
    assert (workdir / "elf").read_bytes() == view.artifact(perf.burn.id).read_bytes() == perf.burn.read()


def test_temporary_directory_stays_until_it_is_empty(view, perf):
    """rsync(1) calls rmdir(2) after each file that it moved, and rm -r removes the rest."""
    workdir = objdir_of(view, perf.burn)
    temporary = workdir / ".~tmp~"
    temporary.mkdir(parents=True)
    for name in ("elf", "probes", ".elf.x"):
        (workdir / ".moved").write_bytes(b"some bytes")
        shutil.move(workdir / ".moved", temporary / name)
    assert sorted(os.listdir(temporary)) == [".elf.x", "elf", "probes"]
    assert (temporary / "elf").read_bytes() == b"some bytes"
    assert tools.errno_of(temporary.rmdir) == errno.ENOTEMPTY
    shutil.rmtree(temporary)
    assert not temporary.exists() and not (workdir / ".moved").exists()
