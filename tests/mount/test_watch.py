# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the kernel believes for long, and what is done to the store behind its back meanwhile."""
import contextlib
import errno
import mmap
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import programs
import tools
from fetching import read

OLD = 1.2  # seconds after which nothing is believed any more that is not watched
OVERFLOW = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text()) + 100


@pytest.fixture
def program(place, store):
    made = programs.small(place / "app", 1, "-g")
    programs.into_store(store, made.id, "/usr/bin/app", made.path)
    return made


def names_of(m, program):
    return [m.artifact(program.id), m.artifact(program.id, "debuginfo"), m.link(program.id), m.link(program.id) / "elf",
            m / "usr/bin/app" / program.id / "elf", m.elf_file(program.id), m.debug_file(program.id)]


def use(paths):
    for path in paths:
        os.lstat(path)
        if path.is_file():
            assert path.read_bytes()


def make_hot(m, paths, watched=1):
    """Ask until all is believed that may be: what is read is watched, and what is told of it from then on is believed."""
    use(paths)
    time.sleep(OLD)
    use(paths)
    assert m.status()["watched"] >= watched, m.status()["watched_reason"]


@contextlib.contextmanager
def stopped(m):
    """The daemon answers nothing, and hears nothing."""
    tools.stop(m.pid)
    try:
        yield
    finally:
        m.process.send_signal(signal.SIGCONT)


def requests(m):
    """What a daemon without busy polling has read: each time a request."""
    return int(re.search(r"syscr: (\d+)", pathlib.Path(f"/proc/{m.pid}/io").read_text())[1])


def most_requests(names):
    """
    For so many names that are believed: what is not takes three and more. Only the text of a link may be asked for again, as it
    lies in the page cache, which the kernel reclaims; before that is told it is read whether something has changed.
    """
    return 5 * len(names) // 2


def test_what_is_watched_is_believed_for_long(mount, mode, store, place):
    sample = programs.small(place / "app", 1)
    ids = [f"{number:040x}" for number in range(1, 31)]
    for ident in ids:
        programs.into_store(store, ident, f"/usr/bin/app{ident}", programs.forge(sample, ident, place / "forged").path)
    m = mount("busy_poll=0")
    views = (m.artifact, m.link, m.elf_file, lambda ident: m.link(ident) / "elf")
    everything = [view(ident) for view in views for ident in ids]
    make_hot(m, everything, len(ids))
    for path in everything:
        os.lstat(path)  # the time of the reading before
    for view in views:
        paths = [view(ident) for ident in ids]
        time.sleep(OLD)
        before = requests(m)
        for path in paths:
            os.lstat(path)
        assert requests(m) - before < most_requests(ids), paths[0]


def rewrite(place, store, program):
    """In place, by another name of the same file."""
    with open(place / "another", "ab") as file:
        file.write(b"\0" * 16)


def replace(place, store, program):
    (place / "other").write_bytes(program.read() + b"\0" * 16)
    os.rename(place / "other", store / "usr/bin/app" / program.id / "elf")


def is_longer(m, program):
    return all(path.stat().st_size == len(program.read()) + 16 for path in names_of(m, program) if not path.is_symlink())


def is_gone(m, program):
    return not any(os.path.lexists(path) for path in names_of(m, program))


def is_unnamed(m, program):
    """Without perf's link a build is at its original path alone."""
    there = m / "usr/bin/app" / program.id / "elf"
    return there.exists() and not any(os.path.lexists(path) for path in names_of(m, program) if path != there)


CHANGES = {
    "rewrite": (rewrite, is_longer),
    "replace": (replace, is_longer),
    "unlink": (lambda place, store, program: (store / "usr/bin/app" / program.id / "elf").unlink(),
               lambda m, program: read(m.artifact(program.id)) == read(m / "usr/bin/app" / program.id / "elf") == errno.ENOENT),
    "purge": (lambda place, store, program: tools.run("rm", "-r", store / "usr", store / ".build-id"), is_gone),
    "move": (lambda place, store, program: (store / "usr").rename(place / "usr"),
             lambda m, program: read(m.artifact(program.id)) == read(m / "usr/bin/app" / program.id / "elf") == errno.ENOENT),
    "unnamed": (lambda place, store, program: (store / ".build-id" / program.id[:2]).rename(place / "links"), is_unnamed),
    "debug": (lambda place, store, program: programs.into_store(store, program.id, "/usr/bin/app", place / "app.debug", "debug"),
              lambda m, program: m.artifact(program.id, "debuginfo").stat().st_ino != m.artifact(program.id).stat().st_ino and
              read(m.debug_file(program.id)) == read(m.artifact(program.id, "debuginfo"))),
    "wrong": (lambda place, store, program: (place / "another").write_bytes(b"\x7fELF" + b"\0" * 60),
              lambda m, program: read(m.artifact(program.id)) == read(m.elf_file(program.id)) == errno.ENOENT),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_behind_its_back_are_seen(mount, mode, place, store, program, change):
    tools.run("objcopy", "--only-keep-debug", program.path, place / "app.debug")
    os.link(store / "usr/bin/app" / program.id / "elf", place / "another")
    m = mount()
    m.permit("wrong content")
    make_hot(m, names_of(m, program))
    act, seen = CHANGES[change]
    act(place, store, program)
    tools.wait_until(lambda: seen(m, program), "the change")


def test_a_link_that_leads_elsewhere(mount, mode, store, program):
    m = mount()
    link = m.link(program.id)
    make_hot(m, [link, link / "elf"])
    native = store / ".build-id" / program.id[:2] / program.id[2:]
    for path in ("usr/bin/other", "usr/bin/app"):
        programs.into_store(store, program.id, f"/{path}", program.path)
        (native.parent / "new").symlink_to(f"../../{path}/{program.id}")
        (native.parent / "new").rename(native)
        tools.wait_until(lambda path=path: os.readlink(link) == f"../../{path}/{program.id}", "the new text")
        make_hot(m, [link, link / "elf"])


@pytest.mark.parametrize("known", [True, False])
def test_held_link_never_has_another_text(mount, mode, store, program, known):
    """The kernel keeps the text that it read, as long as it has memory for that."""
    m = mount()
    link, native = m.link(program.id), store / ".build-id" / program.id[:2] / program.id[2:]
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


def test_more_happens_than_the_kernel_remembers(mount, mode, store, program):
    m = mount()
    path = m.artifact(program.id)
    make_hot(m, [path])
    noise = [store / "usr/bin" / str(number) for number in range(50)]
    with stopped(m):
        for _ in range(0, OVERFLOW, 2 * len(noise)):
            for file in noise:
                file.touch()
            for file in noise:
                file.unlink()
        (store / "usr/bin/app" / program.id / "elf").unlink()
    tools.wait_until(lambda: read(path) == errno.ENOENT, "the change")


def test_more_ids_than_are_watched(mount, mode, with_descriptors, place, store):
    """Those that others take the places of are believed no longer than ever."""
    sample = programs.small(place / "app", 1)
    elfs = {}
    for number in range(1, 61):
        ident = f"{number:040x}"
        elfs[ident] = programs.into_store(store, ident, f"/usr/bin/app{number}",
                                          programs.forge(sample, ident, place / "forged").path)
    m = mount(program=with_descriptors(160))
    paths = [m.artifact(ident) for ident in elfs]
    make_hot(m, paths, 40)
    assert m.status()["watched"] == 40
    for elf in elfs.values():
        elf.unlink()
    tools.wait_until(lambda: not any(path.exists() for path in paths), "the end of all")


def deleted_files(m):
    links = []
    for descriptor in pathlib.Path(f"/proc/{m.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.append(os.readlink(descriptor))
    return [link for link in links if link.endswith("/elf (deleted)")]


def test_a_removed_file_is_given_back_when_nobody_reads_it(mount, mode, store, program):
    m = mount()
    path = m.artifact(program.id)
    make_hot(m, [path])
    content = program.read()
    with open(path, "rb", buffering=0) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        tools.run("rm", "-r", store / "usr", store / ".build-id")
        tools.wait_until(lambda: not path.exists(), "the end of the name")
        assert os.fstat(file.fileno()).st_size == len(content)
        assert os.pread(file.fileno(), len(content), 0) == mapped[:] == content
    tools.wait_until(lambda: not deleted_files(m), "the end of the file")


def test_what_bidctl_does_is_seen(mount, mode, store, program):
    m = mount()
    paths = names_of(m, program)
    make_hot(m, paths)
    for _ in range(2):
        tools.run(tools.BIDCTL, "--store", store, "remove", program.id)
        tools.wait_until(lambda: is_gone(m, program), "its end")
        tools.run(tools.BIDCTL, "--store", store, "add", program.path)
        tools.wait_until(lambda: read(m.artifact(program.id)) == program.read(), "it again")
        make_hot(m, [m.artifact(program.id)])


def test_a_lower_store_is_not_watched(mount, mode, place, store):
    program = programs.small(place / "app", 1)
    lower = place / "lower"
    lower.mkdir()
    elf = programs.into_store(lower, program.id, "/usr/bin/app", program.path)
    m = mount(f"lower={lower}")
    path = m.artifact(program.id)
    make_hot(m, [path], 0)
    assert m.status()["watched"] == 0
    elf.unlink()
    tools.wait_until(lambda: read(path) == errno.ENOENT, "its end")


@pytest.mark.parametrize("last", ["there", "away"])
def test_the_last_of_many_changes_counts(mount, mode, store, program, last):
    """While names are looked up they come and go: what was told before it was taken back must not stay."""
    m = mount()
    paths = names_of(m, program)
    make_hot(m, paths)
    elf = store / "usr/bin/app" / program.id / "elf"
    away = elf.with_name("away")
    script = 'while :; do for path; do test -r "$path"; done; done'
    asking = [subprocess.Popen(["sh", "-c", script, "sh", *paths]) for _ in range(2)]
    try:
        for turn in range(200):
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
    tools.wait_until(lambda: all(read(path) == expected for path in paths if path != m.link(program.id)), "the last change")


def test_who_removes_a_build_goes_on_through_its_names(mount, mode, store, program):
    """As perf does: the link first, then what is in the directory it led to, and that, however long each of these takes."""
    m = mount()
    place = m / "usr/bin/app" / program.id
    make_hot(m, names_of(m, program))
    m.link(program.id).unlink()
    for _ in range(2):
        time.sleep(OLD)
        assert os.listdir(place) == ["elf"] and (place / "elf").read_bytes() == program.read()
    (place / "elf").unlink()
    time.sleep(OLD)
    place.rmdir()
    assert list((store / "usr/bin/app").iterdir()) == []
    assert tools.errno_of(os.lstat, place) == errno.ENOENT
    tools.wait_until(lambda: is_gone(m, program), "the end of all names")


def test_a_miss_does_not_wait_for_its_watch(mount, mode, faults, place, needs_root):
    """Whoever reads what was just fetched has it before it is watched."""
    server = faults()
    program = programs.small(place / "app", 1)
    server.serve(program)
    m = mount(f"url={server.url}")
    slow = 20  # seconds, of each watch
    tracer = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-e", "trace=inotify_add_watch", "-e",
                               f"inject=inotify_add_watch:delay_enter={slow}s", "-p", str(m.pid)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in tracer.stderr.readline()
        begun = time.monotonic()
        assert m.artifact(program.id).read_bytes() == program.read()
        assert time.monotonic() - begun < slow
    finally:
        tracer.terminate()
        tracer.communicate()
    tools.wait_until(lambda: m.status()["watched"] == 1, "a watch")
