# SPDX-License-Identifier: LGPL-2.1-or-later
"""What perf's listings look at, and read nothing of the build itself, is believed for long, too: until it is changed."""
import itertools
import os
import shutil
import subprocess
import time

import pytest

import programs
import tools
from test_watch import OLD, make_hot, most_requests, requests

PROBES = "%sdt_app:one=one\np:sdt_app/one /usr/bin/app:0x1000\n"


@pytest.fixture
def ids(place, store):
    """Builds with probe definitions, each at an original path of its own."""
    sample = programs.small(place / "app", 1)
    made = [f"{number:040x}" for number in range(1, 31)]
    for ident in made:
        programs.into_store(store, ident, f"/usr/bin/app{ident}", programs.forge(sample, ident, place / "forged").path)
        programs.into_store(store, ident, f"/usr/bin/app{ident}", PROBES.encode(), "probes")
    time.sleep(0.05)  # what was written in the last tick may be written once more without showing it, and is not believed
    return made


def look(m, ids):
    """As 'perf list' does: every link, its text, and the definitions behind it."""
    return [(os.readlink(m.link(ident)), os.stat(m.link(ident) / "probes").st_size) for ident in ids]


def test_who_lists_twice_asks_once(mount, mode, store, ids):
    m = mount("busy_poll=0")
    first = look(m, ids)
    assert m.status()["watched"] == len(ids)
    time.sleep(OLD)
    before = requests(m)
    assert look(m, ids) == first
    assert requests(m) - before < most_requests(ids)


def test_definitions_that_are_opened_and_not_written_are_the_same(mount, mode, store, ids):
    """perf opens those of every build for writing, whether it lists the mount or the store."""
    m = mount("busy_poll=0")
    first = look(m, ids)
    for place in (m / ".build-id", store / ".build-id"):
        for ident in ids:
            os.close(os.open(place / ident[:2] / ident[2:] / "probes", os.O_RDWR | os.O_CREAT))
    time.sleep(OLD)
    before = requests(m)
    assert look(m, ids) == first
    assert requests(m) - before < most_requests(ids)


def read(path):
    """As perf reads definitions: for writing, with a look at their attributes."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def test_definitions_are_read_once(mount, mode, store, ids):
    m = mount("busy_poll=0")
    for _ in range(3):
        first = [read(m.link(ident) / "probes") for ident in ids]
        assert first == [PROBES.encode()] * len(ids)
        time.sleep(OLD)
    before = requests(m)
    assert [read(m.link(ident) / "probes") for ident in ids] == first
    # it is asked for the open and told of the close, and the attributes may be asked for
    assert requests(m) - before < (3 * len(ids) if mode != "no_open" else 0) + len(ids)


def test_definitions_that_are_known_are_not_looked_for(mount, mode, store, ids, place, needs_root):
    """It is asked for each open, be it to write, and has them open already."""
    if tools.is_sanitized():
        pytest.skip("what a sanitizer opens is none of its business here")
    m = mount("busy_poll=0")
    for ident in ids[1:]:
        (store / f"usr/bin/app{ident}" / ident / "probes").write_bytes(b"")  # others might be elsewhere
    time.sleep(0.05)
    for _ in range(2):
        first = [read(m.link(ident) / "probes") for ident in ids]
        assert first == [PROBES.encode()] + [b""] * len(ids[1:])
        time.sleep(OLD)
    log = place / "calls"
    tracer = subprocess.Popen(["strace", "-f", "-o", log, "-e", "trace=openat2,readlinkat", "-p", str(m.pid)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in tracer.stderr.readline()
        assert [read(m.link(ident) / "probes") for ident in ids] == first
        time.sleep(0.1)  # more than closes are gathered for
    finally:
        tracer.terminate()
        tracer.communicate()
    calls = [line for line in log.read_text().splitlines() if ids[5][2:] in line]
    assert calls == [], calls


def content(path, flags):
    """Without a look at its attributes."""
    fd = os.open(path, flags)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
@pytest.mark.parametrize("change", ["rewrite", "replace"])
def test_definitions_are_those_of_when_they_are_opened(mount, mode, store, ids, change, flags):
    """At once, because the mount is asked."""
    m = mount()
    for ident in ids:
        path, place = m / f"usr/bin/app{ident}" / ident / "probes", store / f"usr/bin/app{ident}" / ident
        assert [read(path), content(path, flags)] == [PROBES.encode()] * 2
        CHANGES[change][0](store, place)
        wanted = (place / "probes").read_bytes()
        if mode != "no_open":
            assert content(path, flags) == wanted
    if mode == "no_open":
        time.sleep(OLD)
        assert content(path, flags) == wanted


def beside(store, ident):
    """Definitions in a place that needs no link."""
    place = store / "[debuginfod]" / ident
    place.mkdir(parents=True, exist_ok=True)
    return place / "probes"


@pytest.mark.parametrize("mode", ["passthrough"], indirect=True)
@pytest.mark.parametrize("watched", [True, False])
def test_definitions_that_come_beside_empty_ones_are_read_to_be_written(mount, mode, store, ids, with_descriptors, watched):
    """
    At once, where the mount is asked for each open. With a look at their attributes, of which the kernel drops the answer for a
    reader if it is told in the same moment that they are others.
    """
    m = mount(program=with_descriptors(80))  # a fourth of them
    make_hot(m, [m.artifact(ident) for ident in ids[10:]], 20)
    for ident in (ids[10:] if watched else ids)[:10]:
        (store / f"usr/bin/app{ident}" / ident / "probes").write_bytes(b"")
        time.sleep(0.05)
        path = m.link(ident) / "probes"
        assert [read(path), read(path)] == [b""] * 2
        beside(store, ident).write_text(PROBES)
        assert read(path) == PROBES.encode()


def test_empty_definitions_that_are_written_are_those_that_are_read(mount, mode, store, ids):
    """Of two, of which the one that was not found is written; nothing but its directory tells."""
    m, ident = mount(), ids[0]
    own, path = store / f"usr/bin/app{ident}" / ident / "probes", m.link(ident) / "probes"
    own.write_bytes(b"")
    os.utime(own, (1, 1))
    beside(store, ident).write_bytes(b"")
    time.sleep(0.05)
    assert [read(path), read(path)] == [b""] * 2
    own.write_text(PROBES)
    if mode == "no_open":
        time.sleep(OLD)
    assert read(path) == PROBES.encode()


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
@pytest.mark.parametrize("change", ["rewrite", "replace"])
def test_so_are_those_that_are_not_watched(mount, mode, store, ids, change, flags, with_descriptors):
    m = mount(program=with_descriptors(80))  # a fourth of them
    make_hot(m, [m.artifact(ident) for ident in ids[:20]], 20)
    for ident in ids[20:]:
        path, place = m.link(ident) / "probes", store / f"usr/bin/app{ident}" / ident
        assert [read(path), content(path, flags)] == [PROBES.encode()] * 2
        CHANGES[change][0](store, place)
        # longer than what was changed just now is looked at anew each time
        time.sleep(0.05 if mode != "no_open" else OLD)
        wanted = (place / "probes").read_bytes()
        if mode != "no_open":
            assert content(path, flags) == wanted
        else:
            tools.wait_until(lambda path=path, wanted=wanted: content(path, flags) == wanted, "the change")
    assert m.status()["watched"] == 20


def test_what_is_being_written_is_not_watched(mount, mode, place):
    """perf looks at the link of what it has just filed, and then makes the definitions, by which the watch would end."""
    seeds = itertools.count()

    def attempt():
        program, m = programs.small(place / "app", next(seeds)), mount()
        directory = m / "usr/bin/app" / program.id
        os.makedirs(directory)
        (directory / ".elf.AbCdEf").write_bytes(program.read())
        os.link(directory / ".elf.AbCdEf", directory / "elf")
        os.unlink(directory / ".elf.AbCdEf")
        assert os.readlink(m.link(program.id)) == f"../../usr/bin/app/{program.id}"
        assert m.status()["watched"] == 0
        (directory / "probes").touch()
        time.sleep(3)
        assert os.path.lexists(m.link(program.id)) and m.status()["watched"] == 1

    tools.in_time(attempt)


def test_directories_of_links_are_kept_and_taken_back(mount, mode, store, ids):
    """The kernel lists them again by itself, until there are others, wherever those come from."""
    m = mount("busy_poll=0")
    fans = sorted({ident[:2] for ident in ids})

    def listed():
        return {fan + rest for fan in fans for rest in os.listdir(m / ".build-id" / fan)}

    times = [os.stat(m / ".build-id" / fan).st_mtime_ns for fan in fans]
    for _ in range(2):
        assert listed() == set(ids)
    # to be listed is no change
    assert [os.stat(m / ".build-id" / fan).st_mtime_ns for fan in fans] == times

    def is_kept():
        before = requests(m)
        assert listed() == set(ids)
        # who opens one asks, and closes it: the kernel may drop what it keeps
        return requests(m) - before <= 2 * len(fans)

    tools.wait_until(is_kept, "a listing that asks for no name")
    for _ in range(3):
        link(store, ids[0]).unlink()
        assert listed() == set(ids[1:])
        link(store, ids[0]).symlink_to(f"../../usr/bin/app{ids[0]}/{ids[0]}")
        assert listed() == set(ids)
    m.link(ids[0]).unlink()
    assert listed() == set(ids[1:])


def test_who_looks_at_links_is_told_of_them_with_their_names(mount, mode, place, store):
    """As perf does in each directory of links after the other. Who wants the names alone is not, and makes nothing be watched."""
    sample, number = programs.small(place / "app", 1), 4
    ids = {fan: [f"{fan}{index:038x}" for index in range(1, number + 1)] for fan in ("01", "02", "03")}
    for ident in sum(ids.values(), []):
        programs.into_store(store, ident, f"/usr/bin/{ident}", programs.forge(sample, ident, place / "forged").path)
    m = mount()

    def watched_after(function, *arguments):
        function(*arguments)
        return m.status()["watched"]

    assert watched_after(os.listdir, m / ".build-id/01") == 0
    assert watched_after(os.lstat, m.link(ids["01"][0])) == 1
    assert watched_after(os.listdir, m / ".build-id/02") == 1 + number
    assert watched_after(tools.run, "find", m / ".build-id", "-type", "f") == 1 + number
    for fan in ids:
        assert sorted(os.listdir(m / ".build-id" / fan)) == [ident[2:] for ident in ids[fan]]
        for ident in ids[fan]:
            assert os.readlink(m.link(ident)) == f"../../usr/bin/{ident}/{ident}"
            assert m.link(ident).resolve() == m / f"usr/bin/{ident}/{ident}"
    # and is told when they change
    gone, led = ids["02"][:2]
    link(store, gone).unlink()
    link(store, led).unlink()
    link(store, led).symlink_to(f"../../usr/bin/{gone}/{gone}")
    tools.wait_until(lambda: not os.path.lexists(m.link(gone)), "the end of one")
    tools.wait_until(lambda: os.readlink(m.link(led)) == f"../../usr/bin/{gone}/{gone}", "another text")


def test_who_looks_at_more_links_than_are_watched_is_told_of_them_again(mount, mode, place, store, with_descriptors):
    """A hundred ids are watched here: with what the kernel kept of a listing, each of the others would be asked for by itself."""
    sample, fans = programs.small(place / "app", 1), ("01", "02", "03")
    ids = [f"{fan}{index:038x}" for fan in fans for index in range(1, 61)]
    for ident in ids:
        programs.into_store(store, ident, f"/usr/bin/{ident}", programs.forge(sample, ident, place / "forged").path)
    m = mount("busy_poll=0", program=with_descriptors(400))

    def look_at(*fans):
        return {fan + rest: os.lstat(m / ".build-id" / fan / rest).st_ino for fan in fans
                for rest in os.listdir(m / ".build-id" / fan)}

    first = look_at(*fans)
    assert first.keys() == set(ids) and m.status()["watched"] == 100

    def attempt():
        time.sleep(OLD)
        # of the last sixty none is watched
        before = requests(m)
        assert look_at("03").items() <= first.items()
        assert requests(m) - before < 30

    tools.in_time(attempt, 3)
    assert look_at(*fans) == first
    for ident in (ids[0], ids[-1]):
        link(store, ident).unlink()
    assert look_at(*fans).keys() == set(ids[1:-1])


def link(store, ident):
    return store / ".build-id" / ident[:2] / ident[2:]


def rewrite(store, place):
    with open(place / "probes", "a", encoding="ascii") as file:
        file.write("%sdt_app:two=two\n")


def replace(store, place):
    (place / "new").write_text(PROBES * 2)
    (place / "new").rename(place / "probes")


def size_of(m, ident):
    return os.stat(m.link(ident) / "probes").st_size


CHANGES = {
    "rewrite": (rewrite, lambda m, ident: size_of(m, ident) == len(PROBES) + len("%sdt_app:two=two\n")),
    "replace": (replace, lambda m, ident: size_of(m, ident) == 2 * len(PROBES)),
    "no probes": (lambda store, place: (place / "probes").unlink(), lambda m, ident: not (m.link(ident) / "probes").exists()),
    "no link": (lambda store, place: link(store, place.name).unlink(), lambda m, ident: not os.path.lexists(m.link(ident))),
    "no build": (lambda store, place: (link(store, place.name).unlink(), shutil.rmtree(place.parent)),
                 lambda m, ident: not os.path.lexists(m.link(ident)) and not (m / f"usr/bin/app{ident}").exists()),
    # the directory of the original path tells by its time that there is one more
    "one more": (lambda store, place: shutil.copytree(place, place.with_name("f" * 40)),
                 lambda m, ident: (m / f"usr/bin/app{ident}").stat().st_mtime_ns ==
                 (m.store / f"usr/bin/app{ident}").stat().st_mtime_ns),
    "one more file": (lambda store, place: (place / "kallsyms").touch(),
                      lambda m, ident: (m / f"usr/bin/app{ident}" / ident).stat().st_mtime_ns ==
                      (m.store / f"usr/bin/app{ident}" / ident).stat().st_mtime_ns),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_behind_its_back_are_seen(mount, mode, store, ids, change):
    m = mount()
    ident = ids[0]
    place = store / f"usr/bin/app{ident}" / ident
    act, seen = CHANGES[change]
    look(m, ids)
    assert not seen(m, ident) or change.startswith("one more")
    act(store, place)
    tools.wait_until(lambda: seen(m, ident), "the change")


def test_what_perf_and_bidctl_do_to_the_store_is_seen(mount, mode, place, store):
    program = programs.small(place / "app", 1, "-g")
    m, env = mount(), tools.environment(place)
    tools.run("perf", "--buildid-dir", store, "buildid-cache", "-a", program.path, env=env)
    for argv in (["perf", "--buildid-dir", store, "buildid-cache", "-r", program.path],
                 [tools.BIDCTL, "--store", store, "remove", program.id]):
        tools.wait_until(lambda: os.path.lexists(m.link(program.id)), "it again")
        assert (m.link(program.id) / "elf").exists()
        tools.run(*argv, env=env)
        tools.wait_until(lambda: not os.path.lexists(m.link(program.id)), "its end")
        tools.run(tools.BIDCTL, "--store", store, "add", program.path)


def test_definitions_that_are_written_through_the_mount(mount, mode, store, ids):
    m = mount()
    for ident in ids:
        look(m, [ident])
        with open(m.link(ident) / "probes", "r+", encoding="ascii") as file:
            assert file.read() == PROBES
            file.seek(0)
            file.truncate()
            file.write("%sdt_app:other=other\n")
        assert (m.link(ident) / "probes").read_text() == "%sdt_app:other=other\n"
        assert os.stat(m.link(ident) / "probes").st_size == len("%sdt_app:other=other\n")
        assert (store / f"usr/bin/app{ident}" / ident / "probes").read_text() == "%sdt_app:other=other\n"


def test_a_listing_takes_no_place_of_what_is_read(mount, mode, place, store):
    limited = place / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n 80\nexec {tools.MOUNT_BIDFS} "$@"\n')  # a fourth of them
    limited.chmod(0o755)
    sample = programs.small(place / "app", 1)
    ids = [f"{number:040x}" for number in range(1, 41)]
    for ident in ids:
        programs.into_store(store, ident, f"/usr/bin/app{ident}", programs.forge(sample, ident, place / "forged").path)
    for ident in ids:
        programs.into_store(store, ident, f"/usr/bin/app{ident}", PROBES.encode(), "probes")
    m = mount("busy_poll=0", program=limited)
    used = [m.artifact(ident) for ident in ids[:15]]
    make_hot(m, used, len(used))
    for _ in range(2):
        for ident in ids:
            assert (m.link(ident) / "probes").read_text() == PROBES
        time.sleep(OLD)
    assert m.status()["watched"] == 20
    for path in used:
        os.lstat(path)  # the time of the reading before
    time.sleep(OLD)
    before = requests(m)
    for path in used:
        os.lstat(path)
    assert requests(m) - before < most_requests(used)
