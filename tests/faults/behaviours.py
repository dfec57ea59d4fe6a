# SPDX-License-Identifier: LGPL-2.1-or-later
"""The behaviours of server.py.

  ok                        the file, with Content-Length and X-DEBUGINFOD-*
  chunked                   the file, in chunks
  no-length                 the file, ended by closing the connection
  close[:SECONDS]           the file, after SECONDS; then the connection is closed
  old                       the file, as HTTP/1.0, ended by closing the connection
  lower-case                the file, with lower-case field names as in HTTP/2
  absent, gone              404, 410
  error:CODE[:RETRY[:TEXT]] that status, with Retry-After: RETRY unless it is empty, and TEXT as the body; a RETRY of "dateN" is
                            the date in N seconds
  wrong-id:PATH             the file at PATH instead
  flip-note                 the file with one bit of its build-id inverted
  flip:OFFSET               the file with the byte at OFFSET inverted
  html                      200 and a web page
  empty, empty-chunked      200 and no byte, with Content-Length: 0 or in chunks
  encoded                   the plain file, announced as Content-Encoding: gzip
  encoding:NAME             the file with Content-Encoding: NAME (gzip, deflate or none), without a size
  encoding-chunked:NAME     the same, in chunks
  gzip-members              the file as two members of gzip (RFC 1952, 2.2)
  bomb                      64 MiB of zeros in 64 KiB of gzip
  truncate:N                N bytes of the file, with the Content-Length of the whole file
  truncate-noclen:N         N bytes, ended by closing; X-DEBUGINFOD-SIZE is that of the whole file
  truncate-bare:N           N bytes, ended by closing; no size in the header
  truncate-chunked:N        N bytes in chunks; then the connection is closed without the last chunk
  reset:N                   N bytes, then RST
  reset-headers             RST instead of an answer
  hang-up                   FIN instead of an answer
  stall:N                   N bytes, then nothing, until /control/release
  stall-headers             nothing at all, until /control/release
  slow:RATE                 the file at RATE bytes a second
  slow-headers:SECONDS      a header line every SECONDS, for ever
  delay:SECONDS             the file, after SECONDS
  hold                      the file, after /control/release
  redirect:URL              302; {path} in URL is the requested path. Paths below /plain are served without misbehaving
  redirect-page:N:URL       the same, with a page of N bytes that ends with the connection
  redirect-loop             302 to itself
  redirect-chain:N          N times 302, then the file
  big-length                the file, announced as 1 TiB
  endless                   chunks of zeros for ever
  goes-on                   the file, then chunks of zeros for ever
  endless-trailers          the file in chunks, then fields behind it for ever
  bad-size-header[:SIZE]    the file with its Content-Length, but X-DEBUGINFOD-SIZE: SIZE (default: one too many)
  bad-size-no-length[:SIZE] the same, ended by closing
  bad-size-chunked[:SIZE]   the same, in chunks
  many-headers:BYTES        the file, after BYTES of header
  long-header:BYTES         the same in one line
  early-hints               103 before the file
  modified:SECONDS          the file, with Last-Modified SECONDS after the epoch
  ima:HEX[:OFFSET]          the file with an IMA signature, as servers of RPMs send it, and with the byte at OFFSET inverted
  static[:N]                as a server of plain files: with ETag and Accept-Ranges, or the requested part;
                            at most N bytes, then RST
  static-truncate:N         the same, but FIN
  static-no-ranges:N, static-weak:N, static-old:N
                            the same without Accept-Ranges, with a weak ETag, with another ETag
  part-ignored:N            the same, but always the whole file
  part-shifted, part-short, part-other
                            a part that begins a byte early, that ends a byte early, of another file
  part-encoded              the requested part, announced with an encoding
  part-always               206, even without a Range
  garbage                   bytes that are not HTTP
"""
import email.utils
import gzip
import re
import time
import zlib

CHUNK = 16384
TEBIBYTE = 1 << 40
TAG = '"v1"'


def with_artifact(function):
    """Make a behaviour that gets the content of the file as its last argument."""
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


def send_in_chunks(handler, data, announced=None):
    fields = [field for field in handler.artifact_fields(len(data), announced=announced) if field[0] != "Content-Length"]
    handler.begin(200, fields + [("Transfer-Encoding", "chunked")])
    for start in range(0, len(data), CHUNK):
        handler.send_chunk(data[start:start + CHUNK])
    handler.wfile.write(b"0\r\nX-Trailer: 1\r\n\r\n")


@with_artifact
def chunked(handler, arg, data):
    send_in_chunks(handler, data)


@with_artifact
def no_length(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), length=False))
    handler.send(data)


@with_artifact
def close(handler, arg, data):
    time.sleep(float(arg or 0))
    handler.close_connection = True
    handler.begin(200, handler.artifact_fields(len(data)) + [("Connection", "close")])
    handler.send(data)


@with_artifact
def old(handler, arg, data):
    handler.protocol_version = "HTTP/1.0"
    handler.close_connection = True
    handler.begin(200, [field for field in handler.artifact_fields(len(data)) if field[0] != "Content-Length"])
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


def inverted(data, at):
    return data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:]


@with_artifact
def flip(handler, arg, data):
    send_whole(handler, inverted(data, int(arg)))


def html(handler, arg):
    handler.send_text(200, "<!DOCTYPE html>\n<html><body>Please log in.</body></html>\n", content_type="text/html")


def empty(handler, arg):
    handler.begin(200, [("Content-Length", "0")])


def empty_chunked(handler, arg):
    handler.begin(200, [("Transfer-Encoding", "chunked")])
    handler.wfile.write(b"0\r\n\r\n")


@with_artifact
def modified(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data)) + [("Last-Modified", email.utils.formatdate(int(arg), usegmt=True))])
    handler.send(data)


def encode(name, data):
    return {"gzip": gzip.compress, "deflate": zlib.compress, "none": bytes}[name](data)


@with_artifact
def encoding(handler, arg, data):
    body = encode(arg, data)
    handler.begin(200, [("Content-Length", str(len(body))), ("Content-Encoding", arg)])
    handler.send(body)


@with_artifact
def encoding_chunked(handler, arg, data):
    handler.begin(200, [("Transfer-Encoding", "chunked"), ("Content-Encoding", arg)])
    handler.send_chunk(encode(arg, data))
    handler.wfile.write(b"0\r\n\r\n")


def bomb(handler, arg):
    body = gzip.compress(bytes(64 << 20))
    handler.begin(200, [("Content-Length", str(len(body))), ("Content-Encoding", "gzip")])
    handler.send(body)


@with_artifact
def gzip_members(handler, arg, data):
    body = gzip.compress(data[:1000]) + gzip.compress(data[1000:])
    handler.begin(200, [("Content-Length", str(len(body))), ("Content-Encoding", "gzip")])
    handler.send(body)


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


@with_artifact
def hold(handler, arg, data):
    handler.hold()
    send_whole(handler, data)


def redirect(handler, arg):
    handler.redirect(arg.replace("{path}", handler.path))


def redirect_page(handler, arg):
    size, url = arg.split(":", 1)
    handler.close_connection = True
    handler.begin(302, [("Location", url.replace("{path}", handler.path)), ("Connection", "close")])
    handler.send(b"x" * int(size))


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
def goes_on(handler, arg, data):
    handler.begin(200, [("Content-Type", "application/octet-stream"), ("Transfer-Encoding", "chunked")])
    handler.send_chunk(data)
    while True:
        handler.send_chunk(bytes(CHUNK))


@with_artifact
def endless_trailers(handler, arg, data):
    handler.begin(200, [("Content-Type", "application/octet-stream"), ("Transfer-Encoding", "chunked")])
    handler.send_chunk(data)
    handler.wfile.write(b"0\r\n")
    while True:
        handler.wfile.write(b"X-Trailer: x\r\n" * 1000)


@with_artifact
def bad_size_header(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), announced=int(arg) if arg else len(data) + 1))
    handler.send(data)


@with_artifact
def bad_size_no_length(handler, arg, data):
    handler.begin(200, handler.artifact_fields(len(data), length=False, announced=int(arg) if arg else len(data) + 1))
    handler.send(data)


@with_artifact
def bad_size_chunked(handler, arg, data):
    send_in_chunks(handler, data, int(arg) if arg else len(data) + 1)


@with_artifact
def many_headers(handler, arg, data):
    padding = [(f"X-Padding-{n}", "x" * 1000) for n in range(int(arg) // 1000 + 1)]
    handler.begin(200, padding + handler.artifact_fields(len(data)))
    handler.send(data)


@with_artifact
def long_header(handler, arg, data):
    handler.begin(200, [("X-Padding", "x" * int(arg)), *handler.artifact_fields(len(data))])
    handler.send(data)


def static_fields(size, tag, ranges=True):
    return [("Content-Type", "application/octet-stream"), ("Content-Length", str(size)), ("ETag", tag)] + \
        ([("Accept-Ranges", "bytes")] if ranges else [])


def send_static(handler, data, arg, tag=TAG, end=None, **fields):
    """Send the file or the requested part of it, @arg bytes at most."""
    requested = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    start = int(requested[1]) if requested and handler.headers.get("If-Range") in (None, tag) else 0
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


def requested_start(handler):
    return int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))


@with_artifact
def part_shifted(handler, arg, data):
    send_part(handler, data, requested_start(handler) - 1, len(data))


@with_artifact
def part_short(handler, arg, data):
    send_part(handler, data, requested_start(handler), len(data) - 1)


@with_artifact
def part_other(handler, arg, data):
    send_part(handler, data, requested_start(handler), len(data), tag='"v2"')


@with_artifact
def part_encoded(handler, arg, data):
    send_part(handler, data, requested_start(handler), len(data), fields=[("Content-Encoding", "br")])


@with_artifact
def part_always(handler, arg, data):
    send_part(handler, data, 0, len(data))


@with_artifact
def early_hints(handler, arg, data):
    handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-DEBUGINFOD-SIZE: 1\r\n\r\n")
    send_whole(handler, data)


@with_artifact
def ima(handler, arg, data):
    signature, _, at = arg.partition(":")
    handler.begin(200, handler.artifact_fields(len(data)) + [("X-DEBUGINFOD-IMASIGNATURE", signature)])
    handler.send(inverted(data, int(at)) if at else data)


def garbage(handler, arg):
    handler.close_connection = True
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2p1\r\n")


# function, whether it needs an argument
BEHAVIOURS = {
    "ok": (ok, False),
    "chunked": (chunked, False),
    "no-length": (no_length, False),
    "close": (close, False),
    "old": (old, False),
    "lower-case": (lower_case, False),
    "absent": (absent, False),
    "gone": (gone, False),
    "error": (error, True),
    "wrong-id": (wrong_id, True),
    "flip-note": (flip_note, False),
    "flip": (flip, True),
    "html": (html, False),
    "empty": (empty, False),
    "empty-chunked": (empty_chunked, False),
    "modified": (modified, True),
    "encoded": (encoded, False),
    "gzip-members": (gzip_members, False),
    "encoding": (encoding, True),
    "encoding-chunked": (encoding_chunked, True),
    "bomb": (bomb, False),
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
    "hold": (hold, False),
    "redirect": (redirect, True),
    "redirect-page": (redirect_page, True),
    "redirect-loop": (redirect_loop, False),
    "redirect-chain": (redirect_chain, True),
    "big-length": (big_length, False),
    "endless": (endless, False),
    "goes-on": (goes_on, False),
    "endless-trailers": (endless_trailers, False),
    "bad-size-header": (bad_size_header, False),
    "bad-size-no-length": (bad_size_no_length, False),
    "bad-size-chunked": (bad_size_chunked, False),
    "many-headers": (many_headers, True),
    "long-header": (long_header, True),
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


class Behaviour:
    """A parsed NAME[:ARG][*K]."""

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
