# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reports of the mount: .bidfs/status, .bidfs/metrics, .bidfs/README, and info of each build."""
import concurrent.futures
import itertools
import json
import os
import re
import signal
import subprocess
import threading

import pytest

import programs
import tools
from daemon import is_mounted, requests
from fetching import await_waiters, read, reader

KEYS = {"version", "mount_point", "store", "mode", "mode_reason", "sandbox", "sandbox_reason", "read_only", "uptime_s", "inodes",
        "counters", "servers", "downloads", "failures"}
COUNTERS = {"hits", "fetched", "absent", "unknown", "rejected", "interrupted", "negative_entries"}
READERS, READS = 8, 25  # 200 in all


def parse_metrics(text):
    """Return {name with labels: value}. Strict: each metric has one HELP, one TYPE, and then all of its samples."""
    values, current, seen = {}, None, set()
    label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"'
    assert text.endswith("\n") and "\n\n" not in text
    lines = text.split("\n")[:-1]
    for number, line in enumerate(lines):
        if match := re.fullmatch(r"# HELP ([a-zA-Z_:][\w:]*) [^\\]+", line):
            assert match[1] not in seen, f"twice: {line}"
            current, kind = match[1], re.fullmatch(rf"# TYPE {match[1]} (counter|gauge)", lines[number + 1])
            assert kind, f"no type behind {line!r}"
            assert current.endswith("_total") == (kind[1] == "counter"), line
            seen.add(current)
        elif not line.startswith("# TYPE "):
            match = re.fullmatch(rf"((\w+)(?:\{{{label}(?:,{label})*\}})?) (\d+(?:\.\d+)?)", line)
            assert match, f"not a sample: {line!r}"
            assert match[2] == current, f"a sample that does not stand with its metric: {line!r}"
            assert match[1] not in values, f"twice: {line!r}"
            values[match[1]] = float(match[3])
        else:
            assert lines[number - 1].startswith("# HELP "), line
    return values


@pytest.fixture
def program(workdir):
    return programs.small(workdir / "app")


def test_status_has_all_keys(mount, mode, store, env):
    mnt = mount()
    status = mnt.status()
    # new keys may come, and these stay
    assert KEYS <= status.keys() and COUNTERS <= status["counters"].keys()
    assert (status["mount_point"], status["store"], status["mode"], status["read_only"]) == (str(mnt), str(store), mode, False)
    assert (status["mode_reason"] == "") == (mode == "passthrough")
    assert re.fullmatch(r"\d+\.\d+\.\d+([+-]\S+)?", status["version"])
    assert status["servers"] == status["downloads"] == [] and 0 <= status["uptime_s"] < 30
    # bidctl finds the mount when it looks for the mounts of a store
    shown, = (row for row in tools.rows(tools.run(tools.BIDCTL, "--json", "--store", store, "status", env=env))
              if row.get("mount") == str(mnt))
    assert (shown["store"], shown["state"], shown["status"]["mode"]) == (str(store), "up", mode), shown


def test_bidctl_unmounts_by_mount_point_and_by_store(mount, store, env):
    for operands in (["umount", "m0"], ["--store", store, "umount"]):
        mnt = mount(at=store.parent / "m0")
        tools.run(tools.BIDCTL, *operands, env=env, cwd=mnt.path.parent)
        assert not is_mounted(mnt.path)
        mnt.unmount()


def test_counters_follow_opens_and_downloads(mount, mode, faults, workdir, store, program):
    stored = programs.small(workdir / "stored", 2)
    programs.into_store(store, stored.id, "/usr/bin/stored", stored.path)
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert set(mnt.status()["counters"].values()) == {0}
    assert read(mnt.artifact(stored.id)) == stored.read()
    hits = mnt.counter("hits")
    assert hits > 0 and mnt.counter("fetched") == 0
    assert read(mnt.artifact(program.id)) == program.read()
    assert mnt.counter("fetched") == 1
    absent = mnt.counter("absent")
    assert read(mnt.artifact("ab" * 20)) == 2
    assert mnt.counter("absent") == absent + 1 and mnt.counter("negative_entries") == 1
    server.behave("error:503")
    assert read(mnt.artifact("cd" * 20)) == 2
    mnt.expect(f"503.*{server.url}")
    status = mnt.status()
    assert status["counters"]["unknown"] == 1 and status["counters"]["rejected"] == 0
    (source,) = status["servers"]
    assert source["name"] == server.url and source["requests"] == 3 and source["found"] == source["absent"] == 1
    assert source["bytes"] == len(program.read()) and "503" in status["failures"][0]["text"]
    # the other format has the same values
    metrics = parse_metrics((mnt / ".bidfs/metrics").read_text())
    for name in COUNTERS - {"negative_entries", "hits"}:
        assert metrics[f"bidfs_{name}_total"] == status["counters"][name], name
    assert metrics["bidfs_hits_total"] >= hits
    assert metrics["bidfs_negative_entries"] == 1 and metrics["bidfs_downloads"] == 0
    assert metrics[f'bidfs_server_responses_total{{server="{server.url}",outcome="found"}}'] == 1
    assert metrics[f'bidfs_server_bytes_total{{server="{server.url}"}}'] == source["bytes"]


def test_running_download_is_shown(mount, mode, faults, store, env, program):
    server = faults("stall:5000")
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=60", env_more={"DEBUGINFOD_TIMEOUT": "60"})
    process = reader(mnt.artifact(program.id))
    await_waiters(mnt, 1)
    (download,) = tools.wait_until(lambda: [one for one in mnt.status()["downloads"] if one["received"] == 5000], "the first bytes")
    assert (download["id"], download["kind"], download["waiters"], download["server"]) == (program.id, "elf", 1, server.url)
    assert download["size"] == len(program.read()) and download["age_ms"] >= 0
    tools.await_status(env, store, f"{program.id}  elf ", "WAITERS", server.url)
    assert parse_metrics((mnt / ".bidfs/metrics").read_text())["bidfs_waiters"] == 1
    process.kill()
    process.wait()
    process.stderr.close()
    tools.wait_until(lambda: mnt.status()["downloads"] == [], "the end of the download")


def test_failing_server_is_shown(mount, faults, store, env, program):
    """State and last failures of the server are in status, and in readable form in bidctl status."""
    well, dead = faults(), "http://127.0.0.1:1"
    well.serve(program)
    mnt = mount(f"url={dead}", f"url={well.url}")
    mnt.permit(dead)
    assert read(mnt.artifact(program.id)) == program.read()
    for number in range(3):
        assert read(mnt.artifact(f"{number:040x}")) == 2
    status = mnt.status()
    first, second = status["servers"]
    assert first["breaker"] in ("closed", "open", "half-open") and first["failures_in_a_row"] > 0 and first["last_failure"], first
    # requests that the breaker refused did not reach the server
    assert first["requests"] == first["unavailable"] < 4, first
    assert (second["breaker"], second["failures_in_a_row"], second["found"]) == ("closed", 0, 1) and second["latency_ms"] >= 0
    assert second["preferred"] and not first.get("preferred"), status["servers"]
    assert 1 <= len(status["failures"]) <= 16
    assert any(one["server"] == dead and one["text"] and one["first_time"] <= one["last_time"]
               for one in status["failures"]), status["failures"]
    metrics = parse_metrics((mnt / ".bidfs/metrics").read_text())
    assert metrics[f'bidfs_server_breaker_open{{server="{well.url}"}}'] == 0
    assert metrics[f'bidfs_server_breaker_open{{server="{dead}"}}'] == (first["breaker"] != "closed")
    assert metrics.get(f'bidfs_server_latency_seconds{{server="{well.url}"}}', 0) < 60
    tools.await_status(env, store, "hit ratio", f"sandbox   {status['sandbox']}", well.url, dead, "up, preferred ",
                       "LAST FAILURE")


def test_protocol_of_the_server_is_shown(mount, faults, store, env, program):
    server = faults("ok")
    server.serve(program)
    mnt = mount(f"url={server.url}")
    (before,) = mnt.status()["servers"]
    assert "protocol" not in before, before
    assert read(mnt.artifact(program.id)) == program.read()
    (after,) = mnt.status()["servers"]
    assert after["protocol"] == "HTTP/1.1", after
    tools.await_status(env, store, "  HTTP/1.1\n")


def test_url_password_is_hidden(mount, faults, program):
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url.replace('http://', 'http://user:secret@')}")
    assert read(mnt.artifact(program.id)) == program.read()
    files = (mnt / ".bidfs/status", mnt / ".bidfs/metrics", mnt.artifact(program.id, "info"))
    shown = "".join(path.read_text() for path in files) + mnt.log()
    assert server.url in shown and "secret" not in shown


def test_readme_names_the_store(mount):
    mnt = mount()
    text = (mnt / ".bidfs/README").read_text()
    for path in ("buildid/ID/elf", "by-path", ".build-id", "usr/lib/debug", ".bidfs/status"):
        assert path in text
    assert sorted(os.listdir(mnt / ".bidfs")) == ["README", "metrics", "status"]


def test_info_has_artifacts_and_records(mount, mode, faults, workdir, store, program):
    both = programs.split(programs.burn(workdir / "both", "both_hot"), workdir / "both.debug")
    programs.into_store(store, both.id, "/usr/bin/both", both.path)
    programs.into_store(store, both.id, "/usr/bin/both", both.debug, "debug")
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    text = mnt.artifact(both.id, "info").read_text()
    assert text == f"{text.rstrip()}\n", "padded"
    info = json.loads(text)
    assert info["id"] == both.id and info["paths"] == ["/usr/bin/both"]
    assert {kind: one["size"] for kind, one in info["artifacts"].items()} == \
        {"elf": both.path.stat().st_size, "debuginfo": both.debug.stat().st_size}
    # a server without any request yet, and its state afterwards
    assert json.loads(mnt.artifact(program.id, "info").read_text()) == {"artifacts": {}, "id": program.id, "paths": []}
    assert server.count() == 0
    assert read(mnt.artifact(program.id)) == program.read()
    fetched = json.loads(mnt.artifact(program.id, "info").read_text())["artifacts"]["elf"]
    assert fetched["size"] == len(program.read()) and server.url in json.dumps(fetched)


def test_stat_and_read_gather_info_once(mount, mode, store, program):
    """stat(2) needs the whole content for its size; a following open and read reuse it."""
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    mnt = mount("busy_poll=0")
    with open(mnt.artifact(program.id, "info"), "rb") as file:
        sizes = set()
        before = requests(mnt)
        sizes.update(os.fstat(file.fileno()).st_size for _ in range(20))
        # one or two on a full machine, where this may take more than a second
        assert requests(mnt) - before < 20
        text = file.read()
    assert sizes == {len(text)} and json.loads(text)["id"] == program.id
    # a lookup by name returns the current state
    programs.into_store(store, program.id, "/usr/bin/app", b"{}" * 9000, "probes")
    assert json.loads(mnt.artifact(program.id, "info").read_text())["artifacts"]["probes"]["size"] == 18000


def read_under_churn(mount, server, program, misses):
    """Read from several processes while the content grows and shrinks. Return the sizes that they saw."""
    for number in range(1, 1 + misses):
        server.serve(programs.forge(program, f"{number:040x}", f"{program.path}-{number}"))
    # responses that begin and stop: such a server counts as alive, however long this takes
    server.behave("stall:100")
    mnt = mount(f"url={server.url}", "wait=60", env_more={"DEBUGINFOD_TIMEOUT": "90"})
    paths = [mnt.artifact(f"{number:040x}") for number in range(1, 1 + misses)]
    done, rounds, sizes = threading.Event(), [], []

    def let_them_look():
        before = len(sizes)
        tools.wait_until(lambda: done.is_set() or len(sizes) > before + 2 * READERS, "some looks")

    def churn():
        while not done.is_set():
            # one shell starts all readers: fork from a busy interpreter is slow
            readers = subprocess.Popen(["sh", "-c", 'for path; do cat "$path" & done; wait', "sh", *paths], start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                await_waiters(mnt, misses)
                let_them_look()
            finally:
                os.killpg(readers.pid, signal.SIGKILL)
                readers.wait()
            let_them_look()
            rounds.append(1)

    def read_many(_):
        for number in itertools.count():
            if number >= READS and (len(rounds) > 1 or churning.done()):
                break
            text = (mnt / ".bidfs/status").read_text()
            assert KEYS <= json.loads(text).keys()
            assert parse_metrics((mnt / ".bidfs/metrics").read_text())
            sizes.append(len(text.rstrip()))

    with concurrent.futures.ThreadPoolExecutor(READERS + 1) as pool:
        churning = pool.submit(churn)
        try:
            list(pool.map(read_many, range(READERS)))
        finally:
            done.set()
            churning.result()
    return set(sizes)


def test_growing_status_is_read_whole(mount, mode, faults, program):
    sizes = read_under_churn(mount, faults(), program, 10)
    assert max(sizes) - min(sizes) > 1000, sizes


def test_status_growing_by_pages_is_read_whole(mount, mode, faults, program):
    """The content grows and shrinks by more than a page."""
    sizes = read_under_churn(mount, faults(), program, 30)
    assert max(sizes) - min(sizes) > 4096, sizes


def test_open_status_keeps_its_text(mount, mode, faults, workdir):
    """A slow reader gets the text of its open; the next open gets the current one."""
    mnt = mount(f"url={faults('stall-headers').url}", "wait=60")
    with open(mnt / ".bidfs/status", "rb", buffering=0) as file:
        first = file.read(10)
        process = reader(mnt.artifact("ab" * 20))
        await_waiters(mnt, 1)
        rest = b"".join(iter(lambda: file.read(100), b""))
        assert json.loads(first + rest)["downloads"] == [] and len(mnt.status()["downloads"]) == 1
    process.kill()
    process.wait()
    process.stderr.close()
    # cp(1) compares the inode numbers of the name and of the open file
    numbers = {os.stat(mnt / ".bidfs/status").st_ino for _ in range(3)}
    assert len(numbers) == 1 and os.stat(mnt / ".bidfs/metrics").st_ino not in numbers
    tools.run("cp", mnt / ".bidfs/status", mnt / ".bidfs/metrics", workdir)
    assert json.loads((workdir / "status").read_text())["mode"] == mode
    # a file with less looks sparse, and cp(1) then copies no more than the size of its stat
    for name in ("status", "metrics", "README"):
        st = os.stat(mnt / ".bidfs" / name)
        assert st.st_blocks * 512 >= st.st_size > 0, name


def test_small_reads_get_the_whole_status(mount, faults):
    """Small reads of one descriptor, as of a pager, give one consistent text."""
    mnt = mount(f"url={faults().url}")
    for name in ("status", "metrics", "README"):
        with open(mnt / ".bidfs" / name, "rb", buffering=0) as file:
            text = b"".join(iter(lambda: file.read(100), b""))
        assert len(text) > 100 and text.rstrip().endswith((b"}", b".", b"0", b"(8).")), text[-200:]
        if name == "status":
            json.loads(text)


def test_bind_mount_of_a_part_is_not_reported(mount, workdir, env, needs_root):
    """The debuggers' view over another directory, as 'bidctl setup system' mounts it."""
    mnt = mount()
    part = workdir / "part"
    part.mkdir()
    tools.run("mount", "--bind", mnt / "debug", part)
    try:
        for command in ("status", "doctor"):
            done = tools.run(tools.BIDCTL, "--json", "--store", mnt.store, command, env=env, status=None)
            rows = json.loads(done.stdout)["result"]
            assert any(str(mnt.path) in str(row) for row in rows), rows
            assert not any(str(part) in str(row) for row in rows), rows
    finally:
        tools.run("umount", part)


def test_removed_store_is_reported(mount, store, env):
    mnt = mount()
    assert "store_removed" not in mnt.status()
    tools.run("rm", "-r", store)
    done = tools.run(tools.BIDCTL, "status", env=env, status=None)
    assert re.search(r"^(store\tremoved|store +removed)", done.stdout, re.M), done.stdout
    rows = json.loads(tools.run(tools.BIDCTL, "--json", "doctor", "--offline", env=env, status=None).stdout)["result"]
    assert [row for row in rows if row["check"] == "mount" and str(mnt) in row["reason"]
            and row["state"] == "bad" and "is removed" in row["reason"] and row["remedy"]], rows
