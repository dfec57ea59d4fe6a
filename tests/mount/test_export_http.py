# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx over a mount, with the configuration of contrib/nginx, is a debuginfod server: for every client of it, and for bidfs."""
import errno
import itertools
import re
import urllib.error
import urllib.request

import pytest

import exports
import fetching
import programs
import servers
import tools

# what docs/TEAM.md mounts with, apart from what is the server's own; a second is long enough to wait here
TEAM_OPTIONS = [option for option in re.search(r"mount -t bidfs \S+ \S+ -o (\S+)", (tools.ROOT / "docs" / "TEAM.md").read_text())[1]
                .split(",") if not re.match("url=|cache_size=|wait=|allow_other", option)] + ["wait=1"]


@pytest.fixture
def nginx(mount, place):
    numbers = itertools.count()
    with servers.stopping() as keep:
        yield lambda exported: keep(exports.NginxOverMount(exported, place / f"nginx{next(numbers)}"))


@pytest.fixture
def split(place, store):
    program = programs.split(programs.burn(place / "burn"), place / "burn.debug")
    programs.into_store(store, program.id, "/usr/bin/burn", program.path)
    programs.into_store(store, program.id, "/usr/bin/burn", program.debug, "debug")
    return program


def get(url, method="GET", **headers):
    """The status, the headers and the body."""
    request = urllib.request.Request(url, method=method, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.headers, answer.read()


def test_headers_that_clients_use(mount, mode, nginx, split):
    server = nginx(mount())
    url, content = f"{server.url}/buildid/{split.id}/debuginfo", split.debug.read_bytes()
    status, headers, body = get(url)
    assert (status, body) == (200, content)
    assert headers["Content-Length"] == headers["X-DEBUGINFOD-SIZE"] == str(len(content))
    assert headers["Content-Type"] == "application/octet-stream" and headers["Last-Modified"] and headers["ETag"]
    status, headers, body = get(url, "HEAD")
    assert status == 200 and headers["X-DEBUGINFOD-SIZE"] == str(len(content)) and not body
    tag = headers["ETag"]
    status, headers, body = get(url, Range="bytes=100-199", If_Range=tag)
    assert (status, body) == (206, content[100:200])
    assert headers["Content-Range"] == f"bytes 100-199/{len(content)}" and headers["X-DEBUGINFOD-SIZE"] == str(len(content))
    assert get(url, Range="bytes=0-99")[2] == content[:100]
    assert get(url, Range=f"bytes={len(content)}-")[0] == 416
    assert get(url, If_None_Match=tag)[0] == 304


def test_nothing_else_is_to_be_had(mount, nginx, split):
    m = mount()
    server = nginx(m)
    for path in ("", "buildid/", f"buildid/{split.id}/", f"buildid/{split.id}/info", f"buildid/{split.id}/elf", ".bidfs/status",
                 f"by-path/usr/bin/burn/{split.id}", f"buildid/{split.id.upper()}/debuginfo", f"buildid/../buildid/{split.id}/x",
                 "buildid/zz/debuginfo", f"buildid/{'0' * 40}/debuginfo"):
        assert get(f"{server.url}/{path}")[0] == 404, path
    assert get(f"{server.url}/buildid/{split.id}/debuginfo", "DELETE")[0] == 403
    metrics = get(f"{server.url}/metrics")
    assert metrics[0] == 200 and b"# TYPE bidfs_" in metrics[2] and metrics[1]["Cache-Control"] == "no-store"


def test_the_clients_of_debuginfod(mount, mode, nginx, split, env, place):
    server = nginx(mount())
    client = {**env, "DEBUGINFOD_URLS": server.url}
    found = tools.run("debuginfod-find", "debuginfo", split.id, env=client).stdout.strip()
    assert open(found, "rb").read() == split.debug.read_bytes()
    found = tools.run("debuginfod-find", "executable", split.id, env=client).stdout.strip()
    assert open(found, "rb").read() == split.read()
    assert tools.run("debuginfod-find", "debuginfo", "00" * 20, env=client, status=None).returncode != 0
    gdb = tools.run("gdb", "-nx", "-batch", "-ex", "set debuginfod enabled on", "-ex", f"file {split.path}",
                    "-ex", "info line burn", env={**client, "DEBUGINFOD_CACHE_PATH": str(place / "gdb")})
    assert "burn.c" in gdb.stdout, gdb.stdout + gdb.stderr


@pytest.mark.limit(60)
def test_a_team_fetches_once(mount, mode, nginx, faults, place, env):
    """Members with mounts and stores of their own, one shared mount behind nginx, one server upstream."""
    upstream = faults()
    program = programs.small(place / "app", 1)
    upstream.serve(program, "executable")
    shared = nginx(mount(f"url={upstream.url}", "wait=5"))
    for number in range(3):
        own = place / f"own{number}"
        own.mkdir()
        member = mount(f"url={shared.url}", on=own)
        assert fetching.read(member.artifact(program.id)) == program.read()
    found = tools.run("debuginfod-find", "executable", program.id, env={**env, "DEBUGINFOD_URLS": shared.url}).stdout
    assert open(found.strip(), "rb").read() == program.read()
    assert upstream.count(program.id) == 1
    assert fetching.read(member.artifact("00" * 20)) == 2
    assert upstream.count("00" * 20) == 1


@pytest.mark.limit(90)
@pytest.mark.parametrize("trouble", ["error:503", "stall-headers"])
def test_an_outage_upstream_is_no_absence_for_the_team(mount, nginx, faults, place, trouble):
    """What the shared mount could not ask for, or not yet, no member remembers as absent; and all else is there all the time."""
    upstream = faults()
    program, kept, *others = [programs.small(place / f"app{number}", number) for number in range(8)]
    upstream.serve(program, "executable")
    upstream.serve(kept, "executable")
    exported = mount(f"url={upstream.url}", *TEAM_OPTIONS)
    shared = nginx(exported)
    assert fetching.read(exported.artifact(kept.id)) == kept.read()
    own = place / "own"
    own.mkdir()
    member = mount(f"url={shared.url}", on=own)
    exported.permit(upstream.url)
    member.permit(shared.url)
    upstream.behave(trouble)
    # more than it takes to leave a server alone that has nothing but trouble
    assert fetching.read_all([member.artifact(one.id) for one in (program, *others)]) == [errno.ENOENT] * 7
    assert fetching.read(member.artifact(kept.id)) == kept.read()
    upstream.behave()
    upstream.release()
    tools.wait_until(lambda: fetching.read(member.elf_file(program.id)) == program.read(), "the file", 20)
