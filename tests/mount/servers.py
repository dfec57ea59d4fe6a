# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers for the mounts: a real debuginfod and a misbehaving one."""
import contextlib
import json
import pathlib
import re
import select
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import programs
import tools


@contextlib.contextmanager
def stopping():
    """Yield a function that keeps a server and returns it; all servers are stopped at the end, the last one first."""
    with contextlib.ExitStack() as stack:
        def keep(server):
            stack.callback(server.stop)
            return server

        yield keep


def http(url, data=None, timeout=20):
    """Return status and body; the status is 0 without a response."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, data=data), timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Faults:
    """A running tests/faults/server.py; see its --help."""

    def __init__(self, root, behaviours=(), port=0, certificate=None):
        self.root = pathlib.Path(root)
        argv = [sys.executable, str(tools.FAULTS), "--root", str(root), "--port", str(port)]
        for behaviour in behaviours:
            argv += ["--behaviour", behaviour]
        argv += ["--tls", str(certificate)] if certificate else []
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        readable, _, _ = select.select([self.process.stdout], [], [], 30)
        line = self.process.stdout.readline() if readable else b""
        assert line.strip().isdigit(), "the server did not start"
        self.port = int(line)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"

    def serve(self, program, *kinds):
        """Offer a program, or the files it was split into, under its id."""
        directory = self.root / program.id
        directory.mkdir(parents=True, exist_ok=True)
        for kind in kinds or ("executable", "debuginfo"):
            source = program.debug if kind == "debuginfo" and program.debug else program.path
            (directory / kind).write_bytes(source.read_bytes())

    def behave(self, *behaviours, ident=None):
        query = [("behaviour", behaviour) for behaviour in behaviours] + ([("id", ident)] if ident else [])
        self.control("?" + urllib.parse.urlencode(query))

    def release(self):
        self.control("/release")

    def control(self, what):
        status, body = http(f"{self.url}/control{what}", data=b"")
        assert status == 200, body

    def count(self, ident=None, kind="executable"):
        """Return the number of requests, for one artifact or any."""
        path = f"?path=/buildid/{ident}/{kind}" if ident else ""
        status, body = http(f"{self.url}/control/count{path}")
        assert status == 200, body
        return int(body)

    def active(self):
        """Return the number of requests in flight."""
        return json.loads(http(f"{self.url}/control/stats")[1])["active"]

    def wait_active(self):
        """Wait until a request is in flight."""
        tools.wait_until(lambda: self.active() > 0, "a request")

    def stop(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()


class Debuginfod:
    def __init__(self, directories, workdir, env):
        library = programs.compile_c("loopback.c", workdir / "loopback.so", "-shared", "-fPIC", "-ldl")
        self.log_path = workdir / f"debuginfod-{len(list(workdir.glob('debuginfod-*.log')))}.log"
        # another program may take the port before debuginfod binds it
        for _ in range(5):
            self.port = free_port()
            self.url = f"http://127.0.0.1:{self.port}"
            with open(self.log_path, "wb") as log:
                self.process = subprocess.Popen(
                    ["debuginfod", "-v", "-p", str(self.port), "-d", str(self.log_path) + ".sqlite", "-t", "0", "-F",
                     *map(str, directories)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**env, "LD_PRELOAD": str(library)})
            if tools.wait_until(lambda: self.process.poll() is not None or http(self.url)[0] == 200, "debuginfod") and \
                    self.process.poll() is None:
                return
        raise AssertionError(f"debuginfod does not start:\n{self.log_path.read_text()}")

    def metric(self, name):
        match = re.search(rf"^{re.escape(name)} (\d+)$", http(f"{self.url}/metrics")[1].decode(), re.MULTILINE)
        return int(match[1]) if match else None

    def await_scan(self):
        tools.wait_until(lambda: (self.metric('thread_work_total{role="traverse"}') or 0) >= 1 and
                         self.metric('thread_work_pending{role="scan"}') == 0 and self.metric('thread_busy{role="scan"}') == 0,
                         "scan of debuginfod")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
