#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl du, which shows the space that a store takes.

usage: check_du.py BIDCTL [--no-fetch] [CASE...]
"""
import os
import subprocess

from bidctl_env import ID_NOT_STORED, ID_ONE, TIMEOUT, Env, server
from cases import main


def on_disk(path):
    return os.lstat(path).st_blocks * 512


def rows(env, *arguments):
    """Return {(kind, origin): (files, bytes)}, and the sum."""
    done = env.on_store("du", *arguments)
    lines = [line.split("\t") for line in done.stdout.removesuffix(done.summary).splitlines()]
    return {(kind, origin): (int(files), int(size)) for kind, origin, files, size in lines}, done.summary


def case_total_equals_that_of_du(env):
    env.on_store("add", env.one, env.two, "--link=hard")
    env.on_store("add", env.no_id, env.text, status=None)
    (env.store / "notes").write_bytes(bytes(9000))
    quarantine = env.store / ".bidfs" / "quarantine"
    quarantine.mkdir()
    (quarantine / f"{ID_ONE}.elf.1764140400").write_bytes(bytes(5000))
    found, _ = rows(env)
    size = on_disk(env.one) + on_disk(env.two)
    assert found["elf", "added"] == (2, size), found
    assert found["foreign", "-"] == (1, on_disk(env.store / "notes")), found
    assert found["quarantine", "-"] == (1, 8192), found
    whole = subprocess.run(["du", "--summarize", "--block-size=1", env.store], check=True, capture_output=True, text=True,
                           timeout=TIMEOUT).stdout
    json = env.json("du")
    assert json["totals"]["size"] == sum(size for _, size in found.values()) == int(whole.split()[0]), (json, whole)
    assert json["totals"]["shared_size"] == size, json


def case_file_with_several_names_counts_once(env):
    env.on_store("add", "--link=copy", env.one)
    again = env.home / "again"
    again.write_bytes(env.one.read_bytes())
    env.on_store("add", "--link=copy", again)
    names = [path for path in env.store.rglob("elf") if ".bidfs" not in path.parts]
    assert len(names) == 2 and names[0].samefile(names[1])
    found, summary = rows(env)
    assert found["elf", "added"] == (1, on_disk(names[0])), found
    assert "outside" not in summary, "a file is not shared with others if all its names are in the store"


def case_downloads_and_derived_files_are_told_apart(env):
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        env.on_store("get", f"--url={url}", ID_NOT_STORED)
    env.on_store("get", "--offline", ID_NOT_STORED, "section", ".text")
    env.on_store("add", env.one)
    found, _ = rows(env)
    assert {("elf", "fetched"), ("elf", "added"), ("debuginfo", "fetched"), ("section", "derived")} < set(found), found


def case_absent_default_store_takes_nothing(env):
    assert env.run("du").summary == "files 0, size 0 B\n"
    assert not (env.home / ".debug").exists()


main(globals(), Env, fetching=(case_downloads_and_derived_files_are_told_apart,))
