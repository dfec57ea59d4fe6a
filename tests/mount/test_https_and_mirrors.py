# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real web servers: nginx with TLS and HTTP/2 in front of a real debuginfod, and nginx with plain files."""
import errno
import itertools
import os
import shutil
import signal
import ssl
import subprocess
import urllib.request

import pytest

import exports
import programs
import servers
import tools
from fetching import leftovers, read, read_all


class Front(exports.Nginx):
    """nginx with HTTPS and HTTP/2 in front of a debuginfod without either, as public servers have it."""

    scheme, log_format = "https", "$server_protocol $status $uri"

    def __init__(self, backend, workdir, certificate):
        self.backend, self.certificate = backend, certificate
        super().__init__(workdir)

    def site(self, port):
        return f"""server {{
            listen 127.0.0.1:{port} ssl http2;
            ssl_certificate {self.certificate}; ssl_certificate_key {self.certificate};
            location = / {{ return 404; }}
            location / {{ proxy_pass {self.backend}; proxy_http_version 1.1; proxy_intercept_errors off; }}
        }}"""

    def is_ready(self):
        context = ssl.create_default_context(cafile=self.certificate)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            opener.open(self.url, timeout=5)
        except urllib.error.HTTPError as answer:
            return answer.code == 404
        except OSError:
            return False


class Plain(exports.Nginx):
    """A mirror of plain files."""

    log_format = "$status $sent_http_content_range"

    def __init__(self, root, workdir, more=""):
        self.root, self.more = root, more
        super().__init__(workdir)

    def site(self, port):
        return f"server {{ listen 127.0.0.1:{port}; root {self.root}; {self.more} location = / {{ return 404; }} }}"

    def kill_workers(self):
        """Break all connections; the master keeps the port and starts new workers at once."""
        for pid in tools.run("ps", "-o", "pid=", "--ppid", self.processes[0].pid).stdout.split():
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def front(workdir, env, certificate):
    """Return a function that starts nginx in front of a debuginfod that has scanned a directory."""
    with servers.stopping() as keep:
        def start(directory):
            backend = keep(servers.Debuginfod([directory], workdir, env))
            backend.await_scan()
            return keep(Front(backend.url, workdir / "front", certificate))

        yield start


@pytest.fixture
def plain(workdir):
    numbers = itertools.count()
    with servers.stopping() as keep:
        yield lambda more="": keep(Plain(workdir / "files", workdir / f"plain-{next(numbers)}", more))


@pytest.mark.limit(60)
def test_http2_downloads_many_at_once(mount, mode, front, workdir, store, certificate):
    """Many downloads over one connection; HTTP/2 has field names in lower case; SSL_CERT_FILE names the certificate."""
    (workdir / "bin").mkdir()
    wanted = [programs.small(workdir / "bin" / f"app-{seed}", seed) for seed in range(1, 13)]
    server = front(workdir / "bin")
    mnt = mount(f"url={server.url}", "wait=30", env_more={"SSL_CERT_FILE": str(certificate)})
    answers = read_all([mnt.artifact(program.id) for program in wanted])
    assert answers == [program.read() for program in wanted]
    assert read(mnt.artifact("ab" * 20)) == errno.ENOENT
    assert mnt.counter("fetched") == 12 and mnt.counter("negative_entries") == 1 and leftovers(store) == []
    assert mnt.status()["servers"][0]["protocol"] == "HTTP/2"

    def logged():
        return {tuple(line.split()) for line in server.log("access.log").splitlines() if "/buildid/" in line}

    # nginx writes its log after the response; a request may be there that looks for a server in front of this mount
    expected = {f"/buildid/{ident}/executable" for ident in (*(program.id for program in wanted), "ab" * 20)}
    tools.wait_until(lambda: expected <= {uri for _, _, uri in logged()}, "all requests in the log")
    assert {protocol for protocol, _, _ in logged()} == {"HTTP/2.0"}, logged()
    # the time of the header reached the store
    assert "app-1" in (mnt / "buildid" / wanted[0].id / "info").read_text()


def test_untrusted_certificate_sends_no_request(mount, front, workdir):
    (workdir / "bin").mkdir()
    program = programs.small(workdir / "bin/app")
    server = front(workdir / "bin")
    mnt = mount(f"url={server.url}", "wait=30")
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    mnt.expect("no secure connection: ")
    assert mnt.counter("fetched") == mnt.counter("negative_entries") == 0
    assert "/buildid/" not in server.log("access.log")


@pytest.fixture
def between(workdir, env):
    """Return a function that starts a debuginfod whose files come from another server."""
    (workdir / "own").mkdir()
    programs.small(workdir / "own/app", 99)
    with servers.stopping() as keep:
        def start(upstream):
            more = {"DEBUGINFOD_URLS": upstream.url, "DEBUGINFOD_CACHE_PATH": str(workdir / "between-cache")}
            server = keep(servers.Debuginfod([workdir / "own"], workdir, {**env, **more}))
            server.await_scan()
            return server

        yield start


def test_doubled_body_of_upstream_is_refused(mount, faults, between, workdir):
    """After a broken download, a debuginfod appends the retried body to the first part and serves both as one file."""
    original = programs.burn(workdir / "app")
    size = original.path.stat().st_size
    made = {cut: programs.forge(original, f"{cut:08x}" * 5, workdir / f"app-{cut}") for cut in (64, size // 2, size - 64)}
    upstream = faults()
    for cut, program in made.items():
        upstream.serve(program)
        upstream.behave(f"reset:{cut}*1", ident=program.id)
    server = between(upstream)
    mnt = mount(f"url={server.url}", "wait=30")
    mnt.permit(server.url)
    answers = {cut: read(mnt.artifact(program.id)) for cut, program in made.items()}
    assert {cut: answer for cut, answer in answers.items() if answer not in (errno.ENOENT, made[cut].read())} == {}
    # a later debuginfod may detect the broken file
    assert mnt.counter("rejected") + mnt.counter("fetched") == len(made)
    assert all(upstream.count(program.id) > 1 for program in made.values())


def test_late_response_of_forwarding_server_is_used(mount, faults, between, workdir):
    """
    A forwarding server responds once it has the whole file: after the time limit of the reader the download goes on and is stored.
    """
    program = programs.small(workdir / "app")
    upstream = faults("delay:3")
    upstream.serve(program)
    server = between(upstream)
    mnt = mount(f"url={server.url}", "wait=1")
    # a server without any response yet must start within 10 s
    mnt.permit(server.url)
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "the file")
    assert upstream.count(program.id) == mnt.counter("fetched") == 1


def test_redirect_from_https_to_http_is_refused(mount, faults, workdir, certificate):
    program = programs.small(workdir / "app")
    plain = faults(root=workdir / "plain")
    plain.serve(program)
    secure = faults(f"redirect:{plain.url}{{path}}", root=workdir / "secure", certificate=certificate)
    mnt = mount(f"url={secure.url}", "wait=30", env_more={"SSL_CERT_FILE": str(certificate)})
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    mnt.expect("redirected to a place that bidfs does not follow")
    assert plain.count() == mnt.counter("fetched") == mnt.counter("negative_entries") == 0


def test_silence_after_tls_handshake_costs_one_time_limit(mount, faults, workdir, certificate):
    """A server is silent after the handshake: one request waits for it, and another server is used meanwhile."""
    wanted = [programs.small(workdir / f"app{seed}", seed) for seed in range(4)]
    good = faults(root=workdir / "good")
    for program in wanted:
        good.serve(program)
    silent = faults("stall-headers", root=workdir / "silent", certificate=certificate)
    env = {"SSL_CERT_FILE": str(certificate)}
    mnt = mount(f"url={silent.url}", f"url={good.url}", "wait=30", env_more=env)
    assert read_all([mnt.artifact(program.id) for program in wanted]) == [program.read() for program in wanted]
    assert mnt.counter("fetched") == 4
    mnt.permit(silent.url)
    (workdir / "other").mkdir()
    alone = mount(f"url={silent.url}", "wait=30", on=workdir / "other", env_more={**env, "DEBUGINFOD_TIMEOUT": "1"})
    assert read_all([alone.artifact(program.id) for program in wanted]) == [errno.ENOENT] * 4
    alone.expect(silent.url)
    assert alone.counter("negative_entries") == 0 and alone.status()["servers"][0]["breaker"] != "closed"


@pytest.mark.limit(60)
def test_broken_body_is_resumed(mount, plain, workdir, store):
    """The connections of a mirror break in the body; received bytes are not sent again."""
    program = programs.small(workdir / "app", 0)
    with open(program.path, "ab") as file:
        file.write(os.urandom(6 << 20))
    directory = workdir / "files/buildid" / program.id
    directory.mkdir(parents=True)
    shutil.copyfile(program.path, directory / "executable")
    server = plain("limit_rate_after 1m; limit_rate 2m;")
    mnt = mount(f"url={server.url}", "wait=50")

    def is_in_the_middle():
        return any(download["received"] > 1 << 20 for download in mnt.status()["downloads"])

    def parts():
        return [line for line in server.log("access.log").splitlines() if line.startswith("206 bytes ")]

    reader = subprocess.Popen(["cmp", mnt.artifact(program.id), program.path])
    try:
        tools.wait_until(lambda: is_in_the_middle() or reader.poll() is not None, "some of the file")
        server.kill_workers()
        assert reader.wait() == 0
    finally:
        reader.kill()
        reader.wait()
    # nginx writes its log after the response
    tools.wait_until(parts, "the rest in the log")
    size = program.path.stat().st_size
    assert len(parts()) == 1
    assert parts()[0].endswith(f"-{size - 1}/{size}") and int(parts()[0].split()[2].split("-")[0]) >= 1 << 20
    assert mnt.counter("fetched") == 1 and leftovers(store) == []


def test_plain_404_is_absence(mount, plain, workdir):
    """nginx sends an HTML page with its 404, whatever suffix the name has."""
    (workdir / "files/buildid").mkdir(parents=True)
    mnt = mount(f"url={plain().url}")
    assert read(mnt.artifact("ab" * 20)) == errno.ENOENT
    assert mnt.counter("negative_entries") == 1
