#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl get --verbose, which reports the search for an artifact.

usage: check_story.py BIDCTL [--no-fetch] [CASE...]
"""
import re
import subprocess

from bidctl_scene import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, REFUSED, TIMEOUT, TROUBLE, Scene, read_json, server
from cases import main


def tell(scene, *arguments, status=DONE, **environment):
    """Return standard output, and the lines of the report without errors."""
    done = subprocess.run([scene.bidctl, "-s", scene.store, "get", *map(str, arguments)], env=scene.environment | environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "\033" not in done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if not line.startswith("bidctl: ")]


def servers(text):
    """Return the servers of the single row of get --json."""
    row, = read_json(text)["result"]
    return row["servers"]


def case_verbose_get_of_stored_file_names_the_store(scene):
    scene.on_store("add", scene.one)
    path, story = tell(scene, "-v", ID_ONE, "elf", "--offline")
    assert story == [f"elf of {ID_ONE}", f"  store      {scene.store}", "             it is there"], story
    assert path == scene.on_store("get", ID_ONE, "elf").stdout
    assert tell(scene, ID_ONE, "elf", "--offline") == (path, [])
    assert tell(scene, ID_ONE, "elf", "--offline", DEBUGINFOD_VERBOSE="1") == (path, story)
    # a wrong file under that name
    (scene.store / str(scene.one)[1:] / ID_ONE / "elf").unlink()
    (scene.store / str(scene.one)[1:] / ID_ONE / "elf").write_bytes(scene.two.read_bytes())
    _, story = tell(scene, "-v", ID_ONE, "elf", "--offline", status=REFUSED)
    assert "another build" in story[2], story


def case_verbose_get_names_the_server(scene):
    size = (scene.stripped).stat().st_size
    with server(scene, "absent") as no, server(scene) as url:
        path, story = tell(scene, "-v", ID_NOT_STORED, "elf", f"--url={no}", f"--url={url}")
        text = "\n".join(story)
        assert story[2].strip() == "it is not there", story
        assert f"asked      {no}\n" in text and re.search(r"absent after \d+ ms: HTTP 404", text), text
        assert f"asked      {url}\n             {url}/buildid/{ID_NOT_STORED}/executable\n" in text, text
        assert re.search(r"found after \d+ ms: .*, \d+(\.\d)? KiB", text), text
        assert "checked " in text and "digest     xxh3-128:" in text and f"published  {path.strip()}" in text, text
        scene.on_store("remove", ID_NOT_STORED)
        out, _ = tell(scene, "-v", "--json", ID_NOT_STORED, "elf", f"--url={url}")
        (answer,) = servers(out)
        assert answer["url"].endswith("/executable") and answer["bytes"] == size and answer["elapsed_ms"] >= 0, answer


def case_verbose_get_names_the_server_of_a_negative_cache_entry(scene):
    with server(scene, "absent") as url:
        scene.run("-s", scene.store, "get", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        _, story = tell(scene, "-v", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        text = "\n".join(story)
        assert f"  asked      {url}\n             absent: as it said before\n" in text and "asked again in" in text, text


def case_verbose_get_names_the_file_of_a_lower_store(scene):
    other = scene.home / "other"
    other.mkdir()
    scene.run("-s", other, "add", scene.one)
    path, story = tell(scene, "-v", ID_ONE, "elf", f"--lower={other}", "--offline")
    assert story[1:] == [f"  store      {scene.store}", f"  lower      {path.strip()}"] and path.startswith(str(other)), story


def case_verbose_get_counts_attempts(scene):
    """An interrupted body is reported, and its bytes do not count."""
    size = scene.stripped.stat().st_size
    with server(scene, "reset:1000*2") as url:
        out, story = tell(scene, "-v", "--json", ID_NOT_STORED, "elf", f"--url={url}")
        (answer,) = servers(out)
        assert (answer["attempts"], answer["received"], answer["bytes"]) == (3, size, size + 2000), answer
        assert f"1000 of {size} bytes" in answer["before"], answer
        (line,) = (line for line in story if "found after" in line)
        assert re.search(rf" in 3 attempts: HTTP 200, {round(size / 1024)} KiB, .*/s; before: .*1000 of", line), line
    scene.on_store("remove", ID_NOT_STORED)
    with server(scene, "reset:1000") as url:
        done = scene.run("-s", scene.store, "get", ID_NOT_STORED, "elf", f"--url={url}", status=TROUBLE)
        assert re.search(r"unreachable in \d attempts: ", done.stderr), done.stderr
    # a refused connection without any earlier response is not a restarting server
    out = scene.run("-s", scene.store, "--json", "get", ID_NOT_STORED, "elf", "--url=http://127.0.0.1:1", status=TROUBLE).stdout
    (answer,) = servers(out)
    assert answer["attempts"] == 1 and "refused" in answer["reason"], answer


def case_verbose_get_names_the_redirect(scene):
    """The target is shown without its credentials."""
    with server(scene) as url, server(scene, f"redirect:{url}/plain{{path}}?signature=secret") as front:
        out, story = tell(scene, "-v", "--json", ID_NOT_STORED, "elf", f"--url={front}")
        (answer,) = servers(out)
        there = f"{url}/plain/buildid/{ID_NOT_STORED}/executable"
        assert answer["url"].startswith(front) and answer["redirect"] == there and answer["attempts"] == 1, answer
        assert f"  led to     {there}" in story and "secret" not in out + "".join(story), story


def case_verbose_get_names_the_overtaken_server(scene):
    with server(scene, "stall-headers") as slow, server(scene) as url:
        out, story = tell(scene, "-v", "--json", ID_NOT_STORED, "elf", f"--url={slow}", f"--url={url}")
        found, overtaken = servers(out)
        assert found["server"] == url and found["state"] == "found", out
        assert overtaken["server"] == slow and overtaken["state"] == "cancelled" and overtaken["elapsed_ms"] >= 300, out
        text = "\n".join(story)
        assert f"asked      {slow}\n" in text and re.search(rf"cancelled after \d+ ms: {re.escape(url)} was faster", text), text


def case_verbose_get_names_each_failure(scene):
    with server(scene, f"wrong-id:{scene.one}") as url:
        _, story = tell(scene, "-v", ID_NOT_STORED, "elf", f"--url={url}", status=REFUSED)
        assert any("rejected after" in line and ID_ONE in line for line in story), story
    with server(scene) as url:
        out, _ = tell(scene, "--json", ID_FAR, "elf", f"--url={url}", "--url=http://127.0.0.1:1", status=TROUBLE)
        absent, dead = sorted(servers(out), key=lambda answer: answer["server"] != url)
        assert absent["url"].startswith(url) and absent["state"] == "absent" and dead["state"] == "unreachable", out


def case_verbose_get_prints_progress_to_a_pipe(scene):
    with server(scene, f"slow:{scene.stripped.stat().st_size}") as url:
        done = scene.run("-s", scene.store, "get", ID_NOT_STORED, "elf", f"--url={url}")
        assert done.stderr == "", "not unless it is wished for"
        scene.on_store("remove", ID_NOT_STORED)
        _, lines = tell(scene, ID_NOT_STORED, "elf", f"--url={url}", DEBUGINFOD_PROGRESS="1")
    assert lines and all("127.0.0.1" in line or "asking" in line for line in lines), lines


if __name__ == "__main__":
    main(globals(), Scene, fetching=[
        case_verbose_get_names_the_server, case_verbose_get_counts_attempts, case_verbose_get_names_the_redirect,
        case_verbose_get_names_the_overtaken_server, case_verbose_get_names_each_failure,
        case_verbose_get_prints_progress_to_a_pipe])
