#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl get for one artifact: stored, on a server, or absent.

usage: check_get.py BIDCTL [--no-fetch]

With --no-fetch BIDCTL was built without fetching, and must report so.
"""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess

import cases
from bidctl_env import (DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env, request_count, divide,
                        interrupted, server)


def case_get_prints_the_stored_path(env):
    env.on_store("add", env.one, env.stripped)
    stored = env.store / str(env.one)[1:] / ID_ONE / "elf"
    for kind in ("elf", "executable", "debuginfo"):
        assert env.on_store("get", ID_ONE, kind).stdout == f"{stored}\n"
    assert env.on_store("get", ID_ONE).stdout == f"{stored}\n", "debuginfo is the default"
    assert env.row("get", ID_ONE) == {
        "id": ID_ONE, "kind": "debuginfo", "name": None, "state": "here", "served_as": "elf", "file": str(stored),
        "size": stored.stat().st_size, "reason": None, "servers": []}
    env.one_error("get", ID_NOT_STORED, "--offline", status=REFUSED, has="'--offline' fetches none")
    env.one_error("get", ID_ONE, "kallsyms", status=REFUSED, has="no server has this kind")
    failed = env.row("get", ID_NOT_STORED, "--offline", status=REFUSED)
    assert (failed["id"], failed["kind"], failed["servers"]) == (ID_NOT_STORED, "debuginfo", []), failed
    # a wrong file is not served, whatever its name
    stored.unlink()
    shutil.copy(env.two, stored)
    done = env.on_store("get", ID_ONE, "elf", "--offline", status=REFUSED)
    assert done.stdout == "" and "does not carry this build-id" in done.stderr, done.stderr


def case_get_finds_files_of_a_read_only_store(env):
    env.on_store("add", env.one)
    shutil.rmtree(env.store / ".bidfs")
    env.store.chmod(0o555)
    try:
        if os.geteuid() == 0:
            # another user, because modes do not limit root
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", env.bidctl]
            for parent in (env.store.parent, env.store.parent.parent):
                parent.chmod(0o755)
        else:
            command = [env.bidctl]
        run = functools.partial(subprocess.run, env=env.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = run([*command, "-s", env.store, "get", ID_ONE], check=True)
        assert done.stdout.endswith(f"/{ID_ONE}/elf\n") and done.stderr == "", done
        done = run([*command, "-s", env.store, "add", env.two], check=False)
        wanted = f"permission denied: '{env.store}' - let its owner give you the rights, or name another store"
        assert done.returncode == ERROR and done.stderr == f"bidctl: error: {wanted}\n", done
    finally:
        env.store.chmod(0o755)


def case_get_cannot_download_into_a_read_only_store(env):
    """With servers in the environment, an artifact that is not stored is unknown rather than absent; no server gets a request."""
    env.on_store("add", env.one)
    shutil.rmtree(env.store / ".bidfs")
    env.store.chmod(0o555)
    for parent in (env.store.parent, env.store.parent.parent):
        parent.chmod(0o755)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []

    def run(*arguments, status, lines="", urls=""):
        done = subprocess.run([*other, env.bidctl, "-s", env.store, "get", *arguments], input=lines, text=True,
                              env=env.environment | {"DEBUGINFOD_URLS": urls}, capture_output=True, check=False, timeout=TIMEOUT)
        divide(done)
        assert done.returncode == status and done.stderr.count("\n") <= 1, done
        return done

    try:
        for url, urls in ("--url=http://127.0.0.1:1", ""), ("--json", "http://127.0.0.1:1"):
            done = run(ID_FAR, url, urls=urls, status=ERROR)
            assert "bidctl fetches none, as the store cannot be written" in done.stderr, done
            done = run("-", url, urls=urls, lines=f"{ID_ONE}\n{ID_FAR}\n{ID_TWO}\n", status=ERROR)
            assert done.stderr.count("bidctl fetches none, as the store cannot be written") == done.stderr.count("\n") == 1, done
            assert "absent" not in done.stdout.replace("absent 0", "").replace('"absent":0', ""), done
            assert done.stdout.count("fetches none, as the store cannot be written") in (4, 5), done
            # stored files are served
            assert run("-", url, urls=urls, lines=f"{ID_ONE}\n", status=DONE).stderr == ""
        # without servers, or with --offline, the artifact is absent
        for arguments in ([], ["--offline"]):
            assert "no such artifact in the store" in run(ID_FAR, *arguments, status=REFUSED).stderr
            assert "absent 2" in run("-", *arguments, lines=f"{ID_FAR}\n", status=REFUSED).stdout
    finally:
        env.store.chmod(0o755)


def case_get_accepts_debuginfo_without_dwarf(env):
    """The file has the id and no debug information: it is not reported as another build."""
    with server(env) as url:
        bare = env.home / "served" / ID_NOT_STORED / "debuginfo"
        shutil.copy(env.stripped, bare)
        done = env.on_store("get", f"--url={url}", ID_NOT_STORED, status=REFUSED)
    assert "no server delivered the right artifact" in done.stderr and "without debug sections" in done.stderr, done
    assert "carry" not in done.stderr and done.stdout == "", done


def case_get_replaces_a_stripped_debug_file(env):
    """A debug file with neither DWARF nor symbols is served only if no server has a better one."""
    local = env.store / "usr/bin/stripped" / ID_NOT_STORED / "debug"
    local.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", env.stripped, local], check=True, timeout=TIMEOUT)
    link = env.store / ".build-id" / ID_NOT_STORED[:2] / ID_NOT_STORED[2:]
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../../usr/bin/stripped/{ID_NOT_STORED}")
    assert env.on_store("get", ID_NOT_STORED).stdout == f"{local}\n"
    with server(env) as url:
        better = env.home / "served" / ID_NOT_STORED / "debuginfo"
        better.rename(env.home / "better")
        assert env.on_store("get", f"--url={url}", ID_NOT_STORED).stdout == f"{local}\n"
        requests = request_count(url)
        assert env.on_store("get", f"--url={url}", ID_NOT_STORED).stdout == f"{local}\n"
        assert request_count(url) == requests, "the servers' 404 is remembered"
        (env.home / "better").rename(better)
        found = env.on_store("get", f"--url={url}", "--refresh", ID_NOT_STORED).stdout.rstrip("\n")
        assert pathlib.Path(found).read_bytes() == better.read_bytes()
    assert env.on_store("get", ID_NOT_STORED).stdout == f"{found}\n"


def case_get_downloads_a_missing_file(env):
    with server(env) as url:
        done = env.on_store("get", f"--url={url}", ID_NOT_STORED)
        path = pathlib.Path(done.stdout.rstrip("\n"))
        assert done.stderr == "" and path.is_relative_to(env.store), done
        assert path.read_bytes() == (env.home / "served" / ID_NOT_STORED / "debuginfo").read_bytes()
        before = request_count(url)
        assert env.on_store("get", f"--url={url}", ID_NOT_STORED[:9]).stdout == done.stdout, "fetched: now it can be abbreviated"
        assert request_count(url) == before, "it was asked for again"
        # several servers from the environment
        done = env.on_store("get", ID_NOT_STORED, "elf", DEBUGINFOD_URLS=f"http://127.0.0.1:1 {url}")
        assert done.stderr == "" and pathlib.Path(done.stdout.rstrip("\n")).read_bytes() == env.stripped.read_bytes(), done
    assert env.row("show", ID_NOT_STORED)["artifacts"]["debuginfo"]["how"] == "fetched"


def case_get_refuses_changed_bytes(env):
    """
    A valid file with other bytes than the first download of its id is refused, and the message names the option that accepts it.
    """
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        env.on_store("gc", "--cache-size=1")
        served = env.home / "served" / ID_NOT_STORED / "executable"
        served.write_bytes(served.read_bytes() + bytes(16))
        done = env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf", status=REFUSED)
        assert "other bytes than the first download" in done.stderr.splitlines()[0], done
        assert "'--accept' accepts" in done.stderr.splitlines()[-1] and done.stderr.count("\n") == 2, done
        path = env.on_store("get", f"--url={url}", "--accept", ID_NOT_STORED, "elf").stdout.rstrip("\n")
        assert pathlib.Path(path).read_bytes() == served.read_bytes()


def case_get_names_an_unused_headers_file(env):
    """The message has the reason and the remedy, and nothing of the file's content."""
    path = env.home / "headers"
    with server(env) as url:
        def warnings(where=path, mode=0o600, text=b"X-Key: secret\n"):
            path.write_bytes(text)
            path.chmod(mode)
            done = env.on_store("get", "--refresh", f"--url={url}", ID_NOT_STORED, "elf", DEBUGINFOD_HEADERS_FILE=str(where))
            assert "secret" not in done.stderr and done.stderr.count(str(where)) == done.stderr.count("\n"), done
            return done.stderr

        assert warnings() == ""
        assert "other users may write to it" in warnings(mode=0o602) and "'chmod o-w'" in warnings(mode=0o602)
        assert "other users can read" in warnings(mode=0o644) and "'chmod go-r'" in warnings(mode=0o644)
        assert "no regular file" in warnings(env.home) and "put the headers into one" in warnings(env.home)
        assert "No such file" in warnings(env.home / "none")
        text = warnings(text=b"X: secret\n" * 8192)
        assert "larger than 64 KiB" in text and "shorten it" in text, text
        assert "no text" in warnings(text=b"X: secret\0\n")
        text = warnings(text=b"X: 1\nsecret\n")
        assert "write it as 'Name: value'" in text and f"'{path}:2'" in text, text
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            assert "another user owns it" in warnings() and "'chown' it" in warnings()


def case_get_failure_has_a_line_per_server(env):
    """Each server has its line, and the exit status distinguishes absent from unknown."""
    with server(env, "absent") as no, server(env, "wrong-id:" + str(env.one)) as wrong:
        done = env.on_store("get", f"--url={no}", ID_FAR, status=REFUSED)
        assert done.stderr.count("\n") == 2 and f"server '{no}" in done.stderr and "absent" in done.stderr, done.stderr
        done = env.on_store("get", f"--url={no}", "--url=http://127.0.0.1:1", ID_FAR, status=ERROR)
        assert done.stderr.count("\n") == 3 and "unavailable" in done.stderr, done.stderr
        assert "not every server answered" in done.stderr, done.stderr
        failed = env.row("get", f"--url={no}", f"--url={wrong}", ID_NOT_STORED, "elf", status=REFUSED)
        assert [answer["state"] for answer in failed["servers"]] == ["absent", "rejected"], failed
        assert failed["servers"][0]["server"].startswith(no), failed
        env.one_error("get", f"--url={no}", ID_FAR[:10], status=REFUSED, has="no such build-id in the store")
    assert env.files() == [], "something was left behind"
    # libdebuginfod shares the list, and takes URLs of other kinds too
    done = env.on_store("get", ID_FAR, status=REFUSED, DEBUGINFOD_URLS="gopher://a")
    assert done.stderr.count("warning: ") == 1 and "gopher://a" in done.stderr and "no server is configured" in done.stderr, done
    # a server that cannot meet its own policy
    done = env.on_store("get", ID_FAR, status=REFUSED, DEBUGINFOD_URLS=f"ima:enforcing file://{env.home}")
    assert "a directory has no signatures" in done.stderr and "bidctl ignores each, see above" in done.stderr, done.stderr


def case_get_ends_on_interrupt(env):
    for caught in (signal.SIGINT, signal.SIGTERM):
        with server(env, "slow:200") as url:
            assert interrupted(env, url, "get", f"--url={url}", ID_NOT_STORED, caught=caught) == ""
    assert env.files() == [] and env.on_store("list").stdout == ""


def case_get_draws_progress(env):
    size = env.stripped.stat().st_size
    with server(env, f"slow:{size}") as url:
        status, text = env.on_terminal("get", "-s", env.store, f"--url={url}", ID_NOT_STORED, "elf", columns=70)
    # the progress line is erased, and the path is the last output
    *drawn, last = text.split("\r\033[K") if "\r\033[K" in text else [text]
    assert status == DONE and last.strip().endswith("/elf"), text
    lines = re.findall(r"\r([^\r\033]+)\033\[K", "".join(drawn) + "\033[K")
    assert any(re.search(r"127\.0\.0\.1:\d+ .* \[=*>? *\] +\d+%", line) for line in lines), lines
    assert all(len(line) < 70 for line in lines), lines


def case_bad_url_is_refused(env):
    for url in ("ftp://127.0.0.1", "ftp://user:secret@127.0.0.1"):
        env.one_error("get", f"--url={url}", ID_ONE, status=USAGE, has="'ftp://127.0.0.1'")


def case_build_without_fetching_reports_it(env):
    env.one_error("get", ID_NOT_STORED, "--url=http://127.0.0.1:1", status=USAGE, has="without fetching")
    env.one_error("get", ID_NOT_STORED, status=REFUSED, has="without fetching")


if __name__ == "__main__":
    cases.main(globals(), Env, without_fetch=[case_build_without_fetching_reports_it],
               fetching=[case_bad_url_is_refused, case_get_downloads_a_missing_file,
                         case_get_cannot_download_into_a_read_only_store,
                         case_get_accepts_debuginfo_without_dwarf, case_get_replaces_a_stripped_debug_file,
                         case_get_refuses_changed_bytes, case_get_names_an_unused_headers_file,
                         case_get_failure_has_a_line_per_server, case_get_ends_on_interrupt,
                         case_get_draws_progress])
