# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is missing comes from a server: once, right, and so that the store is perf's as before."""
import errno
import os
import pathlib
import subprocess
import time

import pytest

import programs
import tools
from fetching import contents, leftovers, names, read, read_all

CROWD = 200


@pytest.fixture
def program(place):
    return programs.split(programs.burn(place / "app", "fetched_hot"), place / "app.debug")


def test_one_download_for_many_readers(mount, mode, faults, place, program):
    server = faults("delay:2*1")
    server.serve(program)
    m = mount(f"url={server.url}")
    argv = [programs.compile_c("crowd.c", place / "crowd"), str(CROWD), m.artifact(program.id), program.path]
    crowd = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert crowd.stdout.readline() == "go\n"
    tools.wait_until(server.count, "the request")
    assert crowd.communicate()[0] == f"{CROWD} right\n"
    assert server.count() == server.count(program.id) == 1
    assert m.counter("fetched") == 1
    # the other artifact of that build is another download, and a stored one is none
    assert read_all(names(m, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    assert read_all(names(m, program.id)) == [program.read()] * 2
    assert server.count() == 2


def test_downloaded_file_is_listed(mount, mode, faults, program, store):
    server = faults()
    server.serve(program)
    m = mount(f"url={server.url}")
    assert os.listdir(m / "buildid") == []
    # a look at the name is enough, and tells the true size
    assert os.stat(m.artifact(program.id, "debuginfo")).st_size == program.debug.stat().st_size
    assert os.listdir(m / "buildid") == [program.id]
    tools.wait_until(lambda: sorted(os.listdir(m / "buildid" / program.id)) == ["debuginfo", "info", "section"], "the listing")
    assert read(m / "buildid" / program.id / "executable") == program.read()
    assert sorted(os.listdir(m / "buildid" / program.id)) == ["debuginfo", "elf", "executable", "info", "section"]
    # and it is there without the server, under every name
    server.stop()
    m.unmount()
    again = mount("offline")
    assert read_all(names(again, program.id)) == [program.read()] * 2
    assert read_all(names(again, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    link = again.link(program.id)
    assert read(link / "elf") == program.read() and read(link / "debug") == program.debug.read_bytes()
    assert leftovers(store) == []


@pytest.mark.parametrize("beside", ("store", "lower"))
def test_stripped_debug_file_yields_to_the_servers(mount, faults, place, program, store, beside):
    """A debug file with neither DWARF nor symbols is served only without a better one."""
    stripped = place / "stripped.debug"
    tools.run("objcopy", "--only-keep-debug", program.path, stripped)
    tree = place / "lower" if beside == "lower" else store
    tree.mkdir(exist_ok=True)
    programs.into_store(tree, program.id, "/usr/bin/app", stripped, "debug")
    options = [f"lower={tree}"] if beside == "lower" else []
    alone = mount(*options)
    assert read_all(names(alone, program.id, "debuginfo")) == [stripped.read_bytes()] * 2
    alone.unmount()
    server = faults()
    server.serve(program)
    m = mount(f"url={server.url}", *options)
    assert read_all(names(m, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    assert read(m.link(program.id) / "debug") == program.debug.read_bytes()
    assert server.count() == 1


@pytest.mark.parametrize("behaviour", ("absent", "error:503", "hang-up", "flip-note", "stall-headers"))
def test_stripped_debug_file_is_served_if_no_server_delivers(mount, faults, place, program, store, behaviour):
    stripped = place / "stripped.debug"
    tools.run("objcopy", "--only-keep-debug", program.path, stripped)
    programs.into_store(store, program.id, "/usr/bin/app", stripped, "debug")
    server = faults(behaviour)
    server.serve(program)
    m = mount(f"url={server.url}", "wait=2")
    m.permit("unreachable|refused what")
    assert read_all(names(m, program.id, "debuginfo")) == [stripped.read_bytes()] * 2
    assert read(m.link(program.id) / "debug") == stripped.read_bytes()
    assert server.count() > 0


def test_long_id_is_fetched_once(mount, faults, place):
    """Asked for by all of its 32 bytes; perf then asks by 20."""
    program = programs.small(place / "app", 1, f"-Wl,--build-id=0x{'0123456789abcdef' * 4}")
    server = faults()
    server.serve(program)
    m = mount(f"url={server.url}")
    assert read(m.artifact(program.id)) == program.read()
    assert read(m.artifact(program.id[:40])) == program.read()
    assert server.count() == 1


def test_downloaded_build_is_found_by_perf(mount, mode, faults, store, place, env):
    recorded = programs.burn(place / "prog", "hot_recorded")
    # newer perf has ids beside the mappings, where "buildid-cache -M" does not look
    record = ["perf", "record", "-q", "-N", "--no-buildid-mmap", "-e", "cpu-clock", "-o", place / "perf.data", recorded.path,
              200_000_000]
    done = tools.run(*record, status=None, env=env)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
    server = faults()
    server.serve(recorded)
    # another build takes its place, and a server has the one that ran
    programs.burn(place / "prog", "hot_other", 2)

    def perf(cache, *arguments):
        return tools.run("perf", "--buildid-dir", cache, *arguments, env=env, cwd=place).stdout

    report = ["report", "--stdio", "-i", "perf.data"]
    assert "hot_recorded" not in perf(store, *report)
    assert recorded.id in perf(store, "buildid-cache", "-M", "perf.data")
    m = mount(f"url={server.url}")
    m.permit(r"404|absent")
    assert "hot_recorded" in perf(m, *report)
    # perf's own store has it now, in perf's own layout
    assert "hot_recorded" in perf(store, *report)
    assert recorded.id not in perf(store, "buildid-cache", "-M", "perf.data")


def keep_reading(paths):
    """What readers see in a time in which the kernel and the mount forget what they keep for a moment only."""
    end = time.monotonic() + 1.3
    seen = set()
    while time.monotonic() < end:
        seen |= {read(path) for path in paths}
        time.sleep(0.1)
    return seen


@pytest.mark.parametrize("modified", [1577836800, int(time.time()) + 10 ** 6], ids=["past", "future"])
def test_file_time_is_last_modified(mount, faults, place, program, modified):
    """gdb warns of a source that is more recent than its program. A time to come is none."""
    server = faults()
    server.serve(program)
    source = server.root / program.id / "source/usr/src/a.c"
    source.parent.mkdir(parents=True)
    source.write_text("int main;\n")
    server.behave(f"modified:{modified}")
    m = mount(f"url={server.url}")
    begun = int(time.time())
    for name in ("elf", "source/usr/src/a.c"):
        found = m.artifact(program.id, name).stat().st_mtime
        assert found == modified if modified < begun else begun - 1 <= found <= time.time() + 1


def test_absence_is_cached(mount, faults, program):
    server = faults()
    m = mount(f"url={server.url}", "errors=strict")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT and server.count(program.id) == 1
    # by its other name the kernel does not know it, but the mount does
    assert keep_reading([first, second]) == {errno.ENOENT} and server.count(program.id) == 1
    assert m.counter("remembered_absent") == 1
    # of the one kind only
    server.serve(program)
    assert read(m.artifact(program.id, "debuginfo")) == program.debug.read_bytes()
    assert read(second) == errno.ENOENT


@pytest.mark.parametrize("trouble", ["error:503", "error:500", "error:429:1", "error:401", "reset-headers", "hang-up", "garbage"])
def test_server_error_is_not_cached(mount, faults, program, trouble):
    server = faults(trouble)
    server.serve(program)
    m = mount(f"url={server.url}")
    first, second = names(m, program.id)
    assert read(first) == errno.ENOENT
    m.expect(server.url)
    assert m.counter("remembered_absent") == 0 and m.counter("unknown") == 1
    server.behave()
    tools.wait_until(lambda: read(second) == program.read(), "the file, once the server is well")


def test_file_above_size_limit_is_refused(mount, mode, faults, place, program, store):
    large = programs.small(place / "large", 1, "-DBALLAST=2000000")
    server = faults()
    server.serve(large)
    server.serve(program)
    m = mount(f"url={server.url}", "max_size=1M")
    assert read(m.artifact(large.id)) == errno.EFBIG
    # what does not say how large it is is cut off on the way
    unsaid = programs.forge(large, "ab" * 20, place / "unsaid")
    server.serve(unsaid)
    server.behave("chunked", ident=unsaid.id)
    assert read(m.artifact(unsaid.id)) == errno.EFBIG
    assert not [path for path in contents(store) if large.id in path or unsaid.id in path] and leftovers(store) == []
    # what fits is served, and the large file where it may be
    assert read(m.artifact(program.id)) == program.read()
    assert read(mount(f"url={server.url}", "max_size=4M").artifact(large.id)) == large.read()


def test_refused_size_is_cached(mount, faults, place):
    large = programs.small(place / "large", 1, "-DBALLAST=2000000")
    server = faults()
    server.serve(large)
    m = mount(f"url={server.url}", "max_size=1M")
    assert keep_reading(names(m, large.id)) == {errno.EFBIG}
    assert server.count() == 1


def test_two_mounts_share_downloads(mount, mode, faults, program, store):
    server = faults("delay:0.5*2")
    server.serve(program)
    first, second = mount(f"url={server.url}"), mount(f"url={server.url}")
    # both fetch, as they do not know of each other; one of the two files is kept
    assert read_all([first.artifact(program.id), second.artifact(program.id)]) == [program.read()] * 2
    assert len([path for path in contents(store) if path.endswith(f"{program.id}/elf")]) == 1
    # what the one fetched, the other has
    assert read(first.artifact(program.id, "debuginfo")) == program.debug.read_bytes()
    tools.wait_until(lambda: server.count(program.id, "debuginfo") == 1 and read(second.artifact(program.id, "debuginfo")) ==
                     program.debug.read_bytes(), "the other mount's file", 2)
    assert server.count(program.id, "debuginfo") == 1
    assert leftovers(store) == []


def test_full_disk_is_enospc_and_recovers(needs_root, mount, mode, faults, place, program, store):
    large = programs.small(place / "large", 1, "-DBALLAST=24000000")
    server = faults()
    server.serve(large)
    server.serve(program)
    tools.run("mount", "-t", "tmpfs", "-o", "size=16m", "store", store)
    try:
        kept = programs.small(place / "kept", 2)
        programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
        before = contents(store)
        m = mount(f"url={server.url}")
        assert read(m.artifact(large.id)) == errno.ENOSPC
        m.expect(f"No space left on device.*{large.id}")
        m.permit("no space left for .*: evicted 0")
        assert read(m.artifact(kept.id)) == kept.read()
        assert contents(store) == before
        # the room is free again, and what fits is fetched
        tools.wait_until(lambda: os.statvfs(store).f_bfree * os.statvfs(store).f_frsize > 15 << 20, "the room")
        assert read(m.artifact(program.id)) == program.read()
        m.unmount()
    finally:
        # with what failed before, the daemon may still have it
        tools.run("umount", "-l", store)


def test_offline_mount_downloads_nothing(mount, faults, program):
    server = faults()
    server.serve(program)
    m = mount("offline", f"url={server.url}", env_more={"DEBUGINFOD_URLS": server.url})
    assert read(m.artifact(program.id)) == errno.ENOENT
    assert not (m / "buildid" / program.id).exists()
    assert server.count() == 0
    # the same server, by the environment
    assert read(mount(env_more={"DEBUGINFOD_URLS": server.url}).artifact(program.id)) == program.read()


def test_unwritable_store_is_served_without_downloads(needs_root, mount, faults, program, store):
    """It is served as it is; nothing can be fetched into it, and nothing is broken."""
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    tools.run("mount", "--bind", store, store)
    try:
        tools.run("mount", "-o", "remount,bind,ro", store)
        server = faults()
        server.serve(program)
        m = mount(f"url={server.url}")
        assert read(m.artifact(program.id)) == program.read()
        assert read(m.artifact(program.id, "debuginfo")) == errno.ENOENT and server.count() == 0
        m.expect(f"the store '{store}' is read-only: nothing will be fetched")
        m.unmount()
    finally:
        tools.run("umount", store)
    assert list(pathlib.Path(store).glob(".bidfs/tmp/*")) == []
