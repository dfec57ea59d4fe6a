# SPDX-License-Identifier: LGPL-2.1-or-later
"""Downloads of missing artifacts: requested once, complete, and stored in perf's layout."""
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
def program(workdir):
    return programs.split(programs.burn(workdir / "app", "fetched_hot"), workdir / "app.debug")


def test_one_download_for_many_readers(mount, mode, faults, workdir, program):
    server = faults("delay:2*1")
    server.serve(program)
    mnt = mount(f"url={server.url}")
    argv = [programs.compile_c("crowd.c", workdir / "crowd"), str(CROWD), mnt.artifact(program.id), program.path]
    crowd = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert crowd.stdout.readline() == "go\n"
    tools.wait_until(server.count, "the request")
    assert crowd.communicate()[0] == f"{CROWD} right\n"
    assert server.count() == server.count(program.id) == 1
    assert mnt.counter("fetched") == 1
    # the other artifact of the build is another download, and a stored artifact needs none
    assert read_all(names(mnt, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    assert read_all(names(mnt, program.id)) == [program.read()] * 2
    assert server.count() == 2


def test_downloaded_file_is_listed(mount, mode, faults, program, store):
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert os.listdir(mnt / "buildid") == []
    # a stat(2) of the name downloads the file and returns its size
    assert os.stat(mnt.artifact(program.id, "debuginfo")).st_size == program.debug.stat().st_size
    assert os.listdir(mnt / "buildid") == [program.id]
    tools.wait_until(lambda: sorted(os.listdir(mnt / "buildid" / program.id)) == ["debuginfo", "info", "section"], "the listing")
    assert read(mnt / "buildid" / program.id / "executable") == program.read()
    assert sorted(os.listdir(mnt / "buildid" / program.id)) == ["debuginfo", "elf", "executable", "info", "section"]
    # the file is there without the server, under every name
    server.stop()
    mnt.unmount()
    again = mount("offline")
    assert read_all(names(again, program.id)) == [program.read()] * 2
    assert read_all(names(again, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    link = again.link(program.id)
    assert read(link / "elf") == program.read() and read(link / "debug") == program.debug.read_bytes()
    assert leftovers(store) == []


@pytest.mark.parametrize("beside", ("store", "lower"))
def test_stripped_debug_file_yields_to_the_servers(mount, faults, workdir, program, store, beside):
    """A debug file with neither DWARF nor symbols is served only if no server has a better one."""
    stripped = workdir / "stripped.debug"
    tools.run("objcopy", "--only-keep-debug", program.path, stripped)
    tree = workdir / "lower" if beside == "lower" else store
    tree.mkdir(exist_ok=True)
    programs.into_store(tree, program.id, "/usr/bin/app", stripped, "debug")
    options = [f"lower={tree}"] if beside == "lower" else []
    alone = mount(*options)
    assert read_all(names(alone, program.id, "debuginfo")) == [stripped.read_bytes()] * 2
    alone.unmount()
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}", *options)
    assert read_all(names(mnt, program.id, "debuginfo")) == [program.debug.read_bytes()] * 2
    assert server.count() == 1
    # perf's link fetches the program of a build whose debug file is alone in the store
    assert read(mnt.link(program.id) / "debug") == program.debug.read_bytes()
    assert server.count() == (2 if beside == "lower" else 1)


@pytest.mark.parametrize("behaviour", ("absent", "error:503", "hang-up", "flip-note", "stall-headers"))
def test_stripped_debug_file_is_served_if_no_server_delivers(mount, faults, workdir, program, store, behaviour):
    stripped = workdir / "stripped.debug"
    tools.run("objcopy", "--only-keep-debug", program.path, stripped)
    programs.into_store(store, program.id, "/usr/bin/app", stripped, "debug")
    server = faults(behaviour)
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=2")
    mnt.permit("unavailable|refused '")
    assert read_all(names(mnt, program.id, "debuginfo")) == [stripped.read_bytes()] * 2
    assert read(mnt.link(program.id) / "debug") == stripped.read_bytes()
    assert server.count() > 0


def test_long_id_is_fetched_once(mount, faults, workdir):
    """Readers open all of its 32 bytes; perf then opens the first 20."""
    program = programs.small(workdir / "app", 1, f"-Wl,--build-id=0x{'0123456789abcdef' * 4}")
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert read(mnt.artifact(program.id)) == program.read()
    assert read(mnt.artifact(program.id[:40])) == program.read()
    assert server.count() == 1


def test_downloaded_build_is_found_by_perf(mount, mode, faults, store, workdir, env):
    recorded = programs.burn(workdir / "prog", "hot_recorded")
    # newer perf has ids beside the mappings, where "buildid-cache -M" does not look
    record = ["perf", "record", "-q", "-N", "--no-buildid-mmap", "-e", "cpu-clock", "-o", workdir / "perf.data", recorded.path,
              200_000_000]
    done = tools.run(*record, status=None, env=env)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
    server = faults()
    server.serve(recorded)
    # another build replaces the program; the server has the recorded one
    programs.burn(workdir / "prog", "hot_other", 2)

    def perf(cache, *arguments):
        return tools.run("perf", "--buildid-dir", cache, *arguments, env=env, cwd=workdir).stdout

    report = ["report", "--stdio", "-i", "perf.data"]
    assert "hot_recorded" not in perf(store, *report)
    assert recorded.id in perf(store, "buildid-cache", "-M", "perf.data")
    mnt = mount(f"url={server.url}")
    mnt.permit(r"404|absent")
    assert "hot_recorded" in perf(mnt, *report)
    # now the store has the build in perf's layout
    assert "hot_recorded" in perf(store, *report)
    assert recorded.id not in perf(store, "buildid-cache", "-M", "perf.data")


def keep_reading(paths):
    """Return the results of reads over a time in which the short caches of kernel and mount expire."""
    end = time.monotonic() + 1.3
    seen = set()
    while time.monotonic() < end:
        seen |= {read(path) for path in paths}
        time.sleep(0.1)
    return seen


@pytest.mark.parametrize("modified", [1577836800, int(time.time()) + 10 ** 6], ids=["past", "future"])
def test_file_time_is_last_modified(mount, faults, workdir, program, modified):
    """gdb warns of a source that is newer than its program. A time in the future is ignored."""
    server = faults()
    server.serve(program)
    source = server.root / program.id / "source/usr/src/a.c"
    source.parent.mkdir(parents=True)
    source.write_text("int main;\n")
    server.behave(f"modified:{modified}")
    mnt = mount(f"url={server.url}")
    begun = int(time.time())
    for name in ("elf", "source/usr/src/a.c"):
        found = mnt.artifact(program.id, name).stat().st_mtime
        assert found == modified if modified < begun else begun - 1 <= found <= time.time() + 1


def test_absence_is_cached(mount, faults, program):
    server = faults()
    mnt = mount(f"url={server.url}", "errors=strict")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT and server.count(program.id) == 1
    # the kernel does not know the other name; the mount does
    assert keep_reading([first, second]) == {errno.ENOENT} and server.count(program.id) == 1
    assert mnt.counter("negative_entries") == 1
    # the negative entry is for one kind only
    server.serve(program)
    assert read(mnt.artifact(program.id, "debuginfo")) == program.debug.read_bytes()
    assert read(second) == errno.ENOENT


@pytest.mark.parametrize("failure", ["error:503", "error:500", "error:429:1", "error:401", "reset-headers", "hang-up", "garbage"])
def test_server_error_is_not_cached(mount, faults, program, failure):
    server = faults(failure)
    server.serve(program)
    mnt = mount(f"url={server.url}")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT
    mnt.expect(server.url)
    assert mnt.counter("negative_entries") == 0 and mnt.counter("unknown") == 1
    server.behave()
    tools.wait_until(lambda: read(second) == program.read(), "the file, once the server is well")


def test_file_above_size_limit_is_refused(mount, mode, faults, workdir, program, store):
    large = programs.small(workdir / "large", 1, "-DBALLAST=2000000")
    server = faults()
    server.serve(large)
    server.serve(program)
    mnt = mount(f"url={server.url}", "max_size=1M")
    assert read(mnt.artifact(large.id)) == errno.EFBIG
    # a body without Content-Length is cut off at the limit
    unsaid = programs.forge(large, "ab" * 20, workdir / "unsaid")
    server.serve(unsaid)
    server.behave("chunked", ident=unsaid.id)
    assert read(mnt.artifact(unsaid.id)) == errno.EFBIG
    assert not [path for path in contents(store) if large.id in path or unsaid.id in path] and leftovers(store) == []
    # a small file is served; the large one is served by a mount with a larger limit
    assert read(mnt.artifact(program.id)) == program.read()
    assert read(mount(f"url={server.url}", "max_size=4M").artifact(large.id)) == large.read()


def test_refused_size_is_cached(mount, faults, workdir):
    large = programs.small(workdir / "large", 1, "-DBALLAST=2000000")
    server = faults()
    server.serve(large)
    mnt = mount(f"url={server.url}", "max_size=1M")
    assert keep_reading(names(mnt, large.id)) == {errno.EFBIG}
    assert server.count() == 1


def test_two_mounts_share_downloads(mount, mode, faults, program, store):
    server = faults("delay:0.5*2")
    server.serve(program)
    first, second = mount(f"url={server.url}"), mount(f"url={server.url}")
    # the mounts share no download: both fetch, and one of the two files is kept
    assert read_all([first.artifact(program.id), second.artifact(program.id)]) == [program.read()] * 2
    assert len([path for path in contents(store) if path.endswith(f"{program.id}/elf")]) == 1
    # a file that one mount downloads appears in the other
    assert read(first.artifact(program.id, "debuginfo")) == program.debug.read_bytes()
    tools.wait_until(lambda: server.count(program.id, "debuginfo") == 1 and read(second.artifact(program.id, "debuginfo")) ==
                     program.debug.read_bytes(), "the other mount's file")
    assert server.count(program.id, "debuginfo") == 1
    assert leftovers(store) == []


def test_full_disk_is_enospc_and_recovers(needs_root, mount, mode, faults, workdir, program, store):
    large = programs.small(workdir / "large", 1, "-DBALLAST=24000000")
    server = faults()
    server.serve(large)
    server.serve(program)
    tools.run("mount", "-t", "tmpfs", "-o", "size=16m", "store", store)
    try:
        kept = programs.small(workdir / "kept", 2)
        programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
        before = contents(store)
        mnt = mount(f"url={server.url}")
        assert read(mnt.artifact(large.id)) == errno.ENOSPC
        mnt.expect(f"No space left on device.*{large.id}")
        mnt.permit("no space left for .*: evicted 0")
        assert read(mnt.artifact(kept.id)) == kept.read()
        assert contents(store) == before
        # the space is free again, and a small file is downloaded
        tools.wait_until(lambda: os.statvfs(store).f_bfree * os.statvfs(store).f_frsize > 15 << 20, "the room")
        assert read(mnt.artifact(program.id)) == program.read()
        mnt.unmount()
    finally:
        # the daemon may still hold files of the failed download
        tools.run("umount", "-l", store)


def test_offline_mount_downloads_nothing(mount, faults, program):
    server = faults()
    server.serve(program)
    mnt = mount("offline", f"url={server.url}", env_more={"DEBUGINFOD_URLS": server.url})
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    assert not (mnt / "buildid" / program.id).exists()
    assert server.count() == 0
    # the same server from the environment
    assert read(mount(env_more={"DEBUGINFOD_URLS": server.url}).artifact(program.id)) == program.read()


def test_unwritable_store_is_served_without_downloads(needs_root, mount, faults, program, store):
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    tools.run("mount", "--bind", store, store)
    try:
        tools.run("mount", "-o", "remount,bind,ro", store)
        server = faults()
        server.serve(program)
        mnt = mount(f"url={server.url}")
        assert read(mnt.artifact(program.id)) == program.read()
        assert read(mnt.artifact(program.id, "debuginfo")) == errno.ENOENT and server.count() == 0
        mnt.expect(f"the store '{store}' is read-only: the daemon fetches nothing")
        mnt.unmount()
    finally:
        # the kernel may close the backing files of the mount after the daemon's end
        tools.run("umount", "--lazy", store)
    assert list(pathlib.Path(store).glob(".bidfs/tmp/*")) == []
