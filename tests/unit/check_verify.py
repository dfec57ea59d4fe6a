#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl verify, which checks a store and repairs it.

usage: check_verify.py BIDCTL [--no-fetch]
"""
import gzip
import os
import pathlib
import shutil

import cases
from add_helpers import NOBODY, as_nobody, entry_of, let_nobody_in, link_of
from bidctl_env import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, ERROR, USAGE, Env, server

# bits of verify's exit status, as in bidctl(1)


def case_verify_reports_and_repairs(env):
    assert env.on_store("verify").summary == "names 0, objects 0, links 0, records 0, found 0, foreign 0\n"
    env.on_store("add", env.one, env.two, env.far)
    assert "found 0" in env.on_store("verify", "--deep").stdout
    # a wrong object, an orphan, a damaged record
    elf = entry_of(env, env.one, ID_ONE) / "elf"
    elf.unlink()
    shutil.copy(env.far, elf)
    link_of(env, ID_TWO).unlink()
    record = env.store / ".bidfs" / "record" / ID_FAR[:2] / f"{ID_FAR[2:]}.elf"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    done = env.on_store("verify", status=REFUSED)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and f"carries the build-id '{ID_FAR}'" in done.stdout, lines
    env.on_store("verify", ID_TWO, status=REFUSED)
    assert "the store has nothing of this build" in env.on_store("verify", ID_NOT_STORED, status=REFUSED).stderr
    assert env.on_store("remove", ID_FAR[:-1] + "f", status=REFUSED).stderr.count("not in the store") == 1
    findings = env.rows("verify", ID_ONE, status=REFUSED)
    assert [(found["finding"], found["id"], found["kind"], found["state"]) for found in findings] == [
        ("wrong", ID_ONE, "elf", "left")], findings
    done = env.on_store("verify", "--repair", status=REFUSED)
    assert done.stdout.count("\trepaired\n") == 3 and "repaired 3, fetched 0" in done.summary, done.stdout
    env.on_store("add", env.one)
    assert env.on_store("verify", "--deep").summary.startswith("names 3,"), "repaired, but not clean"
    # foreign files, which verify must not repair
    link_of(env, ID_ONE).unlink()
    link_of(env, ID_ONE).symlink_to("/etc/passwd")
    env.on_store("verify", status=REFUSED)
    env.on_store("verify", "--repair", status=REFUSED)
    assert env.run("verify").summary.startswith("names 0,"), "a default store that is not there"
    env.run("--store", env.home / "missing", "verify", status=REFUSED)


def case_wrong_file_is_quarantined_and_added_by_add(env):
    """verify does not add; `add` then takes the right file from its path."""
    elf = entry_of(env, env.one, ID_ONE) / "elf"
    env.on_store("add", "--link=copy", env.one)
    elf.chmod(0o644)
    elf.write_bytes(env.two.read_bytes())
    done = env.on_store("verify", "--repair", "--offline", status=REFUSED)
    assert done.stdout.count("; quarantined as ") == 1 and not elf.exists(), done.stdout
    env.on_store("add", "--link=copy", env.one)
    assert elf.read_bytes() == env.one.read_bytes()
    env.on_store("verify", "--deep")


def case_wrong_file_is_wrong_under_all_paths(env):
    places = [env.home / name for name in ("first", "second", "third")]
    for path in places:
        shutil.copy(env.one, path)
    env.on_store("add", "--link=copy", *places)
    elfs = [entry_of(env, path, ID_ONE) / "elf" for path in places]
    assert len({elf.stat().st_ino for elf in elfs}) == 1, "one object"
    elfs[0].chmod(0o644)
    elfs[0].write_bytes(env.two.read_bytes())
    for path in places:
        path.unlink()
    done = env.on_store("verify", "--repair", "--offline", status=REFUSED)
    assert done.stdout.count("; quarantined as ") == 3 and not any(elf.exists() for elf in elfs), done.stdout
    env.on_store("get", ID_ONE, "elf", "--offline", status=REFUSED)
    env.on_store("verify", "--deep")


def case_wrong_file_under_one_name_leaves_the_right_one_under_another(env):
    places = [env.home / name for name in ("first", "second")]
    for path in places:
        shutil.copy(env.one, path)
    env.on_store("add", "--link=copy", *places)
    wrong, right = (entry_of(env, path, ID_ONE) / "elf" for path in places)
    wrong.unlink()
    shutil.copy(env.far, wrong)
    done = env.on_store("verify", "--repair", "--offline", status=None)
    assert done.stdout.count("; quarantined as ") == 1 and not wrong.exists(), done.stdout
    assert right.read_bytes() == pathlib.Path(env.on_store("get", ID_ONE, "elf", "--offline").stdout.strip()).read_bytes()
    env.on_store("verify", "--deep")
    env.on_store("add", "--link=copy", places[0])
    assert wrong.samefile(right)


def case_rights_are_taken_from_one_file_alone(env):
    """Another file under another name of the id keeps its mode."""
    places = {name: env.home / name for name in ("first", "second")}
    for path in places.values():
        shutil.copy(env.one, path)
    env.on_store("add", "--link=copy", places["first"])
    privileged, other = (entry_of(env, path, ID_ONE) / "elf" for path in places.values())
    other.parent.mkdir(parents=True)
    other.write_bytes(env.one.read_bytes() + b"more")
    privileged.chmod(0o4755)
    env.on_store("add", "--link=copy", places["first"])
    assert not privileged.stat().st_mode & 0o4000
    assert other.read_bytes() == env.one.read_bytes() + b"more"


def case_verify_draws_progress(env):
    env.on_store("add", env.one, env.two)
    status, text = env.on_terminal("verify", "--store", env.store)
    assert status == DONE and "\rchecking: " in text and text.rstrip().endswith("foreign 0"), text


def case_verify_keeps_private_derived_files(env):
    """Only readers of a compressed file can read its unpacked copy, and other users must not remove it."""
    let_nobody_in(env)
    lower = env.home / "lower"
    entry, link = lower / "lib/modules/6/a.ko.gz" / ID_ONE, lower / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
    for path in (entry, link.parent, env.store):
        path.mkdir(parents=True, exist_ok=True)
    (entry / "elf").write_bytes(gzip.compress(env.one.read_bytes()))
    (entry / "elf").chmod(0o600)
    link.symlink_to(f"../../lib/modules/6/a.ko.gz/{ID_ONE}")
    env.on_store("get", f"--lower={lower}", ID_ONE, "elf")
    kept = env.store / ".bidfs" / "unpacked" / ID_ONE[:2] / ID_ONE[2:]
    for path in (env.store, *env.store.rglob("*")):
        os.chown(path, *(2 * [0 if path == kept else NOBODY]))
    done = as_nobody(env, "verify", "--repair", "--offline")
    assert done.stdout.startswith(f"unreadable\t{kept.relative_to(env.store)}\tPermission denied\tleft\n"), done
    assert done.returncode == REFUSED and kept.exists(), done


def case_verify_repair_downloads_again(env):
    with server(env) as url:
        stored = pathlib.Path(env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf").stdout.rstrip("\n"))
        content = bytearray(stored.read_bytes())
        content[-1] ^= 1
        stored.chmod(0o644)
        stored.write_bytes(content)
        env.on_store("verify", status=DONE)
        done = env.on_store("verify", "--deep", "--repair", "--offline", status=REFUSED)
        assert "fetched 0" in done.summary, done.stdout
        env.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        stored.chmod(0o644)
        stored.write_bytes(content)
        done = env.on_store("verify", "--deep", "--repair", f"--url={url}", status=REFUSED)
        assert "fetched 1" in done.summary, done.stdout
    assert stored.read_bytes() == env.stripped.read_bytes()
    env.on_store("verify", "--deep")



def case_against_needs_openssl(env):
    """A build without OpenSSL reports it and fails."""
    env.on_store("add", env.one)
    done = env.on_store("verify", "--against", env.one, status=ERROR)
    assert "it lacks OpenSSL" in done.stderr or "not a line of sha256sum(1): line 1" in done.stderr, done.stderr
    done = env.on_store("verify", f"--against={env.one}", "--repair", status=USAGE)
    assert "'--against' repairs nothing" in done.stderr, done.stderr


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "strip", "objcopy"], fetching=[case_verify_repair_downloads_again])
