#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A debuginfod that misbehaves on request, for tests of downloads.

It serves ROOT/<id>/{debuginfo,executable,source/PATH,section/NAME} as debuginfod(8) would: one thread per connection, HTTP/1.1 with
keep-alive, on the loopback interface only. A behaviour is NAME[:ARG][*K]: it applies to K answers, or for ever. A list is used up
in order; after its last behaviour the server is healthy. A list for one id takes precedence over the list for all ids. The
behaviours are listed below.

Requests control the running server:

  POST /control?behaviour=B[&behaviour=B...][&id=ID]   replace the list, for all or for ID. No behaviour: healthy again
  POST /control/release                                end all stalls and holds
  POST /control/reset                                  forget behaviours and counts
  GET  /control/count[?path=PATH]                      number of requests for PATH, or for any artifact
  GET  /control/headers?path=PATH                      the header of the last request for PATH, as JSON
  GET  /control/stats                                  JSON: requests, connections, active and peak (requests at once),
                                                       paths (in the order of the first request for each)
"""
import argparse
import collections
import fcntl
import json
import os
import re
import select
import signal
import socket
import ssl
import struct
import sys
import termios
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import behaviours


class State:
    """The state that all connections share."""

    def __init__(self, root, log):
        self.root = root
        self.log_file = log
        self.lock = threading.Lock()
        self.release = threading.Event()
        self.forget()

    def forget(self):
        self.behaviours = {}
        self.counts = collections.Counter()
        self.headers = {}
        self.connections = 0
        self.active = 0
        self.peak = 0

    def set_behaviours(self, ident, specs):
        self.behaviours[ident] = [behaviours.Behaviour(spec) for spec in specs]

    def next_behaviour(self, ident):
        """Return the behaviour for the next answer about that id, and count it."""
        with self.lock:
            for listed in (self.behaviours.get(ident), self.behaviours.get(None)):
                if listed:
                    behaviour = listed[0]
                    if behaviour.left is not None:
                        behaviour.left -= 1
                        if behaviour.left == 0:
                            listed.pop(0)
                    return behaviour
        return behaviours.Behaviour("ok")

    def is_silent(self):
        """Return whether the server answers nobody, for ever."""
        listed = self.behaviours.get(None)
        return bool(listed) and listed[0].left is None and listed[0].name == "stall-headers"

    def log(self, line):
        if self.log_file:
            with self.lock:
                self.log_file.write(line + "\n")
                self.log_file.flush()


class Gone(Exception):
    """The connection is over; nothing may be sent on it any more."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "faults"
    disable_nagle_algorithm = True

    def setup(self):
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()
        with self.server.state.lock:
            self.server.state.connections += 1

    def log_message(self, *arguments):
        pass

    # sending of answers

    def begin(self, status, fields=()):
        self.status = status
        self.send_response_only(status)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()

    def send(self, data):
        self.wfile.write(data)
        self.sent += len(data)

    def send_text(self, status, text, fields=(), content_type="text/plain"):
        data = text.encode()
        self.begin(status, [("Content-Type", content_type), ("Content-Length", str(len(data))), *fields])
        self.send(data)

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.sent += len(data)

    def artifact_fields(self, size, length=True, announced=None):
        fields = [("Content-Type", "application/octet-stream"), ("Cache-Control", "public")]
        if length:
            fields.append(("Content-Length", str(size)))
        else:
            self.close_connection = True
            fields.append(("Connection", "close"))
        fields.append(("X-DEBUGINFOD-SIZE", str(size if announced is None else announced)))
        fields.append(("X-DEBUGINFOD-FILE", os.fsencode(self.file).decode("latin-1")))
        return fields

    # abrupt ends of connections

    def unsent(self):
        """Return the number of bytes that the client has not acknowledged."""
        return struct.unpack("i", fcntl.ioctl(self.connection, termios.TIOCOUTQ, bytes(4)))[0]

    def reset(self):
        # RST drops all bytes that the client's kernel has not accepted; the client must get the bytes before it
        deadline = time.monotonic() + 10
        while self.unsent() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.05)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        raise Gone

    def hold(self):
        """Wait for /control/release, or for the end of the connection."""
        while not self.server.state.release.wait(0.05):
            readable, _, _ = select.select([self.connection], [], [], 0)
            # the plain recv(), because recv() of a TLS connection cannot peek
            if readable and not socket.socket.recv(self.connection, 1, socket.MSG_PEEK):
                break

    def stall(self):
        self.hold()
        self.close_connection = True

    # requests

    def do_GET(self):
        self.status, self.sent = 0, 0
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/control"):
            self.control(url)
        elif f"/buildid/{b'bidfs-loop'.hex()}" in url.path:
            # probes for a cycle of servers (store/broker/server_cycle.h) come at any time and are not counted
            if self.server.state.is_silent():
                self.stall()
            else:
                self.send_text(404, "not found")
        else:
            self.counted(self.answer)

    def do_POST(self):
        self.status, self.sent = 0, 0
        url = urllib.parse.urlsplit(self.path)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path.startswith("/control"):
            self.control(url)
        else:
            self.send_text(400, "we support only GET")

    def do_HEAD(self):
        self.status, self.sent = 0, 0
        # debuginfod answers HEAD with the same status
        self.begin(400, [("Content-Length", "0")])

    def counted(self, answer):
        state = self.server.state
        with state.lock:
            state.counts[self.path] += 1
            state.headers[self.path] = dict(self.headers.items())
            state.active += 1
            state.peak = max(state.peak, state.active)
        try:
            answer()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError, Gone):
            self.close_connection = True
        finally:
            with state.lock:
                state.active -= 1
            state.log(f"{self.command} {self.path} {self.status} {self.sent}")

    def answer(self):
        # a proxy gets the whole URL; the query is for log readers
        path = re.sub("^http://[^/]*", "", self.path).partition("?")[0]
        if path == "/":
            return self.send_text(200, "debuginfod of the tests")
        chain = re.fullmatch(r"/chain/(\d+)(/.*)", path)
        if chain and int(chain[1]) > 0:
            return self.redirect(f"/chain/{int(chain[1]) - 1}{chain[2]}")
        plain = re.fullmatch(r"(?:/chain/0|/plain)(/.*)", path)
        match = re.fullmatch(r"/buildid/([^/]*)(?:/(.*))?", plain[1] if plain else path)
        if not match:
            return self.send_text(503, "webapi error, unrecognized '/operation'")
        return self.answer_artifact(match[1], match[2], bool(plain))

    def answer_artifact(self, ident, kind, plain):
        if not re.fullmatch(r"([0-9a-f]{2})+", ident):
            return self.send_text(503, "invalid buildid")
        if not re.fullmatch(r"debuginfo|executable|(source|section)/.+", kind or ""):
            return self.send_text(503, "invalid artifacttype")
        self.ident, self.kind = ident, kind
        self.file = os.path.join(self.server.state.root, ident, urllib.parse.unquote(kind))
        behaviour = behaviours.Behaviour("ok") if plain else self.server.state.next_behaviour(ident)
        return behaviour.function(self, behaviour.arg)

    def read_artifact(self):
        """Return the content of the file, or None after sending a 404."""
        try:
            with open(self.file, "rb") as file:
                return file.read()
        except (FileNotFoundError, IsADirectoryError):
            self.send_text(404, "not found")
            return None

    def redirect(self, url):
        self.begin(302, [("Location", url), ("Content-Length", "0")])

    def control(self, url):
        try:
            self.run_control(url.path, urllib.parse.parse_qs(url.query))
        except (ValueError, KeyError) as error:
            self.send_text(400, f"{error}\n")

    def run_control(self, path, query):
        state = self.server.state
        text = "ok\n"
        with state.lock:
            if (self.command, path) == ("POST", "/control"):
                state.set_behaviours(query.get("id", [None])[0], query.get("behaviour", []))
                state.release.clear()
            elif (self.command, path) == ("POST", "/control/release"):
                state.release.set()
            elif (self.command, path) == ("POST", "/control/reset"):
                active = state.active
                state.forget()
                state.active = active
                state.release.clear()
            elif path == "/control/count":
                text = f"{state.counts[query['path'][0]] if 'path' in query else sum(state.counts.values())}\n"
            elif path == "/control/headers":
                text = json.dumps(state.headers[query["path"][0]]) + "\n"
            elif path == "/control/stats":
                text = json.dumps({"requests": sum(state.counts.values()), "connections": state.connections,
                                   "active": state.active, "peak": state.peak, "paths": list(state.counts)}) + "\n"
            else:
                raise ValueError(f"no such control: {self.command} {path}")
        self.send_text(200, text)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port, state, tls):
        super().__init__(("127.0.0.1", port), Handler)
        self.state = state
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(tls)

    def get_request(self):
        connection, address = super().get_request()
        if self.tls:
            # handshake in the connection's own thread
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def shutdown_request(self, request):
        if request.fileno() >= 0:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, ssl.SSLError, TimeoutError)) and request.fileno() >= 0:
            super().handle_error(request, client_address)


def write_port(path, port):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.rename(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__ + behaviours.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0, the default, is any free one")
    parser.add_argument("--port-file", help="where to write the port when the server answers; by default it is printed")
    parser.add_argument("--root", required=True)
    parser.add_argument("--log", help="one line per request: method, path, status, bytes of body")
    parser.add_argument("--tls", metavar="PEM", help="certificate and key: speak HTTPS")
    parser.add_argument("--behaviour", action="append", default=[], metavar="B", help="for all ids")
    parser.add_argument("--behaviour-for", nargs=2, action="append", default=[], metavar=("ID", "B"))
    arguments = parser.parse_args()

    log = open(arguments.log, "a", encoding="utf-8") if arguments.log else None
    state = State(arguments.root, log)
    try:
        state.set_behaviours(None, arguments.behaviour)
        for ident in {ident for ident, _ in arguments.behaviour_for}:
            state.set_behaviours(ident, [spec for other, spec in arguments.behaviour_for if other == ident])
    except ValueError as error:
        parser.error(str(error))

    server = Server(arguments.port, state, arguments.tls)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    port = server.server_address[1]
    if arguments.port_file:
        write_port(arguments.port_file, port)
    else:
        print(port, flush=True)
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
