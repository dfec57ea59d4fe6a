# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds that perf adds and a server has: perf's view shows the store, and a build that was downloaded first gets its path."""
import os

import pytest

import programs
import tools
from fetching import contents
from perf_scene import place_of, scene, write_as_perf  # noqa: F401  fixtures

DEAD = "http://127.0.0.1:1"  # a port that refuses connections


@pytest.fixture
def server(faults):
    return faults()


def links_to(m, program):
    return os.readlink(m.link(program.id))


def assert_known_by_path(m, store, scene, program):
    """Check that perf, bidctl and by-path know the path, and that no name of the pathless build is left."""
    path = str(program.path)
    assert links_to(m, program) == f"../..{path}/{program.id}"
    assert os.listdir(m / "by-path" / path[1:]) == [program.id]
    assert f"{program.id} {path}" in scene.perf(m.path, "buildid-cache", "-l").stdout
    assert path in tools.run(tools.BIDCTL, "--store", store, "show", path, env=scene.env).stdout
    assert not [name for name in contents(store) if name.startswith("[debuginfod]")]


def test_perf_adds_fetched_build_gives_it_its_path(mount, mode, server, scene, store):
    server.serve(scene.probed)
    m = mount(f"url={server.url}")
    assert m.artifact(scene.probed.id).read_bytes() == scene.probed.read()
    assert links_to(m, scene.probed) == f"../../[debuginfod]/{scene.probed.id}"
    scene.perf(m.path, "buildid-cache", "-a", scene.probed.path)
    assert_known_by_path(m, store, scene, scene.probed)
    assert "sdt_probed:done_1" in scene.perf(m.path, "list", "sdt").stdout
    scene.perf(m.path, "probe", "-n", "-x", scene.probed.path, "--cache", "--add", "mine=hot n")
    assert "mine=hot n" in (place_of(m, scene.probed) / "probes").read_text()
    assert server.count() == 1


def test_bidctl_adds_fetched_build_gives_it_its_path(mount, mode, server, scene, store):
    server.serve(scene.burn)
    m = mount(f"url={server.url}")
    assert m.artifact(scene.burn.id).read_bytes() == scene.burn.read()
    tools.run(tools.BIDCTL, "--store", store, "add", scene.burn.path, env=scene.env)
    tools.wait_until(lambda: links_to(m, scene.burn) == f"../..{scene.burn.path}/{scene.burn.id}", "the link's new text")
    assert_known_by_path(m, store, scene, scene.burn)


def test_table_added_to_fetched_kernel_gives_it_its_path(mount, mode, server, scene, store):
    kernel = programs.kernel(scene.place / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    server.serve(kernel)
    m = mount(f"url={server.url}")
    assert m.artifact(kernel.id).read_bytes() == kernel.read()
    assert not (m / "[kernel.kallsyms]" / kernel.id).exists()
    write_as_perf(m / "[kernel.kallsyms]" / kernel.id, b"ffffffff81000000 T _text\n", "kallsyms")
    assert links_to(m, kernel) == f"../../[kernel.kallsyms]/{kernel.id}"
    assert (m.link(kernel.id) / "elf").read_bytes() == kernel.read()
    assert not [name for name in contents(store) if name.startswith("[debuginfod]")]


def test_add_and_lookup_below_a_path_send_no_request(mount, mode, server, scene):
    for program in (scene.burn, scene.other):
        server.serve(program)
    m = mount(f"url={server.url}")
    scene.perf(m.path, "buildid-cache", "-a", scene.burn.path)
    for path in (place_of(m, scene.other), m / str(scene.burn.path)[1:] / scene.other.id, m / "[debuginfod]" / scene.other.id,
                 m / "[kernel.kallsyms]" / scene.other.id, m / "[vdso]" / scene.other.id, m / "[kernel.kcore]" / scene.other.id,
                 m / "by-path" / str(scene.burn.path)[1:] / scene.other.id):
        assert not path.exists(), path
    # a new directory stays empty until a file is written
    os.makedirs(place_of(m, scene.other))
    assert not (place_of(m, scene.other) / "elf").exists() and os.listdir(place_of(m, scene.other)) == []
    assert server.count() == 0


@pytest.mark.parametrize("kinds", [("executable",), ("debuginfo",), ()])
def test_link_exists_after_a_download(mount, mode, server, scene, kinds):
    if kinds:
        server.serve(scene.burn, *kinds)
    m = mount(f"url={server.url}")
    assert os.path.lexists(m.link(scene.burn.id)) == m.link(scene.burn.id).is_dir() == bool(kinds)
    if kinds:
        assert (m.link(scene.burn.id) / ("elf" if "executable" in kinds else "debug")).read_bytes() == scene.burn.read()
    asked = [server.count(scene.burn.id, kind) for kind in ("executable", "debuginfo")]
    assert asked == [1, 0 if "executable" in kinds else 1]


def test_debug_file_of_added_build_is_fetched_by_its_link(mount, mode, server, scene, place):
    """perf opens this link of a stripped program that it added."""
    split = programs.split(programs.burn(scene.place / "split", "hot_split", 5), place / "split.debug")
    server.serve(split)
    m = mount(f"url={server.url}")
    scene.perf(m.path, "buildid-cache", "-a", split.path)
    assert server.count() == 0 and not (place_of(m, split) / "elf").is_symlink()
    assert (m.link(split.id) / "debug").read_bytes() == split.debug.read_bytes()
    assert server.count() == server.count(split.id, "debuginfo") == 1


def test_perf_probe_works_beside_a_dead_server(mount, mode, scene):
    m = mount(f"url={DEAD}")
    m.permit("127.0.0.1")
    scene.perf(m.path, "probe", "-n", "-x", scene.probed.path, "--cache", "--add", "mine=hot n")
    assert sorted(os.listdir(m.link(scene.probed.id))) == ["elf", "probes"]
    assert "probe_probed:mine=hot n" in scene.perf(m.path, "probe", "--cache", "--list").stdout


def test_list_and_show_of_covered_store_download_nothing(mount, mode, server, scene, store, place):
    split = programs.split(programs.burn(scene.place / "split", "hot_split", 5), place / "split.debug")
    split.debug = split.debug.rename(place / "elsewhere")
    server.serve(split)
    tools.run(tools.BIDCTL, "--store", store, "add", split.path, env=scene.env)
    mount(f"url={server.url}", at=store)
    listed = tools.run(tools.BIDCTL, "--store", store, "list", env=scene.env).stdout
    assert listed == f"{split.id}\telf\t{len(split.read())}\t{split.path}\n"
    shown = tools.run(tools.BIDCTL, "--store", store, "show", split.id, env=scene.env).stdout
    assert str(split.path) in shown and "debuginfo" not in shown
    assert server.count() == 0


def test_get_from_covered_store_downloads_only_its_operand(mount, mode, server, scene, store):
    server.serve(scene.burn)
    mount(f"url={server.url}", at=store)
    path = tools.run(tools.BIDCTL, "--store", store, "get", scene.burn.id, "debuginfo", env=scene.env).stdout.strip()
    with open(path, "rb") as file:
        assert file.read() == scene.burn.read()
    assert server.count() == server.count(scene.burn.id, "debuginfo") == 1
