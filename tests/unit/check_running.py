#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Add all running code with bidctl add --running: mapped programs, the kernel and its modules.

usage: check_running.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root are skipped without it.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import cases
from add_helpers import (IDS, NOBODY, call, entry_of, everything_is_right, headless, in_namespace, module_tree, readelf_id,
                         running, silent_file_system, sleeper, stored, summary)
from bidctl_env import DONE, REFUSED, TIMEOUT, Env, build
from cases import Skip, need


def case_deleted_programs_are_added(env):
    """A deleted program, one replaced by another build, and an unchanged one."""
    program = {name: sleeper(env.home, name, IDS[number]) for number, name in enumerate(("deleted", "replaced", "same"))}
    with contextlib.ExitStack() as stack:
        for path in program.values():
            assert stack.enter_context(running(path, stdout=subprocess.PIPE)).stdout.readline() == b"up\n"
        program["deleted"].unlink()
        other = sleeper(env.home, "other", IDS[3])
        os.rename(other, program["replaced"])
        done = env.on_store("add", "--running")
        as_json = env.json("add", "--running")
    (_, added, _, _), _ = summary(done)
    assert added >= 4, done.stdout  # and the C library, at least
    for number, path in enumerate(program.values()):
        assert stored(env, IDS[number]) == env.store / str(path)[1:] / IDS[number], path
        assert readelf_id(stored(env, IDS[number]) / "elf") == IDS[number]
    assert not (env.store / ".build-id" / IDS[3][:2] / IDS[3][2:]).exists(), "what is in the place was taken for what runs"
    known = {file["id"]: file["state"] == "known" for file in as_json["result"] if file["id"]}
    assert all(known[build_id] for build_id in IDS[:3]), known
    assert everything_is_right(env) >= 4
    vdso = [file for file in as_json["result"] if file["file"] == "[vdso]" and file["id"]]
    for file in vdso:
        assert readelf_id(env.store / "[vdso]" / file["id"] / "vdso") == file["id"]
        assert os.readlink(env.store / ".build-id" / file["id"][:2] / file["id"][2:]) == f"../../[vdso]/{file['id']}"


def case_process_without_first_thread_is_added(env):
    """The first thread may end before the others: the program runs, though its /proc/PID/maps is empty."""
    with headless(env.home, "headless", IDS[0]) as (path, process):
        path.unlink()
        items = env.rows("get", "--pid", process.pid, "elf", "--offline")
        assert items[0]["id"] == IDS[0] and items[0]["state"] == "added", items
    with headless(env.home, "another", IDS[1]) as (path, _):
        env.on_store("add", "--running")
        assert stored(env, IDS[1]) == env.store / str(path)[1:] / IDS[1]


def case_running_from_silent_file_system_is_passed_over(env):
    """The program is named, and everything else is added."""
    other = sleeper(env.home, "other", IDS[1])
    silenced = sleeper(env.home, "silenced", IDS[0])
    with silent_file_system(env, silenced) as path, running(other, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        done = env.on_store("add", "--running", status=REFUSED)
    assert f"its file system does not answer: '{path}'" in done.stderr, done.stderr
    assert stored(env, IDS[1]) == entry_of(env, other, IDS[1])


def case_unprivileged_user_adds_own_programs(env):
    """The user's programs are added, even deleted ones; a warning covers the others."""
    need(os.geteuid() == 0, "needs root, to become somebody else")
    for path in (env.home.parent.parent, env.home.parent):
        path.chmod(0o755)
    program = sleeper(env.home, "deleted", IDS[0])
    os.chown(env.store, NOBODY, NOBODY)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with running(program, stdout=subprocess.PIPE, **as_nobody) as process:
        assert process.stdout.readline() == b"up\n"
        program.unlink()
        done = call(env.bidctl, "-s", env.store, "add", "--running", env=env.environment, **as_nobody)
    assert done.returncode == DONE and "processes of other users" in done.stderr, done
    assert stored(env, IDS[0]) == env.store / str(program)[1:] / IDS[0]


def case_program_of_another_namespace_is_added(env):
    """The path leads to the program in its mount namespace only."""
    program = sleeper(env.home, "inside", IDS[0])
    place = env.home / "place"
    place.mkdir()
    need(os.geteuid() == 0, "needs root, for a mount namespace")
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    script = 'mount -t tmpfs tmpfs "$1"; mkdir "$1/opt"; cp "$2" "$1/opt/tool"; exec "$1/opt/tool"'
    with running("unshare", "-m", "sh", "-euc", script, "sh", place, program, **piped) as process:
        if process.stdout.readline() != b"up\n":
            raise Skip(process.stderr.read().decode().strip())
        need(os.readlink(f"/proc/{process.pid}/exe") == f"{place}/opt/tool",
             "this is a chroot, from which the kernel tells the paths of other namespaces otherwise")
        env.on_store("add", "--running")
        assert not (place / "opt").exists(), "not in another namespace"
    assert stored(env, IDS[0]) == env.store / str(place)[1:] / "opt" / "tool" / IDS[0]
    # a program whose root has the file, as in a container
    shutil.rmtree(env.store)
    env.store.mkdir()
    script = ('mount -t tmpfs tmpfs "$1"; mkdir "$1/opt" "$1/old" "$1/lib64"; cp "$2" "$1/opt/tool"; cd "$1"; pivot_root . old; '
              'exec /opt/tool')
    static = env.home / "static"
    subprocess.run(["cc", "-O", "-static", f"-Wl,--build-id=0x{IDS[1]}", "-o", static, env.home / "inside.c"], check=True,
                   timeout=TIMEOUT)
    with running("unshare", "-m", "sh", "-euc", script, "sh", place, static, **piped) as process:
        if process.stdout.readline() != b"up\n":
            raise Skip(process.stderr.read().decode().strip())
        env.on_store("add", "--running")
    assert stored(env, IDS[1]) == env.store / "opt" / "tool" / IDS[1]


def case_private_program_stays_private(env):
    """A user without access to the path gets no access in the store, even after the program is gone."""
    need(os.geteuid() == 0, "needs root, for a mount namespace")
    for path in (env.home.parent.parent, env.home.parent, env.home):
        path.chmod(0o755)
    modes = {"open": 0o755, "closed": 0o700, "elsewhere": 0o755}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    script = 'mount -t tmpfs tmpfs "$1"; cp "$2" "$1/program"; exec "$1/program"'
    with contextlib.ExitStack() as stack:
        for number, (name, mode) in enumerate(modes.items()):
            place = env.home / name
            place.mkdir()
            program = sleeper(env.home, f"program{number}", IDS[number])
            if name != "elsewhere":
                shutil.copy(program, place / "program")
            command = [place / "program"] if name != "elsewhere" else ["unshare", "-m", "sh", "-euc", script, "sh", place, program]
            process = stack.enter_context(running(*command, **piped))
            if process.stdout.readline() != b"up\n":
                raise Skip(process.stderr.read().decode().strip())
            os.unlink(f"/proc/{process.pid}/root{place}/program")
            place.chmod(mode)
        env.on_store("add", "--running")
    stored_modes = [(stored(env, ident) / "elf").stat().st_mode & 0o777 for ident in IDS[:len(modes)]]
    assert stored_modes == [0o555, 0o400, 0o400], [oct(mode) for mode in stored_modes]


def case_kernel_symbols_are_added_if_shown(env):
    """Visible symbols are stored, hidden ones refused."""
    notes = pathlib.Path("/sys/kernel/notes")
    need(notes.exists() and os.access("/proc/kallsyms", os.R_OK), "the kernel's notes and symbols are not to be read here")
    hidden = env.home / "hidden"
    hidden.write_text("0000000000000000 T _text\n0000000000000000 T _stext\n")
    script = 'mount --bind "$1" /proc/kallsyms; "$2" -s "$3" add --running'
    done = in_namespace(script, hidden, env.bidctl, env.store, env=env)
    assert done.returncode == DONE, done
    assert summary(done)[1].get("its addresses are hidden (see kernel.kptr_restrict)") == 1, done.stdout
    assert not (env.store / "[kernel.kallsyms]").exists()

    shown = env.home / "shown"
    shown.write_text("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n")
    assert in_namespace(script, shown, env.bidctl, env.store, env=env).returncode == DONE
    found, = (env.store / "[kernel.kallsyms]").iterdir()
    assert (found / "kallsyms").read_text() == shown.read_text()
    assert found.name in notes.read_bytes().hex(), "not the kernel's id"
    assert os.readlink(env.store / ".build-id" / found.name[:2] / found.name[2:]) == f"../../[kernel.kallsyms]/{found.name}"


def case_modules_are_identified_by_their_notes(env):
    """Loaded modules have notes: a file of another build is reported, and so is a missing one."""
    tree = env.home / "modules"
    ids = module_tree(env, tree / "kernel" / "fs")
    index = "".join(f"{path.relative_to(tree)}: \n" for path in ids)
    stale = build(tree, "stale-one.ko", IDS[10])
    (tree / "modules.dep").write_text(index + "stale-one.ko: kernel/fs/plain.ko\n")
    loaded = env.home / "loaded"
    notes = {path.name.split(".")[0]: build_id for path, (build_id, _) in ids.items()} | {"stale_one": IDS[11], "absent": IDS[12]}
    for name, build_id in notes.items():
        directory = loaded / name / "notes"
        directory.mkdir(parents=True)
        raw = bytes.fromhex(build_id)
        header = b"".join(value.to_bytes(4, sys.byteorder) for value in (4, len(raw), 3))
        (directory / ".note.gnu.build-id").write_bytes(header + b"GNU\0" + raw)
    (loaded / "builtin").mkdir()
    script = ('mount --bind "$2" /sys/module; mkdir -p /lib/modules; mount -t tmpfs tmpfs /lib/modules; '
              'mkdir /lib/modules/$(uname -r); mount --bind "$1" /lib/modules/$(uname -r); "$3" -s "$4" add --running')
    existed = os.path.isdir("/lib/modules")
    done = in_namespace(script, tree, loaded, env.bidctl, env.store, env=env)
    if not existed:
        os.rmdir("/lib/modules")
    assert done.returncode == DONE, done
    reasons = summary(done)[1]
    assert reasons["the module's file is another build than the loaded one"] == 1, reasons
    assert reasons["the module's file is not in its place in '/lib/modules'"] == 1, reasons
    release = os.uname().release
    for path, (build_id, built) in ids.items():
        assert (stored(env, build_id) / "elf").read_bytes() == built.read_bytes()
        assert stored(env, build_id).parent.parent.parts[-4:] == ("modules", release, "kernel", "fs"), stored(env, build_id)
    assert stale.exists()


if __name__ == "__main__":
    cases.main(globals(), Env)
