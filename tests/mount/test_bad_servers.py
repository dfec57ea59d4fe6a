# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that send wrong bytes, fewer bytes, or none: nothing of them is served or kept, and the same open uses the next server.
"""
import errno
import json
import os
import pathlib

import pytest

import programs
import tools
from fetching import contents, evict_all, leftovers, names, read, read_all

# behaviour of the server; whether the mount must warn of each refused body
BAD = {
    "wrong-id:{other}": True,
    "flip-note": True,
    "html": True,
    "empty": True,
    "truncate-bare:5000": True,  # cut without a size in the header: only the file itself shows it
    "truncate-bare:{most}": True,
    "truncate:5000": False,
    "truncate-noclen:5000": False,
    "truncate-chunked:5000": False,
    "reset:5000": False,
    "reset-headers": False,
    "hang-up": False,
    "garbage": False,
    "big-length": False,
    "bad-size-no-length": False,
    "error:503": False,
    "error:500": False,
    "error:403": False,
    "error:101": False,
    "error:429:1": False,
    "redirect-loop": False,
    "redirect:file:///etc/passwd": False,
    "redirect:ftp://127.0.0.1/{{path}}": False,
    "endless": True,
}


@pytest.fixture
def cases(workdir):
    """Return {behaviour: a program of its own}."""
    original, other = programs.small(workdir / "app"), programs.small(workdir / "other", 2)
    most = original.path.stat().st_size - 100
    return {behaviour.format(other=other.path, most=most): programs.forge(original, f"{number:02x}" * 20, workdir / f"app-{number}")
            for number, behaviour in enumerate(BAD, 0x40)}


def misbehave(faults, workdir, cases):
    server = faults(root=workdir / "bad")
    for behaviour, program in cases.items():
        server.serve(program)
        server.behave(behaviour, ident=program.id)
    return server


@pytest.mark.limit(60)
def test_bad_response_leads_to_the_next_server(mount, mode, faults, workdir, cases, store):
    bad, good = misbehave(faults, workdir, cases), faults(root=workdir / "good")
    for program in cases.values():
        good.serve(program)
    mnt = mount(f"url={bad.url}", f"url={good.url}", "wait=30", "max_size=8M")
    mnt.permit(bad.url)
    for number, (behaviour, program) in enumerate(cases.items()):
        # a file that only the bad server has makes it the preferred source
        bait = programs.forge(program, f"{number:02x}" * 20, workdir / "bait")
        bad.serve(bait)
        assert read(mnt.artifact(bait.id)) == bait.read(), behaviour
        assert read(mnt.artifact(program.id)) == program.read(), behaviour
        assert good.count(program.id) == 1, behaviour
        # after a stall the hedged request to the other server may win
        tools.wait_until(lambda program=program: bad.count(program.id) >= 1, f"its answer '{behaviour}'")
    assert mnt.counter("fetched") == 2 * len(cases) and leftovers(store) == []


@pytest.mark.limit(60)
def test_bad_response_of_only_server_publishes_nothing(mount, mode, faults, workdir, cases, store):
    bad = misbehave(faults, workdir, cases)
    mnt = mount(f"url={bad.url}", "wait=30", "max_size=8M")
    mnt.permit(bad.url)
    # "too large" is the result, whichever server reports it
    assert read(mnt.artifact(cases["big-length"].id)) == errno.EFBIG
    # two wrong files: after five in a row the server would get no request for the others
    wrong = [program for behaviour, program in zip(BAD, cases.values()) if BAD[behaviour]]
    assert read_all([mnt.artifact(program.id) for program in wrong[:2]]) == [errno.ENOENT] * 2
    answers = dict(zip(cases, read_all([mnt.artifact(program.id) for program in cases.values()])))
    assert answers.pop("big-length") == errno.EFBIG
    assert {behaviour: answer for behaviour, answer in answers.items() if answer != errno.ENOENT} == {}
    assert os.listdir(mnt / "buildid") == os.listdir(mnt / ".build-id") == os.listdir(mnt / "usr/lib/debug/.build-id") == []
    assert [path for path in contents(store) if not path.startswith(".bidfs/quarantine/")] == []
    assert leftovers(store) == []
    status = mnt.status()
    # the announced 1 TiB becomes a "too large" in the negative cache; the other failures leave no record
    assert status["counters"]["fetched"] == 0 and status["counters"]["negative_entries"] == 1
    # after a few wrong files the server is in backoff
    refused = [program.id for program in wrong if bad.count(program.id)]
    assert status["counters"]["rejected"] >= len(refused) >= 2
    log = mnt.log()
    assert [ident for ident in refused if f"'{ident}/elf'" not in log] == []
    assert "root:" not in log
    refused += [cases["error:403"].id] if bad.count(cases["error:403"].id) else []
    # the fault is the server's: the same files are accepted once the server is healthy and its backoff is over
    bad.control("/reset")
    del cases["big-length"]
    for behaviour, program in cases.items():
        # ids with wrong or missing files have a backoff of their own
        if program.id in refused:
            assert read(mnt.elf_file(program.id)) == errno.ENOENT
            assert bad.count(program.id) == 0
            continue
        tools.wait_until(lambda program=program: read(mnt.elf_file(program.id)) == program.read(), f"it after '{behaviour}'")


@pytest.mark.parametrize("first", ["reset:5000", "truncate:5000", "truncate-chunked:5000", "truncate-noclen:5000", "error:503",
                                   "hang-up"])
def test_second_attempt_drops_the_first_body(mount, mode, faults, workdir, first):
    """The only server fails once; the body of the retry must not follow the first, partial one."""
    program = programs.small(workdir / "app")
    server = faults(f"{first}*1")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=20")
    assert read(mnt.artifact(program.id)) == program.read()
    assert server.count() == 2 and mnt.counter("fetched") == 1


def test_strict_mode_reports_the_server_error(mount, faults, workdir):
    """With errors=strict readers get the error of the server; an absent file is ENOENT in both modes."""
    program = programs.small(workdir / "app")
    files = {behaviour: programs.forge(program, f"{number:02x}" * 20, workdir / f"app-{number}")
             for number, behaviour in enumerate(("absent", "gone", "error:503", "flip-note", "html", "reset-headers"), 0x30)}
    server = misbehave(faults, workdir, files)
    mnt = mount(f"url={server.url}", "errors=strict", "wait=20")
    mnt.permit(server.url)
    answers = dict(zip(files, read_all([mnt.artifact(program.id) for program in files.values()])))
    assert answers == {"absent": errno.ENOENT, "gone": errno.ENOENT, "error:503": errno.EHOSTUNREACH,
                       "reset-headers": errno.EHOSTUNREACH, "flip-note": errno.EIO, "html": errno.EIO}
    # a port without a server
    server.stop()
    late = programs.forge(program, "77" * 20, workdir / "late")
    assert read_all([mnt.artifact(late.id)]) == [errno.EHOSTUNREACH]


def test_server_file_name_is_shown_escaped(mount, faults, workdir, store):
    """X-DEBUGINFOD-FILE comes from the server; here it is a path of this machine with control characters."""
    program = programs.small(workdir / "app")
    server = faults(root=workdir / "served\u009b31m\u202egpj")
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(program.id).read_bytes() == program.read()
    assert [path for path in contents(store) if path.endswith("/elf")] == [f"[debuginfod]/{program.id}/elf"]
    info = mnt.artifact(program.id, "info").read_text()
    assert r"served\u009B31m\u202Egpj" in info and str(server.root) in json.dumps(json.loads(info), ensure_ascii=False)
    assert not pathlib.Path(f"{mnt}{server.root}").exists()


def test_changed_bytes_are_refused_and_quarantined(mount, mode, faults, workdir, store, env):
    """A valid file with other bytes than the first download of its id is refused and quarantined until the user accepts it."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert read(mnt.artifact(program.id)) == program.read()
    mnt.unmount()
    evict_all(env, store)
    served = server.root / program.id / "executable"
    served.unlink()
    served.write_bytes(program.read() + bytes(16))

    mnt = mount(f"url={server.url}")
    mnt.expect("other bytes than the first download")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT
    assert [path.name.split(".")[0] for path in (store / ".bidfs/quarantine").iterdir()] == [program.id]
    tools.run(tools.BIDCTL, "--store", store, "get", f"--url={server.url}", "--accept", program.id, "elf", env=env)
    tools.wait_until(lambda: read(first) == read(second) == served.read_bytes(), "the other bytes")
