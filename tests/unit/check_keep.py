#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run those commands of bidctl that keep a store in order: remove, update, missing, verify, gc.

usage: check_keep.py BIDCTL [--no-fetch]
"""
import gzip
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import time

import cases
from add_scene import NOBODY, as_nobody, let_nobody_in
from cases import need
from check_bidctl import (DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, TIMEOUT, TROUBLE, USAGE, Scene, server)

# the bits of verify's exit status, as bidctl(1) has them
FOUND, OBJECTS, NAMES, OWN, UNREADABLE, LEFT = 1, 4, 8, 16, 32, 64


def link_of(scene, build_id):
    return scene.store / ".build-id" / build_id[:2] / build_id[2:]


def entry_of(scene, path, build_id):
    return scene.store / str(path)[1:] / build_id


def case_usage(scene):
    for arguments, has in (
            (["remove"], "'remove' needs"),
            (["remove", "--path"], "missing"),
            (["remove", "--path=relative/path"], "'relative/path'"),
            (["update"], "FILE"),
            (["missing", "xyz"], "'xyz'"),
            (["missing", ID_ONE[:9]], ID_ONE[:9]),
            (["verify", "--repair=yes"], "takes no argument"),
            (["verify", "--offline"], "'--repair'"),
            (["list", "--deep"], "'--deep'"),
            (["get", "--path=/x", ID_ONE], "'--path'"),
            (["verify", "xyz"], "'xyz'"),
    ):
        done = scene.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == ""
    for command in ("remove", "update", "missing", "verify", "gc"):
        assert f"bidctl {command}" in scene.run(command, "--help").stdout


def case_remove(scene):
    scene.on_store("add", scene.one, scene.two, scene.far)
    assert scene.on_store("remove", ID_FAR[:8]).stdout.startswith("removed 1 names, "), "by an abbreviated id"
    assert scene.on_store("--verbose", "remove", scene.one).stdout.splitlines()[0] == f"{ID_ONE} 1 0 {scene.one}", "by a file"
    assert scene.on_store("remove", f"--path={scene.two}").stdout.startswith("removed 1 names, ")
    assert scene.files() == [] and scene.on_store("list").stdout == "" and scene.one.exists()
    assert f"not in the store: '{ID_ONE}'" in scene.on_store("remove", ID_ONE, status=REFUSED).stderr
    scene.one_error("remove", ID_ONE[:9], status=REFUSED, has="no such build-id in the store")
    scene.one_error("remove", scene.home / "missing", status=REFUSED, has="--path")
    scene.one_error("remove", f"--path={scene.one}", status=REFUSED, has="no build of this path")
    scene.on_store("remove", scene.one, status=REFUSED)
    scene.on_store("remove", scene.text, status=REFUSED)
    # what can be removed is, beside what cannot
    scene.on_store("add", scene.one)
    scene.on_store("remove", scene.text, scene.one, status=REFUSED)
    assert scene.files() == []


def case_remove_pieces(scene):
    """A source file and a section, of a build of which there is nothing else: they are shown, and go."""
    tree = scene.home / "tree" / "buildid" / ID_NOT_STORED
    for name in ("source/src/a.c", "section/.debug_line"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(f"{name}\n")
    url = f"--url=file://{scene.home}/tree"
    kept = [pathlib.Path(scene.on_store("get", url, ID_NOT_STORED, *piece).stdout.rstrip("\n"))
            for piece in (("source", "/src/a.c"), ("section", ".debug_line"))]
    assert all(path.exists() for path in kept), kept
    shown = scene.on_store("show", ID_NOT_STORED).stdout
    assert "/src/a.c" in shown and ".debug_line" in shown and "none" not in shown, shown
    scene.on_store("remove", ID_NOT_STORED)
    assert not any(path.exists() for path in kept), kept
    assert ID_NOT_STORED in scene.on_store("remove", ID_NOT_STORED, status=REFUSED).stderr
    scene.on_store("verify")


def case_remove_what_is_not_seen(scene):
    """What the search for names does not come upon stays whole, be it added in that moment, or so deep down that nobody looks."""
    deep = scene.home.joinpath(*(["d"] * 450))
    deep.mkdir(parents=True)
    shutil.copy(scene.one, deep / "program")
    scene.on_store("add", deep / "program", scene.two)
    done = scene.on_store("remove", ID_ONE, ID_TWO, status=REFUSED)
    assert f"not in the store: '{ID_ONE}'" in done.stderr, done
    assert scene.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(scene, deep / 'program', ID_ONE)}/elf\n"
    assert not os.path.lexists(link_of(scene, ID_TWO))


def case_remove_names(scene):
    copy = pathlib.Path(shutil.copy(scene.one, scene.home / "copy"))
    scene.on_store("add", scene.one, copy)
    removed, = scene.json("remove", scene.one)
    assert (removed["names"], removed["left"], removed["id"], removed["error"]) == (1, 1, ID_ONE, None), removed
    assert os.readlink(link_of(scene, ID_ONE)) == f"../..{copy}/{ID_ONE}", "perf is led to nothing"
    assert scene.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(scene, copy, ID_ONE)}/elf\n"
    # every build of a path that is no file any more
    copy.unlink()
    assert scene.json("remove", f"--path={copy}")[0]["left"] == 0
    assert scene.files() == []
    # a file that was added from elsewhere stands for its build
    scene.on_store("add", scene.one)
    scene.on_store("remove", shutil.copy(scene.one, scene.home / "elsewhere"))
    assert scene.files() == []


def case_in_the_way(scene):
    """A file where a folder of the private ones should be is no store's end: it goes, and what was in the folder is made anew."""
    private = scene.store / ".bidfs"
    for name in ("tmp", "record", "scan", "quarantine", "unpacked", "cookie", "source", "section"):
        shutil.rmtree(private / name, ignore_errors=True)
        private.mkdir(exist_ok=True)
        (private / name).write_text("in the way")
        scene.on_store("add", scene.one.parent)
        scene.on_store("verify", "--deep", "--repair")
        assert not (private / name).is_file(), name
        scene.on_store("remove", ID_ONE)
    scene.on_store("add", scene.one)
    assert any((private / "record").rglob("*.elf"))
    # who only reads does without
    shutil.rmtree(private)
    private.write_text("in the way")
    assert scene.on_store("get", "--offline", ID_ONE, "elf").stdout
    assert "'.bidfs' in it" in scene.on_store("add", scene.one, status=TROUBLE).stderr


def case_digests_not_recorded(scene):
    """A repair that cannot write what it has read says so; neither the objects nor the exit status are the worse for it."""
    for files in ([scene.one], [scene.one.parent]):  # records by themselves, and in a pack
        scene.on_store("add", *files)
        # in the place of a full disk: no file may grow
        done = subprocess.run(["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "-", scene.bidctl, "-s", scene.store, "verify",
                               "--deep", "--repair"], env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT,
                              check=False)
        assert done.returncode == 0 and "found 0, repaired 0" in done.stdout, done
        line, = done.stderr.splitlines()
        assert "larger than the limit: not all digests are recorded" in line and str(scene.store) in line, done.stderr
        assert scene.on_store("verify", "--deep", "--repair").stderr == ""
        assert ", 0 digests" not in scene.on_store("verify", "--deep").stdout
        shutil.rmtree(scene.store)
        scene.store.mkdir()


def case_packed_records(scene):
    """What a repair says of records that are in packs becomes a part of these, and what was removed leaves them."""
    private = scene.store / ".bidfs"

    def files(folder):
        return [path for path in (private / folder).rglob("*") if path.is_file()]

    scene.on_store("add", scene.one.parent)
    assert len(files("pack")) == 1 and files("record") == []
    before = scene.json("verify", "--deep")
    assert before["digests"] == 0 < before["records"], before
    scene.on_store("verify", "--deep", "--repair", "--offline")
    assert len(files("pack")) == 1 and files("record") == []
    assert scene.json("verify", "--deep")["digests"] == before["records"]
    scene.on_store("remove", ID_ONE)
    assert [path.stat().st_size for path in files("record")] == [0], "voided"
    scene.on_store("verify", "--repair", "--offline")
    assert files("record") == []
    after = scene.json("verify", "--deep")
    assert after["records"] == after["digests"] == before["records"] - 1 and after["left"] == 0, after
    scene.on_store("remove", ID_TWO)
    # as whoever crashed in between leaves it
    (private / "pack").joinpath(files("pack")[0].name).unlink()
    assert len(files("record")) == 1
    scene.on_store("verify", "--repair", "--offline")
    assert files("record") == []


def case_update(scene):
    assert scene.on_store("update", scene.two).stdout == "replaced 0, added 1, refused 0\n"
    program = pathlib.Path(shutil.copy(scene.one, scene.home / "program"))
    scene.on_store("add", "--link=copy", program)
    subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
    assert scene.on_store("add", program).stdout.endswith("known 1, refused 0\n")
    stored = entry_of(scene, program, ID_ONE) / "elf"
    assert stored.read_bytes() == scene.one.read_bytes() != program.read_bytes()
    done = scene.json("update", program, scene.text, status=REFUSED)
    assert (done["replaced"], done["added"], done["refused"]) == (1, 0, 1) and done["files"][0]["replaced"], done
    assert stored.read_bytes() == program.read_bytes()
    assert scene.on_store("verify", "--deep").stdout.count("\n") == 1
    # what is a link to it, and so the same whatever was written to it, is not copied
    scene.on_store("add", "--link=hard", scene.two)
    assert scene.on_store("update", scene.two).stdout == "replaced 1, added 0, refused 0\n"
    assert (entry_of(scene, scene.two, ID_TWO) / "elf").samefile(scene.two)


def case_update_swept(scene):
    """Whoever opens the store sweeps what no writer holds: not what is about to take another's place."""
    need(shutil.which("strace"), "no strace")
    program = pathlib.Path(shutil.copy(scene.one, scene.home / "program"))
    scene.on_store("add", "--link=copy", program)
    subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
    slowly = ["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat", "-e", "inject=renameat:delay_enter=1s:when=1"]
    command = [*slowly, scene.bidctl, f"--store={scene.store}", "update", program]
    with subprocess.Popen(command, env=scene.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as update:
        while update.poll() is None:
            scene.on_store("add", scene.two)
        said = update.stdout.read()
    need("ptrace" not in said.lower(), "strace may not trace")
    assert (update.returncode, said) == (DONE, "replaced 1, added 0, refused 0\n"), said
    assert (entry_of(scene, program, ID_ONE) / "elf").read_bytes() == program.read_bytes()
    assert not any((scene.store / ".bidfs" / "tmp").glob("temp-*"))


def case_missing(scene):
    scene.on_store("add", scene.one)
    shutil.copytree(entry_of(scene, scene.one, ID_ONE), entry_of(scene, scene.two, ID_TWO))
    link_of(scene, ID_TWO).symlink_to(f"../..{scene.two}/{ID_TWO}")
    # what is there under another's id is missing, too
    done = scene.on_store("missing", ID_ONE, ID_TWO, ID_FAR, status=REFUSED)
    assert done.stdout == f"{ID_TWO}\n{ID_FAR}\n", done
    assert scene.on_store("missing", ID_ONE).stdout == ""
    assert scene.json("missing", ID_ONE) == []
    lines = f"{ID_ONE} /usr/bin/one\n\n  {ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"
    command = [scene.bidctl, f"--store={scene.store}", "missing"]
    done = subprocess.run(command, input=lines, env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (REFUSED, f"{ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"), done
    done = subprocess.run([*command, "--json"], input=lines, env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert [row["name"] for row in json.loads(done.stdout)] == ["/usr/bin/far away", None], done
    done = subprocess.run(command, input="hello\n", env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == USAGE and "line 1" in done.stderr, done
    # perf's option takes a recording
    done = scene.on_store("missing", "perf.data", status=USAGE)
    assert "--perf-data" in done.stderr, done


def case_list_by(scene):
    scene.on_store("add", "--link=copy", scene.one, scene.two, scene.far, scene.stripped)
    paths = {ID_ONE: scene.one, ID_TWO: scene.two, ID_FAR: scene.far, ID_NOT_STORED: scene.stripped}
    for age, build_id in enumerate([ID_FAR, ID_ONE, ID_NOT_STORED, ID_TWO]):
        os.utime(entry_of(scene, paths[build_id], build_id), (10**9 - age, 10**9 - age))

    def order(*arguments):
        return [line.split("\t")[0] for line in scene.on_store("list", *arguments).stdout.splitlines()]
    assert order("--by=id") == order() == sorted(paths)
    assert order("--by=path") == sorted(paths, key=lambda build_id: str(paths[build_id]))
    assert order("--by=time") == [ID_FAR, ID_ONE, ID_NOT_STORED, ID_TWO]
    assert order("--by=size") == sorted(paths, key=lambda build_id: (-paths[build_id].stat().st_size, build_id))
    assert [row["id"] for row in scene.json("list", "--by=time")] == order("--by=time")
    assert [row["changed"] for row in scene.json("list", "--by=time")] == [10**9 - age for age in range(4)]
    shown = scene.on_terminal("list", "--by=time", "--store", scene.store, TZ="UTC")[1].splitlines()
    assert "CHANGED" in shown[0] and "  2001-09-09 01:46:40  /" in shown[1], shown
    scene.one_error("list", "--by=colour", status=USAGE, has="'colour'")
    assert scene.run("list", "--by=size").stdout == "", "a default store that is not there"


def case_verify(scene):
    assert scene.on_store("verify").stdout == "checked 0 names, 0 objects, 0 links, 0 records; found 0; foreign files 0\n"
    scene.on_store("add", scene.one, scene.two, scene.far)
    assert "found 0" in scene.on_store("verify", "--deep").stdout
    # a wrong object, an orphan, a damaged record
    elf = entry_of(scene, scene.one, ID_ONE) / "elf"
    elf.unlink()
    shutil.copy(scene.far, elf)
    link_of(scene, ID_TWO).unlink()
    record = scene.store / ".bidfs" / "record" / ID_FAR[:2] / f"{ID_FAR[2:]}.elf"
    record.write_text("{")
    done = scene.on_store("verify", status=FOUND | OBJECTS | NAMES | OWN)
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and f"carries the build-id '{ID_FAR}'" in done.stdout, lines
    scene.on_store("verify", ID_TWO, status=FOUND | NAMES)
    assert "the store has nothing of this build" in scene.on_store("verify", ID_NOT_STORED, status=REFUSED).stderr
    assert scene.on_store("remove", ID_FAR[:-1] + "f", status=REFUSED).stderr.count("not in the store") == 1
    findings = scene.json("verify", ID_ONE, status=FOUND | OBJECTS)["findings"]
    assert [(found["finding"], found["id"], found["kind"], found["repaired"]) for found in findings] == [
        ("wrong", ID_ONE, "elf", False)], findings
    done = scene.on_store("verify", "--repair", status=FOUND | OBJECTS | NAMES | OWN)
    assert done.stdout.count("[repaired]") == 3 and "repaired 3, fetched again 0" in done.stdout, done.stdout
    assert scene.on_store("verify", "--deep").stdout.startswith("checked 3 names"), "repaired, but not clean"
    # what is not ours to repair
    link_of(scene, ID_ONE).unlink()
    link_of(scene, ID_ONE).symlink_to("/etc/passwd")
    scene.on_store("verify", status=FOUND | NAMES)
    scene.on_store("verify", "--repair", status=FOUND | NAMES | LEFT)
    assert scene.run("verify").stdout.startswith("checked 0 names"), "a default store that is not there"
    scene.run("--store", scene.home / "missing", "verify", status=TROUBLE)


def case_verify_adds_again(scene):
    """What rots in the store comes back from where it was added from, if that is what it was."""
    places = {name: scene.home / name for name in ("first", "second")}
    for path in places.values():
        shutil.copy(scene.one, path)
    whole = scene.one.read_bytes()
    scene.on_store("add", "--link=copy", *places.values())
    scene.on_store("verify", "--deep", "--repair")
    elfs = [entry_of(scene, path, ID_ONE) / "elf" for path in places.values()]

    def rot():
        elfs[0].chmod(0o644)
        with open(elfs[0], "r+b") as file:
            file.seek(len(whole) - 1)
            file.write(bytes([whole[-1] ^ 1]))

    rot()
    done = scene.on_store("verify", "--deep", "--repair", "--offline", status=FOUND | OBJECTS)
    assert done.stdout.count("; added again [repaired]") == 2, done.stdout
    assert all(elf.read_bytes() == whole for elf in elfs)
    scene.on_store("verify", "--deep", "--repair")
    # the same id, and other bytes than were recorded
    scene.on_store("remove", places["second"])
    rot()
    for path in places.values():
        path.write_bytes(elfs[0].read_bytes())
    done = scene.on_store("verify", "--deep", "--repair", "--offline", status=FOUND | OBJECTS)
    assert "added again" not in done.stdout and not elfs[0].exists(), done.stdout


def case_verify_rotten_under_all_names(scene):
    """What the digest tells of one name of a file, it tells of all."""
    places = [scene.home / name for name in ("first", "second", "third")]
    for path in places:
        shutil.copy(scene.one, path)
    scene.on_store("add", "--link=copy", *places)
    scene.on_store("verify", "--deep", "--repair")
    elfs = [entry_of(scene, path, ID_ONE) / "elf" for path in places]
    assert len({elf.stat().st_ino for elf in elfs}) == 1, "one object"
    elfs[0].chmod(0o644)
    elfs[0].write_bytes(scene.one.read_bytes()[:-1] + b"x")
    for path in places:
        path.unlink()
    done = scene.on_store("verify", "--deep", "--repair", "--offline", status=FOUND | OBJECTS)
    assert done.stdout.count("; set aside as ") == 3 and not any(elf.exists() for elf in elfs), done.stdout
    scene.on_store("get", ID_ONE, "elf", "--offline", status=REFUSED)
    scene.on_store("verify", "--deep")


def case_verify_rotten_whoever_has_the_link(scene):
    """Whichever name is met first, and whichever can be added again: what comes instead is never what was set aside."""
    whole = scene.one.read_bytes()
    for linked, missing in itertools.product(("first", "second"), ("first", "second", None)):
        store = scene.home / f"{linked}-{missing}"
        store.mkdir()
        places = {name: scene.home / name for name in ("first", "second")}
        for path in places.values():
            path.unlink(missing_ok=True)
            shutil.copy(scene.one, path)
        scene.run("--store", store, "add", "--link=copy", *places.values())
        scene.run("--store", store, "verify", "--deep", "--repair")
        link = store / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
        link.unlink()
        link.symlink_to(f"../..{places[linked]}/{ID_ONE}")
        elfs = {name: store / str(path)[1:] / ID_ONE / "elf" for name, path in places.items()}
        elfs["first"].chmod(0o644)
        elfs["first"].write_bytes(whole[:-1] + b"x")
        if missing:
            places[missing].unlink()
        done = scene.run("--store", store, "verify", "--deep", "--repair", "--offline", status=None)
        assert done.returncode & OBJECTS and done.stdout.count("; set aside as ") == 2, (linked, missing, done)
        # the id comes back by either, and gets both its names
        told = [line.rsplit("; ", 1)[1] for line in done.stdout.splitlines() if "; set aside as " in line]
        assert "added again [repaired]" in told, (linked, missing, done)
        assert set(told) <= {"added again [repaired]", "the build has the file under this name, too [repaired]"}, told
        kept = [path for path in store.rglob("*") if path.name in ("elf", "debug") and path.parent.name == ID_ONE]
        assert all(path.read_bytes() == whole for path in kept), (linked, missing, kept)
        assert elfs["first"].samefile(elfs["second"]) and link.exists(), (linked, missing, kept)
        scene.run("--store", store, "get", ID_ONE, "elf", "--offline")
        scene.run("--store", store, "verify", "--deep")


def case_verify_gives_a_name_to_what_is_right(scene):
    """One of two files of a build rots, and nothing is left where it came from: its name is one of the other file then."""
    places = {name: scene.home / name for name in ("first", "second")}
    for path in places.values():
        shutil.copy(scene.one, path)
    scene.on_store("add", "--link=copy", places["first"])
    rotten, right = (entry_of(scene, path, ID_ONE) / "elf" for path in places.values())
    right.parent.mkdir(parents=True)
    shutil.copy(scene.one, right)
    link_of(scene, ID_ONE).unlink()
    link_of(scene, ID_ONE).symlink_to(f"../..{places['second']}/{ID_ONE}")
    for path in places.values():
        path.unlink()
    rotten.chmod(0o644)
    rotten.write_bytes(scene.one.read_bytes()[:-100])
    found = scene.json("verify", "--deep", "--repair", "--offline", status=FOUND | OBJECTS)["findings"]
    assert len(found) == 1 and found[0]["text"].endswith("; the build has the file under this name, too"), found
    assert rotten.samefile(right)
    scene.on_store("verify", "--deep")
    # what carries another id may never have been of this build, but for what was noted
    rotten.unlink()
    shutil.copy(scene.far, rotten)
    assert scene.on_store("verify", "--repair", "--offline", status=None).stdout.count("under this name, too [repaired]") == 1
    never = entry_of(scene, scene.home / "never", ID_ONE)
    never.mkdir(parents=True)
    shutil.copy(scene.far, never / "elf")
    assert scene.on_store("verify", "--repair", "--offline", status=None).stdout.count("under another name [repaired]") == 1
    assert not never.exists()
    scene.on_store("verify", "--deep")


def case_rights_are_taken_from_one_file_alone(scene):
    """Another file that lies under another name of the id is another matter."""
    places = {name: scene.home / name for name in ("first", "second")}
    for path in places.values():
        shutil.copy(scene.one, path)
    scene.on_store("add", "--link=copy", places["first"])
    privileged, other = (entry_of(scene, path, ID_ONE) / "elf" for path in places.values())
    other.parent.mkdir(parents=True)
    other.write_bytes(scene.one.read_bytes() + b"more")
    privileged.chmod(0o4755)
    scene.on_store("add", "--link=copy", places["first"])
    assert not privileged.stat().st_mode & 0o4000
    assert other.read_bytes() == scene.one.read_bytes() + b"more"


def case_verify_progress(scene):
    scene.on_store("add", scene.one, scene.two)
    status, text = scene.on_terminal("verify", "--store", scene.store)
    assert status == DONE and "\rchecking: " in text and text.rstrip().endswith("foreign files 0"), text


def case_gc_of_what_was_set_aside(scene):
    scene.on_store("add", scene.one)
    place = scene.store / ".bidfs" / "quarantine"
    place.mkdir()
    now = int(time.time())
    old = {f"{ID_ONE}.elf.{now - 31 * 86400}", f"{ID_ONE}.debug.{now - 31 * 86400}.1", f"8-1-0a.cookie.{now - 31 * 86400}"}
    young = {f"{ID_ONE}.elf.{now - 29 * 86400}", f"{ID_ONE}.elf.{now - 31 * 86400}.2", f"{ID_ONE}.elf.{now - 31 * 86400}.2.json",
             f"{ID_ONE}.elf.{now - 31 * 86400}x", f"{ID_ONE}.elf", "notes"}
    for name in old | young:
        (place / name).write_bytes(b"x")
    done = scene.on_store("gc", "--dry-run")
    assert {path.name for path in place.iterdir()} == old | young, done.stdout
    assert "wrong files in quarantine: 2 kept, 3 would be dropped" in done.stdout, done.stdout
    done = scene.on_store("gc")
    assert {path.name for path in place.iterdir()} == young, done.stdout
    assert "wrong files in quarantine: 2 kept, 3 dropped" in done.stdout, done.stdout


def case_gc_of_scans(scene):
    """What was found of a tree goes when no scan has looked at it for a month, and not while scans find nothing new."""
    place = scene.store / ".bidfs" / "scan"
    trees = [scene.home / "one", scene.home / "two"]
    caches = []
    for tree in trees:
        tree.mkdir()
        (tree / "text").touch()
        time.sleep(0.05)  # longer than a tick of the clock, so that what is found of it is remembered
        scene.on_store("add", tree)
        caches += [path for path in place.iterdir() if path not in caches]
    (place / "notes").touch()
    old = time.time() - 31 * 86400
    for path in caches + [place / "notes"]:
        os.utime(path, (old, old))
    # nothing new: it is looked at, and stays as it is
    scene.on_store("add", trees[0])
    assert caches[0].stat().st_mtime > old + 86400, "its use was not noted"
    just = time.time() - 3600
    os.utime(caches[0], (just, just))
    scene.on_store("add", trees[0])
    assert abs(caches[0].stat().st_mtime - just) < 1, "written more than once a day"
    done = scene.on_store("gc", "--dry-run")
    assert "results of scans of trees: 1 kept, 1 would be dropped" in done.stdout and caches[1].exists(), done.stdout
    done = scene.json("gc")
    assert (done["scans"], done["scans_dropped"]) == (1, 1), done
    assert {path.name for path in place.iterdir()} == {caches[0].name, "notes"}
    assert "scans" not in scene.on_store("gc").stdout


def case_verify_what_was_made_for_few(scene):
    """What was unpacked is for those who read the packed file: of it others know nothing, and take nothing away."""
    let_nobody_in(scene)
    lower = scene.home / "lower"
    entry, link = lower / "lib/modules/6/a.ko.gz" / ID_ONE, lower / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
    for path in (entry, link.parent, scene.store):
        path.mkdir(parents=True, exist_ok=True)
    (entry / "elf").write_bytes(gzip.compress(scene.one.read_bytes()))
    (entry / "elf").chmod(0o600)
    link.symlink_to(f"../../lib/modules/6/a.ko.gz/{ID_ONE}")
    scene.on_store("get", f"--lower={lower}", ID_ONE, "elf")
    kept = scene.store / ".bidfs" / "unpacked" / ID_ONE[:2] / ID_ONE[2:]
    for path in (scene.store, *scene.store.rglob("*")):
        os.chown(path, *(2 * [0 if path == kept else NOBODY]))
    done = as_nobody(scene, "verify", "--repair", "--offline")
    assert done.stdout.startswith(f"unreadable: {kept.relative_to(scene.store)}: Permission denied [left as it is]\n"), done
    assert done.returncode == FOUND | UNREADABLE | LEFT and kept.exists(), done


def case_gc_past_what_is_closed(scene):
    """A directory that cannot be read, as of another who keeps builds in the same store, has nothing to say to what is evicted."""
    let_nobody_in(scene)
    scene.on_store("add", "--link=copy", scene.one)
    with server(scene) as url:
        scene.on_store("get", f"--url={url}", ID_NOT_STORED, "executable")
    for path in (scene.store, *scene.store.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    closed = entry_of(scene, scene.one, ID_ONE).parent
    os.chown(closed, 0, 0)
    closed.chmod(0o700)
    done = as_nobody(scene, "gc", "--cache-size=1")
    assert done.returncode == DONE and "evicted 1, " in done.stdout, done
    assert not os.path.lexists(link_of(scene, ID_NOT_STORED)) and os.path.lexists(link_of(scene, ID_ONE))


def case_gc_of_what_was_made(scene):
    """A compressed module of a lower store is unpacked once, and that goes like what was fetched: least recently used first."""
    place = scene.store / ".bidfs" / "unpacked"
    lower = scene.home / "lower"
    scene.store.mkdir(exist_ok=True)
    for build_id, program in ((ID_ONE, scene.one), (ID_TWO, scene.two)):
        entry = lower / "lib/modules/6/a.ko.gz" / build_id
        link = lower / ".build-id" / build_id[:2] / build_id[2:]
        entry.mkdir(parents=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        (entry / "elf").write_bytes(gzip.compress(program.read_bytes()))
        link.symlink_to(f"../../lib/modules/6/a.ko.gz/{build_id}")
        scene.on_store("get", f"--lower={lower}", build_id, "elf")
    kept = {build_id: place / build_id[:2] / build_id[2:] for build_id in (ID_ONE, ID_TWO)}
    times = {path: path.stat().st_mtime for path in kept.values()}
    os.utime(kept[ID_ONE], (1000, times[kept[ID_ONE]]))
    os.utime(kept[ID_TWO], (500, times[kept[ID_TWO]]))
    scene.on_store("get", f"--lower={lower}", ID_TWO, "elf")
    assert kept[ID_TWO].stat().st_atime > 1000, "its use was not noted"
    assert {path: path.stat().st_mtime for path in kept.values()} == times
    done = scene.on_store("gc", "--dry-run", "--cache-size=1").stdout.splitlines()
    assert [line.split("\t")[:2] for line in done[:2]] == [[ID_ONE, "unpacked"], [ID_TWO, "unpacked"]], done
    assert done[2].startswith("fetched 0 artifacts, 0 B; made 2, ") and "would evict 2" in done[2], done
    size = kept[ID_TWO].stat().st_blocks * 512
    done = scene.json("gc", f"--cache-size={size}")
    assert [(gone["id"], gone["made"]) for gone in done["artifacts"]] == [(ID_ONE, True)] and done["made"] == 2, done
    assert not kept[ID_ONE].exists() and kept[ID_TWO].exists()
    # who has it open keeps it
    with open(kept[ID_TWO], "rb"):
        done = scene.json("gc", "--cache-size=1")
        assert done["in_use"] == 1 and kept[ID_TWO].exists(), done
    done = scene.json("gc", "--cache-size=1")
    assert done["evicted"] == 1 and not kept[ID_TWO].exists(), done
    # and it is made again
    scene.on_store("get", f"--lower={lower}", ID_ONE, "elf")
    assert kept[ID_ONE].exists()


def case_gc(scene):
    with server(scene) as url:
        scene.on_store("add", scene.one)
        scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        scene.on_store("get", f"--url={url}", ID_NOT_STORED)
    before = scene.files()
    text = scene.on_store("gc").stdout
    assert text.startswith("fetched 2 artifacts, ") and text.endswith("; evicted 0, 0 B\n"), text
    # who writes sweeps this away; who only wants to know does not write
    abandoned = scene.store / ".bidfs" / "tmp" / "temp-0123456789abcdef"
    abandoned.parent.mkdir(exist_ok=True)
    abandoned.touch()
    lines = scene.on_store("gc", "--dry-run", "--cache-size=1").stdout.splitlines()
    assert abandoned.exists()
    abandoned.unlink()
    assert json.loads(scene.run("gc", "--dry-run", "--json").stdout)["evicted"] == 0, "the default store is not there"
    assert len(lines) == 3 and lines[0].split("\t")[:2] == [ID_NOT_STORED, "elf"] and "would evict 2" in lines[2], lines
    assert scene.on_store("gc", "--cache-size=1G").stdout.endswith("evicted 0, 0 B\n")
    assert scene.files() == before
    # the one that was used last stays
    record = scene.store / ".bidfs" / "record" / ID_NOT_STORED[:2] / f"{ID_NOT_STORED[2:]}.elf"
    os.utime(record, (0, 0))
    scene.on_store("get", ID_NOT_STORED, "elf")
    assert record.stat().st_mtime > 1000, "its use was not noted"
    os.utime(record.with_suffix(".debuginfo"), (0, 0))
    done = scene.json("gc", "--cache-size=20K")
    assert [(gone["id"], gone["kind"]) for gone in done["artifacts"]] == [(ID_NOT_STORED, "debuginfo")], done
    assert scene.json("gc", "--min-free=1000T")["evicted"] == 1
    assert scene.on_store("list").stdout.startswith(ID_ONE) and scene.on_store("list").stdout.count("\n") == 1
    assert "found 0" in scene.on_store("verify", "--deep").stdout
    for size in ("0", "-1", "1X", "K", "", "99999999999T"):
        scene.one_error("gc", f"--cache-size={size}", status=USAGE, has=f"'{size}'")


def case_verify_fetches_again(scene):
    with server(scene) as url:
        stored = pathlib.Path(scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf").stdout.rstrip("\n"))
        content = bytearray(stored.read_bytes())
        content[-1] ^= 1
        stored.chmod(0o644)
        stored.write_bytes(content)
        scene.on_store("verify", status=DONE)
        done = scene.on_store("verify", "--deep", "--repair", "--offline", status=FOUND | OBJECTS)
        assert "fetched again 0" in done.stdout, done.stdout
        scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        stored.chmod(0o644)
        stored.write_bytes(content)
        done = scene.on_store("verify", "--deep", "--repair", f"--url={url}", status=FOUND | OBJECTS)
        assert "fetched again 1" in done.stdout, done.stdout
    assert stored.read_bytes() == scene.stripped.read_bytes()
    scene.on_store("verify", "--deep")


if __name__ == "__main__":
    cases.main(globals(), Scene, tools=["cc", "strip", "objcopy"],
               fetching=[case_remove_pieces, case_verify_fetches_again, case_gc, case_gc_past_what_is_closed])
