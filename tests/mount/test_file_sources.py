# SPDX-License-Identifier: LGPL-2.1-or-later
"""url=file://DIR: a directory as a server, which may be another mount."""
import errno
import os
import pathlib
import shutil
import signal
import threading
import time

import pytest

import programs
import servers
import tools
from fetching import read, read_all


def test_debug_directory_serves_debuginfo(mount, workdir):
    split = programs.split(programs.small(workdir / "app"), workdir / "app.debug")
    directory = workdir / "debug/.build-id" / split.id[:2]
    directory.mkdir(parents=True)
    shutil.copyfile(split.debug, directory / f"{split.id[2:]}.debug")
    mnt = mount(f"url=file://{workdir}/debug")
    assert (mnt / "buildid" / split.id / "debuginfo").read_bytes() == split.debug.read_bytes()
    assert read(mnt.artifact(split.id)) == errno.ENOENT
    assert mnt.counter("fetched") == 1 and mnt.counter("negative_entries") == 1


def test_perf_cache_as_server_leaves_no_descriptor(mount, workdir):
    """
    In perf's cache a link leads to a directory, where debuggers expect a file. The end of the mount checks the open descriptors.
    """
    program = programs.small(workdir / "app")
    build = workdir / "cache/usr/bin/app" / program.id
    build.mkdir(parents=True)
    shutil.copyfile(program.path, build / "elf")
    link = workdir / "cache/.build-id" / program.id[:2] / program.id[2:]
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../../usr/bin/app/{program.id}")
    mnt = mount(f"url=file://{workdir}/cache")
    assert read(mnt.artifact(program.id)) == program.read()


@pytest.fixture
def packages(workdir):
    """Make a profile of links to debug files, or to their directory, in a store of packages, as Nix, Guix and stow do."""
    made = []
    for number, linked in enumerate(["file", "directory"]):
        split = programs.split(programs.small(workdir / f"app{number}", number), workdir / f"app{number}.debug")
        name = pathlib.Path("lib/debug/.build-id", split.id[:2], f"{split.id[2:]}.debug")
        target, link = workdir / "packages" / f"app{number}" / name, workdir / "profile" / name
        target.parent.mkdir(parents=True)
        shutil.copyfile(split.debug, target)
        if linked == "directory":
            target, link = target.parent, link.parent
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        made.append(split)
    return made


@pytest.mark.parametrize("way", ["lower=", "url=file://"])
def test_links_option_allows_links_into_a_package_store(mount, workdir, packages, way):
    paths = [f"buildid/{split.id}/debuginfo" for split in packages]
    with_name = mount(f"{way}{workdir}/profile/lib/debug", f"links={workdir}/packages", at=workdir / "named")
    if way == "lower=":
        assert sorted(os.listdir(with_name / "buildid")) == sorted(split.id for split in packages)
    assert [read(with_name / path) for path in paths] == [split.debug.read_bytes() for split in packages]
    (workdir / "other").mkdir()
    without = mount(f"{way}{workdir}/profile/lib/debug", f"links={workdir}/other", at=workdir / "unnamed", on=workdir / "other")
    assert [read(without / path) for path in paths] == [errno.ENOENT] * 2
    without.expect("links=DIR")
    assert without.log().count("links=DIR") == 1


@pytest.mark.parametrize("named", ["profile", "profile/lib/debug/.build-id"])
def test_directory_in_a_lower_store_names_that_store(mount, workdir, packages, named):
    mnt = mount(f"lower={workdir}/{named}", f"links={workdir}/packages")
    mnt.expect(f"bidfs uses ('{workdir}/profile/lib/debug'|that) - name")
    assert read(mnt.artifact(packages[0].id, "debuginfo")) == packages[0].debug.read_bytes()


@pytest.mark.parametrize("view", ["all", "debug"])
def test_lower_store_that_fetches_is_refused(mount, workdir, env, view):
    """Lookups would wait for its servers, or for this very mount."""
    (workdir / "second").mkdir()
    (workdir / "m1").mkdir()
    first = mount(f"url=file://{workdir}/m1", f"view={view}")
    first.permit(f"file://{workdir}/m1")
    # a mount that downloads nothing is a store like others
    local = mount(f"view={view}", on=workdir / "second", at=workdir / "local")

    def check(lower, status):
        return tools.run(tools.MOUNT_BIDFS, "-f", "-o", f"lower={lower}", workdir / "second", workdir / "m1", env=env,
                         status=status)

    assert f"url=file://{first}" in check(first, 32).stderr
    check(local, 0)


def test_lower_store_without_ids_is_reported(mount, workdir):
    (workdir / "sources/src").mkdir(parents=True)
    mnt = mount(f"lower={workdir}/sources")
    mnt.expect("no '.build-id' in the lower store .* - name a directory that has one")


def test_missing_tree_is_unavailable_until_mounted(mount, workdir):
    """A tree that is not mounted proves no absence; once mounted, its files are found."""
    program = programs.small(workdir / "app")
    mnt = mount(f"url=file://{workdir}/later")
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    mnt.expect(f"file://{workdir}/later")
    assert mnt.counter("negative_entries") == 0
    directory = workdir / "later/buildid" / program.id
    directory.mkdir(parents=True)
    shutil.copyfile(program.path, directory / "executable")
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "the file, once it is there")


@pytest.mark.parametrize("closed", ["file", "directory", "tree", "nothing"])
def test_private_file_of_a_tree_is_not_served(needs_root, mount, workdir, closed):
    """Other users may read all downloads of a mount with allow_other, so a private file must not become one."""
    program = programs.small(workdir / "app")
    tree = workdir / "tree"
    directory = tree / "buildid" / program.id
    directory.mkdir(parents=True)
    workdir.chmod(0o755)
    shutil.copyfile(program.path, directory / "executable")
    if closed != "nothing":
        {"file": directory / "executable", "directory": directory, "tree": tree}[closed].chmod(0o750 if closed == "tree" else 0o700)
    mnt = mount("allow_other", f"url=file://{tree}")
    if closed == "nothing":
        assert read(mnt.artifact(program.id)) == program.read()
        return
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    mnt.expect(f"file://{tree}")
    assert mnt.counter("negative_entries") == 0
    mnt.unmount()
    assert read(mount(f"url=file://{tree}").artifact(program.id)) == program.read()


def test_mount_serves_a_mount_without_false_absence(mount, faults, workdir):
    """The mount of one machine downloads for that of another. A missing file in it proves no absence."""
    program, absent = programs.small(workdir / "app"), "ab" * 20
    server = faults()
    server.serve(program)
    front_store = workdir / "front"
    front_store.mkdir()
    back = mount(f"url={server.url}")
    front = mount(f"url=file://{back}", on=front_store)
    assert read(front.artifact(program.id)) == program.read()
    assert server.count(program.id) == 1
    assert read(front.artifact(absent)) == errno.ENOENT
    front.expect(f"file://{back}")
    assert front.counter("fetched") == 1 and front.counter("negative_entries") == 0


def test_hung_tree_leads_to_the_next_server(mount, faults, workdir):
    """The tree hangs as NFS does without its server: no request stays waiting, the next server is used, and the mount ends."""
    made = [programs.small(workdir / f"app{number}", number) for number in range(4)]
    server = faults()
    for program in made:
        server.serve(program)
    (workdir / "front").mkdir()
    (workdir / "silent").mkdir()
    # a tree for each mount: the kernel lets a second lookup of a name wait for the first, even when its process is killed
    back, other = mount(), mount(on=workdir / "silent")
    # the leak checker would wait for the hung threads
    env = {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}
    front = mount(f"url=file://{back}", f"url={server.url}", on=workdir / "front", env_more=env)
    # wait= is longer than the time limit of the tree, so that each request fails before the next one starts
    alone = mount(f"url=file://{other}", "wait=5", on=workdir / "front", env_more={**env, "DEBUGINFOD_TIMEOUT": "1"})
    for mnt in (back, other):
        tools.stop(mnt.pid)
    try:
        assert [read(front.artifact(program.id)) for program in made] == [program.read() for program in made]
        begun = time.monotonic()
        assert [read(alone.artifact(f"{number:02x}" * 20)) for number in range(5)] == [errno.ENOENT] * 5
        for mnt in (front, alone):
            tools.wait_until(lambda mnt=mnt: mnt.status()["downloads"] == [], "the end of all requests")
        alone.expect("no response within 1 s")
        assert alone.counter("negative_entries") == 0
        # one request has waited for the tree, or one in each half-open state
        (tree,) = alone.status()["servers"]
        assert (tree["breaker"], tree["last_failure"]) == ("open", "no response within 1 s"), tree
        paid = tree["failures_in_a_row"]
        assert 1 <= paid <= 1 + (time.monotonic() - begun) // 5, tree
        # more readers than threads that may wait for the tree
        absent = [alone.artifact(f"{number:02x}" * 20) for number in range(16, 24)]
        assert read_all(absent) == [errno.ENOENT] * 8
        tools.wait_until(lambda: alone.status()["downloads"] == [], "the end of these, too")
        front.permit_open(back.path)
        alone.permit_open(other.path)
        front.unmount()
        alone.unmount()
    finally:
        for mnt in (back, other):
            mnt.process.send_signal(signal.SIGCONT)


def test_recovered_tree_answers_waiting_readers(mount, workdir):
    """The probe after the pause of the breaker finds the tree again."""
    program = programs.small(workdir / "app")
    (workdir / "front").mkdir()
    back = mount()
    programs.into_store(workdir / "store", program.id, "/usr/bin/app", program.path)
    front = mount(f"url=file://{back}", on=workdir / "front", env_more={"DEBUGINFOD_TIMEOUT": "3"})
    tools.stop(back.pid)
    try:
        assert read(front.artifact("ab" * 20)) == errno.ENOENT
        assert front.status()["servers"][0]["breaker"] == "open"
    finally:
        back.process.send_signal(signal.SIGCONT)
    tools.wait_until(lambda: read(front.artifact(program.id)) == program.read(), "the file")
    assert front.status()["servers"][0]["breaker"] == "closed"
    front.expect("no response within 3 s")


def test_slow_file_does_not_delay_others(mount, faults, workdir):
    """The tree downloads one file for longer than the time limit, and serves the others."""
    sample, server = programs.small(workdir / "app"), faults()
    # enough files for the second half of the three seconds
    slow, *others = made = [programs.forge(sample, f"{number:040x}", workdir / f"{number:040x}") for number in range(60)]
    for program in made:
        server.serve(program)
    server.behave("stall-headers", ident=slow.id)
    own = workdir / "front"
    own.mkdir()
    back = mount(f"url={server.url}", "wait=30")
    front = mount(f"url=file://{back}", "wait=30", on=own, env_more={"DEBUGINFOD_TIMEOUT": "3"})
    front.expect("no response within 3 s")
    # the server may end before the mount
    back.permit(server.url)
    reader = threading.Thread(target=read, args=(front.artifact(slow.id),))
    reader.start()
    found = 0
    try:
        while reader.is_alive() and found < len(others):
            assert read(front.artifact(others[found].id)) == others[found].read()
            found += 1
            reader.join(0.1)
    finally:
        reader.join()
        server.release()
    (tree,) = front.status()["servers"]
    assert (tree["breaker"], tree["unavailable"], tree["found"]) == ("closed", 1, found), tree


def test_mount_as_its_own_server_is_ignored(mount, faults, workdir, env):
    """DEBUGINFOD_URLS=file://M may be set for the users of M and for the mount itself."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    mnt = mount(f"url=file://{workdir}/m0", f"url=file://localhost{workdir}/m0/", f"url={server.url}")
    mnt.expect("the server 'file:///[^']*' is this mount itself")
    mnt.expect("the server 'file://localhost[^']*' is this mount itself")
    assert read(mnt.artifact(program.id)) == program.read()


def test_mount_as_its_own_server_by_link_is_absent(mount, faults, workdir):
    """A link to the mount point looks like any other tree: the mount requests the file from itself, in vain."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    (workdir / "link").symlink_to(workdir / "m0")
    (workdir / "way").symlink_to(workdir)
    mnt = mount(f"url=file://{workdir}/link", f"url=file://{workdir}/way/m0", f"url={server.url}", "wait=30")
    assert read(mnt.artifact(program.id)) == program.read()
    # all three servers confirm the absence, which is cached
    assert read(mnt.artifact("ab" * 20)) == errno.ENOENT
    # the first file may also have negative entries, unless the server was faster
    assert 3 <= mnt.counter("negative_entries") <= 2 + 3, mnt.status()
    assert all(1 <= source["requests"] <= 2 for source in mnt.status()["servers"][:2]), mnt.status()


@pytest.mark.parametrize("readers", [1, 2])
def test_two_mounts_naming_each_other_do_not_deadlock(mount, workdir, readers):
    """Each mount waits for the other until one detects the loop; the kernel sends no request for a second reader of a name."""
    program, absent = programs.small(workdir / "app"), [f"{number:02x}" * 20 for number in range(16, 18)]
    (workdir / "second").mkdir()
    programs.into_store(workdir / "second", program.id, "/usr/bin/app", program.path)
    first = mount(f"url=file://{workdir}/m1", "wait=600")
    second = mount(f"url=file://{first}", "wait=600", on=workdir / "second")
    assert second.path == workdir / "m1"
    assert read_all([mnt.artifact(ident) for mnt in (first, second)[:readers] for ident in absent]) == [errno.ENOENT] * 2 * readers
    for mnt in (first, second):
        mnt.permit(f"file://{workdir}/m")
    assert "requests the same from this mount" in first.log() + second.log()
    # the loop does not hide the files of the other mount
    assert read(first.artifact(program.id)) == program.read()


@pytest.mark.parametrize("readers", [1, 2])
def test_mount_and_debuginfod_naming_each_other_do_not_deadlock(mount, workdir, env, readers):
    program, absent = programs.small(workdir / "scanned" / "app"), "ab" * 20
    with servers.stopping() as keep:
        server = keep(servers.Debuginfod([workdir / "scanned"], workdir, {**env, "DEBUGINFOD_URLS": f"file://{workdir}/m0",
                                                                      "DEBUGINFOD_TIMEOUT": "600"}))
        server.await_scan()
        mnt = mount(f"url={server.url}", "wait=600")
        assert read_all([mnt.artifact(absent), mnt.artifact(absent, "executable")][:readers]) == [errno.ENOENT] * readers
        mnt.expect("requests the same from this mount")
        assert read(mnt.artifact(program.id)) == program.read()


def test_source_threads_block_signals(mount, faults, workdir):
    """Only the thread that ends the mount takes signals."""
    mnt = mount(f"url={faults().url}", "cache_size=1G")
    blocked = {}
    for task in pathlib.Path(f"/proc/{mnt.pid}/task").iterdir():
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
        if status["Name"].startswith("bid-"):
            blocked[status["Name"]] = int(status["SigBlk"], 16)
    assert {"bid-disk", "bid-timer", "bid-network", "bid-gc"} <= set(blocked), blocked
    for name, mask in blocked.items():
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            assert mask >> (number - 1) & 1, (name, number, hex(mask))
