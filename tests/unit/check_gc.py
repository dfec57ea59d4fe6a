#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl gc, which evicts downloads.

usage: check_gc.py BIDCTL [--no-fetch]
"""
import gzip
import os
import time

import cases
from add_helpers import NOBODY, as_nobody, entry_of, let_nobody_in, link_of
from bidctl_env import DONE, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, USAGE, Env, read_json, server


def case_gc_removes_old_quarantined_files(env):
    env.on_store("add", env.one)
    place = env.store / ".bidfs" / "quarantine"
    place.mkdir()
    now = int(time.time())
    old = {f"{ID_ONE}.elf.{now - 31 * 86400}", f"{ID_ONE}.debug.{now - 31 * 86400}.1", f"{ID_ONE}.elf.{now - 31 * 86400}.2",
           f"8-1-0a.content-key.{now - 31 * 86400}"}
    young = {f"{ID_ONE}.elf.{now - 29 * 86400}", f"{ID_ONE}.elf.{now - 31 * 86400}x", f"{ID_ONE}.elf", "notes"}
    for name in old | young:
        (place / name).write_bytes(b"x")
    done = env.on_store("gc", "--dry-run")
    assert {path.name for path in place.iterdir()} == old | young, done.stdout
    assert "quarantined 1, quarantined dropped 4" in done.stdout, done.stdout
    done = env.on_store("gc")
    assert {path.name for path in place.iterdir()} == young, done.stdout
    assert "quarantined 1, quarantined dropped 4" in done.stdout, done.stdout


def case_gc_expires_scan_caches(env):
    """The cache of a tree expires a month after its last scan; scans without new files count."""
    place = env.store / ".bidfs" / "scan"
    trees = [env.home / "one", env.home / "two"]
    caches = []
    for tree in trees:
        tree.mkdir()
        (tree / "text").touch()
        time.sleep(0.05)  # longer than a clock tick, so that the scan cache has it
        env.on_store("add", tree)
        caches += [path for path in place.iterdir() if path not in caches]
    (place / "notes").touch()
    old = time.time() - 31 * 86400
    for path in caches + [place / "notes"]:
        os.utime(path, (old, old))
    # nothing new: the scan leaves the cache as it is, and marks it as used
    env.on_store("add", trees[0])
    assert caches[0].stat().st_mtime > old + 86400, "its use was not noted"
    just = time.time() - 3600
    os.utime(caches[0], (just, just))
    env.on_store("add", trees[0])
    assert abs(caches[0].stat().st_mtime - just) < 1, "written more than once a day"
    done = env.on_store("gc", "--dry-run")
    assert "scans 1, scans dropped 1" in done.stdout and caches[1].exists(), done.stdout
    done = env.totals("gc")
    assert (done["scans"], done["scans_dropped"]) == (1, 1), done
    assert {path.name for path in place.iterdir()} == {caches[0].name, "notes"}
    assert "scans" not in env.on_store("gc").stdout


def case_gc_continues_past_unreadable_directories(env):
    """A private directory of another user in the same store hinders no eviction."""
    let_nobody_in(env)
    env.on_store("add", "--link=copy", env.one)
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "executable")
    for path in (env.store, *env.store.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    closed = entry_of(env, env.one, ID_ONE).parent
    os.chown(closed, 0, 0)
    closed.chmod(0o700)
    done = as_nobody(env, "gc", "--cache-size=1")
    assert done.returncode == DONE and "evicted 1, " in done.stdout, done
    assert not os.path.lexists(link_of(env, ID_NOT_STORED)) and os.path.lexists(link_of(env, ID_ONE))


def case_gc_evicts_derived_files(env):
    """A compressed module of a lower store is unpacked once, and evicted as downloads are: least recently used first."""
    place = env.store / ".bidfs" / "unpacked"
    lower = env.home / "lower"
    env.store.mkdir(exist_ok=True)
    for build_id, program in ((ID_ONE, env.one), (ID_TWO, env.two)):
        entry = lower / "lib/modules/6/a.ko.gz" / build_id
        link = lower / ".build-id" / build_id[:2] / build_id[2:]
        entry.mkdir(parents=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        (entry / "elf").write_bytes(gzip.compress(program.read_bytes()))
        link.symlink_to(f"../../lib/modules/6/a.ko.gz/{build_id}")
        env.on_store("get", f"--lower={lower}", build_id, "elf")
    kept = {build_id: place / build_id[:2] / build_id[2:] for build_id in (ID_ONE, ID_TWO)}
    times = {path: path.stat().st_mtime for path in kept.values()}
    os.utime(kept[ID_ONE], (1000, times[kept[ID_ONE]]))
    os.utime(kept[ID_TWO], (500, times[kept[ID_TWO]]))
    env.on_store("get", f"--lower={lower}", ID_TWO, "elf")
    assert kept[ID_TWO].stat().st_atime > 1000, "its use was not noted"
    assert {path: path.stat().st_mtime for path in kept.values()} == times
    done = env.on_store("gc", "--dry-run", "--cache-size=1").stdout.splitlines()
    assert [line.split("\t")[:2] for line in done[:2]] == [[ID_ONE, "elf"], [ID_TWO, "elf"]], done
    assert done[2].startswith("dry run: fetched 0, fetched size 0 B, derived 2, ") and "evicted 2" in done[2], done
    size = kept[ID_TWO].stat().st_blocks * 512
    done = env.json("gc", f"--cache-size={size}")
    assert [(gone["id"], gone["origin"]) for gone in done["result"]] == [(ID_ONE, "derived")], done
    assert done["totals"]["derived"] == 2, done
    assert not kept[ID_ONE].exists() and kept[ID_TWO].exists()
    # an open file is kept
    with open(kept[ID_TWO], "rb"):
        done = env.totals("gc", "--cache-size=1", status=REFUSED)
        assert done["in_use"] == 1 and kept[ID_TWO].exists(), done
    done = env.totals("gc", "--cache-size=1")
    assert done["evicted"] == 1 and not kept[ID_TWO].exists(), done
    # it is unpacked again
    env.on_store("get", f"--lower={lower}", ID_ONE, "elf")
    assert kept[ID_ONE].exists()


def case_pinned_build_is_not_evicted(env):
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
    assert env.on_store("pin", "--dry-run", ID_NOT_STORED[:8]).stdout == f"{ID_NOT_STORED}\twould be pinned\n"
    assert env.totals("gc", "-n", "--cache-size=1")["fetched"] == 1
    assert "not in the store" in env.run("pin", "-n", ID_ONE, status=REFUSED).stderr
    assert not (env.home / ".debug").exists(), "a dry run made the default store"
    assert env.on_store("-v", "pin", ID_NOT_STORED[:8]).stdout == f"{ID_NOT_STORED}\tpinned\n"
    assert env.totals("gc", "--cache-size=1")["fetched"] == 0
    assert env.row("show", ID_NOT_STORED)["artifacts"]["elf"]["how"] == "pinned"
    env.on_store("add", env.one)
    env.on_store("unpin", "--dry-run", ID_NOT_STORED)
    assert env.totals("gc", "-n", "--cache-size=1")["evicted"] == 0
    assert env.on_store("-v", "unpin", ID_NOT_STORED[:8], ID_ONE).stdout == f"{ID_NOT_STORED}\tunpinned\n{ID_ONE}\tunpinned\n"
    assert env.totals("gc", "--cache-size=1")["evicted"] == 1
    assert env.on_store("list").stdout.startswith(ID_ONE), "an added file was evicted"
    for command in "pin", "unpin":
        env.one_error(command, ID_ONE, ID_NOT_STORED, status=REFUSED, has="not in the store")


def case_gc_evicts_to_its_limits(env):
    with server(env) as url:
        env.on_store("add", env.one)
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        env.on_store("get", f"--url={url}", ID_NOT_STORED)
    before = env.files()
    text = env.on_store("gc").stdout
    assert text.startswith("fetched 2, ") and text.endswith(", evicted 0, evicted size 0 B\n"), text
    # a writer removes it; a dry run does not write
    abandoned = env.store / ".bidfs" / "tmp" / "temp-0123456789abcdef"
    abandoned.parent.mkdir(exist_ok=True)
    abandoned.touch()
    lines = env.on_store("gc", "--dry-run", "--cache-size=1").stdout.splitlines()
    assert abandoned.exists()
    abandoned.unlink()
    assert read_json(env.run("gc", "--dry-run", "--json").stdout)["totals"]["evicted"] == 0, "the default store is not there"
    assert len(lines) == 3 and lines[0].split("\t")[:2] == [ID_NOT_STORED, "elf"] and "evicted 2" in lines[2], lines
    assert [line.split("\t")[-1] for line in lines[:2]] == ["would be evicted"] * 2, lines
    assert env.on_store("gc", "--cache-size=1G").summary.endswith("evicted 0, evicted size 0 B\n")
    fetched = env.totals("gc", "-n")["fetched_size"]
    for size, evicted in ((fetched / 1024, 0), ((fetched - 1) / 1024, 1)):
        assert env.totals("gc", "-n", f"--cache-size={size:.10f}K")["evicted"] == evicted
    assert env.files() == before
    # the most recently used file stays
    record = env.store / ".bidfs" / "record" / ID_NOT_STORED[:2] / f"{ID_NOT_STORED[2:]}.elf"
    os.utime(record, (0, 0))
    env.on_store("get", ID_NOT_STORED, "elf")
    assert record.stat().st_mtime > 1000, "its use was not noted"
    os.utime(record.with_suffix(".debuginfo"), (0, 0))
    done = env.rows("gc", "--cache-size=20K")
    assert [(gone["id"], gone["kind"]) for gone in done] == [(ID_NOT_STORED, "debuginfo")], done
    assert env.totals("gc", "--min-free=1000T", status=REFUSED)["evicted"] == 1
    assert env.on_store("list").stdout.startswith(ID_ONE) and env.on_store("list").stdout.count("\n") == 1
    assert "found 0" in env.on_store("verify", "--deep").stdout
    assert "short of the limit" in env.on_store("gc", "--min-free=100%", status=REFUSED).stderr
    for size in ("1M", "10MiB", "1.5G", "10%", "12345", "0.5K"):
        env.on_store("gc", f"--cache-size={size}")
    for size in ("0", "-1", "1X", "K", "", "99999999999T", "1.", ".5G", "0.1", "1e3", "0x10", "1MB", "101%", "0%", "1%K", "inf"):
        env.one_error("gc", f"--cache-size={size}", status=USAGE, has=f"'{size}'")


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "strip", "objcopy"],
               fetching=[case_gc_evicts_to_its_limits, case_pinned_build_is_not_evicted,
                         case_gc_continues_past_unreadable_directories])
