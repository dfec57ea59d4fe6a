# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx over a mount, with the configuration of contrib/nginx, is a debuginfod server: for every client of it, and for bidfs."""
import concurrent.futures
import errno
import itertools
import os
import pathlib
import urllib.error
import urllib.parse
import urllib.request

import pytest

import exports
import fetching
import programs
import servers
import tools
import served_program


@pytest.fixture
def nginx(mount, workdir):
    numbers = itertools.count()
    with servers.stopping() as keep:
        def start(exported, **options):
            """The second mount of the same store uses no server."""
            here = mount("offline", "ro", on=exported.store)
            return keep(exports.NginxOverMount(exported, here, workdir / f"nginx{next(numbers)}", **options))

        yield start


@pytest.fixture(scope="module")
def served():
    with served_program.running() as made:
        yield made


@pytest.fixture
def split(workdir, store):
    program = programs.split(programs.burn(workdir / "burn"), workdir / "burn.debug")
    programs.into_store(store, program.id, "/usr/bin/burn", program.path)
    programs.into_store(store, program.id, "/usr/bin/burn", program.debug, "debug")
    return program


def get(url, method="GET", **headers):
    """Return status, headers and body."""
    request = urllib.request.Request(url, method=method, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.headers, answer.read()


def test_response_has_the_headers_of_debuginfod(mount, mode, nginx, split):
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


def test_other_paths_are_not_served(mount, nginx, split):
    mnt = mount()
    server = nginx(mnt)
    for path in ("", "buildid/", f"buildid/{split.id}/", f"buildid/{split.id}/info", f"buildid/{split.id}/elf", ".bidfs/status",
                 f"by-path/usr/bin/burn/{split.id}", f"buildid/{split.id.upper()}/debuginfo", f"buildid/../buildid/{split.id}/x",
                 "buildid/zz/debuginfo", f"buildid/{'0' * 40}/debuginfo"):
        assert get(f"{server.url}/{path}")[0] == 404, path
    assert get(f"{server.url}/buildid/{split.id}/debuginfo", "DELETE")[0] == 403
    metrics = get(f"{server.url}/metrics")
    assert metrics[0] == 200 and b"# TYPE bidfs_" in metrics[2] and metrics[1]["Cache-Control"] == "no-store"


def test_debuginfod_clients_get_all_kinds(mount, mode, nginx, split, env, workdir):
    server = nginx(mount())
    client = {**env, "DEBUGINFOD_URLS": server.url}
    found = tools.run("debuginfod-find", "debuginfo", split.id, env=client).stdout.strip()
    assert open(found, "rb").read() == split.debug.read_bytes()
    found = tools.run("debuginfod-find", "executable", split.id, env=client).stdout.strip()
    assert open(found, "rb").read() == split.read()
    assert tools.run("debuginfod-find", "debuginfo", "00" * 20, env=client, status=None).returncode != 0
    gdb = tools.run("gdb", "-nx", "-batch", "-ex", "set debuginfod enabled on", "-ex", f"file {split.path}",
                    "-ex", "info line burn", env={**client, "DEBUGINFOD_CACHE_PATH": str(workdir / "gdb")})
    assert "burn.c" in gdb.stdout, gdb.stdout + gdb.stderr


def test_sources_and_sections_are_served(mount, mode, nginx, served, workdir):
    """Clients spell these names in different ways; each works before and after the download. Directories of the mount are 404."""
    server = nginx(mount(f"url={served.server.url}", *exports.team_options(), "wait=30"))
    of_app = f"{server.url}/buildid/{served.app.id}"
    line = programs.sections(served.app.debug)[".debug_line"]
    wanted = {"section/.debug_line": line, **{f"source{urllib.parse.quote(str(served.source / name), safe='')}": text
                                              for name, text in served.texts.items()}}
    wanted = {name.replace("source%2F", "source/%2F"): content for name, content in wanted.items()}
    for url, content in [*wanted.items(), *wanted.items()]:
        status, headers, body = get(f"{of_app}/{url}")
        assert (status, body, headers["X-DEBUGINFOD-SIZE"]) == (200, content, str(len(content))), url
        # the other nginx, which opened the name before the download, does not keep its 404
        assert headers["Content-Type"] == "application/octet-stream" and headers.get_all("Accept-Ranges") == ["bytes"], headers
    for name, text in served.texts.items():
        assert get(f"{of_app}/source{urllib.parse.quote(str(served.source / name))}")[2] == text
    for path in ("source", "source/", f"source{workdir.parent}", f"source{served.source}/lib", f"source{served.source}/lib/",
                 "section", "section/", f"source{served.source}/never.c", "section/.never", f"source{served.source}/main.c/"):
        assert get(f"{of_app}/{path}")[0] == 404, path
    client = {**served.env, "DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(workdir / "client")}
    for name, text in served.texts.items():
        found = tools.run("debuginfod-find", "source", served.app.id, served.source / name, env=client).stdout.strip()
        assert pathlib.Path(found).read_bytes() == text
    found = tools.run("debuginfod-find", "section", served.app.id, ".debug_line", env=client).stdout.strip()
    assert pathlib.Path(found).read_bytes() == line
    own = workdir / "own"
    own.mkdir()
    member = mount(f"url={server.url}", on=own)
    for name, text in served.texts.items():
        assert served.path(member, name).read_bytes() == text
    assert served.section(member, ".debug_line").read_bytes() == line
    assert fetching.read(served.path(member, "never.c")) == fetching.read(served.section(member, ".never")) == errno.ENOENT
    assert member.counter("unknown") == 0


def test_gdb_lists_source_from_export(mount, mode, nginx, served, workdir, needs_root):
    text = served.listed(nginx(mount(f"url={served.server.url}", *exports.team_options(), "wait=30")).url, workdir / "cache")
    assert "return work(argc) == 0;" in text and "return inner(x) * other(x);" in text, text


@pytest.mark.limit(60)
def test_team_downloads_once(mount, mode, nginx, faults, workdir, env):
    """Members with mounts and stores of their own, one shared mount behind nginx, one server upstream."""
    upstream = faults()
    program = programs.small(workdir / "app", 1)
    upstream.serve(program, "executable")
    shared = nginx(mount(f"url={upstream.url}", "wait=30"))
    for number in range(3):
        own = workdir / f"own{number}"
        own.mkdir()
        member = mount(f"url={shared.url}", on=own)
        assert fetching.read(member.artifact(program.id)) == program.read()
    found = tools.run("debuginfod-find", "executable", program.id, env={**env, "DEBUGINFOD_URLS": shared.url}).stdout
    assert open(found.strip(), "rb").read() == program.read()
    assert upstream.count(program.id) == 1
    assert fetching.read(member.artifact("00" * 20)) == 2
    assert upstream.count("00" * 20) == 1


@pytest.mark.limit(60)
@pytest.mark.parametrize("way", ["url=http", "url=file", "lower=", "lower=,url=http"])
def test_member_store_has_copies_or_views(mount, nginx, faults, workdir, store, way):
    """
    The options of docs/TEAM.md: files of the server are copied or not, and listed from the start or not; another server has the
    rest.
    """
    upstream = faults()
    kept, far = (programs.small(workdir / f"app{number}", number) for number in range(2))
    programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
    upstream.serve(far, "executable")
    shared = mount(f"url={upstream.url}", *exports.team_options(), "wait=30")
    (own := workdir / "own").mkdir()
    options = {"url=http": [f"url={nginx(shared).url}"], "url=file": [f"url=file://{shared}"], "lower=": [f"lower={store}"]}
    member = mount(*itertools.chain(*(options[part] for part in way.split(","))), on=own)
    below, asks = "lower=" in way, "url=" in way
    assert os.listdir(member / "buildid") == ([kept.id] if below else [])
    assert (member / f"by-path/usr/bin/kept/{kept.id}").exists() == below
    assert fetching.read(member.artifact(kept.id)) == kept.read()
    assert any(kept.id in name for name in fetching.contents(own)) != below
    assert os.listdir(member / "buildid") == [kept.id]
    assert fetching.read(member.artifact(far.id)) == (far.read() if asks else errno.ENOENT)
    assert upstream.count(far.id) == asks
    assert any(far.id in name for name in fetching.contents(own)) == asks


def behind_a_slow_one(mount, nginx, faults, workdir, **options):
    """Return a program, the server that holds it, the team's server with the options of docs/TEAM.md, and a new member."""
    upstream = faults()
    program, other = (programs.small(workdir / f"app{number}", number) for number in range(2))
    upstream.serve(program, "executable")
    upstream.serve(other, "executable")
    exported = mount(f"url={upstream.url}", *exports.team_options(), exports.team_wait())
    # let the member learn that the server responds
    assert fetching.read(exported.artifact(other.id)) == other.read()
    upstream.behave("hold")
    server = nginx(exported, **options)
    own = workdir / "own"
    own.mkdir()
    return program, upstream, server, mount(f"url={server.url}", on=own)


@pytest.mark.limit(60)
def test_slow_download_answers_424_then_file(mount, nginx, faults, workdir, env):
    """
    One client waits and gets the file; the other one does not wait, keeps no negative cache entry and requests the file again.
    """
    program, upstream, server, member = behind_a_slow_one(mount, nginx, faults, workdir)

    def find(name, **more):
        client = {**env, "DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(workdir / name), **more}
        found = tools.run("debuginfod-find", "executable", program.id, env=client, status=None)
        return found.returncode == 0 and pathlib.Path(found.stdout.strip()).read_bytes()

    assert find("hasty", DEBUGINFOD_TIMEOUT="1") is False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(find, "patient"), pool.submit(fetching.read, member.artifact(program.id))
        try:
            # the first step of one client, and the last step of the other client before its request
            tools.wait_until((workdir / "patient").exists, "a client")
            fetching.await_waiters(member, 1)
        finally:
            upstream.release()
        assert [reader.result() for reader in waiting] == 2 * [program.read()]
    assert find("hasty") == program.read()
    assert upstream.count(program.id) == 1


@pytest.mark.limit(120)
def test_member_gets_response_before_its_time_limit(mount, nginx, faults, workdir, store):
    """
    A new mount gives a server without any response up early. The shared mount with the shipped options responds in time while its
    upstream is slow: hits are served meanwhile, and a file in download is not absent.
    """
    kept = programs.small(workdir / "kept", 3)
    programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
    program, upstream, server, member = behind_a_slow_one(mount, nginx, faults, workdir, soon="3s")
    # the server is not in backoff
    member.permit(f"HTTP 424, unavailable: '{server.url}'")
    assert fetching.read(member.artifact(program.id)) == errno.ENOENT
    assert upstream.active() == 1
    assert fetching.read(member.artifact(kept.id)) == kept.read()
    upstream.release()
    tools.wait_until(lambda: fetching.read(member.elf_file(program.id)) == program.read(), "the file")
    assert upstream.count(program.id) == 1


@pytest.mark.limit(90)
def test_hit_does_not_wait_for_misses(mount, mode, nginx, faults, workdir, store):
    """
    The upstream is silent and there are more misses than waiting places: hits are served at once, and so is the rest of an earlier
    download.
    """
    upstream = faults()
    program, kept = (programs.small(workdir / f"app{number}", number) for number in range(2))
    missing = [programs.forge(program, f"{number:02x}" * 20, workdir / f"missing{number}") for number in range(40)]
    large = programs.small(workdir / "large", 2, "-DBALLAST=24000000")
    for build in (large, *missing):
        upstream.serve(build, "executable")
    programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
    exported = mount(f"url={upstream.url}", *exports.team_options(), "wait=60")
    server = nginx(exported)

    def get_executable(build):
        return get(f"{server.url}/buildid/{build.id}/executable")

    # this client reads slowly; no buffer on the way holds so many bytes
    transfer = urllib.request.urlopen(f"{server.url}/buildid/{large.id}/executable", timeout=60)
    upstream.behave("stall-headers")
    with concurrent.futures.ThreadPoolExecutor(len(missing)) as pool:
        answers = [pool.submit(get_executable, build) for build in missing]
        try:
            # one request is in each waiting place
            fetching.await_waiters(exported, server.waiting)
            for _ in range(server.waiting):
                assert get_executable(kept)[2] == kept.read()
            with transfer:
                assert transfer.read() == large.read()
            assert not any(answer.done() for answer in answers), "hits wait for misses"
        finally:
            upstream.behave()
            upstream.release()
        assert [answer.result()[::2] for answer in answers] == [(200, build.read()) for build in missing]


def test_missing_fetch_server_leaves_hits_served(mount, nginx, split, workdir, store):
    """Without the nginx that waits, stored files are served; no missing file is absent, and the server is not put into backoff."""
    exported = mount(*exports.team_options())
    server, url = nginx(exported), f"/buildid/{split.id}/debuginfo"
    gone, front = server.processes
    exports.end(gone)
    assert get(server.url + url)[2] == split.debug.read_bytes()
    assert get(f"{server.url}/buildid/{'0' * 40}/debuginfo")[0] == get(f"{server.url}/metrics")[0] == 424
    exports.end(front)
    # a directory without a mount
    other = exports.NginxOverMount(exported, store / "nowhere", workdir / "other")
    try:
        status, headers, body = get(other.url + url, Range="bytes=10-19")
        assert (status, body) == (206, split.debug.read_bytes()[10:20])
        assert headers["X-DEBUGINFOD-SIZE"] == str(split.debug.stat().st_size) and headers["Cache-Control"] and headers["ETag"]
    finally:
        other.stop()


@pytest.mark.limit(90)
@pytest.mark.parametrize("failure", ["error:503", "stall-headers"])
def test_upstream_outage_is_not_cached_by_members(mount, nginx, faults, workdir, failure):
    """No member caches an absence that the shared mount could not confirm, and stored files are served all the time."""
    upstream = faults()
    program, kept, *others = [programs.small(workdir / f"app{number}", number) for number in range(8)]
    upstream.serve(program, "executable")
    upstream.serve(kept, "executable")
    exported = mount(f"url={upstream.url}", *exports.team_options())
    shared = nginx(exported)
    # wait for one second only
    tools.wait_until(lambda: fetching.read(exported.artifact(kept.id)) == kept.read(), "the stored files")
    own = workdir / "own"
    own.mkdir()
    member = mount(f"url={shared.url}", on=own)
    exported.permit(upstream.url)
    member.permit(shared.url)
    upstream.behave(failure)
    # more failures than put a server into backoff
    assert fetching.read_all([member.artifact(build.id) for build in (program, *others)]) == [errno.ENOENT] * 7
    assert fetching.read(member.artifact(kept.id)) == kept.read()
    upstream.behave()
    upstream.release()
    tools.wait_until(lambda: fetching.read(member.elf_file(program.id)) == program.read(), "the file")
