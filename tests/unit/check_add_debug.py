#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Add separate debug files with bidctl: from the added tree, beside a program, and from the directories of debuggers.

usage: check_add_debug.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root are skipped without it.
"""
import os
import shutil
import subprocess

import cases
from add_helpers import IDS, call, everything_is_right, in_namespace, stored, summary
from bidctl_env import DONE, REFUSED, TIMEOUT, Env, build


def case_debug_file_joins_its_program(env):
    """In either order."""
    tree = env.home / "tree"
    (tree / "usr" / "lib" / "debug").mkdir(parents=True)
    (tree / "bin").mkdir()
    for number, name in enumerate(("first", "second")):
        program = build(tree / "bin", name, IDS[number])
        subprocess.run(["objcopy", "--only-keep-debug", program, tree / "usr" / "lib" / "debug" / f"{name}.debug"], check=True)
        subprocess.run(["strip", "-s", program], check=True)
        (tree / "bin" / f"{name}.c").unlink()
    done = env.on_store("add", tree)
    assert summary(done)[0] == (4, 4, 0, 0), done.stdout
    for build_id in IDS[:2]:
        assert env.on_store("get", "--offline", build_id).stdout.endswith("/debug\n")
        artifacts = env.row("show", build_id)["artifacts"]
        assert set(artifacts) == {"elf", "debuginfo"} and "same_as" not in artifacts["debuginfo"], artifacts
    assert summary(env.on_store("add", tree))[0] == (4, 0, 4, 0), "a second scan does not know them"


def case_program_joins_its_earlier_debug_file(env):
    """A program added after its debug file, or after its own download, gives the build a path, for perf as well."""
    for way in ("one by one", "in a tree", "fetched"):
        tree = env.home / way.replace(" ", "-")
        tree.mkdir()
        program = build(tree, "program", IDS[0])
        debug = tree / "program.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", "-s", program], check=True)
        (tree / "program.c").unlink()
        env.on_store("add", debug)
        unnamed = env.store / "[debuginfod]" / IDS[0]
        assert stored(env, IDS[0]) == unnamed and [path.name for path in unnamed.iterdir()] == ["debug"]
        if way == "fetched":
            shutil.copy(program, unnamed / "elf")
        assert summary(env.on_store("add", tree if way == "in a tree" else program))[0][3] == 0
        place = stored(env, IDS[0])
        assert place == env.store / str(program)[1:] / IDS[0], place
        assert sorted(path.name for path in place.iterdir()) == ["debug", "elf"], list(place.iterdir())
        assert not unnamed.parent.exists(), "the build has a name"
        assert env.rows("list")[0]["path"] == str(program)
        if shutil.which("perf"):
            assert f"{IDS[0]} {program}" in call("perf", "--buildid-dir", env.store, "buildid-cache", "-l").stdout
        assert env.on_store("verify", "--deep").stdout.count("\n") == 1
        # the only path of the build
        env.on_store("remove", program)
        assert env.files() == [], env.files()


def case_scan_gives_a_known_program_its_path_again(env):
    """perf's link of an added program leads to a download: the program alone and a tree with it get the link back."""
    (env.home / "tree").mkdir()
    program = build(env.home / "tree", "program", IDS[0])
    for operand in (program, program.parent):
        env.on_store("add", program)
        unnamed = env.store / "[debuginfod]" / IDS[0]
        unnamed.mkdir(parents=True)
        shutil.copy(program, unnamed / "debug")
        link = env.store / ".build-id" / IDS[0][:2] / IDS[0][2:]
        link.unlink()
        link.symlink_to(f"../../[debuginfod]/{IDS[0]}")
        env.on_store("add", operand)
        assert env.rows("list")[0]["path"] == str(program), operand
        shutil.rmtree(env.store)
        env.store.mkdir()


def stripped(path, how="--strip-all"):
    """Copy the program without the parts that strip(1) removes."""
    output = path.with_name(path.name + how)
    subprocess.run(["strip", how, "-o", output, path], check=True, timeout=TIMEOUT)
    return output


def case_later_unstripped_program_is_kept_beside_it(env):
    """The stored program of the same id is stripped: the unstripped one is kept for the missing parts, once."""
    full = [build(env.home, f"full{number}", IDS[number]) for number in range(3)]
    # symbols alone are kept beside a program without symbols, and not beside one with them
    named = [stripped(path, "--strip-debug") for path in full]
    longer = env.home / "longer"
    longer.write_bytes(named[2].read_bytes() + b"other bytes")
    for number, (first, then, useful) in enumerate(((stripped(full[0]), full[0], True), (stripped(full[1]), named[1], True),
                                                    (named[2], longer, False))):
        for again in (False, True):
            env.on_store("add", first)
            done = env.on_store("add", "--verbose", then)
            assert ("debuginfo" in done.stdout.splitlines()[0]) == (useful and not again), done.stdout
            assert summary(done)[0] == ((1, 1, 0, 0) if useful and not again else (1, 0, 1, 0)), done.stdout
        place = stored(env, IDS[number])
        assert (place / "elf").read_bytes() == first.read_bytes()
        assert (place / "debug").exists() == useful and (not useful or (place / "debug").read_bytes() == then.read_bytes())
        assert env.on_store("get", "--offline", IDS[number], status=None).stdout.endswith("/debug\n") == useful
    # the unstripped program first: the stripped one adds nothing
    full = build(env.home, "whole", IDS[3])
    for path in (full, stripped(full)):
        env.on_store("add", path)
    assert not (stored(env, IDS[3]) / "debug").exists()
    assert env.on_store("get", "--offline", IDS[3]).stdout.endswith("/elf\n")
    done = env.on_store("verify", "--deep")
    assert "quarantine" not in done.stdout + done.stderr, done


def case_unstripped_program_in_a_tree_is_kept_beside_it(env):
    """In either order; the next scan reports both as known."""
    tree = env.home / "tree"
    tree.mkdir()
    for number in range(6):
        full = build(env.home, f"program{number}", IDS[number])
        for path, at in ((full, number % 2), (stripped(full, ("--strip-all", "--strip-debug")[number // 3]), 1 - number % 2)):
            (tree / str(at)).mkdir(exist_ok=True)
            shutil.copy(path, tree / str(at) / f"program{number}")
    env.on_store("add", tree)
    for number in range(6):
        assert env.on_store("get", "--offline", IDS[number]).stdout, number
    for options in ((), (), ("--jobs=1",)):
        assert summary(env.on_store("add", *options, tree))[0] == (12, 0, 12, 0)
    shutil.rmtree(env.store / ".bidfs" / "scan", ignore_errors=True)
    assert summary(env.on_store("add", tree))[0] == (12, 0, 12, 0)
    everything_is_right(env)
    env.on_store("verify", "--deep")


def with_debug_file(directory, name, build_id, debug, *options, **keywords):
    """Make a stripped program with a debug link to @debug, which has its debug information."""
    program = build(directory, name, build_id, **keywords)
    (directory / f"{name}.c").unlink()
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", *options, program, debug], check=True, timeout=TIMEOUT)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True, timeout=TIMEOUT)
    return program


def case_debug_link_finds_the_debug_file(env):
    """The program's link names a debug file elsewhere, which is added if its build-id and checksum are right."""
    tree = env.home / "tree"
    tree.mkdir()
    with_debug_file(tree, "beside", IDS[0], tree / "beside.debug")
    with_debug_file(tree, "below", IDS[1], tree / ".debug" / "below.debug")
    alone = with_debug_file(env.home, "alone", IDS[2], env.home / ".debug" / "alone.debug")
    # right name and checksum, and no id
    with_debug_file(env.home, "no-id-debug", IDS[3], env.home / ".debug" / "none", "--remove-section=.note.gnu.build-id")
    other = with_debug_file(env.home, "other", IDS[4], env.home / ".debug" / "other.debug")
    shutil.copy(tree / "beside.debug", env.home / ".debug" / "other.debug")
    # the right build, with a flipped bit that no header shows
    rotten = with_debug_file(env.home, "rotten", IDS[10], env.home / "rotten.debug")
    content = bytearray((env.home / "rotten.debug").read_bytes())
    content[content.index(b"GNU C")] ^= 1
    (env.home / "rotten.debug").write_bytes(content)
    lost = with_debug_file(env.home, "lost", IDS[5], env.home / "lost.debug")
    (env.home / "lost.debug").unlink()

    # debug files of the tree itself are added as its files
    assert summary(env.on_store("add", tree))[0] == (4, 4, 0, 0)
    done = env.on_store("add", alone)
    assert summary(done) == ((2, 2, 0, 0), {}), done.stdout
    assert (stored(env, IDS[2]) / "debug").read_bytes() == (env.home / ".debug" / "alone.debug").read_bytes()
    done = env.on_store("add", env.home / "no-id-debug", other, lost, rotten)
    assert summary(done) == ((7, 4, 0, 3), {"a debug file without a build-id": 1, "a debug file of another build": 1,
                                            "a debug file with another checksum than its program has": 1}), done.stdout
    for build_id in (*IDS[3:6], IDS[10]):
        assert set(env.row("show", build_id)["artifacts"]) == {"elf"}, build_id
    # the program is known, and the debug file appears later
    shutil.copy(env.home / ".debug" / "alone.debug", env.home / "lost.debug")
    assert summary(env.on_store("add", lost))[1] == {"a debug file of another build": 1}

    # a tree of programs alone
    bare = env.home / "bare"
    (bare / ".debug").mkdir(parents=True)
    for number in range(6, 9):
        with_debug_file(bare, f"bare{number}", IDS[number], env.home / "away" / f"bare{number}.debug")
        (bare / f"bare{number}.debug").symlink_to(env.home / "away" / f"bare{number}.debug")
    done = env.on_store("add", bare)
    assert summary(done)[0] == (6, 6, 0, 0), done.stdout
    # a debug file that came before its program keeps its own place
    assert everything_is_right(env) >= 2 * 2 + 2 + 3 + 3 * 2, env.files()
    # an endless name, and a name that leads elsewhere
    for name in (b"../../etc/passwd\0", b"x" * 300):
        (env.home / "section").write_bytes(name + b"\0" * 8)
        program = build(env.home, "strange", IDS[9])
        subprocess.run(["objcopy", "--strip-all", f"--add-section=.gnu_debuglink={env.home}/section", program], check=True,
                       timeout=TIMEOUT)
        assert summary(env.on_store("add", program))[0][3] == 0
        program.unlink()


def case_usr_lib_debug_has_the_debug_file(env):
    """Found by the build-id, or by the path and the debug link of the program."""
    debug = env.home / "debug"
    by_id = with_debug_file(env.home, "by-id", IDS[0], debug / ".build-id" / IDS[0][:2] / f"{IDS[0][2:]}.debug")
    by_path = with_debug_file(env.home, "by-path", IDS[1], debug / str(env.home)[1:] / "by-path.debug")
    script = 'mkdir -p /usr/lib/debug; mount --bind "$1" /usr/lib/debug; shift; bidctl="$1"; shift; "$bidctl" "$@"'
    done = in_namespace(script, debug, env.bidctl, "-s", env.store, "add", by_id, by_path, env=env)
    assert done.returncode == DONE and summary(done)[0] == (4, 4, 0, 0), done
    for build_id in IDS[:2]:
        assert (stored(env, build_id) / "debug").is_file()
    # one debug file for a tree of many programs: a missing file of one must not hide that of another
    tree = env.home / "tree"
    tree.mkdir()
    for number in range(2, 9):
        lies = debug / ".build-id" / IDS[number][:2] if number == 5 else env.home / "away"
        with_debug_file(tree, f"program{number}", IDS[number], lies / f"{IDS[number][2:]}.debug")
    done = in_namespace(script, debug, env.bidctl, "-s", env.store, "add", tree, env=env)
    assert done.returncode == DONE and summary(done)[0] == (8, 8, 0, 0), done
    assert (stored(env, IDS[5]) / "debug").is_file()


def case_few_debug_directories_in_a_tree_are_found(env):
    """Some of many directories have debug files: a cached lookup in one is not used for another."""
    tree, few = env.home / "tree", (3, 6)
    for number in range(9):
        directory = tree / f"directory{number}"
        directory.mkdir(parents=True)
        away = env.home / "away" / f"program{number}.debug"
        with_debug_file(directory, f"program{number}", IDS[number], away)
        if number in few:
            (directory / away.name).symlink_to(away)
    assert summary(env.on_store("add", tree))[0] == (11, 11, 0, 0)
    for number in range(9):
        assert (stored(env, IDS[number]) / "debug").exists() == (number in few), number


BURNS = """
__attribute__((constructor)) static void burn(void)
{
	for (volatile unsigned long i = 0; i < 100000000; i++)
		;
}
"""


def case_add_of_recording_matches_perf_record(env):
    """bidctl add --perf-data later adds the files that perf record adds at its end, with separate debug files."""
    cases.need(shutil.which("perf"), "no perf")
    debug = env.home / "debug" / ".build-id" / IDS[0][:2] / f"{IDS[0][2:]}.debug"
    burns = env.home / "burns.h"
    burns.write_text(BURNS)
    program = with_debug_file(env.home, "burn", IDS[0], debug, flags=["-include", burns])
    data, perfs = env.home / "perf.data", env.home / "perfs"
    script = """mkdir -p /usr/lib/debug; mount --bind "$1" /usr/lib/debug
        perf --buildid-dir "$2" record -q -e cpu-clock:u -o "$4.native" "$3" || exit 77
        perf --buildid-dir "$2.none" record -q -e cpu-clock:u --buildid-mmap -o "$4" "$3" || exit 77
        test ! -e "$2.none/.build-id"
        "$5" --store "$6" add --perf-data "$4" """
    done = in_namespace(script, env.home / "debug", perfs, program, data, env.bidctl, env.store, env=env)
    cases.need(done.returncode != 77, f"perf does not record here: {done.stderr.strip()}")
    assert done.returncode in (DONE, REFUSED), done
    perf_files = [path.relative_to(perfs) for path in perfs.rglob("*") if path.name in ("elf", "debug")]
    assert {path.name for path in perf_files if IDS[0] in path.parts} == {"elf", "debug"}, perf_files
    for path in perf_files:
        assert (env.store / path).read_bytes() == (perfs / path).read_bytes(), path
    assert os.readlink(env.store / ".build-id" / IDS[0][:2] / IDS[0][2:]) == os.readlink(
        perfs / ".build-id" / IDS[0][:2] / IDS[0][2:])


def case_split_dwarf_is_refused_by_name(env):
    """A .dwo file has no id and cannot be stored: the message names it, and the remaining DWARF is reported as incomplete."""
    tree = env.home / "tree"
    tree.mkdir()
    program = build(tree, "program", IDS[0], ["-c", "-gsplit-dwarf"])
    dwo, = tree.glob("*.dwo")
    shutil.copy(dwo, tree / "program.dwp")
    subprocess.run(["cc", f"-Wl,--build-id=0x{IDS[0]}", "-o", tree / "linked", "-x", "none", program.rename(tree / "program.o")],
                   check=True, timeout=TIMEOUT)
    (tree / "program.o").unlink()
    whole = build(tree, "whole", IDS[1])
    debug = tree / "linked.debug"
    subprocess.run(["objcopy", "--only-keep-debug", tree / "linked", debug], check=True, timeout=TIMEOUT)
    for path, why in ((dwo, "(.dwo) - keep it where its program names it"),
                      (tree / "program.dwp", "(.dwp) - keep it beside its program")):
        done = env.on_store("add", path, status=REFUSED)
        assert f"no build-id in split DWARF {why}: '{path}'" in done.stderr, done
    done = env.on_store("add", tree)
    assert "1 no build-id in split DWARF (.dwp)" in done.stdout and "1 no build-id in split DWARF (.dwo)" in done.stdout, done
    for added, same in ((tree / "linked", True), (debug, False)):
        env.on_store("remove", IDS[0])
        env.on_store("add", added)
        debuginfo = env.row("show", IDS[0])["artifacts"]["debuginfo"]
        assert debuginfo["skeleton"] is True and ("same_as" in debuginfo) == same, debuginfo
        assert "a skeleton: the rest of its DWARF is in .dwo files or a .dwp" in env.on_store("show", IDS[0]).stdout
    assert "skeleton" not in env.on_store("show", "--json", whole).stdout


if __name__ == "__main__":
    cases.main(globals(), Env)
