# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debug files that dwz has shrunk: the common part is in a file of its own, which is prefetched."""
import pathlib

import pytest

import programs
import tools


@pytest.fixture
def shrunk(workdir, faults):
    """Return the programs, their common file, and a server of all three."""
    (workdir / "built").mkdir()
    one, two, common = programs.shrunk(workdir / "built")
    server = faults()
    server.serve(one)
    server.serve(two)
    (server.root / common.id).mkdir()
    (server.root / common.id / "debuginfo").write_bytes(common.read())
    return one, two, common, server


def await_quiet(mnt):
    tools.wait_until(lambda: not mnt.status()["downloads"], "the end of all downloads")


def test_dwz_file_is_prefetched(mount, shrunk):
    one, two, common, server = shrunk
    mnt = mount(f"url={server.url}", "wait=30")
    assert mnt.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: mnt.counter("fetched") == 2, "the prefetched file")
    assert server.count(common.id, "debuginfo") == 1 and server.count() == 2
    # the second program needs the common file as well and finds it stored
    assert mnt.debug_file(two.id).read_bytes() == two.debug.read_bytes()
    await_quiet(mnt)
    mnt.unmount()
    again = mount("offline")
    assert again.debug_file(common.id).read_bytes() == common.read()
    assert server.count(common.id, "debuginfo") == 1 and server.count() == 3


def test_absent_dwz_file_is_no_error(mount, shrunk):
    one, _, common, server = shrunk
    (server.root / common.id / "debuginfo").unlink()
    mnt = mount(f"url={server.url}", "wait=30")
    assert mnt.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: server.count(common.id, "debuginfo") == 1, "a request for it")
    await_quiet(mnt)
    assert mnt.counter("fetched") == 1 and mnt.counter("absent") == 0, "the absent file is counted"
    assert tools.errno_of(mnt.debug_file(common.id).read_bytes) and server.count(common.id, "debuginfo") == 1, "remembered"


def test_stripped_program_prefetches_nothing(mount, shrunk, workdir):
    """strip(1) keeps the link to the common file, but no debug information that refers to it."""
    one, _, common, server = shrunk
    link = workdir / "link"
    link.write_bytes(b"common.debug\0" + bytes.fromhex(common.id))
    tools.run("objcopy", "--add-section", f".gnu_debugaltlink={link}", one.path, server.root / one.id / "executable")
    mnt = mount(f"url={server.url}", "wait=30")
    assert mnt.artifact(one.id).read_bytes() == (server.root / one.id / "executable").read_bytes()
    await_quiet(mnt)
    assert server.count(common.id, "debuginfo") == 0 and server.count() == 1


def test_prefetched_file_prefetches_nothing(mount, shrunk, workdir):
    """A server could chain such links for ever, so a prefetched file starts no prefetch."""
    one, two, common, server = shrunk
    link = workdir / "link"
    link.write_bytes(b"next\0" + bytes.fromhex(two.id))
    tools.run("objcopy", "--add-section", f".gnu_debugaltlink={link}", common.path, server.root / common.id / "debuginfo")
    mnt = mount(f"url={server.url}", "wait=30")
    assert mnt.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: mnt.counter("fetched") == 2, "the prefetched file")
    await_quiet(mnt)
    assert server.count(two.id, "debuginfo") == 0
    # a reader of the linked file requests it
    assert mnt.debug_file(two.id).read_bytes() == two.debug.read_bytes()


def test_gdb_reads_dwz_file(mount, mode, shrunk, workdir, env):
    one, _, common, server = shrunk
    mnt = mount(f"url={server.url}", "wait=30")

    def types(directory):
        return tools.run("gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex",
                         f"set debug-file-directory {directory}", "-ex", "ptype the_box", "-ex", "info line one", one.path,
                         env=env, cwd=workdir, status=None).stdout

    text = types(mnt / "debug")
    assert "struct shared_item items[4];" in text and 'shared.c" starts at address' in text, text
    assert server.count(common.id, "debuginfo") == 1
    # without the common file the debug file is useless
    pathlib.Path(workdir / "debug/.build-id" / one.id[:2]).mkdir(parents=True)
    (workdir / "debug/.build-id" / one.id[:2] / f"{one.id[2:]}.debug").write_bytes(one.debug.read_bytes())
    assert "items[4]" not in types(workdir / "debug")
