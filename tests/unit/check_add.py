#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Add whole trees with bidctl, as real systems have them.

usage: check_add.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root, strace or perf are skipped without
it.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import cases
from add_helpers import (IDS, NOBODY, as_nobody, call, everything_is_right, in_namespace, let_nobody_in, module_tree, readelf_id,
                         stored, summary, system_tree, without_leaks)
from bidctl_env import DONE, ID_FAR, ID_ONE, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env, build, divide, read_json
from cases import Skip, need


def case_wrong_usage_is_refused(env):
    for arguments, has in (
            (["add", "--jobs=0", "x"], "'0'"),
            (["add", "--jobs=2x", "x"], "'2x'"),
            (["add", "--jobs=-1", "x"], "'-1'"),
            (["add", "--jobs= 2", "x"], "' 2'"),
            (["add", "--jobs=257", "x"], "'257'"),
            (["list", "--jobs=2"], "'--jobs'"),
            (["add", "--cross"], "--running"),
            (["list", "--running"], "'--running'"),
    ):
        done = env.run(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr and done.stdout == "", done


def case_tree_is_added_with_all_its_builds(env):
    """The tree has programs of this system, and files of every other kind."""
    tree, ids = system_tree(env)
    (tree / "doc").mkdir()
    for number in range(20):
        (tree / "doc" / f"text{number}").write_text("text\n" * number)
    (tree / "doc" / "short").write_bytes(b"\x7fELF")
    shutil.copy(env.no_id, tree / "no_id")
    shutil.copy(env.cut, tree / "cut")
    shutil.copy(env.one, tree / "new\nline")
    shutil.copy(env.two, tree / "setuid")
    (tree / "setuid").chmod(0o4755)
    os.link(tree / "new\nline", tree / "hard-link")
    outside = env.home / "outside"
    outside.mkdir()
    shutil.copy(env.far, outside / "far")
    (tree / "to-outside").symlink_to(outside)
    (tree / "to-file").symlink_to(outside / "far")
    (tree / "loop").symlink_to(".")
    os.mkfifo(tree / "fifo")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tree / "socket"))

    done = env.on_store("add", tree)
    (seen, added, known, refused), reasons = summary(done)
    assert done.stderr == "", done.stderr
    # two names of one inode may come in any order
    assert (added, known) == (len(ids) + 2, 1), done.stdout
    # a linker may place the note behind the cut
    assert reasons in ({"no build-id in it": 1, "damaged or cut short": 1}, {"no build-id in it": 2}) and refused == 2, reasons
    assert seen == len(ids) + 21 + 5, (seen, len(ids))
    assert everything_is_right(env) == len(ids) + 3, "two names of one id are two files"
    assert (env.store / str(tree)[1:] / "new\nline" / ID_ONE / "elf").samefile(
        env.store / str(tree)[1:] / "hard-link" / ID_ONE / "elf")
    assert not (env.store / str(outside)[1:]).exists(), "a symbolic link was followed"
    assert stored(env, ID_TWO).joinpath("elf").stat().st_mode & 0o7777 == 0o555 & 0o444, "setuid in the store"
    assert [row["id"] for row in env.rows("list")] == sorted(ids | {ID_ONE, ID_TWO})

    done = env.on_store("add", "--verbose", tree, env.text, status=REFUSED)
    assert f"no build-id in it: '{tree}/no_id'" in done.stderr and f"not an ELF file: '{env.text}'" in done.stderr, done.stderr
    as_json = env.json("add", tree)
    totals, files = as_json["totals"], as_json["result"]
    assert (totals["added"], totals["known"], totals["reasons"]) == (0, added + known, reasons), as_json
    assert sum(file["state"] == "refused" for file in files) == 2 and len(files) == added + known + 2, as_json


def case_each_link_mode_stores_the_bytes(env):
    """One tree is on another file system than the store."""
    tree, ids = system_tree(env, 10)
    for way in ("copy", "hard", "auto"):
        (env.home / way).mkdir()
        files = read_json(env.run("-s", env.home / way, "add", "--json", f"--link={way}", tree).stdout)["result"]
        assert len(files) == len(ids) and all(file["link"] == way or way == "auto" for file in files), files
        for file in files:
            there = env.home / way / file["file"][1:] / file["id"] / "elf"
            assert there.read_bytes() == pathlib.Path(file["file"]).read_bytes()
            assert there.samefile(file["file"]) == (file["link"] == "hard"), file


def elf32(directory, name, build_id):
    """Make a 32-bit ELF file with assembler and linker alone, as its C library may be missing."""
    source, unlinked, path = directory / f"{name}.s", directory / f"{name}.o", directory / name
    source.write_text(".globl _start\n_start: nop\n")
    subprocess.run(["as", "--32", "-o", unlinked, source], check=True, timeout=TIMEOUT)
    subprocess.run(["ld", "-m", "elf_i386", f"--build-id=0x{build_id}", "-o", path, unlinked], check=True, timeout=TIMEOUT)
    unlinked.unlink()
    return path


def case_copies_become_paths_of_one_build(env):
    """Several threads find copies of one program at the same time."""
    tree = env.home / "copies"
    for number in range(40):
        (tree / str(number)).mkdir(parents=True)
        shutil.copy(env.one, tree / str(number) / "program")
    (_, added, known, refused), _ = summary(env.on_store("add", "--jobs=16", tree))
    assert (added, known, refused) == (1, 39, 0), (added, known, refused)
    objects = [path for path in env.store.rglob("elf") if path.is_file()]
    assert len(objects) >= 40 and len({path.stat().st_ino for path in objects}) == 1, objects
    assert env.on_store("verify", "--deep").stdout.count("\n") == 1


def case_32_bit_program_is_added(env):
    need(os.uname().machine == "x86_64" and shutil.which("as"), "needs an assembler that knows i386")
    (env.home / "tree").mkdir()
    elf32(env.home / "tree", "small", IDS[0])
    assert summary(env.on_store("add", env.home / "tree"))[0][1:3] == (1, 0)
    assert stored(env, IDS[0]).parent.name == "small"


def case_compressed_modules_are_stored(env):
    ids = module_tree(env, env.home / "tree" / "kernel")
    done = env.on_store("add", env.home / "tree")
    assert summary(done) == ((len(ids) + 1, len(ids), 0, 0), {}), done.stdout
    for path, (build_id, built) in ids.items():
        assert (stored(env, build_id) / "elf").read_bytes() == built.read_bytes(), f"not unpacked: {path}"
        assert stored(env, build_id).parent == env.store / str(path)[1:], "not stored under its own path"
    (env.home / "tree" / "kernel" / "bad.ko.xz").write_bytes(b"\xfd7zXZ\x00" + b"\0" * 50)
    done = env.on_store("add", env.home / "tree")
    assert summary(done)[0] == (len(ids) + 2, 0, len(ids), 1), done.stdout


def case_module_is_found_by_each_added_path(env):
    """A compressed module gets a name for each path of an addition."""
    for path, (build_id, _) in module_tree(env, env.home / "tree").items():
        other = env.home / f"other-{path.name}"
        shutil.copy(path, other)
        for file, expected in ((path, (1, 1, 0, 0)), (other, (1, 0, 1, 0)), (other, (1, 0, 1, 0))):
            assert summary(env.on_store("add", "--link=copy", file))[0] == expected, file
        names = [env.store / str(file)[1:] / build_id / "elf" for file in (path, other)]
        assert names[0].samefile(names[1]), path
        assert env.on_store("remove", path).summary.startswith("builds 1, paths removed 1, "), path
        assert not names[0].exists() and names[1].exists()
        assert env.on_store("remove", other).summary.startswith("builds 1, paths removed 1, "), path
        assert not names[1].exists()


def whole_calls(log):
    """Return the lines of a strace log, with interrupted calls joined."""
    begun = {}
    for line in log:
        thread, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>").rstrip()
        elif match := re.fullmatch(r" *<\.\.\. \w+ resumed>(.*)", rest):
            yield begun.pop(thread) + match[1]
        else:
            yield line
    yield from begun.values()


def traced(env, *arguments, calls):
    """Return strace's lines for these calls."""
    need(shutil.which("strace"), "no strace")
    log = env.home / "trace"
    done = call("strace", "-f", "-qq", "-y", "-s", "400", "-e", f"trace={calls}", "-o", log,
                env.bidctl, "-s", env.store, *arguments, env=without_leaks(env))
    if "ptrace" in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == DONE, done
    return divide(done), list(whole_calls(log.read_text(errors="replace").splitlines()))


def case_rescan_opens_only_changed_files(env):
    """Unchanged files are not opened and changed files are found, if the store still has the builds."""
    tree, ids = system_tree(env, 20)
    shutil.copy(env.no_id, tree / "no_id")
    (tree / "text").write_text("text\n")
    shutil.copy(env.one, tree / "changes")
    time.sleep(0.05)  # the scan cache skips files of the last clock tick
    env.on_store("add", tree)
    opens = re.compile(rf"<{re.escape(str(tree))}[^>]*>, \"[^\"]+\", [^)]*O_RDONLY[^)]*\)")

    done, log = traced(env, "add", tree, calls="openat,pread64,newfstatat")
    assert summary(done)[0] == (len(ids) + 3, 0, len(ids) + 1, 1), done.stdout
    opened = [line for line in log if opens.search(line) and "O_DIRECTORY" not in line]
    assert opened == [], opened
    assert sum("newfstatat" in line and str(tree) in line for line in log) >= len(ids) + 3, "the trace shows nothing"

    # other bytes, in place, of the same size and with the old mtime
    times = os.stat(tree / "changes").st_mtime_ns
    changed = bytearray(env.two.read_bytes())
    (tree / "changes").unlink()
    (tree / "changes").write_bytes(changed)
    os.utime(tree / "changes", ns=(times, times))
    done, log = traced(env, "add", tree, calls="openat")
    assert summary(done)[0] == (len(ids) + 3, 1, len(ids), 1), done.stdout
    opened = [line for line in log if opens.search(line) and "O_DIRECTORY" not in line]
    assert len(opened) == 1 and "changes" in opened[0], opened

    # an id that the store no longer has
    gone = sorted(ids)[0]
    shutil.rmtree(stored(env, gone))
    (env.store / ".build-id" / gone[:2] / gone[2:]).unlink()
    assert summary(env.on_store("add", tree))[0] == (len(ids) + 3, 1, len(ids), 1)
    assert everything_is_right(env) >= len(ids) + 2

    # one path less of a build with two
    twin = tree / "twin"
    shutil.copy(tree / "changes", twin)
    time.sleep(0.05)
    env.on_store("add", tree)
    place = env.store / str(twin)[1:] / ID_TWO / "elf"
    assert place.is_file()
    env.on_store("remove", f"--path={twin}")
    assert not place.exists() and stored(env, ID_TWO).is_dir(), "another name went, too"
    env.on_store("add", tree)
    assert place.is_file(), "the name that is left was taken for it"
    twin.unlink()

    # another name of a cached file, and a tree that was moved as a whole
    os.rename(tree / "bin", tree / "moved")
    env.on_store("add", tree)
    assert len(list((env.store / str(tree)[1:] / "moved").iterdir())) == len(ids)


def case_lost_scan_cache_recognizes_copies(env):
    """Without the scan cache, a stored copy is recognized by its id, if both files are intact."""
    tree = env.home / "tree"
    tree.mkdir()
    names = ["same", "shorter", "wrong"]
    for number, name in enumerate(names):
        build(tree, name, IDS[number])
        (tree / f"{name}.c").unlink()
    assert summary(env.on_store("add", "--link=copy", tree))[0] == (3, 3, 0, 0)
    os.truncate(tree / "shorter", (tree / "shorter").stat().st_size - 64)
    wrong = stored(env, IDS[2]) / "elf"
    content = bytearray(wrong.read_bytes())
    content[content.index(bytes.fromhex(IDS[2]))] ^= 0xff
    wrong.chmod(0o644)
    wrong.write_bytes(content)
    shutil.rmtree(env.store / ".bidfs" / "scan")

    done, log = traced(env, "add", "--jobs=1", tree, calls="readlinkat")
    (seen, added, known, refused), reasons = summary(done)
    assert (seen, added, known, refused) == (3, 1, 1, 1) and set(reasons) == {"damaged or cut short"}, done
    assert wrong.read_bytes() == (tree / "wrong").read_bytes() and "quarantined" in done.stderr, done
    # the link leads to it, and no other name is read
    read = [line for line in log if f"/same/{IDS[0]}" in line]
    assert len(read) == 1, read


def case_removed_link_is_added_again(env):
    """A build without perf's link does not count as stored: the next scan restores the link."""
    need(shutil.which("perf"), "needs perf")
    tree = env.home / "tree"
    tree.mkdir()
    for name in ("first", "second"):
        shutil.copy(env.one, tree / name)

    def found():
        assert summary(env.on_store("add", tree))[0] == (1, 0, 1, 0)
        assert stored(env, ID_ONE).parent.name == left.name
        assert env.on_store("get", "--offline", ID_ONE, "elf").stdout

    time.sleep(0.05)  # the scan cache skips files of the last clock tick
    env.on_store("add", tree)
    env.on_store("add", tree)
    went = tree / stored(env, ID_ONE).parent.name
    call("perf", "--buildid-dir", env.store, "buildid-cache", "-r", went)
    went.unlink()
    left, = tree.iterdir()
    assert not (env.store / ".build-id" / ID_ONE[:2] / ID_ONE[2:]).is_symlink()
    found()
    # with and without the scan cache
    for forgotten in (False, True):
        if forgotten:
            shutil.rmtree(env.store / ".bidfs" / "scan")
        shutil.rmtree(env.store / ".build-id")
        found()
        # a link to a removed directory
        link = env.store / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
        link.unlink()
        link.symlink_to(f"../..{went}/{ID_ONE}")
        found()


def case_damaged_scan_cache_is_ignored(env):
    """Each kind of damage leaves the result the same."""
    tree, ids = system_tree(env, 5)
    time.sleep(0.05)
    expected = summary(env.on_store("add", tree))[0]
    expected = (expected[0], 0, expected[1], 0)
    assert summary(env.on_store("add", tree))[0] == expected
    cache, = (env.store / ".bidfs" / "scan").iterdir()
    good = cache.read_bytes()
    zeros = b"\0" * len(good)
    damaged = [b"", good[:7], good[:48], good[:-1], good + b"\0", zeros, good[:48] + zeros[48:], b"\xff" * len(good)]
    damaged += [good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:] for at in [*range(0, 48), *range(48, len(good), 997)]]
    damaged += [os.urandom(5000)]
    for bytes_ in damaged:
        cache.write_bytes(bytes_)
        assert summary(env.on_store("add", tree))[0] == expected, bytes_[:64]
    assert len(cache.read_bytes()) == len(good), "it was not rebuilt"
    cache.unlink()
    cache.mkdir()
    assert summary(env.on_store("add", tree))[0] == expected, "a directory in its place"


def case_store_in_a_tree_is_skipped(env):
    """A scan skips the store wherever it is; its files are refused as arguments."""
    tree = env.home / "tree"
    tree.mkdir()
    shutil.copy(env.one, tree)
    env.store = tree / "store"
    env.store.mkdir()
    for _ in range(3):
        done = env.on_store("add", tree)
    assert summary(done)[0] == (1, 0, 1, 0), done.stdout
    env.on_store("add", env.store, status=REFUSED)
    env.on_store("add", env.store / ".bidfs", status=REFUSED)
    done = env.run("-s", env.store, "add", env.home / "nothing", env.two, status=REFUSED)
    assert "no such file" in done.stderr and summary(done)[0] == (2, 1, 0, 1), done


def case_own_file_gets_no_second_path(env):
    """A file of the store gets no path like that in the store."""
    env.on_store("add", env.one)
    elf = stored(env, ID_ONE) / "elf"
    before = env.json("show", ID_ONE), sorted(env.store.rglob("*"))
    assert summary(env.on_store("add", elf))[0] == (1, 0, 1, 0)
    (env.home / "link").symlink_to(elf)
    assert summary(env.on_store("add", env.home / "link", elf))[0] == (2, 0, 2, 0)
    assert env.on_store("update", elf).summary == "replaced 1, added 0, refused 0\n"
    assert (env.json("show", ID_ONE), sorted(env.store.rglob("*"))) == before


def case_blocked_path_is_reported(env):
    """The message has the true reason."""
    (env.home / "loop").symlink_to("loop")
    done = env.on_store("add", env.home / "loop", status=REFUSED)
    assert done.stderr == f"bidctl: error: Too many levels of symbolic links: '{env.home / 'loop'}'\n", done
    done = env.on_store("add", f"--files-from={env.home}", status=ERROR)
    assert done.stderr == f"bidctl: error: Is a directory: '{env.home}'\n", done


def case_unreadable_files_do_not_fail_a_scan(env):
    """Unreadable files of other users are counted."""
    need(os.geteuid() == 0, "needs root, to become somebody else")
    tree = env.home / "tree"
    (tree / "closed").mkdir(parents=True)
    for name, mode in (("one", 0o755), ("two", 0o700)):
        shutil.copy(getattr(env, name), tree / name)
        (tree / name).chmod(mode)
    shutil.copy(env.far, tree / "closed")
    (tree / "closed").chmod(0o700)
    for path in (env.home.parent.parent, env.home.parent):
        path.chmod(0o755)
    os.chown(env.store, NOBODY, NOBODY)
    done = as_nobody(env, "add", tree)
    assert done.returncode == DONE and done.stderr == "", done
    assert summary(done) == ((2, 1, 0, 2), {"Permission denied": 2}), done.stdout
    assert not (stored(env, ID_ONE) / "elf").samefile(tree / "one"), "an inode of somebody else's was linked"
    for command in (["remove"], ["update"], ["probe", "list"], ["probe", "apply"]):
        done = as_nobody(env, *command, tree / "two")
        assert (done.returncode, done.stderr) == (REFUSED, f"bidctl: error: Permission denied: '{tree / 'two'}'\n"), command


def case_verify_by_another_user_removes_nothing(env):
    """A user who cannot read a file must not repair it."""
    let_nobody_in(env)
    env.one.chmod(0o700)
    env.on_store("add", "--link=copy", env.one)
    for path in (env.store, *env.store.rglob("*")):
        if path.is_dir() or ".bidfs" in path.parts:
            os.chown(path, NOBODY, NOBODY)
    done = as_nobody(env, "verify", "--repair", "--offline")
    assert "unreadable\t" in done.stdout and "found 1," in done.summary and "stale" not in done.stdout, done
    assert "added" in env.on_store("show", ID_ONE).stdout


def case_verify_continues_past_unreadable_directories(env):
    """The directory is reported, the rest is checked, and no record of its files counts as orphaned."""
    let_nobody_in(env)
    env.on_store("add", "--link=copy", env.one, env.two, env.far)
    closed = [stored(env, ID_ONE).parent, stored(env, ID_FAR).parent]
    (env.store / ".build-id" / ID_FAR[:2] / ID_FAR[2:]).unlink()
    wrong = stored(env, ID_TWO) / "elf"
    for path in (env.store, *env.store.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for path in closed:
        os.chown(path, 0, 0)
        path.chmod(0o700)
    wrong.chmod(0o755)
    wrong.write_bytes(b"-" * wrong.stat().st_size)
    expected = [f"unreadable\t{path.relative_to(env.store)}" for path in closed] + [f"wrong\t{wrong.relative_to(env.store)}"]
    for options in ([], ["--jobs=4"], ["--repair", "--offline"]):
        done = as_nobody(env, "verify", *options)
        lines = done.stdout.partition("names ")[0].splitlines()
        assert sorted("\t".join(line.split("\t")[:2]) for line in lines) == sorted(expected), (options, done)
    for path in closed:
        path.chmod(0o755)
    assert "found 1, repaired 1" in env.on_store("verify", "--repair", "--offline", status=REFUSED).summary
    for build_id in (ID_ONE, ID_FAR):
        assert "added" in env.on_store("show", build_id).stdout


def case_added_files_are_synced_before_the_report(env):
    """One file is synced by itself; for several files, and for a tree, all names are on disk before the report."""
    calls = "fsync,syncfs,sync_file_range,linkat,symlinkat,renameat,write"
    _, log = traced(env, "add", env.one, "--link=copy", calls=calls)
    names = [re.search(r"\d+ +(\w+)\(", line)[1] for line in log]
    assert "fsync" in names and names.index("fsync") < names.index("linkat"), log
    assert any("fsync" in line and line_number > names.index("symlinkat") for line_number, line in enumerate(log)), log

    tree, ids = system_tree(env, 10)
    files = sorted((tree / "bin").iterdir())
    for way, named in (("copy", False), ("hard", False), ("copy", True), ("hard", True)):
        env.store = env.home / f"{way}-{named}"
        env.store.mkdir()
        time.sleep(0.02)
        _, log = traced(env, "add", f"--link={way}", *(files if named else [tree]), calls=calls)
        artifacts = [number for number, line in enumerate(log) if "linkat(" in line and '"elf"' in line and "= 0" in line]
        syncs = [number for number, line in enumerate(log) if "syncfs(" in line]
        writes = [number for number, line in enumerate(log) if re.search(r" write\(2", line)]
        assert len(artifacts) == len(ids) and len(writes) == 1 and artifacts[-1] < syncs[-1] < writes[0], (way, log)
        assert len(syncs) == 1 and not any("fsync(" in line for line in log), (way, log)
        # the bytes of each file are on disk before its name
        written = [number for number, line in enumerate(log) if "sync_file_range(" in line]
        assert len(written) == len(ids) and all(before < after for before, after in zip(written, artifacts)), (way, log)


def case_deepest_paths_are_added(env):
    """As deep as PATH_MAX allows, and deeper."""
    tree = env.home / "tree"
    tree.mkdir()
    shutil.copy(env.one, tree / "top")
    at = os.open(tree, os.O_RDONLY)
    for _ in range(30):
        name = "d" * 200
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    done = env.on_store("add", "--jobs=4", tree)
    assert summary(done) == ((1, 1, 0, 1), {"File name too long": 1}), done.stdout
    # many levels, with few descriptors
    shallow = env.home / "shallow"
    path = shallow.joinpath(*"x" * 900)
    path.mkdir(parents=True)
    shutil.copy(env.two, path / "two")
    assert summary(env.on_store("add", shallow))[0][1] == 1
    subprocess.run(["rm", "-rf", tree], check=True, timeout=TIMEOUT)


def case_progress_is_drawn_on_a_terminal(env):
    tree, _ = system_tree(env, 5)
    for number in range(3000):
        (tree / f"text{number}").write_text("text")
    status, text = env.on_terminal("add", "-s", env.store, tree, "--jobs=1")
    assert status == DONE and re.search(r"seen 3005, added 5, known 0, refused 0\s*$", text), text
    # drawn repeatedly, then erased; a fast machine may be done before the first drawing
    drawn = re.findall(r"\r(\d+) files, \d+ added, \d+ known\033\[K", text)
    assert all(int(number) <= 3005 for number in drawn) and (not drawn or "\r\033[K" in text), text


def case_cross_enters_other_file_systems(env):
    tree = env.home / "tree"
    (tree / "other").mkdir(parents=True)
    (tree / "proc").mkdir()
    shutil.copy(env.one, tree)
    script = 'mount -t tmpfs tmpfs "$1/other"; mount -t proc proc "$1/proc"; cp "$2" "$1/other"; "$3" -s "$4" add "$1" $5'
    done = in_namespace(script, tree, env.two, env.bidctl, env.store, "", env=env)
    assert done.returncode == DONE and summary(done)[0] == (1, 1, 0, 0), done
    done = in_namespace(script, tree, env.two, env.bidctl, env.store, "--cross", env=env)
    assert done.returncode == DONE and summary(done)[0] == (2, 1, 1, 0), done


def case_perf_reads_added_builds(env):
    """perf lists the builds, and names the functions of a removed program."""
    need(shutil.which("perf"), "no perf")
    tree, ids = system_tree(env, 5)
    burner = tree / "bin" / "burner"
    source = env.home / "burner.c"
    source.write_text("volatile unsigned long n;\n__attribute__((noinline)) void burns_time(void)\n{\n"
                      "\tfor (unsigned long i = 0; i < 300000000; i++)\n\t\tn += i;\n}\n"
                      "int main(void)\n{\n\tburns_time();\n\treturn 0;\n}\n")
    subprocess.run(["cc", "-O1", "-g", "-Wl,--build-id=sha1", "-o", burner, source], check=True, timeout=TIMEOUT)
    ids.add(readelf_id(burner))
    perf = ["perf", "--buildid-dir", env.store]
    data = env.home / "perf.data"
    recorded = call(*perf, "record", "-N", "-q", "-e", "cpu-clock:u", "-o", data, burner, env=env.environment)
    need(recorded.returncode == 0, f"perf does not record here: {recorded.stderr.strip()}")
    assert summary(env.on_store("add", tree))[0][1] == len(ids)
    # perf also lists the path
    listed = call(*perf, "buildid-cache", "-l", env=env.environment)
    assert {line.split()[0] for line in listed.stdout.splitlines()} == ids, listed.stdout
    shutil.rmtree(tree)
    report = call(*perf, "report", "-i", data, "--stdio", "--sort", "dso,sym", env=env.environment)
    assert report.returncode == 0 and "burns_time" in report.stdout, report


if __name__ == "__main__":
    cases.main(globals(), Env)
