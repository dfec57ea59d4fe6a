#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the commands of bidctl that maintain the builds of a store: remove, update, missing, list by path.

usage: check_keep.py BIDCTL [--no-fetch]
"""
import os
import pathlib
import shutil
import subprocess

import cases
from add_scene import entry_of, link_of
from bidctl_scene import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, TIMEOUT, TROUBLE, USAGE, Scene, read_json
from cases import need


def case_wrong_usage_is_refused(scene):
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
    ):
        done = scene.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == ""
    for command in ("remove", "update", "missing", "verify", "gc"):
        assert f"bidctl {command}" in scene.run(command, "--help").stdout


def case_remove_dry_run_changes_nothing(scene):
    scene.on_store("add", scene.one)
    files = scene.files()
    done = scene.on_store("remove", "--dry-run", ID_ONE, ID_NOT_STORED, status=REFUSED)
    assert done.stdout.splitlines()[0] == f"{ID_ONE}\twould be removed\t{ID_ONE}" and "not in the store" in done.stderr, done
    assert scene.files() == files


def case_remove_removes_builds(scene):
    scene.on_store("add", scene.one, scene.two, scene.far)
    done = scene.on_store("remove", ID_FAR[:8], status=REFUSED)
    assert ID_FAR in done.stderr and ID_FAR in scene.on_store("list").stdout, "removed by an abbreviated id"
    assert scene.on_store("remove", "--dry-run", ID_FAR[:8]).stdout.startswith(f"{ID_FAR}\twould be removed\t")
    scene.on_store("remove", ID_FAR)
    by_file = scene.on_store("--verbose", "remove", scene.one).stdout.splitlines()
    assert by_file[0] == f"{ID_ONE}\tremoved\t{scene.one}", by_file
    assert scene.on_store("remove", f"--path={scene.two}").summary.startswith("builds 1, paths removed 1, ")
    assert scene.files() == [] and scene.on_store("list").stdout == "" and scene.one.exists()
    assert f"not in the store: '{ID_ONE}'" in scene.on_store("remove", ID_ONE, status=REFUSED).stderr
    scene.one_error("remove", ID_ONE[:9], status=REFUSED, has="no such build-id in the store")
    scene.one_error("remove", scene.home / "missing", status=REFUSED, has="--path")
    scene.one_error("remove", f"--path={scene.one}", status=REFUSED, has="no build of this path")
    scene.on_store("remove", scene.one, status=REFUSED)
    scene.on_store("remove", scene.text, status=REFUSED)
    # builds are removed although another one cannot be
    scene.on_store("add", scene.one)
    scene.on_store("remove", scene.text, scene.one, status=REFUSED)
    assert scene.files() == []


def case_remove_removes_sources_and_sections(scene):
    """A build with nothing but a source file and a section is shown and removed."""
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


def case_remove_keeps_unseen_files(scene):
    """Files that the search for names misses stay intact: added in that moment, or too deep."""
    deep = scene.home.joinpath(*(["d"] * 450))
    deep.mkdir(parents=True)
    shutil.copy(scene.one, deep / "program")
    scene.on_store("add", deep / "program", scene.two)
    done = scene.on_store("remove", ID_ONE, ID_TWO, status=REFUSED)
    assert f"not in the store: '{ID_ONE}'" in done.stderr, done
    assert scene.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(scene, deep / 'program', ID_ONE)}/elf\n"
    assert not os.path.lexists(link_of(scene, ID_TWO))


def case_remove_takes_one_path_of_a_build(scene):
    copy = pathlib.Path(shutil.copy(scene.one, scene.home / "copy"))
    scene.on_store("add", scene.one, copy)
    removed, = scene.rows("remove", scene.one)
    assert (removed["paths_removed"], removed["paths_left"], removed["id"], removed["reason"]) == (1, 1, ID_ONE, None), removed
    assert os.readlink(link_of(scene, ID_ONE)) == f"../..{copy}/{ID_ONE}", "perf is led to nothing"
    assert scene.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(scene, copy, ID_ONE)}/elf\n"
    # every build of a path that no longer exists
    copy.unlink()
    assert scene.rows("remove", f"--path={copy}")[0]["paths_left"] == 0
    assert scene.files() == []
    # a file that was added by another path names its build
    scene.on_store("add", scene.one)
    scene.on_store("remove", shutil.copy(scene.one, scene.home / "elsewhere"))
    assert scene.files() == []


def case_file_in_place_of_a_private_folder_is_replaced(scene):
    """The store stays usable: the file is removed, and the folder is created again."""
    private = scene.store / ".bidfs"
    for name in ("tmp", "record", "scan", "quarantine", "unpacked", "content-key", "source", "section"):
        shutil.rmtree(private / name, ignore_errors=True)
        private.mkdir(exist_ok=True)
        (private / name).write_text("in the way")
        scene.on_store("add", scene.one.parent)
        scene.on_store("verify", "--deep", "--repair")
        assert not (private / name).is_file(), name
        scene.on_store("remove", ID_ONE)
    scene.on_store("add", scene.one)
    # readers do without the folder
    shutil.rmtree(private)
    private.write_text("in the way")
    assert scene.on_store("get", "--offline", ID_ONE, "elf").stdout
    assert "'.bidfs' in it" in scene.on_store("add", scene.one, status=TROUBLE).stderr


def case_update_replaces_the_build(scene):
    assert scene.on_store("update", scene.two).summary == "replaced 0, added 1, refused 0\n"
    program = pathlib.Path(shutil.copy(scene.one, scene.home / "program"))
    scene.on_store("add", "--link=copy", program)
    subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
    assert scene.on_store("add", program).stdout.endswith("known 1, refused 0\n")
    stored = entry_of(scene, program, ID_ONE) / "elf"
    assert stored.read_bytes() == scene.one.read_bytes() != program.read_bytes()
    done = scene.json("update", program, scene.text, status=REFUSED)
    assert done["totals"] == {"replaced": 1, "added": 0, "refused": 1, "dry_run": False}, done
    assert done["result"][0]["state"] == "replaced", done
    assert stored.read_bytes() == program.read_bytes()
    assert scene.on_store("verify", "--deep").stdout.count("\n") == 1
    # a hard link to the file, which has the same bytes whatever was written to it, is not copied
    scene.on_store("add", "--link=hard", scene.two)
    done = scene.on_store("-v", "update", scene.two)
    assert done.summary == "replaced 1, added 0, refused 0\n"
    assert done.stdout.startswith(f"{ID_TWO}\telf\treplaced\t{scene.two}\n"), done
    assert (entry_of(scene, scene.two, ID_TWO) / "elf").samefile(scene.two)


def case_dry_run_of_add_and_update_changes_nothing(scene):
    scene.on_store("add", scene.one)
    files = scene.files()
    for command, states in (("add", ("known", "would be added")), ("update", ("would be replaced", "would be added"))):
        done = scene.on_store(command, "-n", scene.one, scene.two, scene.text, status=REFUSED)
        assert [line.split("\t")[2] for line in done.stdout.splitlines()[:2]] == list(states), done
        assert "not an ELF file" in done.stderr and done.summary.startswith("dry run: ") and scene.files() == files, done
    scene.one_error("add", "-n", scene.home, status=USAGE, has="directory")
    scene.one_error("add", "-n", "--kernel", status=USAGE, has="'--dry-run'")
    scene.on_store("update", "--link=hard", scene.two)
    assert (entry_of(scene, scene.two, ID_TWO) / "elf").samefile(scene.two)


def case_update_survives_a_sweep(scene):
    """Each command that opens the store removes stale temporary files, but not the one of a running update."""
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


def case_missing_lists_absent_builds(scene):
    scene.on_store("add", scene.one)
    shutil.copytree(entry_of(scene, scene.one, ID_ONE), entry_of(scene, scene.two, ID_TWO))
    link_of(scene, ID_TWO).symlink_to(f"../..{scene.two}/{ID_TWO}")
    # a file with another id is missing, too
    done = scene.on_store("missing", ID_ONE, ID_TWO, ID_FAR, status=REFUSED)
    assert done.stdout == f"{ID_TWO}\n{ID_FAR}\n", done
    assert scene.on_store("missing", ID_ONE).stdout == ""
    assert scene.rows("missing", ID_ONE) == []
    lines = f"{ID_ONE} /usr/bin/one\n\n  {ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"
    command = [scene.bidctl, f"--store={scene.store}", "missing"]
    done = subprocess.run(command, input=lines, env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (REFUSED, f"{ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"), done
    done = subprocess.run([*command, "--json"], input=lines, env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert [row["path"] for row in read_json(done.stdout)["result"]] == ["/usr/bin/far away", None], done
    done = subprocess.run(command, input="hello\n", env=scene.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == USAGE and "line 1" in done.stderr, done
    # perf's option takes a recording
    done = scene.on_store("missing", "perf.data", status=USAGE)
    assert "--perf-data" in done.stderr, done


def case_list_by_sorts(scene):
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
    assert [row["id"] for row in scene.rows("list", "--by=time")] == order("--by=time")
    assert [row["time"] for row in scene.rows("list", "--by=time")] == [10**9 - age for age in range(4)]
    shown = scene.on_terminal("list", "--by=time", "--store", scene.store, TZ="UTC")[1].splitlines()
    assert "TIME" in shown[0] and "  2001-09-09 01:46:40  /" in shown[1], shown
    scene.one_error("list", "--by=colour", status=USAGE, has="'colour'")
    assert scene.run("list", "--by=size").stdout == "", "a default store that is not there"


if __name__ == "__main__":
    cases.main(globals(), Scene, tools=["cc", "strip", "objcopy"], fetching=[case_remove_removes_sources_and_sections])
