# SPDX-License-Identifier: LGPL-2.1-or-later
"""Responses of servers for an id, as reported by the mount, and by bidctl on a store below a mount."""
import errno
import json
import os
import pathlib
import re

import pytest

import programs
import tools
from fetching import covered as get, read
from namespace import NOBODY, as_user, fuse_device, isolated, mount_program_of_nobody

ANSWERS = "user.bidfs.responses"


@pytest.fixture
def program(workdir):
    return programs.small(workdir / "app")


def answers(mnt, ident):
    return json.loads(os.getxattr(mnt / "buildid" / ident, ANSWERS))


def test_verbose_get_names_the_source_of_an_absence(mount, mode, faults, program, env, store):
    """Report the server, its status and the time of the next request, also of a negative entry from before the daemon's start."""
    server = faults()
    mnt = mount(f"url={server.url}", at=store)
    directory = mnt / "buildid" / program.id
    assert tools.errno_of(os.getxattr, directory, ANSWERS) == errno.ENODATA and os.listxattr(directory) == []
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    assert os.listxattr(directory) == [ANSWERS]
    (answer,) = answers(mnt, program.id)
    assert (answer["server"], answer["kind"], answer["outcome"], answer["text"]) == (server.url, "elf", "absent", "HTTP 404")
    assert 80 <= answer["retry_s"] <= 90 and answer["url"] == f"{server.url}/buildid/{program.id}/executable", answer
    report = get(env, store, "-v", program.id, "elf", status=1).stderr
    assert "the store lacks it\n" in report, report
    assert f"server     {server.url}\n" in report and re.search(r"absent after \d+ ms: HTTP 404\n", report), report
    assert re.search(r"that was \d+ s ago; next request in \d\d s, or with '--refresh'\n", report), report
    (shown,) = tools.rows(get(env, store, "--json", program.id, "elf", status=1))[0]["servers"]
    assert shown["reason"] == "HTTP 404" and 0 < shown["retry_s"] <= 90, shown
    # the response is for one kind and one id
    assert "debuginfo" not in {answer["kind"] for answer in answers(mnt, program.id)}
    assert tools.errno_of(os.getxattr, mnt / "buildid" / ("ab" * 20), ANSWERS) == errno.ENODATA
    mnt.unmount()
    mnt = mount(f"url={server.url}", at=store)
    report = get(env, store, "-v", program.id, "elf", status=1).stderr
    assert "absent: same response earlier\n" in report and re.search(r" next request in \d\d s", report), report
    assert server.count(program.id) == 1
    # the kernel caches the absent name for a second
    os.setxattr(mnt / ".bidfs", "user.bidfs.refresh", program.id.encode())
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == errno.ENOENT and server.count(program.id) > 1, "another request")
    (answer,) = answers(mnt, program.id)
    assert answer["text"] == "HTTP 404" and answer["time"] > 0


def test_verbose_get_shows_retries(mount, mode, faults, program, env, store):
    server = faults("reset:1000*2")
    server.serve(program)
    mount(f"url={server.url}", at=store)
    report = get(env, store, "-v", program.id, "elf").stderr
    size = len(program.read())
    found = rf"found after \d+ ms in 3 requests: HTTP 200, .*; before: broke off after 1000 of {size} bytes"
    assert re.search(found, report), report


def test_verbose_get_shows_errors_and_sources(mount, faults, workdir, program, env, store):
    """Report the last error of each server, and a source file by its name."""
    servers = [faults(root=workdir / "a"), faults("error:503", root=workdir / "b")]
    mnt = mount(*(f"url={server.url}" for server in servers), at=store)
    mnt.expect("HTTP 503")
    report = get(env, store, "-v", program.id, "elf", status=3).stderr
    assert "HTTP 404" in report and re.search(r"unavailable after \d+ ms( in \d requests)?: HTTP 503", report), report
    servers[1].behave()
    assert read(mnt / "buildid" / program.id / "source/usr/src/a.c") == errno.ENOENT
    shown = [(answer["kind"], answer.get("name"), answer["text"]) for answer in answers(mnt, program.id)]
    assert shown[:2] == 2 * [("source", "/usr/src/a.c", "HTTP 404")] and len(shown) == 4, shown
    report = get(env, store, "-v", program.id, "source", "/usr/src/a.c", status=1).stderr
    assert report.count("HTTP 404") == 2 and "HTTP 503" not in report, report


def test_get_uses_the_servers_of_a_mount_of_the_same_store(mount, mode, faults, program, env, store):
    """Only the options of the mount name the server; a get in another store does not use it."""
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    (other := store.parent / "other").mkdir()
    assert "no server is configured" in get(env, other, program.id, "elf", status=1).stderr
    path = get(env, mnt.store, program.id, "elf").stdout.rstrip("\n")
    assert path.startswith(f"{mnt.store}/") and open(path, "rb").read() == program.read()
    assert read(mnt.artifact(program.id)) == program.read() and server.count(program.id) == 1


def test_get_does_not_use_the_servers_of_a_mount_by_another_user(needs_root, store, workdir, faults, program, env):
    """With user_allow_other in fuse.conf any user can mount any store, with any servers."""
    server = faults()
    server.serve(program)
    point = workdir / "mnt"
    mine, user = mount_program_of_nobody(workdir, point), as_user(NOBODY)
    done = isolated(f"""
        {fuse_device(workdir)}
        echo user_allow_other >{workdir}/home/fuse.conf
        mount --bind {workdir}/home/fuse.conf /etc/fuse.conf
        {user} {mine} {store} {point} -o ro,allow_other,url={server.url} >&2
        grep -q {server.url} {point}/.bidfs/status
        {tools.BIDCTL} --store {store} get {program.id} elf""", env, status=1)
    assert "no server is configured" in done.stderr and server.count(program.id) == 0, done.stderr


def test_get_asks_the_mount_behind_the_environment(mount, faults, workdir, program, env, store):
    """Servers of the environment hide no server of a mount of the same store."""
    listed, mounted = faults("absent", root=workdir / "a"), faults(root=workdir / "b")
    mounted.serve(program)
    mount(f"url={listed.url}", f"url={mounted.url}")
    done = tools.run(tools.BIDCTL, "--store", store, "get", program.id, "elf", env={**env, "DEBUGINFOD_URLS": listed.url})
    assert pathlib.Path(done.stdout.rstrip("\n")).read_bytes() == program.read()
    assert listed.count(program.id) <= 1, "a server of both gets one request"
