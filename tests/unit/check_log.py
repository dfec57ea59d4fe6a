#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl log, which shows downloads, refusals and evictions.

usage: check_log.py BIDCTL [--no-fetch] [CASE...]
"""
import time

from bidctl_env import ID_FAR, ID_NOT_STORED, ID_ONE, REFUSED, USAGE, Env, server
from cases import main


def events(env, *arguments):
    """Return the events without their time."""
    return [tuple(line.split("\t")[1:]) for line in env.on_store("log", *arguments).stdout.splitlines()]


def case_log_has_downloads_refusals_and_evictions(env):
    env.on_store("add", env.one)
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        env.on_store("get", f"--url={url}", ID_FAR, "elf", status=REFUSED)
    size = env.stripped.stat().st_size
    fetched = ("fetched", ID_NOT_STORED, "elf", str(size), url, "-")
    assert sorted(events(env)) == [("absent", ID_FAR, "elf", "-", "-", "-"), fetched]
    env.on_store("get", "--offline", ID_NOT_STORED, "section", ".text")
    assert len(events(env)) == 2, "a derived section is no download"
    quarantine = env.store / ".bidfs" / "quarantine"
    quarantine.mkdir()
    then = int(time.time()) - 1000
    for name in (f"{ID_ONE}.debug.{then}", f"8-1-0a.content-key.{then + 1}", "notes"):
        (quarantine / name).write_bytes(b"xyz")
    assert events(env)[:2] == [("quarantined", ID_ONE, "debuginfo", "3", f"{ID_ONE}.debug.{then}", "-"),
                               ("quarantined", "-", "-", "3", f"8-1-0a.content-key.{then + 1}", "-")]
    assert env.on_store("gc", "--cache-size=1").stdout.count("evicted 2") == 1
    after = events(env)
    assert fetched not in after and len(after) == 5, after
    gone = {event[2]: event for event in after[-2:]}
    assert gone["elf"][:2] == ("evicted", ID_NOT_STORED) and gone["elf"][4:] == ("cache-size", "-"), after
    assert gone["section"][:2] == ("evicted", ID_NOT_STORED) and gone["section"][4:] == ("cache-size", ".text"), after
    assert events(env, "-n", "1") == after[-1:] and events(env, "--lines=2") == after[-2:] == events(env, "-n2")
    json = env.rows("log")
    assert json[-1]["state"] == "evicted" and [row["time"] for row in json[:2]] == [then, then + 1], json
    assert json[1]["id"] is None and {row["name"] for row in json} == {None, ".text"}, json
    assert "quarantined" in env.on_terminal("-s", env.store, "log")[1]


def case_full_log_loses_its_older_half(env):
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
    log = env.store / ".bidfs" / "evicted"
    lines = [f"{at}\t{ID_ONE}\telf\t1\tmin-free\t\n" for at in range(10000, 15000)]
    log.write_text("damaged\n" + "".join(lines) + f"1\t{ID_ONE}\telf\n")
    assert log.stat().st_size > 256 << 10
    assert events(env).count(("evicted", ID_ONE, "elf", "1", "min-free", "-")) == len(lines)
    env.on_store("gc", "--cache-size=1")
    assert 128 << 10 < log.stat().st_size < (256 << 10)
    after = env.rows("log")
    assert after[-1]["id"] == ID_NOT_STORED and after[-2]["time"] == 14999 and after[0]["time"] > 11000, after[0]


def case_log_without_a_store_is_empty(env):
    assert env.run("log").stdout == "" and not (env.home / ".debug").exists()
    for number in ("0", "-1", "x"):
        env.one_error("log", "-n", number, status=USAGE, has=f"'{number}'")
    env.one_error("list", "-n", status=USAGE, has="--dry-run")


main(globals(), Env, fetching=(case_log_has_downloads_refusals_and_evictions, case_full_log_loses_its_older_half))
