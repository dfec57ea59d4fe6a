#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl get --verbose, which reports the search for an artifact.

usage: check_get_verbose.py BIDCTL [--no-fetch] [CASE...]
"""
import re
import subprocess

from bidctl_env import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, REFUSED, TIMEOUT, ERROR, Env, read_json, server
from cases import main


def get(env, *arguments, status=DONE, **environment):
    """Return standard output, and the lines of the report without errors."""
    done = subprocess.run([env.bidctl, "-s", env.store, "get", *map(str, arguments)], env=env.environment | environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "\033" not in done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if not line.startswith("bidctl: ")]


def servers(text):
    """Return the servers of the single row of get --json."""
    row, = read_json(text)["result"]
    return row["servers"]


def case_verbose_get_of_stored_file_names_the_store(env):
    env.on_store("add", env.one)
    path, report = get(env, "-v", ID_ONE, "elf", "--offline")
    assert report == [f"elf of {ID_ONE}", f"  store      {env.store}", "             the store has it"], report
    assert path == env.on_store("get", ID_ONE, "elf").stdout
    assert get(env, ID_ONE, "elf", "--offline") == (path, [])
    assert get(env, ID_ONE, "elf", "--offline", DEBUGINFOD_VERBOSE="1") == (path, report)
    # a wrong file under that name
    (env.store / str(env.one)[1:] / ID_ONE / "elf").unlink()
    (env.store / str(env.one)[1:] / ID_ONE / "elf").write_bytes(env.two.read_bytes())
    _, report = get(env, "-v", ID_ONE, "elf", "--offline", status=REFUSED)
    assert "another build" in report[2], report


def case_verbose_get_names_the_server(env):
    size = (env.stripped).stat().st_size
    with server(env, "absent") as no, server(env) as url:
        path, report = get(env, "-v", ID_NOT_STORED, "elf", f"--url={no}", f"--url={url}")
        text = "\n".join(report)
        assert report[2].strip() == "the store lacks it", report
        assert f"server     {no}\n" in text and re.search(r"absent after \d+ ms: HTTP 404", text), text
        assert f"server     {url}\n             {url}/buildid/{ID_NOT_STORED}/executable\n" in text, text
        assert re.search(r"found after \d+ ms: .*, \d+(\.\d)? KiB", text), text
        assert "checked " in text and "digest     xxh3-128:" in text and f"published  {path.strip()}" in text, text
        env.on_store("remove", ID_NOT_STORED)
        out, _ = get(env, "-v", "--json", ID_NOT_STORED, "elf", f"--url={url}")
        (answer,) = servers(out)
        assert answer["url"].endswith("/executable") and answer["bytes"] == size and answer["elapsed_ms"] >= 0, answer


def case_verbose_get_names_the_server_of_a_negative_cache_entry(env):
    with server(env, "absent") as url:
        env.run("-s", env.store, "get", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        _, report = get(env, "-v", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        text = "\n".join(report)
        assert f"  server     {url}\n             absent: same response earlier\n" in text and "next request in" in text, text


def case_verbose_get_names_the_file_of_a_lower_store(env):
    other = env.home / "other"
    other.mkdir()
    env.run("-s", other, "add", env.one)
    path, report = get(env, "-v", ID_ONE, "elf", f"--lower={other}", "--offline")
    assert report[1:] == [f"  store      {env.store}", f"  lower      {path.strip()}"] and path.startswith(str(other)), report


def case_verbose_get_counts_requests(env):
    """An interrupted body is reported, and its bytes do not count."""
    size = env.stripped.stat().st_size
    with server(env, "reset:1000*2") as url:
        out, report = get(env, "-v", "--json", ID_NOT_STORED, "elf", f"--url={url}")
        (answer,) = servers(out)
        assert (answer["requests"], answer["received"], answer["bytes"]) == (3, size, size + 2000), answer
        assert f"1000 of {size} bytes" in answer["before"], answer
        (line,) = (line for line in report if "found after" in line)
        assert re.search(rf" in 3 requests: HTTP 200, {round(size / 1024)} KiB, .*/s; before: .*1000 of", line), line
    env.on_store("remove", ID_NOT_STORED)
    with server(env, "reset:1000") as url:
        done = env.run("-s", env.store, "get", ID_NOT_STORED, "elf", f"--url={url}", status=ERROR)
        assert re.search(r"unavailable in \d requests: ", done.stderr), done.stderr
    # a refused connection without any earlier response is not a restarting server
    out = env.run("-s", env.store, "--json", "get", ID_NOT_STORED, "elf", "--url=http://127.0.0.1:1", status=ERROR).stdout
    (answer,) = servers(out)
    assert answer["requests"] == 1 and "refused" in answer["reason"], answer


def case_verbose_get_names_the_redirect(env):
    """The target is shown without its credentials."""
    with server(env) as url, server(env, f"redirect:{url}/plain{{path}}?signature=secret") as front:
        out, report = get(env, "-v", "--json", ID_NOT_STORED, "elf", f"--url={front}")
        (answer,) = servers(out)
        there = f"{url}/plain/buildid/{ID_NOT_STORED}/executable"
        assert answer["url"].startswith(front) and answer["redirect"] == there and answer["requests"] == 1, answer
        assert f"  redirect   {there}" in report and "secret" not in out + "".join(report), report


def case_verbose_get_names_the_overtaken_server(env):
    with server(env, "stall-headers") as slow, server(env) as url:
        out, report = get(env, "-v", "--json", ID_NOT_STORED, "elf", f"--url={slow}", f"--url={url}")
        found, overtaken = servers(out)
        assert found["server"] == url and found["state"] == "found", out
        assert overtaken["server"] == slow and overtaken["state"] == "cancelled", out
        text = "\n".join(report)
        assert f"server     {slow}\n" in text and re.search(rf"cancelled after \d+ ms: {re.escape(url)} was faster", text), text


def case_verbose_get_names_each_failure(env):
    with server(env, f"wrong-id:{env.one}") as url:
        _, report = get(env, "-v", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        assert any("rejected after" in line and ID_ONE in line for line in report), report
    with server(env) as url:
        out, _ = get(env, "--json", ID_FAR, "elf", f"--url={url}", "--url=http://127.0.0.1:1", status=ERROR)
        absent, dead = sorted(servers(out), key=lambda answer: answer["server"] != url)
        assert absent["url"].startswith(url) and absent["state"] == "absent" and dead["state"] == "unavailable", out


def case_verbose_get_prints_progress_to_a_pipe(env):
    with server(env, f"slow:{env.stripped.stat().st_size}") as url:
        done = env.run("-s", env.store, "get", ID_NOT_STORED, "elf", f"--url={url}")
        assert done.stderr == "", "not unless it is wished for"
        env.on_store("remove", ID_NOT_STORED)
        _, lines = get(env, ID_NOT_STORED, "elf", f"--url={url}", DEBUGINFOD_PROGRESS="1")
    assert lines and all("127.0.0.1" in line or "asking" in line for line in lines), lines


if __name__ == "__main__":
    main(globals(), Env, fetching=[
        case_verbose_get_names_the_server, case_verbose_get_names_the_server_of_a_negative_cache_entry,
        case_verbose_get_counts_requests, case_verbose_get_names_the_redirect, case_verbose_get_names_the_overtaken_server,
        case_verbose_get_names_each_failure, case_verbose_get_prints_progress_to_a_pipe])
