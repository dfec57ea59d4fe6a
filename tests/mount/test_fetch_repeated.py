# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults of servers, a few times each; with BIDFS_FULL=1 in the numbers of a release."""
import contextlib
import errno
import itertools
import json
import os
import random
import socket
import time

import pytest

import programs
import tools
from fetching import contents, evict_all, forget, leftovers, read, read_all

FULL = bool(os.environ.get("BIDFS_FULL"))
HOUR = 3600


def ids():
    return (f"{number:040x}" for number in itertools.count(1))


def serve(server, program, ident, content=None):
    """Serve the program under another id; @content is the id of its content, if known."""
    directory = server.root / ident
    directory.mkdir()
    (directory / "executable").write_bytes((content or program.read()).replace(bytes.fromhex(program.id), bytes.fromhex(ident)))
    return directory / "executable"


def published(store):
    return [path for path in contents(store) if not path.startswith(".bidfs/quarantine/")]


def refused(mnt, server, program, ident, behaviour):
    """Check that nothing of the server's response is published, and end its backoff."""
    wanted, whole = next(ident), next(ident)
    serve(server, program, wanted)
    path = serve(server, program, whole)
    server.behave(behaviour, ident=wanted)
    assert read(mnt.artifact(wanted)) == errno.ENOENT, behaviour
    assert server.count(wanted) > 0, f"{behaviour}: it got no request"
    assert read(mnt.artifact(whole)) == path.read_bytes(), behaviour
    forget(mnt, server, wanted)
    forget(mnt, server, whole)


CUTS = {"truncate-bare": 1 if FULL else 397}
CUTS |= dict.fromkeys(("truncate", "truncate-noclen", "truncate-chunked"), 211 if FULL else 9999)


@pytest.mark.limit(HOUR if FULL else 60)
@pytest.mark.parametrize("form", CUTS)
def test_truncated_body_is_never_published(mount, faults, workdir, store, form):
    """
    R2: cut anywhere, with Content-Length, without it, and without the last chunk. Without any size only the file itself shows the
    cut.
    """
    program, server, ident = programs.small(workdir / "app", 1, "-s", *(["-DBALLAST=8000"] if FULL else [])), faults(), ids()
    mnt = mount(f"url={server.url}", "wait=30")
    mnt.permit(server.url)
    for cut in range(1, len(program.read()), CUTS[form]):
        refused(mnt, server, program, ident, f"{form}:{cut}")
    assert leftovers(store) == []


@pytest.mark.limit(HOUR)
def test_large_truncated_body_is_never_published(mount, faults, workdir, store):
    """R2: files of 8 MiB, cut at random."""
    program, server, ident, dice = programs.small(workdir / "app", 1, "-s", "-DBALLAST=8388608"), faults(), ids(), random.Random(2)
    mnt = mount(f"url={server.url}", "wait=30")
    mnt.permit(server.url)
    size = len(program.read())
    for _ in range(1000):
        refused(mnt, server, program, ident, f"truncate-bare:{dice.randrange(size)}")
    assert leftovers(store) == []


@pytest.fixture
def wrong(workdir):
    """Return behaviours of a server that sends something else."""
    no_id, zeros = workdir / "no_id", workdir / "zeros"
    program, other = programs.small(workdir / "app"), programs.small(workdir / "other", 2)
    tools.run("objcopy", "--remove-section", ".note.gnu.build-id", program.path, no_id)
    zeros.write_bytes(bytes(16384))
    at = program.read().index(bytes.fromhex(program.id))
    note = [f"flip:{at + byte}" for byte in range(20)]
    # class, byte order, offset of the sections
    head = [f"flip:{byte}" for byte in (4, 5, 40)]
    return itertools.cycle([f"wrong-id:{other.path}", "html", *head[:1], *note[:1], f"wrong-id:{no_id}", f"wrong-id:{zeros}",
                            *head[1:], *note[1:], "flip-note", "empty"])


@pytest.mark.limit(HOUR if FULL else 60)
def test_wrong_content_leads_to_the_next_server(mount, faults, workdir, store, wrong):
    """R3: another server has the requested file, and the same open returns it."""
    program, bad, good, ident = programs.small(workdir / "app"), faults(root=workdir / "bad"), faults(root=workdir / "good"), ids()
    mnt = mount(f"url={bad.url}", f"url={good.url}", "wait=30")
    mnt.permit(bad.url)
    for behaviour in itertools.islice(wrong, 1000 if FULL else 6):
        # the preferred source comes first
        bait, wanted = next(ident), next(ident)
        path = serve(bad, program, bait)
        assert read(mnt.artifact(bait)) == path.read_bytes(), behaviour
        serve(bad, program, wanted)
        path = serve(good, program, wanted)
        bad.behave(behaviour, ident=wanted)
        assert read(mnt.artifact(wanted)) == path.read_bytes(), behaviour
        assert good.count(wanted) == 1, behaviour
        # after a stall the hedged request to the other server may win
        tools.wait_until(lambda wanted=wanted: bad.count(wanted) > 0, "its answer")
        assert bad.count(wanted) == 1, behaviour
        for server, had in ((bad, bait), (bad, wanted), (good, wanted)):
            forget(mnt, server, had)
    assert leftovers(store) == []


CODES = ["503:1", "429:120", "502:junk", "500", "503:date3", "429:-1", "504:0", "502:120", "500:1"]


@pytest.mark.limit(HOUR if FULL else 60)
@pytest.mark.parametrize("code", CODES if FULL else CODES[:3])
def test_error_is_retried_and_is_not_absence(mount, faults, workdir, env, code):
    """R5: three attempts at most, one if Retry-After is long, and no negative cache entry."""
    program, server = programs.small(workdir / "app"), faults()
    server.serve(program)
    for _ in range(23 if FULL else 1):
        mnt = mount(f"url={server.url}", "errors=strict", "wait=30")
        mnt.permit(server.url)
        server.control("/reset")
        server.behave(f"error:{code}")
        assert read(mnt.artifact(program.id)) == errno.EHOSTUNREACH
        assert server.count() == (1 if code.endswith(":120") else 3)
        assert mnt.counter("negative_entries") == 0
        mnt.unmount()
    server.behave()
    mnt = mount(f"url={server.url}", "errors=strict")
    assert read(mnt.artifact(program.id)) == program.read()


@pytest.mark.limit(HOUR if FULL else 60)
def test_redirect_is_followed_only_to_http(mount, faults, workdir, store):
    """R6: to HTTP alone, and a limited number of times; a file:// target is never read."""
    secret, server, ident = workdir / "secret", faults(), ids()
    program = programs.small(secret)
    targets = ["file:///etc/passwd", f"file://{secret}", "ftp://127.0.0.1/{path}", "gopher://127.0.0.1:70/_", "//[bad",
               "dict://127.0.0.1/d:x", "scp://127.0.0.1/etc/passwd", f"file://localhost{secret}", "ldap://127.0.0.1/",
               "tftp://127.0.0.1/x"]
    behaviours = ["redirect-loop", "redirect-chain:6", *(f"redirect:{target}" for target in targets)]
    for behaviour in itertools.islice(itertools.cycle(behaviours), 50 if FULL else len(behaviours)):
        # a source that is refused often is in backoff
        mnt = mount(f"url={server.url}", "wait=30")
        mnt.permit(server.url)
        wanted = next(ident)
        serve(server, program, wanted)
        before = server.count()
        server.behave(behaviour, ident=wanted)
        assert read(mnt.artifact(wanted)) == errno.ENOENT, behaviour
        assert 1 <= server.count() - before <= 6, behaviour
        mnt.unmount()
    assert published(store) == []


BOMBS = ["big-length", "endless", "encoded", "bomb", "many-headers:1048576", "many-headers:9000000",
         "bad-size-no-length:1099511627776", "bad-size-header:1099511627776", "garbage",
         "endless-trailers"]


def memory(mnt):
    """Return the peak resident bytes of the daemon."""
    with open(f"/proc/{mnt.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))


@pytest.mark.limit(HOUR if FULL else 60)
def test_endless_body_is_bounded(mount, faults, workdir, store):
    """R7: the accepted bytes are bounded, on the disk and in memory."""
    program, server, ident = programs.small(workdir / "app"), faults(), ids()
    mnt = mount(f"url={server.url}", "wait=30", "max_size=4M")
    mnt.permit(server.url)
    most = 0
    for number, behaviour in enumerate(itertools.islice(itertools.cycle(BOMBS), 100 if FULL else len(BOMBS))):
        wanted = next(ident)
        path = serve(server, program, wanted)
        server.behave(behaviour, ident=wanted)
        assert read(mnt.artifact(wanted)) in (errno.ENOENT, errno.EFBIG, path.read_bytes()), behaviour
        # end the backoff of the server
        bait = next(ident)
        path = serve(server, program, bait)
        tools.wait_until(lambda bait=bait, path=path: read(mnt.elf_file(bait)) == path.read_bytes(), "another file")
        assert server.count(wanted) > 0, behaviour
        most = memory(mnt) if number == 0 else most
        assert sum(os.path.getsize(store / name) for name in published(store)) < (number + 1) * 65536, behaviour
    # the sanitizer keeps freed memory for a while
    assert memory(mnt) - most < (32 if tools.is_sanitized() else 8) << 20 and leftovers(store) == []


@pytest.mark.limit(HOUR if FULL else 60)
def test_absence_is_requested_once_per_server(mount, faults, workdir, env):
    """R8: each server gets one request for each id, whatever name is opened; a file that appears later is found after a refresh."""
    program = programs.small(workdir / "app")
    servers = [faults(*behaviours, root=workdir / f"s{number}") for number, behaviours in enumerate((["absent"], ["gone"], []))]
    mnt = mount(*[f"url={server.url}" for server in servers], "wait=60", "miss_rate=0")
    many = list(itertools.islice(ids(), 10000 if FULL else 60))
    for _ in range(2):
        for at in range(0, len(many), 20):
            assert set(read_all([mnt.artifact(wanted) for wanted in many[at:at + 20]])) == {errno.ENOENT}
        assert [server.count() for server in servers] == 3 * [len(many)]
    path = serve(servers[2], program, many[0])
    assert read(mnt.artifact(many[0])) == errno.ENOENT
    tools.run(tools.BIDCTL, "--store", mnt.store, "get", "--refresh", f"--url={servers[2].url}", many[0], "elf", env=env)
    tools.wait_until(lambda: read(mnt.artifact(many[0])) == path.read_bytes(), "the file")


@contextlib.contextmanager
def black_hole():
    """Yield an address that answers no SYN: the backlog of the listening socket is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.limit(HOUR if FULL else 60)
@pytest.mark.parametrize("how", ["name", "refused", "black hole", "certificate"])
def test_unreachable_server_costs_one_connect_limit(mount, faults, certificate, how):
    """R9: an open costs one connect timeout at most, and the next opens cost none during the backoff."""
    with contextlib.ExitStack() as stack:
        if how == "certificate":
            # a self-signed certificate
            url = faults(certificate=certificate).url
        elif how == "black hole":
            url = stack.enter_context(black_hole())
        else:
            url = "http://debuginfod.invalid" if how == "name" else "http://127.0.0.1:1"
        slowest, begun = 0, time.monotonic()
        mnt = mount(f"url={url}", "errors=strict", "wait=30")
        mnt.permit(url)
        for wanted in itertools.islice(ids(), 100 if FULL else 5):
            before = time.monotonic()
            assert read(mnt.artifact(wanted)) == errno.EHOSTUNREACH
            slowest = max(slowest, time.monotonic() - before)
            (answer,) = json.loads(os.getxattr(mnt / "buildid" / wanted, "user.bidfs.responses"))
            assert answer["requests"] <= 1, answer
        print(f"{how}: the slowest open took {slowest:.2f} s, all {time.monotonic() - begun:.2f} s")
        (source,) = mnt.status()["servers"]
        # each backoff takes 5 s or more
        assert source["breaker"] == "open" and 1 <= source["requests"] <= 1 + (time.monotonic() - begun) // 5, source
        assert mnt.counter("negative_entries") == 0


@pytest.mark.limit(HOUR)
def test_changed_bytes_are_refused_until_accepted(mount, faults, workdir, store, env):
    """R12: a valid file with other bytes than the first download of its id is refused until the user accepts it."""
    program, server = programs.small(workdir / "app"), faults()
    many = list(itertools.islice(ids(), 100))
    paths = [serve(server, program, wanted) for wanted in many]
    mnt = mount(f"url={server.url}", "wait=30")
    assert read_all([mnt.artifact(wanted) for wanted in many]) == [path.read_bytes() for path in paths]
    mnt.unmount()
    evict_all(env, store)
    for path in paths:
        path.write_bytes(path.read_bytes() + bytes(16))
    mnt = mount(f"url={server.url}", "wait=30")
    mnt.permit("other bytes than the first download")
    assert set(read_all([mnt.artifact(wanted) for wanted in many])) == {errno.ENOENT}
    for wanted, path in zip(many, paths):
        tools.run(tools.BIDCTL, "--store", store, "get", f"--url={server.url}", "--accept", wanted, "elf", env=env)
        assert (store / "[debuginfod]" / wanted / "elf").read_bytes() == path.read_bytes()
