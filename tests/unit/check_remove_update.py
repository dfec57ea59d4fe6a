#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the commands of bidctl that maintain the builds of a store: remove, update, missing, list by path.

usage: check_remove_update.py BIDCTL [--no-fetch]
"""
import os
import pathlib
import shutil
import subprocess

import cases
from add_helpers import entry_of, link_of
from bidctl_env import DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env, read_json
from cases import need


def case_wrong_usage_is_refused(env):
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
        done = env.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == ""
    for command in ("remove", "update", "missing", "verify", "gc"):
        assert f"bidctl {command}" in env.run(command, "--help").stdout


def case_remove_dry_run_changes_nothing(env):
    env.on_store("add", env.one)
    files = env.files()
    done = env.on_store("remove", "--dry-run", ID_ONE, ID_NOT_STORED, status=REFUSED)
    assert done.stdout.splitlines()[0] == f"{ID_ONE}\twould be removed\t{ID_ONE}" and "not in the store" in done.stderr, done
    assert env.files() == files


def case_remove_removes_builds(env):
    env.on_store("add", env.one, env.two, env.far)
    for dry in ([], ["--dry-run"]):
        done = env.on_store("remove", *dry, ID_FAR[:8], status=REFUSED)
        assert ID_FAR in done.stderr and ID_FAR in env.on_store("list").stdout, "removed by an abbreviated id"
    env.on_store("remove", ID_FAR)
    by_file = env.on_store("--verbose", "remove", env.one).stdout.splitlines()
    assert by_file[0] == f"{ID_ONE}\tremoved\t{env.one}", by_file
    assert env.on_store("remove", f"--path={env.two}").summary.startswith("builds 1, paths removed 1, ")
    assert env.files() == [] and env.on_store("list").stdout == "" and env.one.exists()
    assert f"not in the store: '{ID_ONE}'" in env.on_store("remove", ID_ONE, status=REFUSED).stderr
    env.one_error("remove", ID_ONE[:9], status=REFUSED, has="no such build-id in the store")
    env.one_error("remove", env.home / "missing", status=REFUSED, has="no build of this path")
    env.one_error("remove", f"--path={env.one}", status=REFUSED, has="no build of this path")
    env.on_store("remove", env.one, status=REFUSED)
    env.on_store("remove", env.text, status=REFUSED)
    # builds are removed although another one cannot be
    env.on_store("add", env.one)
    env.on_store("remove", env.text, env.one, status=REFUSED)
    assert env.files() == []


def case_path_of_a_removed_file_is_an_operand_of_remove(env):
    gone = env.home / "gone"
    shutil.copy(env.one, gone)
    env.on_store("add", env.one, gone)
    gone.unlink()
    # a path that leads nowhere is not gone
    gone.symlink_to(gone)
    env.one_error("remove", gone, status=REFUSED, has="Too many levels of symbolic links")
    gone.unlink()
    assert env.on_store("remove", gone).summary.startswith("builds 1, paths removed 1, ")
    env.on_store("show", env.one)
    assert "no build of this path" in env.on_store("remove", gone, status=REFUSED).stderr


def case_remove_removes_sources_and_sections(env):
    """A build with nothing but a source file and a section is shown and removed."""
    tree = env.home / "tree" / "buildid" / ID_NOT_STORED
    for name in ("source/src/a.c", "section/.debug_line"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(f"{name}\n")
    url = f"--url=file://{env.home}/tree"
    kept = [pathlib.Path(env.on_store("get", url, ID_NOT_STORED, *piece).stdout.rstrip("\n"))
            for piece in (("source", "/src/a.c"), ("section", ".debug_line"))]
    assert all(path.exists() for path in kept), kept
    shown = env.on_store("show", ID_NOT_STORED).stdout
    assert "/src/a.c" in shown and ".debug_line" in shown and "none" not in shown, shown
    env.on_store("remove", ID_NOT_STORED)
    assert not any(path.exists() for path in kept), kept
    assert ID_NOT_STORED in env.on_store("remove", ID_NOT_STORED, status=REFUSED).stderr
    env.on_store("verify")


def case_remove_keeps_unseen_files(env):
    """Files that the search for names misses stay intact: added in that moment, or too deep."""
    deep = env.home.joinpath(*(["d"] * 450))
    deep.mkdir(parents=True)
    shutil.copy(env.one, deep / "program")
    env.on_store("add", deep / "program", env.two)
    done = env.on_store("remove", ID_ONE, ID_TWO, status=REFUSED)
    assert f"not in the store: '{ID_ONE}'" in done.stderr, done
    assert env.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(env, deep / 'program', ID_ONE)}/elf\n"
    assert not os.path.lexists(link_of(env, ID_TWO))


def case_remove_takes_one_path_of_a_build(env):
    copy = pathlib.Path(shutil.copy(env.one, env.home / "copy"))
    env.on_store("add", env.one, copy)
    removed, = env.rows("remove", env.one)
    assert (removed["paths_removed"], removed["paths_left"], removed["id"], removed["reason"]) == (1, 1, ID_ONE, None), removed
    assert os.readlink(link_of(env, ID_ONE)) == f"../..{copy}/{ID_ONE}", "perf is led to nothing"
    assert env.on_store("get", ID_ONE, "elf").stdout == f"{entry_of(env, copy, ID_ONE)}/elf\n"
    # every build of a path that no longer exists
    copy.unlink()
    assert env.rows("remove", f"--path={copy}")[0]["paths_left"] == 0
    assert env.files() == []
    # a file that was added by another path names its build
    env.on_store("add", env.one)
    env.on_store("remove", shutil.copy(env.one, env.home / "elsewhere"))
    assert env.files() == []


def case_file_in_place_of_a_private_folder_is_replaced(env):
    """The store stays usable: the file is removed, and the folder is created again."""
    private = env.store / ".bidfs"
    for name in ("tmp", "record", "scan", "quarantine", "unpacked", "content-key", "source", "section"):
        shutil.rmtree(private / name, ignore_errors=True)
        private.mkdir(exist_ok=True)
        (private / name).write_text("in the way")
        env.on_store("add", env.one.parent)
        env.on_store("verify", "--deep", "--repair")
        assert not (private / name).is_file(), name
        env.on_store("remove", ID_ONE)
    env.on_store("add", env.one)
    # readers do without the folder
    shutil.rmtree(private)
    private.write_text("in the way")
    assert env.on_store("get", "--offline", ID_ONE, "elf").stdout
    assert "'.bidfs' in it" in env.on_store("add", env.one, status=ERROR).stderr


def case_update_replaces_the_build(env):
    assert env.on_store("update", env.two).summary == "replaced 0, added 1, refused 0\n"
    program = pathlib.Path(shutil.copy(env.one, env.home / "program"))
    env.on_store("add", "--link=copy", program)
    subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
    assert env.on_store("add", program).stdout.endswith("known 1, refused 0\n")
    stored = entry_of(env, program, ID_ONE) / "elf"
    assert stored.read_bytes() == env.one.read_bytes() != program.read_bytes()
    done = env.json("update", program, env.text, status=REFUSED)
    assert done["totals"] == {"replaced": 1, "added": 0, "refused": 1, "dry_run": False}, done
    assert done["result"][0]["state"] == "replaced", done
    assert stored.read_bytes() == program.read_bytes()
    assert env.on_store("verify", "--deep").stdout.count("\n") == 1
    # a hard link to the file, which has the same bytes whatever was written to it, is not copied
    env.on_store("add", "--link=hard", env.two)
    done = env.on_store("-v", "update", env.two)
    assert done.summary == "replaced 1, added 0, refused 0\n"
    assert done.stdout.startswith(f"{ID_TWO}\telf\treplaced\t{env.two}\n"), done
    assert (entry_of(env, env.two, ID_TWO) / "elf").samefile(env.two)


def case_dry_run_of_add_and_update_changes_nothing(env):
    env.on_store("add", env.one)
    files = env.files()
    for command, states in (("add", ("known", "would be added")), ("update", ("would be replaced", "would be added"))):
        done = env.on_store(command, "-n", env.one, env.two, env.text, status=REFUSED)
        assert [line.split("\t")[2] for line in done.stdout.splitlines()[:2]] == list(states), done
        assert "not an ELF file" in done.stderr and done.summary.startswith("dry run: ") and env.files() == files, done
    env.one_error("add", "-n", env.home, status=USAGE, has="directory")
    env.one_error("add", "-n", "--kernel", status=USAGE, has="'--dry-run'")
    env.on_store("update", "--link=hard", env.two)
    assert (entry_of(env, env.two, ID_TWO) / "elf").samefile(env.two)


def case_update_survives_a_sweep(env):
    """Each command that opens the store removes stale temporary files, but not the one of a running update."""
    need(shutil.which("strace"), "no strace")
    program = pathlib.Path(shutil.copy(env.one, env.home / "program"))
    env.on_store("add", "--link=copy", program)
    subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
    slowly = ["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat", "-e", "inject=renameat:delay_enter=1s:when=1"]
    command = [*slowly, env.bidctl, f"--store={env.store}", "update", program]
    with subprocess.Popen(command, env=env.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as update:
        while update.poll() is None:
            env.on_store("add", env.two)
        output = update.stdout.read()
    need("ptrace" not in output.lower(), "strace may not trace")
    assert (update.returncode, output) == (DONE, "replaced 1, added 0, refused 0\n"), output
    assert (entry_of(env, program, ID_ONE) / "elf").read_bytes() == program.read_bytes()
    assert not any((env.store / ".bidfs" / "tmp").glob("temp-*"))


def case_missing_lists_absent_builds(env):
    env.on_store("add", env.one)
    shutil.copytree(entry_of(env, env.one, ID_ONE), entry_of(env, env.two, ID_TWO))
    link_of(env, ID_TWO).symlink_to(f"../..{env.two}/{ID_TWO}")
    # a file with another id is missing, too
    done = env.on_store("missing", ID_ONE, ID_TWO, ID_FAR, status=REFUSED)
    assert done.stdout == f"{ID_TWO}\n{ID_FAR}\n", done
    assert env.on_store("missing", ID_ONE).stdout == ""
    assert env.rows("missing", ID_ONE) == []
    lines = f"{ID_ONE} /usr/bin/one\n\n  {ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"
    command = [env.bidctl, f"--store={env.store}", "missing"]
    done = subprocess.run(command, input=lines, env=env.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (REFUSED, f"{ID_FAR} /usr/bin/far away\n{ID_NOT_STORED}\n"), done
    done = subprocess.run([*command, "--json"], input=lines, env=env.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert [row["path"] for row in read_json(done.stdout)["result"]] == ["/usr/bin/far away", None], done
    done = subprocess.run(command, input="hello\n", env=env.environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == USAGE and "line 1" in done.stderr, done
    # perf's option takes a recording
    done = env.on_store("missing", "perf.data", status=USAGE)
    assert "--perf-data" in done.stderr, done


def case_list_by_sorts(env):
    env.on_store("add", "--link=copy", env.one, env.two, env.far, env.stripped)
    paths = {ID_ONE: env.one, ID_TWO: env.two, ID_FAR: env.far, ID_NOT_STORED: env.stripped}
    for age, build_id in enumerate([ID_FAR, ID_ONE, ID_NOT_STORED, ID_TWO]):
        os.utime(entry_of(env, paths[build_id], build_id), (10**9 - age, 10**9 - age))

    def order(*arguments):
        return [line.split("\t")[0] for line in env.on_store("list", *arguments).stdout.splitlines()]
    assert order("--by=id") == order() == sorted(paths)
    assert order("--by=path") == sorted(paths, key=lambda build_id: str(paths[build_id]))
    assert order("--by=time") == [ID_FAR, ID_ONE, ID_NOT_STORED, ID_TWO]
    assert order("--by=size") == sorted(paths, key=lambda build_id: (-paths[build_id].stat().st_size, build_id))
    assert [row["id"] for row in env.rows("list", "--by=time")] == order("--by=time")
    assert [row["time"] for row in env.rows("list", "--by=time")] == [10**9 - age for age in range(4)]
    shown = env.on_terminal("list", "--by=time", "--store", env.store, TZ="UTC")[1].splitlines()
    assert "TIME" in shown[0] and "  2001-09-09 01:46:40  /" in shown[1], shown
    env.one_error("list", "--by=colour", status=USAGE, has="'colour'")
    assert env.run("list", "--by=size").stdout == "", "a default store that is not there"


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "strip", "objcopy"], fetching=[case_remove_removes_sources_and_sections])
