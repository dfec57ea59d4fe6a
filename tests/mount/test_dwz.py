# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debug files that dwz has shrunk: the common part is in a file of its own, which is prefetched."""
import pathlib

import pytest

import programs
import tools


@pytest.fixture
def shrunk(place, faults):
    """Return the programs, their common file, and a server of all three."""
    (place / "built").mkdir()
    one, two, common = programs.shrunk(place / "built")
    server = faults()
    server.serve(one)
    server.serve(two)
    (server.root / common.id).mkdir()
    (server.root / common.id / "debuginfo").write_bytes(common.read())
    return one, two, common, server


def await_quiet(m):
    tools.wait_until(lambda: not m.status()["downloads"], "the end of all downloads")


def test_dwz_file_is_prefetched(mount, shrunk):
    one, two, common, server = shrunk
    m = mount(f"url={server.url}", "wait=30")
    assert m.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: m.counter("fetched") == 2, "the prefetched file")
    assert server.count(common.id, "debuginfo") == 1 and server.count() == 2
    # the second program needs the common file as well and finds it stored
    assert m.debug_file(two.id).read_bytes() == two.debug.read_bytes()
    await_quiet(m)
    m.unmount()
    again = mount("offline")
    assert again.debug_file(common.id).read_bytes() == common.read()
    assert server.count(common.id, "debuginfo") == 1 and server.count() == 3


def test_absent_dwz_file_is_no_error(mount, shrunk):
    one, _, common, server = shrunk
    (server.root / common.id / "debuginfo").unlink()
    m = mount(f"url={server.url}", "wait=30")
    assert m.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: server.count(common.id, "debuginfo") == 1, "a request for it")
    await_quiet(m)
    assert m.counter("fetched") == 1 and m.counter("absent") == 0, "the absent file is counted"
    assert tools.errno_of(m.debug_file(common.id).read_bytes) and server.count(common.id, "debuginfo") == 1, "remembered"


def test_stripped_program_prefetches_nothing(mount, shrunk, place):
    """strip(1) keeps the link to the common file, but no debug information that refers to it."""
    one, _, common, server = shrunk
    link = place / "link"
    link.write_bytes(b"common.debug\0" + bytes.fromhex(common.id))
    tools.run("objcopy", "--add-section", f".gnu_debugaltlink={link}", one.path, server.root / one.id / "executable")
    m = mount(f"url={server.url}", "wait=30")
    assert m.artifact(one.id).read_bytes() == (server.root / one.id / "executable").read_bytes()
    await_quiet(m)
    assert server.count(common.id, "debuginfo") == 0 and server.count() == 1


def test_prefetched_file_prefetches_nothing(mount, shrunk, place):
    """A server could chain such links for ever, so a prefetched file starts no prefetch."""
    one, two, common, server = shrunk
    link = place / "link"
    link.write_bytes(b"next\0" + bytes.fromhex(two.id))
    tools.run("objcopy", "--add-section", f".gnu_debugaltlink={link}", common.path, server.root / common.id / "debuginfo")
    m = mount(f"url={server.url}", "wait=30")
    assert m.debug_file(one.id).read_bytes() == one.debug.read_bytes()
    tools.wait_until(lambda: m.counter("fetched") == 2, "the prefetched file")
    await_quiet(m)
    assert server.count(two.id, "debuginfo") == 0
    # a reader of the linked file requests it
    assert m.debug_file(two.id).read_bytes() == two.debug.read_bytes()


def test_gdb_reads_dwz_file(mount, mode, shrunk, place, env):
    one, _, common, server = shrunk
    m = mount(f"url={server.url}", "wait=30")

    def types(directory):
        return tools.run("gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex",
                         f"set debug-file-directory {directory}", "-ex", "ptype the_box", "-ex", "info line one", one.path,
                         env=env, cwd=place, status=None).stdout

    text = types(m / "debug")
    assert "struct shared_item items[4];" in text and 'shared.c" starts at address' in text, text
    assert server.count(common.id, "debuginfo") == 1
    # without the common file the debug file is useless
    pathlib.Path(place / "debug/.build-id" / one.id[:2]).mkdir(parents=True)
    (place / "debug/.build-id" / one.id[:2] / f"{one.id[2:]}.debug").write_bytes(one.debug.read_bytes())
    assert "items[4]" not in types(place / "debug")
