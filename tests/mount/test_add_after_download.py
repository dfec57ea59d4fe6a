# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds that perf adds and a server has: perf's view shows the store, and a build that was downloaded first gets its path."""
import os

import pytest

import programs
import tools
from fetching import contents
from perf_cache import objdir_of, perf, write_as_perf  # noqa: F401  fixtures

DEAD = "http://127.0.0.1:1"  # a port that refuses connections


@pytest.fixture
def server(faults):
    return faults()


def links_to(mnt, program):
    return os.readlink(mnt.link(program.id))


def assert_known_by_path(mnt, store, perf, program):
    """Check that perf, bidctl and by-path know the path, and that no name of the pathless build is left."""
    path = str(program.path)
    assert links_to(mnt, program) == f"../..{path}/{program.id}"
    assert os.listdir(mnt / "by-path" / path[1:]) == [program.id]
    assert f"{program.id} {path}" in perf.run(mnt.path, "buildid-cache", "-l").stdout
    assert path in tools.run(tools.BIDCTL, "--store", store, "show", path, env=perf.env).stdout
    assert not [name for name in contents(store) if name.startswith("[debuginfod]")]


def test_perf_add_of_download_adds_its_path(mount, mode, server, perf, store):
    server.serve(perf.probed)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(perf.probed.id).read_bytes() == perf.probed.read()
    assert links_to(mnt, perf.probed) == f"../../[debuginfod]/{perf.probed.id}"
    perf.run(mnt.path, "buildid-cache", "-a", perf.probed.path)
    assert_known_by_path(mnt, store, perf, perf.probed)
    assert "sdt_probed:done_1" in perf.run(mnt.path, "list", "sdt").stdout
    perf.run(mnt.path, "probe", "-n", "-x", perf.probed.path, "--cache", "--add", "mine=hot n")
    assert "mine=hot n" in (objdir_of(mnt, perf.probed) / "probes").read_text()
    assert server.count() == 1


def test_bidctl_add_of_download_adds_its_path(mount, mode, server, perf, store):
    server.serve(perf.burn)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(perf.burn.id).read_bytes() == perf.burn.read()
    tools.run(tools.BIDCTL, "--store", store, "add", perf.burn.path, env=perf.env)
    tools.wait_until(lambda: links_to(mnt, perf.burn) == f"../..{perf.burn.path}/{perf.burn.id}", "the link's new text")
    assert_known_by_path(mnt, store, perf, perf.burn)


def test_added_table_gives_downloaded_kernel_its_path(mount, mode, server, perf, store):
    kernel = programs.kernel(perf.workdir / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    server.serve(kernel)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(kernel.id).read_bytes() == kernel.read()
    assert not (mnt / "[kernel.kallsyms]" / kernel.id).exists()
    write_as_perf(mnt / "[kernel.kallsyms]" / kernel.id, b"ffffffff81000000 T _text\n", "kallsyms")
    assert links_to(mnt, kernel) == f"../../[kernel.kallsyms]/{kernel.id}"
    assert (mnt.link(kernel.id) / "elf").read_bytes() == kernel.read()
    assert not [name for name in contents(store) if name.startswith("[debuginfod]")]


def test_add_and_lookup_below_a_path_send_no_request(mount, mode, server, perf):
    for program in (perf.burn, perf.other):
        server.serve(program)
    mnt = mount(f"url={server.url}")
    perf.run(mnt.path, "buildid-cache", "-a", perf.burn.path)
    for path in (objdir_of(mnt, perf.other), mnt / str(perf.burn.path)[1:] / perf.other.id, mnt / "[debuginfod]" / perf.other.id,
                 mnt / "[kernel.kallsyms]" / perf.other.id, mnt / "[vdso]" / perf.other.id, mnt / "[kernel.kcore]" / perf.other.id,
                 mnt / "by-path" / str(perf.burn.path)[1:] / perf.other.id):
        assert not path.exists(), path
    # a new directory stays empty until a file is written
    os.makedirs(objdir_of(mnt, perf.other))
    assert not (objdir_of(mnt, perf.other) / "elf").exists() and os.listdir(objdir_of(mnt, perf.other)) == []
    assert server.count() == 0


@pytest.mark.parametrize("kinds", [("executable",), ("debuginfo",), ()])
def test_link_exists_after_a_download(mount, mode, server, perf, kinds):
    if kinds:
        server.serve(perf.burn, *kinds)
    mnt, linked = mount(f"url={server.url}"), "executable" in kinds
    assert os.path.lexists(mnt.link(perf.burn.id)) == mnt.link(perf.burn.id).is_dir() == linked
    if linked:
        assert (mnt.link(perf.burn.id) / "elf").read_bytes() == perf.burn.read()
    assert [server.count(perf.burn.id, kind) for kind in ("executable", "debuginfo")] == [1, 0]


def test_debug_file_of_added_build_is_fetched_by_its_link(mount, mode, server, perf, workdir):
    """perf opens this link of a stripped program that it added."""
    split = programs.split(programs.burn(perf.workdir / "split", "hot_split", 5), workdir / "split.debug")
    server.serve(split)
    mnt = mount(f"url={server.url}")
    perf.run(mnt.path, "buildid-cache", "-a", split.path)
    assert server.count() == 0 and not (objdir_of(mnt, split) / "elf").is_symlink()
    assert (mnt.link(split.id) / "debug").read_bytes() == split.debug.read_bytes()
    assert server.count() == server.count(split.id, "debuginfo") == 1


def test_perf_probe_works_beside_a_dead_server(mount, mode, perf):
    mnt = mount(f"url={DEAD}")
    mnt.permit("127.0.0.1")
    perf.run(mnt.path, "probe", "-n", "-x", perf.probed.path, "--cache", "--add", "mine=hot n")
    assert sorted(os.listdir(mnt.link(perf.probed.id))) == ["elf", "probes"]
    assert "probe_probed:mine=hot n" in perf.run(mnt.path, "probe", "--cache", "--list").stdout


def test_list_and_show_of_covered_store_download_nothing(mount, mode, server, perf, store, workdir):
    split = programs.split(programs.burn(perf.workdir / "split", "hot_split", 5), workdir / "split.debug")
    split.debug = split.debug.rename(workdir / "elsewhere")
    server.serve(split)
    tools.run(tools.BIDCTL, "--store", store, "add", split.path, env=perf.env)
    mount(f"url={server.url}", at=store)
    listed = tools.run(tools.BIDCTL, "--store", store, "list", env=perf.env).stdout
    assert listed == f"{split.id}\telf\t{len(split.read())}\t{split.path}\n"
    shown = tools.run(tools.BIDCTL, "--store", store, "show", split.id, env=perf.env).stdout
    assert str(split.path) in shown and "debuginfo" not in shown
    assert server.count() == 0


def test_get_from_covered_store_downloads_only_its_operand(mount, mode, server, perf, store):
    server.serve(perf.burn)
    mount(f"url={server.url}", at=store)
    path = tools.run(tools.BIDCTL, "--store", store, "get", perf.burn.id, "debuginfo", env=perf.env).stdout.strip()
    with open(path, "rb") as file:
        assert file.read() == perf.burn.read()
    assert server.count() == server.count(perf.burn.id, "debuginfo") == 1
