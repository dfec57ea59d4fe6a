# SPDX-License-Identifier: LGPL-2.1-or-later
"""The environment of debuginfod clients applies to our requests: debuginfod-client-config(7), curl(1)."""
import base64
import json
import pathlib
import re

import pytest

import namespace
import programs
import servers
import tools


@pytest.fixture
def served(workdir, faults):
    """Return a program and a server that has it."""
    program = programs.small(workdir / "built/app")
    server = faults()
    server.serve(program)
    return program, server


@pytest.fixture
def get(served, store, env):
    """Return a function that runs bidctl get for the program with only the given environment."""
    def run(*options, status=0, **more):
        return tools.run(tools.BIDCTL, "--store", store, "get", *options, served[0].id, "elf", env={**env, **more}, status=status)

    return run


def header(server, program):
    return json.loads(servers.http(f"{server.url}/control/headers?path=/buildid/{program.id}/executable")[1])


def secret(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_request_has_only_its_headers(served, get, workdir):
    """User agent, host, accepted types and authorization, nothing else."""
    program, server = served
    done = get(DEBUGINFOD_URLS=f"  ima:ignore {server.url}/ {server.url} ima:ignore",
               DEBUGINFOD_HEADERS_FILE=secret(workdir / "headers", "X-Key: open sesame\n"),
               NETRC=secret(workdir / "netrc", "machine 127.0.0.1 login user password word\n"), DEBUGINFOD_MAXSIZE="99999999")
    assert done.stderr == "" and server.count() == 1, "the same server twice"
    sent = header(server, program)
    assert re.fullmatch(r"bidfs/[\d.]+ \(debuginfod client\)", sent.pop("User-Agent"))
    assert sent.pop("Authorization") == "Basic " + base64.b64encode(b"user:word").decode()
    assert sent == {"Host": f"127.0.0.1:{server.port}", "Accept": "*/*", "X-DEBUGINFOD-MAXSIZE": "99999999", "X-Key": "open sesame"}


def test_unnamed_netrc_and_headers_are_not_sent(served, get, workdir):
    """A netrc file that no variable names, and a headers file that everybody can write."""
    program, server = served
    secret(workdir / "home/.netrc", "machine 127.0.0.1 login user password word\n")
    headers = pathlib.Path(secret(workdir / "headers", "X-Key: open sesame\n"))
    headers.chmod(0o666)
    done = get(DEBUGINFOD_URLS=server.url, DEBUGINFOD_HEADERS_FILE=str(headers))
    assert "bidfs sends no headers from" in done.stderr
    assert sorted(header(server, program)) == ["Accept", "Host", "User-Agent"]


@pytest.mark.parametrize("limit", [0, 1])
def test_retry_limit_bounds_the_attempts(served, get, limit):
    _, server = served
    server.behave("error:503")
    assert "HTTP 503" in get(status=3, DEBUGINFOD_URLS=server.url, DEBUGINFOD_RETRY_LIMIT=str(limit)).stderr
    assert server.count() == 1 + limit


def test_time_and_size_limits_hold(served, get):
    program, server = served
    every = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_RETRY_LIMIT": "0"}
    server.behave("slow:4000")
    assert "not done within 1 s" in get(status=3, **every, DEBUGINFOD_MAXTIME="1").stderr
    server.behave("stall-headers")
    # DEBUGINFOD_TIMEOUT limits connecting, too
    assert "no response within 1 s" in get(status=3, **every, DEBUGINFOD_TIMEOUT="1").stderr
    server.behave("ok")
    assert "larger" in get(status=1, **every, DEBUGINFOD_MAXSIZE=str(program.path.stat().st_size - 1)).stderr
    get(**every, DEBUGINFOD_MAXSIZE=str(program.path.stat().st_size))


def test_proxy_resolves_the_server_name(served, get):
    _, server = served
    far = {"DEBUGINFOD_URLS": "http://debuginfod.invalid", "http_proxy": server.url}
    get(status=3, **far, no_proxy=".invalid")
    assert server.count() == 0
    get(**far)
    assert server.count() == 1


def test_server_files_count_without_environment(served, store, workdir, env, needs_root):
    """The files of /etc/debuginfod, which login shells read, count only if the environment names no server."""
    program, server = served
    if not pathlib.Path("/etc/debuginfod").is_dir():
        pytest.skip("there is no /etc/debuginfod to put files into")
    (workdir / "etc").mkdir()
    (workdir / "etc/site.urls").write_text(f"ima:ignore {server.url}\n")
    bidctl = f"'{tools.BIDCTL}' --store '{store}'"
    env = {name: value for name, value in env.items() if name != "DEBUGINFOD_URLS"}
    namespace.isolated(f"mount --bind '{workdir}/etc' /etc/debuginfod; ! DEBUGINFOD_URLS= {bidctl} get {program.id} elf", env)
    assert server.count() == 0
    namespace.isolated(f"mount --bind '{workdir}/etc' /etc/debuginfod; {bidctl} get {program.id} elf", env)
    assert server.count() == 1


def test_ima_signature_is_in_info(mount, served):
    """Without ima:enforcing nothing verifies the signature; a reader can."""
    program, server = served
    server.behave("ima:030204d7E2ab")
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(program.id).read_bytes() == program.read()
    info = json.loads(mnt.artifact(program.id, "info").read_text())
    assert info["artifacts"]["elf"]["ima_signature"] == "030204d7e2ab"
    assert "signer" not in info["artifacts"]["elf"]
