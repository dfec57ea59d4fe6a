#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A debuginfod that misbehaves as it is told, for the tests of everything that fetches.

It serves ROOT/<id>/{debuginfo,executable,source/PATH,section/NAME} as debuginfod(8) would: one thread per connection, HTTP/1.1 with
keep-alive, on the loopback interface only. A behaviour is NAME[:ARG][*K]: it is in force for K answers, or for ever. Several make a
list; when it is used up the server is healthy. Behaviours can be given for one id only, which then go before those for all.

  ok                        the file, with Content-Length and X-DEBUGINFOD-*
  chunked                   the file, in chunks
  no-length                 the file, ended by closing the connection
  close                     the file, and the connection is closed behind it
  lower-case                the file, with field names as HTTP/2 has them
  absent, gone              404, 410
  error:CODE[:RETRY[:TEXT]] that status, with Retry-After: RETRY unless it is empty, and TEXT as the body; a RETRY of "dateN" is
                            the date that comes in N seconds
  wrong-id:PATH             the file at PATH instead
  flip-note                 the file with one bit of its build-id inverted
  flip:OFFSET               the file with the byte at OFFSET inverted
  html                      200 and a web page
  empty                     200 and no byte
  encoded                   200, Content-Encoding: gzip
  truncate:N                N bytes of the file, announced as all of it by Content-Length
  truncate-noclen:N         N bytes, ended by closing; X-DEBUGINFOD-SIZE tells the truth
  truncate-bare:N           N bytes, ended by closing; nothing tells
  truncate-chunked:N        N bytes in chunks, and then the connection is closed without the last chunk
  reset:N                   N bytes, then RST
  reset-headers             RST instead of an answer
  hang-up                   FIN instead of an answer
  stall:N                   N bytes, then nothing, until /control/release
  stall-headers             nothing at all, until /control/release
  slow:RATE                 the file at RATE bytes a second
  slow-headers:SECONDS      a line of header every SECONDS, for ever
  delay:SECONDS             the file, after SECONDS
  redirect:URL              302; {path} in URL is the path that was asked for. What is under /plain is served without misbehaving
  redirect-loop             302 to itself
  redirect-chain:N          N times 302, then the file
  big-length                the file, announced as 1 TiB
  endless                   chunks of zeros for ever
  bad-size-header[:SIZE]    the file with its Content-Length, but X-DEBUGINFOD-SIZE: SIZE (by default one too many)
  bad-size-no-length[:SIZE] the same, ended by closing
  many-headers:BYTES        the file, after so much header
  early-hints               103 before the file
  ima:HEX                   the file with that signature, as servers of RPMs send it
  static[:N]                as a server of plain files: with ETag and Accept-Ranges, or the part that is asked for; at most N bytes,
                            then RST
  static-truncate:N         the same, but FIN
  static-no-ranges:N, static-weak:N, static-old:N
                            the same without Accept-Ranges, with a weak ETag, with another ETag
  part-ignored:N            the same, but always all of the file
  part-shifted, part-short, part-other
                            a part that begins a byte early, ends a byte early, is of another file
  part-encoded              the part that was asked for, said to be in an encoding
  part-always               206, asked for or not
  garbage                   something that is not HTTP

The running server is controlled by requests:

  POST /control?behaviour=B[&behaviour=B...][&id=ID]   replace the list, for all or for ID. No behaviour: healthy again
  POST /control/release                                end all stalls
  POST /control/reset                                  forget behaviours and counts
  GET  /control/count[?path=PATH]                      how many times PATH was asked for, or any artifact
  GET  /control/headers?path=PATH                      the header of the last request for PATH, as JSON
  GET  /control/stats                                  JSON: requests, connections, active and peak (requests at once)
"""
import argparse
import collections
import email.utils
import json
import os
import re
import select
import signal
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHUNK = 16384
TEBIBYTE = 1 << 40


class Behaviour:
    """One NAME[:ARG][*K]."""

    def __init__(self, spec):
        match = re.fullmatch(r"(?s)([a-z-]+)(?::(.*?))?(?:\*(\d+))?", spec)
        if not match or match[1] not in BEHAVIOURS:
            raise ValueError(f"no such behaviour: {spec!r}")
        self.name, self.arg = match[1], match[2]
        self.left = int(match[3]) if match[3] else None
        function, needs_arg = BEHAVIOURS[self.name]
        if needs_arg and not self.arg:
            raise ValueError(f"behaviour without its argument: {spec!r}")
        self.function = function


class State:
    """What all connections share."""

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
        self.behaviours[ident] = [Behaviour(spec) for spec in specs]

    def next_behaviour(self, ident):
        """The behaviour for one answer about that id."""
        with self.lock:
            for behaviours in (self.behaviours.get(ident), self.behaviours.get(None)):
                if behaviours:
                    behaviour = behaviours[0]
                    if behaviour.left is not None:
                        behaviour.left -= 1
                        if behaviour.left == 0:
                            behaviours.pop(0)
                    return behaviour
        return Behaviour("ok")

    def log(self, line):
        if self.log_file:
            with self.lock:
                self.log_file.write(line + "\n")
                self.log_file.flush()


class Gone(Exception):
    """The connection is over, and nothing may be sent on it any more."""


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

    # answers

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
        fields.append(("X-DEBUGINFOD-FILE", self.file))
        return fields

    # the ends that no well-behaved server makes

    def reset(self):
        # what was sent must be read by the client before the reset drops it
        time.sleep(0.05)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        raise Gone

    def stall(self):
        while not self.server.state.release.wait(0.05):
            readable, _, _ = select.select([self.connection], [], [], 0)
            # the plain recv(): that of a TLS connection cannot peek
            if readable and not socket.socket.recv(self.connection, 1, socket.MSG_PEEK):
                break
        self.close_connection = True

    # requests

    def do_GET(self):
        self.status, self.sent = 0, 0
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/control"):
            self.control(url)
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
        # as debuginfod does it, but for the body, which no answer to HEAD has
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
        # a proxy is asked with the whole URL
        path = re.sub("^http://[^/]*", "", self.path)
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
        behaviour = Behaviour("ok") if plain else self.server.state.next_behaviour(ident)
        return behaviour.function(self, behaviour.arg)

    def read_artifact(self):
        """The file; or None, and then 404 was sent."""
        try:
            with open(self.file, "rb") as file:
                return file.read()
        except FileNotFoundError:
            self.send_text(404, "not found")
            return None

    def redirect(self, url):
        self.begin(302, [("Location", url), ("Content-Length", "0")])

    def control(self, url):
        try:
            self.obey(url.path, urllib.parse.parse_qs(url.query))
        except (ValueError, KeyError) as trouble:
            self.send_text(400, f"{trouble}\n")

    def obey(self, path, query):
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
                                   "active": state.active, "peak": state.peak}) + "\n"
            else:
                raise ValueError(f"no such control: {self.command} {path}")
        self.send_text(200, text)


def with_artifact(function):
    """A behaviour that needs the file, which is passed as its last argument."""
    def behave(handler, arg):
        data = handler.read_artifact()
        if data is not None:
            function(handler, arg, data)
    return behave


def send_whole(handler, data):
    limit = handler.headers.get("X-DEBUGINFOD-MAXSIZE")
    if limit and len(data) > int(limit):
        handler.send_text(406, f"File too large, max size={limit}")
        return
    handler.begin(200, handler.artifact_fields(len(data)))
    handler.send(data)


@with_artifact
def ok(handler, arg, data):
    send_whole(handler, data)


@with_artifact
def chunked(handler, arg, data):
    fields = [field for field in handler.artifact_fields(len(data)) if field[0] != "Content-Length"]
    handler.begin(200, fields + [("Transfer-Encoding", "chunked")])
    for start in range(0, len(data), CHUNK):
        handler.send_chunk(data[start:start + CHUNK])
    handler.wfile.write(b"0\r\nX-Trailer: 1\r\n\r\n")


@with_artifact
def no_length(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), length=False))
    handler.send(data)


@with_artifact
def close(handler, arg, data):
    handler.close_connection = True
    handler.begin(200, handler.artifact_fields(len(data)) + [("Connection", "close")])
    handler.send(data)


@with_artifact
def lower_case(handler, arg, data):
    handler.begin(200, [(name.lower(), value) for name, value in handler.artifact_fields(len(data))])
    handler.send(data)


def absent(handler, arg):
    handler.send_text(404, "not found")


def gone(handler, arg):
    handler.send_text(410, "gone")


def error(handler, arg):
    code, _, rest = arg.partition(":")
    retry, _, text = rest.partition(":")
    if re.fullmatch(r"date\d+", retry):
        retry = email.utils.formatdate(time.time() + int(retry[4:]), usegmt=True)
    handler.send_text(int(code), text or "trouble on purpose", [("Retry-After", retry)] if retry else [])


def wrong_id(handler, arg):
    with open(arg, "rb") as file:
        send_whole(handler, file.read())


@with_artifact
def flip_note(handler, arg, data):
    at = data.find(bytes.fromhex(handler.ident))
    if at < 0:
        handler.send_text(400, "the file does not contain the id")
        return
    send_whole(handler, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])


@with_artifact
def flip(handler, arg, data):
    at = int(arg)
    send_whole(handler, data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:])


def html(handler, arg):
    handler.send_text(200, "<!DOCTYPE html>\n<html><body>Please log in.</body></html>\n", content_type="text/html")


def empty(handler, arg):
    handler.begin(200, [("Content-Length", "0")])


@with_artifact
def encoded(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data)) + [("Content-Encoding", "gzip")])
    handler.send(data)


@with_artifact
def truncate(handler, arg, data):
    handler.close_connection = True
    handler.begin(200, handler.artifact_fields(len(data)))
    handler.send(data[:int(arg)])


@with_artifact
def truncate_noclen(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), length=False))
    handler.send(data[:int(arg)])


@with_artifact
def truncate_bare(handler, arg, data):
    handler.close_connection = True
    handler.begin(200, [("Content-Type", "application/octet-stream"), ("Connection", "close")])
    handler.send(data[:int(arg)])


@with_artifact
def truncate_chunked(handler, arg, data):
    handler.close_connection = True
    handler.begin(200, [("Content-Type", "application/octet-stream"), ("Transfer-Encoding", "chunked")])
    data = data[:int(arg)]
    for start in range(0, len(data), CHUNK):
        handler.send_chunk(data[start:start + CHUNK])


@with_artifact
def reset(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data)))
    handler.send(data[:int(arg)])
    handler.reset()


def reset_headers(handler, arg):
    handler.reset()


def hang_up(handler, arg):
    handler.close_connection = True


@with_artifact
def stall(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data)))
    handler.send(data[:int(arg)])
    handler.stall()


def stall_headers(handler, arg):
    handler.stall()


@with_artifact
def slow(handler, arg, data):
    rate = float(arg)
    piece = max(1, min(CHUNK, int(rate / 20)))
    handler.begin(200, handler.artifact_fields(len(data)))
    began = time.monotonic()
    for start in range(0, len(data), piece):
        handler.send(data[start:start + piece])
        time.sleep(max(0, began + handler.sent / rate - time.monotonic()))


def slow_headers(handler, arg):
    handler.close_connection = True
    handler.status = 200
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    line = 0
    while not handler.server.state.release.wait(float(arg)):
        handler.wfile.write(b"X-Drip-%d: 1\r\n" % line)
        line += 1


@with_artifact
def delay(handler, arg, data):
    time.sleep(float(arg))
    send_whole(handler, data)


def redirect(handler, arg):
    handler.redirect(arg.replace("{path}", handler.path))


def redirect_loop(handler, arg):
    handler.redirect(handler.path)


def redirect_chain(handler, arg):
    handler.redirect(f"/chain/{int(arg) - 1}{handler.path}")


@with_artifact
def big_length(handler, arg, data):
    handler.close_connection = True
    handler.begin(200, handler.artifact_fields(TEBIBYTE))
    handler.send(data)


def endless(handler, arg):
    handler.begin(200, [("Content-Type", "application/octet-stream"), ("Transfer-Encoding", "chunked")])
    while True:
        handler.send_chunk(bytes(CHUNK))


@with_artifact
def bad_size_header(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), announced=int(arg) if arg else len(data) + 1))
    handler.send(data)


@with_artifact
def bad_size_no_length(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), length=False, announced=int(arg) if arg else len(data) + 1))
    handler.send(data)


@with_artifact
def many_headers(handler, arg, data):
    padding = [(f"X-Padding-{n}", "x" * 1000) for n in range(int(arg) // 1000 + 1)]
    handler.begin(200, padding + handler.artifact_fields(len(data)))
    handler.send(data)


TAG = '"v1"'


def static_fields(size, tag, ranges=True):
    return [("Content-Type", "application/octet-stream"), ("Content-Length", str(size)), ("ETag", tag)] + \
        ([("Accept-Ranges", "bytes")] if ranges else [])


def send_static(handler, data, arg, tag=TAG, end=None, **fields):
    """The file, or the part of it that is asked for; @arg bytes at most."""
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    start = int(asked[1]) if asked and handler.headers.get("If-Range") in (None, tag) else 0
    part = data[start:]
    if start:
        handler.begin(206, static_fields(len(part), tag, **fields) +
                      [("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")])
    else:
        handler.begin(200, static_fields(len(part), tag, **fields))
    most = int(arg) if arg else len(part)
    handler.send(part[:most])
    if most < len(part):
        (end or handler.reset)()


@with_artifact
def static(handler, arg, data):
    send_static(handler, data, arg)


@with_artifact
def static_truncate(handler, arg, data):
    handler.close_connection = True
    send_static(handler, data, arg, end=lambda: None)


@with_artifact
def static_no_ranges(handler, arg, data):
    send_static(handler, data, arg, ranges=False)


@with_artifact
def static_weak(handler, arg, data):
    send_static(handler, data, arg, tag="W/" + TAG)


@with_artifact
def static_old(handler, arg, data):
    send_static(handler, data, arg, tag='"v0"')


@with_artifact
def part_ignored(handler, arg, data):
    handler.begin(200, static_fields(len(data), TAG))
    handler.send(data[:int(arg)])
    handler.reset()


def send_part(handler, data, start, end, tag=TAG, fields=()):
    handler.begin(206, [*static_fields(end - start, tag), ("Content-Range", f"bytes {start}-{end - 1}/{len(data)}"), *fields])
    handler.send(data[start:end])


def asked_start(handler):
    return int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))


@with_artifact
def part_shifted(handler, arg, data):
    send_part(handler, data, asked_start(handler) - 1, len(data))


@with_artifact
def part_short(handler, arg, data):
    send_part(handler, data, asked_start(handler), len(data) - 1)


@with_artifact
def part_other(handler, arg, data):
    send_part(handler, data, asked_start(handler), len(data), tag='"v2"')


@with_artifact
def part_encoded(handler, arg, data):
    send_part(handler, data, asked_start(handler), len(data), fields=[("Content-Encoding", "br")])


@with_artifact
def part_always(handler, arg, data):
    send_part(handler, data, 0, len(data))


@with_artifact
def early_hints(handler, arg, data):
    handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-DEBUGINFOD-SIZE: 1\r\n\r\n")
    send_whole(handler, data)


@with_artifact
def ima(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data)) + [("X-DEBUGINFOD-IMASIGNATURE", arg)])
    handler.send(data)


def garbage(handler, arg):
    handler.close_connection = True
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2p1\r\n")


# the function, and whether it needs an argument
BEHAVIOURS = {
    "ok": (ok, False),
    "chunked": (chunked, False),
    "no-length": (no_length, False),
    "close": (close, False),
    "lower-case": (lower_case, False),
    "absent": (absent, False),
    "gone": (gone, False),
    "error": (error, True),
    "wrong-id": (wrong_id, True),
    "flip-note": (flip_note, False),
    "flip": (flip, True),
    "html": (html, False),
    "empty": (empty, False),
    "encoded": (encoded, False),
    "truncate": (truncate, True),
    "truncate-noclen": (truncate_noclen, True),
    "truncate-bare": (truncate_bare, True),
    "truncate-chunked": (truncate_chunked, True),
    "reset": (reset, True),
    "reset-headers": (reset_headers, False),
    "hang-up": (hang_up, False),
    "stall": (stall, True),
    "stall-headers": (stall_headers, False),
    "slow": (slow, True),
    "slow-headers": (slow_headers, True),
    "delay": (delay, True),
    "redirect": (redirect, True),
    "redirect-loop": (redirect_loop, False),
    "redirect-chain": (redirect_chain, True),
    "big-length": (big_length, False),
    "endless": (endless, False),
    "bad-size-header": (bad_size_header, False),
    "bad-size-no-length": (bad_size_no_length, False),
    "many-headers": (many_headers, True),
    "early-hints": (early_hints, False),
    "ima": (ima, True),
    "static": (static, False),
    "static-truncate": (static_truncate, True),
    "static-no-ranges": (static_no_ranges, True),
    "static-weak": (static_weak, True),
    "static-old": (static_old, True),
    "part-ignored": (part_ignored, True),
    "part-shifted": (part_shifted, False),
    "part-short": (part_short, False),
    "part-other": (part_other, False),
    "part-encoded": (part_encoded, False),
    "part-always": (part_always, False),
    "garbage": (garbage, False),
}


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
            # the handshake is for the connection's own thread
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def shutdown_request(self, request):
        if request.fileno() >= 0:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        trouble = sys.exc_info()[1]
        if not isinstance(trouble, (ConnectionError, ssl.SSLError, TimeoutError)) and request.fileno() >= 0:
            super().handle_error(request, client_address)


def write_port(path, port):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.rename(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    except ValueError as trouble:
        parser.error(str(trouble))

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
