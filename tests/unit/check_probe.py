#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl probe beside perf on one store.

usage: check_probe.py BIDCTL [CASE...]
"""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import uuid

import cases
from bidctl_env import DONE, REFUSED, TIMEOUT, ERROR, USAGE, Env
from check_kernel import bz_image, vmlinux
from check_probes import compiled

KERNEL = "4eb1" * 10


class Probed(Env):
    """A stored program with two static probes."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.program = compiled(self, "program", [], "-g")
        self.id = self.row("add", self.program)["id"]
        self.file = self.store / str(self.program)[1:] / self.id / "probes"
        self.group = f"bid{uuid.uuid4().hex[:12]}"
        self.place = next(int(row["definitions"][0].split(":")[2].split()[0], 16) for row in self.rows("probe", "list", self.id))

    def define(self, event, offset=0):
        return f"p:{self.group}/{event} {self.program}:{hex(self.place + offset)}"

    def events(self, *operands):
        return [row["event"] for row in self.rows("probe", "list", *operands)]

    def perf(self, *arguments, **keywords):
        cases.need(shutil.which("perf"), "no perf")
        return subprocess.run(["perf", "--buildid-dir", self.store, *map(str, arguments)], env=self.environment, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT, **keywords).stdout


def case_list_and_show_print_definitions(env):
    rows = env.rows("probe", "list", env.program)
    assert [(row["id"], row["event"], row["static"], len(row["definitions"])) for row in rows] == \
        [(env.id, "sdt_app:twice", True, 2)], rows
    assert env.on_store("probe", "list").stdout == f"{env.id}\tsdt_app:twice\ttwice\n"
    assert env.on_store("probe", "show", env.id[:9], "twice").stdout == env.file.read_text()
    env.one_error("probe", "show", env.id, "sdt_app:other", status=REFUSED, has="'sdt_app:other'")
    env.one_error("probe", "list", env.one, status=REFUSED, has="no probe definitions")
    env.one_error("probe", "list", env.home / "missing", status=REFUSED, has="no such file")
    # a name that is not valid text for JSON
    static = env.file.read_bytes()
    env.file.write_bytes(b"#a:caf\xe9=main\np:a/b /x:0x1\n" + static)
    assert [row["event"] for row in env.rows("probe", "show", env.id)] == ["a:caf\ufffd", "sdt_app:twice"]
    env.file.write_bytes(static)
    # a file that the store does not have
    other = pathlib.Path(shutil.copy(env.program, env.home / "other"))
    env.on_store("remove", env.id)
    assert env.on_store("probe", "show", other).stdout.splitlines()[1].startswith(f"p:sdt_app/twice {other}:")
    assert env.on_store("probe", "list").stdout == "" and env.rows("probe", "list") == []


def case_probe_of_stored_copy_names_its_path(env):
    """The store's copy selects the build, and the definition has the original path."""
    (kept,) = env.store.glob(f"**/{env.id}/elf")
    env.on_store("probe", "add", kept, f"p:{env.group}/ours {env.place:#x}")
    done = env.on_store("probe", "show", env.id).stdout
    assert f"{env.program}:0x" in done and str(env.store) not in done, done


def case_definitions_emptied_by_perf_are_replaced(env):
    """'perf list' leaves an empty file for a build without probes; another obstacle is named."""
    env.file.write_bytes(b"")
    done = env.on_store("probe", "apply", env.id, status=REFUSED)
    assert f"in '{env.file}'" in done.stderr and "and no static probes" not in done.stderr, done.stderr
    env.file.unlink()
    assert "sdt_app:twice" in env.on_store("probe", "list", env.id).stdout


def case_wrong_usage_is_refused(env):
    for arguments, has in (
            (["probe"], "list|show"), (["probe", "show"], "ID"),
            (["probe", "add", env.id], "DEFINITION"),
            (["probe", "remove", env.id], "EVENT"), (["probe", "apply"], "ID"),
            (["probe", "dance"], "'dance'"), (["probe", "add", env.id, "p:only"], "'p:only'"),
            (["probe", "add", env.id, "p:a/b /x:0x1\np:a/c /x:0x1"], "not a definition"),
            (["probe", "add", env.id, "p:a/1b /x:0x1"], "not a definition"),
            (["probe", "add", "--", env.id, "-:a/b /x:0x1"], "-:a/b")):
        done = env.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, (arguments, done.stderr)


def case_added_definition_is_removed(env):
    add = ["probe", "add", env.program]
    done = env.on_store(*add, env.define("one"), f"r:{env.group}/back {hex(env.place)} $retval")
    assert done.summary == "added 2, known 0\n"
    text = env.file.read_text()
    assert env.on_store(*add, "--dry-run", env.define("one"), env.define("two")).summary == "dry run: added 1, known 1\n"
    assert env.on_store("probe", "remove", "-n", env.id, "one").summary == "dry run: removed 1\n"
    assert env.file.read_text() == text
    assert env.on_store(*add, env.define("one")).summary == "added 0, known 1\n"
    env.one_error(*add, env.define("one", 1), status=REFUSED, has=f"'{env.group}:one'")
    env.one_error(*add, env.define("new"), env.define("new", 1), status=REFUSED, has=f"one event: '{env.group}:new'")
    assert env.file.read_text().splitlines()[3:] == [
        f"#{env.group}:one={hex(env.place)}", env.define("one"),
        f"#{env.group}:back={hex(env.place)}%return", f"r:{env.group}/back {env.program}:{hex(env.place)} $retval"]
    # from one store into another, as text
    text = env.file.read_text()
    done = subprocess.run([env.bidctl, "--store", env.store, "probe", "add", env.id, "-"], input=text, text=True,
                          env=env.environment, stderr=subprocess.PIPE, check=True, timeout=TIMEOUT)
    assert done.stderr == "added 0, known 3\n" and env.file.read_text() == text
    assert env.on_store("probe", "remove", env.id, f"{env.group}:b*").summary == "removed 1\n"
    env.one_error("probe", "remove", env.id, "x*", status=REFUSED, has="'x*'")
    assert env.events(env.id) == ["sdt_app:twice", f"{env.group}:one"]
    # the recorded path is wrong, and the store is right
    assert env.rows("verify") == [] and env.rows("verify", "--deep") == []
    env.one_error("probe", "add", env.one, env.define("one"), status=REFUSED, has="bidctl add")
    env.file.write_text("p:a/b /x:0x1\n")
    env.one_error("probe", "add", env.id, env.define("one"), status=ERROR, has="perf's format")
    assert env.file.read_text() == "p:a/b /x:0x1\n"


def case_perf_and_bidctl_share_definitions(env):
    """Each one reads, uses and removes definitions of the other."""
    cases.need(os.geteuid() == 0, "needs root, as perf probe reads the tracing directory")
    env.on_store("probe", "add", env.id, env.define("ours"), f"r:{env.group}/back {hex(env.place)} $retval")
    env.perf("probe", "-n", "-x", env.program, "--cache", "--add", f"{env.group}:perfs=main argc")
    events = ["sdt_app:twice", f"{env.group}:ours", f"{env.group}:back", f"{env.group}:perfs"]
    assert env.events(env.id) == events
    listed = env.perf("probe", "--cache", "--list")
    assert [line.split("=")[0] for line in listed.splitlines()[1:]] == events, listed
    env.perf("probe", "--cache", "--del", f"{env.group}:ours")
    env.on_store("probe", "remove", env.id, "perfs")
    assert env.events(env.id) == events[:1] + [f"{env.group}:back"]
    assert f"{env.group}:perfs" not in env.perf("probe", "--cache", "--list")
    if os.geteuid() == 0:
        assert "sdt_app:twice" in env.perf("probe", "-n", "%sdt_app:twice")


def case_unreadable_probe_points_are_refused(env):
    """A point that perf cannot parse would hide all probes of the build."""
    good = ["0x1159", f"{env.program}:0x1159", "0x0000000000001159", f"{env.program}:0x1159(0x4020)", "0x1159(0x4020)"]
    env.on_store("probe", "add", env.id, *(f"p:{env.group}/good{number} {place} x=%di"
                                           for number, place in enumerate(good)))
    text = env.file.read_text()
    assert text.count(f" {env.program}:0x") == 2 + len(good) and text.count("=0x1159\n") == len(good) - 1, text
    for place in (
            "0xZZ", "0x0x1159", "0x", "0x1159z", "0X1159", "0x1159+4", "0x1159(", "0x1159()", "0x1159(4)", "0x1159(0x4)x",
            "4441", "main", "main+4", "main+0x4", "0x1159%return", "0x11111111111111159", ""):
        for path in ("", f"{env.program}:"):
            env.one_error("probe", "add", env.id, f"p:{env.group}/last 0x1159", f"p:{env.group}/bad {path}{place}",
                          status=USAGE, has=f"{path}{place}'")
    assert env.file.read_text() == text
    listed = env.perf("probe", "--cache", "--list")
    assert [line.split("=")[0] for line in listed.splitlines()[1:]] == \
        ["sdt_app:twice"] + [f"{env.group}:good{number}" for number in range(len(good))], listed
    if os.geteuid() == 0:
        for number in range(len(good)):
            output = env.perf("probe", "-x", env.program, "-D", f"%{env.group}:good{number}")
            assert f" {env.program}:0x1159" in output, output


def store_kernel(env):
    """Store the symbol table of a kernel, without its image; return the directory."""
    place = env.store / "[kernel.kallsyms]" / KERNEL
    place.mkdir(parents=True)
    (place / "kallsyms").write_text("ffffffff81000000 T _text\n")
    link = env.store / ".build-id" / KERNEL[:2] / KERNEL[2:]
    link.parent.mkdir(parents=True, exist_ok=True)  # the kernel's id must not share a prefix with the program's
    link.symlink_to(f"../../[kernel.kallsyms]/{KERNEL}")
    return place


def case_kernel_probe_points_have_symbols(env):
    """Points of a kernel need a symbol; perf reads an offset as decimal, whatever its form."""
    place = store_kernel(env)
    add = ["probe", "add", KERNEL]
    env.on_store(*add, "p:mine/hex vfs_read+0x1b n=%si", "p:mine/same vfs_read+27 n=%si", "p:mine/in ext4:ext4_open.cold+0x10",
                 "p:mine/at 0xffffffff81000010", "r5:mine/back _text")
    assert env.on_store(*add, "p:mine/hex vfs_read+0x1b n=%si").summary == "added 0, known 1\n"
    text = (place / "probes").read_text()
    assert text.splitlines() == [
        "#mine:hex=vfs_read+27", "p:mine/hex vfs_read+27 n=%si", "#mine:same=vfs_read+27", "p:mine/same vfs_read+27 n=%si",
        "#mine:in=ext4_open.cold+16", "p:mine/in ext4:ext4_open.cold+16", "#mine:at=0xffffffff81000010",
        "p:mine/at 0xffffffff81000010", "#mine:back=_text%return", "r5:mine/back _text"], text
    for wrong in ("4441", "0xZZ", "vfs_read+", "vfs_read+zz", "vfs_read+010", "vfs_read-4", "vfs_read%return",
                  "ext4:0x10", "ext4:", "a*"):
        env.one_error(*add, f"p:mine/bad {wrong}", status=USAGE, has=f"{wrong}'")
    assert (place / "probes").read_text() == text
    # perf shows its reading of a definition for the running kernel, without setting a probe
    if os.geteuid() == 0 and os.access("/sys/kernel/notes", os.R_OK):
        kernel = pathlib.Path("/sys/kernel/notes").read_bytes()
        kernel = kernel[kernel.index(b"GNU\0") + 4:][:20].hex()
        link = env.store / ".build-id" / kernel[:2] / kernel[2:]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../[kernel.kallsyms]/{kernel}")
        place.rename(place.parent / kernel)
        listed = env.perf("probe", "--cache", "--list")
        assert all(f"mine:{event}=" in listed for event in ("hex", "same", "in", "at", "back")), listed
        assert "p:mine/hex vfs_read+27 " in env.perf("probe", "-D", "%mine:hex")


def case_kernel_image_is_recognized(env):
    """The installed image is compressed and has no symbols; its addresses show that it is a kernel."""
    cases.need(shutil.which("gzip"), "no gzip")
    kernel = vmlinux(env.home, KERNEL, "-s")
    image = bz_image(env.home, kernel, ["gzip"], sized=False)
    env.on_store("add", image)
    for number, operand in enumerate((KERNEL, image, kernel)):
        env.on_store("probe", "add", operand, f"p:mine/open{number} do_sys_openat2+0x10")
    assert env.events(KERNEL) == env.events(image) == [f"mine:open{number}" for number in range(3)]
    lines = env.on_store("probe", "show", image).stdout.splitlines()
    assert lines[-1] == "p:mine/open2 do_sys_openat2+16", lines


def case_kernel_probes_are_stored_by_id(env):
    """Under the kernel's id, though perf stores them under its own name."""
    assert env.run("add", "--kernel", status=None) is not None
    place = store_kernel(env)
    env.on_store("probe", "add", KERNEL, "p:mine/open do_sys_open+4 name=%si", "p:mine/in ext4:ext4_fill_super")
    text = (place / "probes").read_text()
    assert "#mine:open=do_sys_open+4\np:mine/open do_sys_open+4 name=%si\n" in text and "#mine:in=ext4_fill_super\n" in text, text
    done = env.on_store("probe", "apply", KERNEL, status=REFUSED)
    assert done.stdout == "" and KERNEL in done.stderr, done.stderr


def case_kernel_probes_in_two_directories_are_merged(env):
    """perf adds kernel probes under its own name, wherever the link leads, and leaves an empty file behind the link."""
    place, boot = env.store / "[kernel.kallsyms]" / KERNEL, env.store / "boot/vmlinux" / KERNEL
    link = env.store / ".build-id" / KERNEL[:2] / KERNEL[2:]
    for directory in (place, boot, link.parent):
        directory.mkdir(parents=True, exist_ok=True)  # the kernel's id must not share a prefix with the program's
    link.symlink_to(f"../../boot/vmlinux/{KERNEL}")
    perfs = "#probe:open=do_sys_open\np:probe/open _text+4096\n"
    (place / "probes").write_text(perfs)
    assert env.events(KERNEL) == ["probe:open"]
    env.on_store("probe", "add", KERNEL, "p:mine/in do_sys_open+4")
    assert env.events(KERNEL) == ["probe:open", "mine:in"]
    assert (place / "probes").read_text().startswith(perfs) and not (boot / "probes").exists()
    # perf list has created the empty file
    (boot / "probes").touch()
    assert env.events(KERNEL) == ["probe:open", "mine:in"]
    # a removed probe does not reappear from the other directory
    env.on_store("probe", "add", KERNEL, "p:mine/out do_sys_open+8")
    env.on_store("probe", "remove", KERNEL, "*:*")
    env.one_error("probe", "list", KERNEL, status=REFUSED, has="no probe definitions")
    # without perf's own directory the probes go where perf reads them
    (place / "probes").unlink()
    env.on_store("probe", "add", KERNEL, "p:mine/in do_sys_open+4")
    assert env.events(KERNEL) == ["mine:in"] and (boot / "probes").stat().st_size > 0


def note(build_id):
    ident = bytes.fromhex(build_id)
    head = b"\4\0\0\0\6\0\0\0\1\1\0\0Xen\0" + b"\6\0\0\0\4\0\0\0\0\1\0\0" + b"Linux\0\0\0" + b"\0\0\0\0"
    return head.replace(b"\6\0\0\0\1\1\0\0Xen\0", b"\4\0\0\0\1\1\0\0Xen\0abcd") + \
        len(b"GNU\0").to_bytes(4, sys.byteorder) + len(ident).to_bytes(4, sys.byteorder) + (3).to_bytes(4, sys.byteorder) + \
        b"GNU\0" + ident


def case_concurrent_writers_lose_no_event(env):
    """bidctl and perf write at once, and all reported events are there afterwards."""
    cases.need(os.geteuid() == 0, "needs root, as perf probe reads the tracing directory")
    rounds = 6
    failed = []

    def attempt(work):
        try:
            for number in range(rounds):
                work(number)
        except (AssertionError, subprocess.SubprocessError) as error:
            failed.append(error)

    def ours(name):
        return lambda number: env.on_store("probe", "add", env.id, env.define(f"{name}{number}"))

    def perfs(number):
        env.perf("probe", "-n", "-x", env.program, "--cache", "--add", f"{env.group}:perfs{number}=main")

    env.perf("--version")
    threads = [threading.Thread(target=attempt, args=(work,)) for work in (ours("a"), ours("b"), perfs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    wanted = {f"{env.group}:{name}{number}" for name in ("a", "b", "perfs") for number in range(rounds)}
    assert wanted <= set(env.events(env.id)), wanted - set(env.events(env.id))


def case_add_waits_for_a_writer(env):
    """bidctl waits while another process has the file open as perf does, and keeps its changes."""
    cases.need(leases(env.home), "no leases in the file system of the test's directory")
    theirs = f"#{env.group}:theirs=main\n{env.define('theirs')}\n"
    with open(env.file, "r+", encoding="ascii") as file:
        text = file.read()
        with subprocess.Popen([env.bidctl, "--store", env.store, "probe", "add", env.id, env.define("ours")],
                              env=env.environment, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.5)
            assert process.poll() is None, "it did not wait"
            file.seek(0)
            file.truncate()
            file.write(text + theirs)
            file.close()
            assert process.wait(TIMEOUT) == DONE
    assert env.events(env.id) == ["sdt_app:twice", f"{env.group}:theirs", f"{env.group}:ours"]


def case_open_file_refuses_add(env):
    """A process that keeps the file open for writing would overwrite the addition; a reader does not matter."""
    cases.need(leases(env.home), "no leases in the file system of the test's directory")
    add = ["probe", "add", env.id, env.define("ours")]
    for how in ("r+", "r"):
        with open(env.file, how, encoding="ascii") as file:
            text = file.read()
            env.one_error(*add, status=ERROR, has="try again")
            assert env.file.read_text() == text
    env.on_store(*add)
    assert f"{env.group}:ours" in env.events(env.id)


def case_slow_perf_loses_no_event(env):
    """perf is slow between reading and writing, and loses no event of either side."""
    cases.need(os.geteuid() == 0, "needs root, as perf probe reads the tracing directory")
    cases.need(leases(env.home), "no leases in the file system of the test's directory")
    cases.need(shutil.which("perf") and shutil.which("strace"), "no perf, or no strace")
    with subprocess.Popen(["strace", "-qq", "-f", "-o", env.home / "trace", "-e", "trace=ftruncate",
                           "-e", "inject=ftruncate:delay_enter=4000000", "perf", "--buildid-dir", env.store, "probe", "-n", "-x",
                           env.program, "--cache", "--add", f"{env.group}:perfs=main"], env=env.environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
        trace = env.home / "trace"
        while perf.poll() is None and not (trace.exists() and "ftruncate" in trace.read_text()):
            time.sleep(0.02)
        env.one_error("probe", "add", env.id, env.define("ours"), status=ERROR, has="try again")
        assert perf.wait(TIMEOUT) == DONE
    env.on_store("probe", "add", env.id, env.define("ours"))
    assert env.events(env.id) == ["sdt_app:twice", f"{env.group}:perfs", f"{env.group}:ours"]


def leases(directory):
    with open(directory / "leased", "w+", encoding="ascii") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            return False
    return True


if __name__ == "__main__":
    cases.main(globals(), Probed, tools=("cc", "readelf"))
