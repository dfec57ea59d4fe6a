# SPDX-License-Identifier: LGPL-2.1-or-later
"""Native changes of the store appear in the mount after a second, for which the kernel caches names and attributes."""
import errno
import os
import subprocess
import time

import pytest

import programs
import tools
from daemon import CACHED, requests
from fetching import read


@pytest.fixture
def program(workdir, store):
    made = programs.small(workdir / "app", 1, "-g")
    programs.into_store(store, made.id, "/usr/bin/app", made.path)
    return made


def names_of(mnt, program):
    return [mnt.artifact(program.id), mnt.artifact(program.id, "debuginfo"), mnt.link(program.id), mnt.link(program.id) / "elf",
            mnt / "usr/bin/app" / program.id / "elf", mnt.elf_file(program.id), mnt.debug_file(program.id)]


def use(paths):
    for path in paths:
        os.lstat(path)
        if path.is_file():
            assert path.read_bytes()


def test_names_and_attributes_are_cached_for_a_second(mount, mode, program):
    mnt = mount("busy_poll=0")
    paths, times = names_of(mnt, program), 50
    use(paths)
    before, begun = requests(mnt), time.monotonic()
    for _ in range(times):
        for path in paths:
            os.lstat(path)
    # with passthrough the kernel sends another request for the access time
    assert requests(mnt) - before <= 2 * len(paths) * (1 + int(time.monotonic() - begun))
    time.sleep(CACHED)
    before = requests(mnt)
    os.lstat(paths[0])
    assert requests(mnt) > before


def rewrite(workdir, store, program):
    """Rewrite the file in place, by another name of it."""
    with open(workdir / "another", "ab") as file:
        file.write(b"\0" * 16)


def replace(workdir, store, program):
    (workdir / "other").write_bytes(program.read() + b"\0" * 16)
    os.rename(workdir / "other", store / "usr/bin/app" / program.id / "elf")


def is_longer(mnt, program):
    return all(path.stat().st_size == len(program.read()) + 16 for path in names_of(mnt, program) if not path.is_symlink())


def is_gone(mnt, program):
    return not any(os.path.lexists(path) for path in names_of(mnt, program))


def is_unnamed(mnt, program):
    """Return whether the build has no link and only its original path."""
    there = mnt / "usr/bin/app" / program.id / "elf"
    return there.exists() and not any(os.path.lexists(path) for path in names_of(mnt, program) if path != there)


def is_removed(mnt, program):
    return read(mnt.artifact(program.id)) == read(mnt / "usr/bin/app" / program.id / "elf") == errno.ENOENT


CHANGES = {
    "rewrite": (rewrite, is_longer),
    "replace": (replace, is_longer),
    "unlink": (lambda workdir, store, program: (store / "usr/bin/app" / program.id / "elf").unlink(), is_removed),
    "purge": (lambda workdir, store, program: tools.run("rm", "-r", store / "usr", store / ".build-id"), is_gone),
    "move": (lambda workdir, store, program: (store / "usr").rename(workdir / "usr"), is_removed),
    "unnamed": (lambda workdir, store, program: (store / ".build-id" / program.id[:2]).rename(workdir / "links"), is_unnamed),
    "debug": (lambda workdir, store, program: programs.into_store(store, program.id, "/usr/bin/app", workdir / "app.debug",
                                                                             "debug"),
              lambda mnt, program: mnt.artifact(program.id, "debuginfo").stat().st_ino != mnt.artifact(program.id).stat().st_ino and
              read(mnt.debug_file(program.id)) == read(mnt.artifact(program.id, "debuginfo"))),
    "wrong": (lambda workdir, store, program: (workdir / "another").write_bytes(b"\x7fELF" + b"\0" * 60),
              lambda mnt, program: read(mnt.artifact(program.id)) == read(mnt.elf_file(program.id)) == errno.ENOENT),
}


@pytest.mark.parametrize("change", CHANGES)
def test_native_change_is_seen_after_a_second(mount, mode, workdir, store, program, change):
    tools.run("objcopy", "--only-keep-debug", program.path, workdir / "app.debug")
    os.link(store / "usr/bin/app" / program.id / "elf", workdir / "another")
    mnt = mount()
    mnt.permit("wrong content")
    use(names_of(mnt, program))
    act, seen = CHANGES[change]
    act(workdir, store, program)
    time.sleep(CACHED)
    assert seen(mnt, program)


def directories_of(mnt, program):
    return [mnt / "usr/bin", mnt / "usr/bin/app", mnt / "usr/bin/app" / program.id, mnt / "by-path/usr/bin/app"]


def test_directory_that_was_removed_natively_is_absent_after_a_second(mount, mode, store, program):
    mnt = mount()
    assert all(os.listdir(path) for path in directories_of(mnt, program))
    tools.run("rm", "-r", store / "usr", store / ".build-id")
    time.sleep(CACHED)
    assert not any(os.path.lexists(path) for path in directories_of(mnt, program))
    for path in directories_of(mnt, program):
        with pytest.raises(FileNotFoundError):
            os.listdir(path)


@pytest.mark.parametrize("others", [True, False], ids=["another build", "empty store"])
def test_new_native_name_is_seen_after_a_second(mount, mode, workdir, store, others):
    program, other = programs.small(workdir / "app", 1, "-g"), programs.small(workdir / "other", 2)
    if others:
        programs.into_store(store, other.id, "/usr/bin/app", other.path)
    mnt = mount()
    absent = [*names_of(mnt, program), mnt / "buildid" / program.id, mnt / "usr/bin/app" / program.id,
              mnt / "by-path/usr/bin/app" / program.id]
    assert not any(os.path.lexists(path) for path in absent)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    time.sleep(CACHED)
    assert all(os.path.lexists(path) for path in absent)
    assert mnt.artifact(program.id).read_bytes() == program.read()


def test_changed_link_is_seen_after_a_second(mount, mode, store, program):
    mnt = mount()
    link = mnt.link(program.id)
    native = store / ".build-id" / program.id[:2] / program.id[2:]
    for path in ("usr/bin/other", "usr/bin/app"):
        use([link, link / "elf"])
        programs.into_store(store, program.id, f"/{path}", program.path)
        (native.parent / "new").symlink_to(f"../../{path}/{program.id}")
        (native.parent / "new").rename(native)
        time.sleep(CACHED)
        assert os.readlink(link) == f"../../{path}/{program.id}"


@pytest.mark.parametrize("known", [True, False])
def test_open_link_keeps_its_text(mount, mode, store, program, known):
    """The kernel keeps the text of an open link, unless memory is short."""
    mnt = mount()
    link, native = mnt.link(program.id), store / ".build-id" / program.id[:2] / program.id[2:]
    held = os.open(link, os.O_PATH | os.O_NOFOLLOW)
    try:
        if known:
            assert os.readlink("", dir_fd=held) == f"../../usr/bin/app/{program.id}"
        programs.into_store(store, program.id, "/usr/bin/other", program.path)
        (native.parent / "new").symlink_to(f"../../usr/bin/other/{program.id}")
        (native.parent / "new").rename(native)
        tools.wait_until(lambda: os.readlink(link) == f"../../usr/bin/other/{program.id}", "the new text")
        if not known or tools.errno_of(os.readlink, "", dir_fd=held):
            assert tools.errno_of(os.readlink, "", dir_fd=held) == errno.ESTALE
        else:
            assert os.readlink("", dir_fd=held) == f"../../usr/bin/app/{program.id}"
    finally:
        os.close(held)


def test_change_by_bidctl_is_seen_after_a_second(mount, mode, store, program):
    mnt = mount()
    use(names_of(mnt, program))
    tools.run(tools.BIDCTL, "--store", store, "remove", program.id)
    time.sleep(CACHED)
    assert is_gone(mnt, program)
    tools.run(tools.BIDCTL, "--store", store, "add", program.path)
    time.sleep(CACHED)
    assert read(mnt.artifact(program.id)) == program.read()


def test_change_of_a_lower_store_is_seen_after_a_second(mount, mode, workdir, store):
    program = programs.small(workdir / "app", 1)
    lower = workdir / "lower"
    lower.mkdir()
    elf = programs.into_store(lower, program.id, "/usr/bin/app", program.path)
    mnt = mount(f"lower={lower}")
    path = mnt.artifact(program.id)
    use([path])
    elf.unlink()
    time.sleep(CACHED)
    assert read(path) == errno.ENOENT


@pytest.mark.parametrize("last", ["there", "away"])
def test_last_of_many_changes_is_seen(mount, mode, store, program, last):
    """Names are created and removed while readers look them up."""
    mnt = mount()
    paths = names_of(mnt, program)
    use(paths)
    elf = store / "usr/bin/app" / program.id / "elf"
    away = elf.with_name("away")
    script = 'while :; do for path; do test -r "$path"; done; done'
    asking = [subprocess.Popen(["sh", "-c", script, "sh", *paths]) for _ in range(2)]
    try:
        for turn in range(100):
            (away if turn % 2 else elf).rename(elf if turn % 2 else away)
            time.sleep(turn % 7 / 1000)
        if last == "away":
            elf.rename(away)
        expected = program.read() if last == "there" else errno.ENOENT
        tools.wait_until(lambda: read(paths[0]) == expected, "the last change")
    finally:
        for process in asking:
            process.kill()
            process.wait()
    tools.wait_until(lambda: all(read(path) == expected for path in paths if path != mnt.link(program.id)), "the last change")


def test_build_without_link_is_removed_by_its_names(mount, mode, store, program):
    """As perf does: first the link, then the files of its directory, then the directory, with any delay between the steps."""
    mnt = mount()
    workdir = mnt / "usr/bin/app" / program.id
    use(names_of(mnt, program))
    mnt.link(program.id).unlink()
    for _ in range(2):
        time.sleep(CACHED)
        assert os.listdir(workdir) == ["elf"] and (workdir / "elf").read_bytes() == program.read()
    (workdir / "elf").unlink()
    time.sleep(CACHED)
    workdir.rmdir()
    assert list((store / "usr/bin/app").iterdir()) == []
    assert tools.errno_of(os.lstat, workdir) == errno.ENOENT
    tools.wait_until(lambda: is_gone(mnt, program), "the end of all names")


def test_directories_of_one_id_show_their_own_files(mount, mode, workdir, store, program):
    """perf's link leads to the first directory."""
    other = program.read() + b"\0" * 16
    programs.into_store(store, program.id, "/opt/app", other)
    mnt = mount()
    for _ in range(2):
        assert (mnt / "usr/bin/app" / program.id / "elf").read_bytes() == program.read()
        assert (mnt / "opt/app" / program.id / "elf").read_bytes() == other
        assert mnt.artifact(program.id).read_bytes() == program.read()
        time.sleep(CACHED)
