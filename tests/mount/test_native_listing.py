# SPDX-License-Identifier: LGPL-2.1-or-later
"""Native changes of links and probe definitions, which perf lists."""
import os
import shutil
import time

import pytest

import programs
import tools
from daemon import CACHED

PROBES = "%sdt_app:one=one\np:sdt_app/one /usr/bin/app:0x1000\n"


@pytest.fixture
def ids(workdir, store):
    """Add builds with probe definitions, each at a path of its own."""
    sample = programs.small(workdir / "app", 1)
    made = [f"{number:040x}" for number in range(1, 31)]
    for ident in made:
        programs.into_store(store, ident, f"/usr/bin/app{ident}", programs.forge(sample, ident, workdir / "forged").path)
        programs.into_store(store, ident, f"/usr/bin/app{ident}", PROBES.encode(), "probes")
    time.sleep(0.05)  # a later write within the clock tick of a file's time does not change that time
    return made


def look(mnt, ids):
    """Read every link and the definitions behind it, as 'perf list' does."""
    return [(os.readlink(mnt.link(ident)), os.stat(mnt.link(ident) / "probes").st_size) for ident in ids]


def read(path):
    """Open for writing, stat and read definitions, as perf does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def content(path, flags):
    """Read without a stat(2)."""
    fd = os.open(path, flags)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR])
@pytest.mark.parametrize("change", ["rewrite", "replace"])
def test_native_probes_are_seen_at_open(mount, mode, store, ids, change, flags):
    """New definitions are visible at once in modes in which each open is a request."""
    mnt = mount()
    for ident in ids:
        path, workdir = mnt / f"usr/bin/app{ident}" / ident / "probes", store / f"usr/bin/app{ident}" / ident
        assert [read(path), content(path, flags)] == [PROBES.encode()] * 2
        CHANGES[change][0](store, workdir)
        wanted = (workdir / "probes").read_bytes()
        if mode != "no_open":
            assert content(path, flags) == wanted
    if mode == "no_open":
        time.sleep(CACHED)
        assert content(path, flags) == wanted


def beside(store, ident):
    """Return a path for definitions that needs no link."""
    workdir = store / "[debuginfod]" / ident
    workdir.mkdir(parents=True, exist_ok=True)
    return workdir / "probes"


def test_native_probes_beside_empty_ones_are_read_for_writing(mount, mode, store, ids):
    """A fresh open reads them at once. An fstat(2) within the same moment could make the kernel drop the pages for a reader."""
    if mode != "passthrough":
        pytest.skip("only with passthrough")
    mnt = mount()
    for ident in ids[:10]:
        (store / f"usr/bin/app{ident}" / ident / "probes").write_bytes(b"")
        time.sleep(0.05)
        path = mnt.link(ident) / "probes"
        assert [read(path), read(path)] == [b""] * 2
        beside(store, ident).write_text(PROBES)
        assert read(path) == PROBES.encode()


def test_written_empty_probes_are_the_ones_read(mount, mode, store, ids):
    """The write goes to the empty file that the mount did not serve, in a directory that the kernel has cached."""
    mnt, ident = mount(), ids[0]
    own, path = store / f"usr/bin/app{ident}" / ident / "probes", mnt.link(ident) / "probes"
    own.write_bytes(b"")
    os.utime(own, (1, 1))
    beside(store, ident).write_bytes(b"")
    time.sleep(0.05)
    assert [read(path), read(path)] == [b""] * 2
    own.write_text(PROBES)
    if mode == "no_open":
        time.sleep(CACHED)
    assert read(path) == PROBES.encode()


def test_link_directories_show_changes_at_once(mount, mode, store, ids):
    mnt = mount()

    def listed():
        return {fanout + rest for fanout in {ident[:2] for ident in ids} for rest in os.listdir(mnt / ".build-id" / fanout)}

    assert listed() == set(ids)
    for _ in range(3):
        link(store, ids[0]).unlink()
        assert listed() == set(ids[1:])
        link(store, ids[0]).symlink_to(f"../../usr/bin/app{ids[0]}/{ids[0]}")
        assert listed() == set(ids)
    mnt.link(ids[0]).unlink()
    assert listed() == set(ids[1:])


def link(store, ident):
    return store / ".build-id" / ident[:2] / ident[2:]


def rewrite(store, workdir):
    with open(workdir / "probes", "a", encoding="ascii") as file:
        file.write("%sdt_app:two=two\n")


def replace(store, workdir):
    (workdir / "new").write_text(PROBES * 2)
    (workdir / "new").rename(workdir / "probes")


def size_of(mnt, ident):
    return os.stat(mnt.link(ident) / "probes").st_size


CHANGES = {
    "rewrite": (rewrite, lambda mnt, ident: size_of(mnt, ident) == len(PROBES) + len("%sdt_app:two=two\n")),
    "replace": (replace, lambda mnt, ident: size_of(mnt, ident) == 2 * len(PROBES)),
    "no probes": (lambda store, workdir: (workdir / "probes").unlink(),
                   lambda mnt, ident: not (mnt.link(ident) / "probes").exists()),
    "no link": (lambda store, workdir: link(store, workdir.name).unlink(), lambda mnt, ident: not os.path.lexists(mnt.link(ident))),
    "no build": (lambda store, workdir: (link(store, workdir.name).unlink(), shutil.rmtree(workdir.parent)),
                 lambda mnt, ident: not os.path.lexists(mnt.link(ident)) and not (mnt / f"usr/bin/app{ident}").exists()),
    # the time of the directory of the original path shows the new entry
    "one more": (lambda store, workdir: shutil.copytree(workdir, workdir.with_name("f" * 40)),
                 lambda mnt, ident: (mnt / f"usr/bin/app{ident}").stat().st_mtime_ns ==
                 (mnt.store / f"usr/bin/app{ident}").stat().st_mtime_ns),
    "one more file": (lambda store, workdir: (workdir / "kallsyms").touch(),
                      lambda mnt, ident: (mnt / f"usr/bin/app{ident}" / ident).stat().st_mtime_ns ==
                      (mnt.store / f"usr/bin/app{ident}" / ident).stat().st_mtime_ns),
}


@pytest.mark.parametrize("change", CHANGES)
def test_native_change_of_listed_build_is_seen_after_a_second(mount, mode, store, ids, change):
    mnt = mount()
    ident = ids[0]
    workdir = store / f"usr/bin/app{ident}" / ident
    act, seen = CHANGES[change]
    look(mnt, ids)
    assert not seen(mnt, ident) or change.startswith("one more")
    act(store, workdir)
    time.sleep(CACHED)
    assert seen(mnt, ident)


def test_changes_by_perf_and_bidctl_are_seen(mount, mode, workdir, store):
    program = programs.small(workdir / "app", 1, "-g")
    mnt, env = mount(), tools.environment(workdir)
    tools.run("perf", "--buildid-dir", store, "buildid-cache", "-a", program.path, env=env)
    for argv in (["perf", "--buildid-dir", store, "buildid-cache", "-r", program.path],
                 [tools.BIDCTL, "--store", store, "remove", program.id]):
        tools.wait_until(lambda: os.path.lexists(mnt.link(program.id)), "it again")
        assert (mnt.link(program.id) / "elf").exists()
        tools.run(*argv, env=env)
        tools.wait_until(lambda: not os.path.lexists(mnt.link(program.id)), "its end")
        tools.run(tools.BIDCTL, "--store", store, "add", program.path)


def test_probes_written_through_the_mount_are_seen(mount, mode, store, ids):
    mnt = mount()
    for ident in ids:
        look(mnt, [ident])
        with open(mnt.link(ident) / "probes", "r+", encoding="ascii") as file:
            assert file.read() == PROBES
            file.seek(0)
            file.truncate()
            file.write("%sdt_app:other=other\n")
        assert (mnt.link(ident) / "probes").read_text() == "%sdt_app:other=other\n"
        assert os.stat(mnt.link(ident) / "probes").st_size == len("%sdt_app:other=other\n")
        assert (store / f"usr/bin/app{ident}" / ident / "probes").read_text() == "%sdt_app:other=other\n"


def test_write_goes_to_the_open_definitions(mount, mode, store, ids):
    """Another program replaces the file meanwhile."""
    ident = ids[0]
    workdir = store / f"usr/bin/app{ident}" / ident
    with open(mount().link(ident) / "probes", "r+b", buffering=0) as file:
        replace(store, workdir)
        file.write(b"#mine:one=main\n")
    assert (workdir / "probes").read_text() == PROBES * 2
