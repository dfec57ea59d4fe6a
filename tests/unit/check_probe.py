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
from bidctl_scene import DONE, REFUSED, TIMEOUT, TROUBLE, USAGE, Scene
from check_kernel import bz_image, vmlinux
from check_probes import compiled

KERNEL = "4eb1" * 10


class Probed(Scene):
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


def case_list_and_show_print_definitions(scene):
    rows = scene.rows("probe", "list", scene.program)
    assert [(row["id"], row["event"], row["static"], len(row["definitions"])) for row in rows] == \
        [(scene.id, "sdt_app:twice", True, 2)], rows
    assert scene.on_store("probe", "list").stdout == f"{scene.id}\tsdt_app:twice\ttwice\n"
    assert scene.on_store("probe", "show", scene.id[:9], "twice").stdout == scene.file.read_text()
    scene.one_error("probe", "show", scene.id, "sdt_app:other", status=REFUSED, has="'sdt_app:other'")
    scene.one_error("probe", "list", scene.one, status=REFUSED, has="no probe definitions")
    scene.one_error("probe", "list", scene.home / "missing", status=REFUSED, has="nor a file")
    # a name that is not valid text for JSON
    static = scene.file.read_bytes()
    scene.file.write_bytes(b"#a:caf\xe9=main\np:a/b /x:0x1\n" + static)
    assert [row["event"] for row in scene.rows("probe", "show", scene.id)] == ["a:caf\ufffd", "sdt_app:twice"]
    scene.file.write_bytes(static)
    # a file that the store does not have
    other = pathlib.Path(shutil.copy(scene.program, scene.home / "other"))
    scene.on_store("remove", scene.id)
    assert scene.on_store("probe", "show", other).stdout.splitlines()[1].startswith(f"p:sdt_app/twice {other}:")
    assert scene.on_store("probe", "list").stdout == "" and scene.rows("probe", "list") == []


def case_probe_of_stored_copy_names_its_path(scene):
    """The store's copy selects the build, and the definition has the original path."""
    (kept,) = scene.store.glob(f"**/{scene.id}/elf")
    scene.on_store("probe", "add", kept, f"p:{scene.group}/ours {scene.place:#x}")
    done = scene.on_store("probe", "show", scene.id).stdout
    assert f"{scene.program}:0x" in done and str(scene.store) not in done, done


def case_definitions_emptied_by_perf_are_replaced(scene):
    """'perf list' leaves an empty file for a build without probes; another obstacle is named."""
    scene.file.write_bytes(b"")
    done = scene.on_store("probe", "apply", scene.id, status=REFUSED)
    assert f"in '{scene.file}'" in done.stderr and "and no static probes" not in done.stderr, done.stderr
    scene.file.unlink()
    assert "sdt_app:twice" in scene.on_store("probe", "list", scene.id).stdout


def case_wrong_usage_is_refused(scene):
    for arguments, has in (
            (["probe"], "VERB"), (["probe", "show"], "ID"),
            (["probe", "add", scene.id], "DEFINITION"),
            (["probe", "remove", scene.id], "EVENT"), (["probe", "apply"], "ID"),
            (["probe", "dance"], "'dance'"), (["probe", "add", scene.id, "p:only"], "'p:only'"),
            (["probe", "add", scene.id, "p:a/b /x:0x1\np:a/c /x:0x1"], "not a definition"),
            (["probe", "add", scene.id, "p:a/1b /x:0x1"], "not a definition"),
            (["probe", "add", "--", scene.id, "-:a/b /x:0x1"], "-:a/b")):
        done = scene.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, (arguments, done.stderr)


def case_added_definition_is_removed(scene):
    add = ["probe", "add", scene.program]
    done = scene.on_store(*add, scene.define("one"), f"r:{scene.group}/back {hex(scene.place)} $retval")
    assert done.summary == "added 2, known 0\n"
    assert scene.on_store(*add, scene.define("one")).summary == "added 0, known 1\n"
    scene.one_error(*add, scene.define("one", 1), status=REFUSED, has=f"'{scene.group}:one'")
    scene.one_error(*add, scene.define("new"), scene.define("new", 1), status=REFUSED, has=f"one event: '{scene.group}:new'")
    assert scene.file.read_text().splitlines()[3:] == [
        f"#{scene.group}:one={hex(scene.place)}", scene.define("one"),
        f"#{scene.group}:back={hex(scene.place)}%return", f"r:{scene.group}/back {scene.program}:{hex(scene.place)} $retval"]
    # from one store into another, as text
    text = scene.file.read_text()
    done = subprocess.run([scene.bidctl, "--store", scene.store, "probe", "add", scene.id, "-"], input=text, text=True,
                          env=scene.environment, stderr=subprocess.PIPE, check=True, timeout=TIMEOUT)
    assert done.stderr == "added 0, known 3\n" and scene.file.read_text() == text
    assert scene.on_store("probe", "remove", scene.id, f"{scene.group}:b*").summary == "removed 1\n"
    scene.one_error("probe", "remove", scene.id, "x*", status=REFUSED, has="'x*'")
    assert scene.events(scene.id) == ["sdt_app:twice", f"{scene.group}:one"]
    # the recorded path is wrong, and the store is right
    assert scene.rows("verify") == [] and scene.rows("verify", "--deep") == []
    scene.one_error("probe", "add", scene.one, scene.define("one"), status=REFUSED, has="bidctl add")
    scene.file.write_text("p:a/b /x:0x1\n")
    scene.one_error("probe", "add", scene.id, scene.define("one"), status=TROUBLE, has="perf's format")
    assert scene.file.read_text() == "p:a/b /x:0x1\n"


def case_perf_and_bidctl_share_definitions(scene):
    """Each one reads, uses and removes definitions of the other."""
    scene.on_store("probe", "add", scene.id, scene.define("ours"), f"r:{scene.group}/back {hex(scene.place)} $retval")
    scene.perf("probe", "-n", "-x", scene.program, "--cache", "--add", f"{scene.group}:perfs=main argc")
    events = ["sdt_app:twice", f"{scene.group}:ours", f"{scene.group}:back", f"{scene.group}:perfs"]
    assert scene.events(scene.id) == events
    listed = scene.perf("probe", "--cache", "--list")
    assert [line.split("=")[0] for line in listed.splitlines()[1:]] == events, listed
    scene.perf("probe", "--cache", "--del", f"{scene.group}:ours")
    scene.on_store("probe", "remove", scene.id, "perfs")
    assert scene.events(scene.id) == events[:1] + [f"{scene.group}:back"]
    assert f"{scene.group}:perfs" not in scene.perf("probe", "--cache", "--list")
    if os.geteuid() == 0:
        assert "sdt_app:twice" in scene.perf("probe", "-n", "%sdt_app:twice")


def case_unreadable_probe_points_are_refused(scene):
    """A point that perf cannot parse would hide all probes of the build."""
    good = ["0x1159", f"{scene.program}:0x1159", "0x0000000000001159", f"{scene.program}:0x1159(0x4020)", "0x1159(0x4020)"]
    scene.on_store("probe", "add", scene.id, *(f"p:{scene.group}/good{number} {place} x=%di"
                                               for number, place in enumerate(good)))
    text = scene.file.read_text()
    assert text.count(f" {scene.program}:0x") == 2 + len(good) and text.count("=0x1159\n") == len(good) - 1, text
    for place in (
            "0xZZ", "0x0x1159", "0x", "0x1159z", "0X1159", "0x1159+4", "0x1159(", "0x1159()", "0x1159(4)", "0x1159(0x4)x",
            "4441", "main", "main+4", "main+0x4", "0x1159%return", "0x11111111111111159", ""):
        for path in ("", f"{scene.program}:"):
            scene.one_error("probe", "add", scene.id, f"p:{scene.group}/last 0x1159", f"p:{scene.group}/bad {path}{place}",
                            status=USAGE, has=f"{path}{place}'")
    assert scene.file.read_text() == text
    listed = scene.perf("probe", "--cache", "--list")
    assert [line.split("=")[0] for line in listed.splitlines()[1:]] == \
        ["sdt_app:twice"] + [f"{scene.group}:good{number}" for number in range(len(good))], listed
    if os.geteuid() == 0:
        for number in range(len(good)):
            told = scene.perf("probe", "-x", scene.program, "-D", f"%{scene.group}:good{number}")
            assert f" {scene.program}:0x1159" in told, told


def store_kernel(scene):
    """Store the symbol table of a kernel, without its image; return the directory."""
    place = scene.store / "[kernel.kallsyms]" / KERNEL
    place.mkdir(parents=True)
    (place / "kallsyms").write_text("ffffffff81000000 T _text\n")
    link = scene.store / ".build-id" / KERNEL[:2] / KERNEL[2:]
    link.parent.mkdir(parents=True, exist_ok=True)  # the kernel's id must not share a prefix with the program's
    link.symlink_to(f"../../[kernel.kallsyms]/{KERNEL}")
    return place


def case_kernel_probe_points_have_symbols(scene):
    """Points of a kernel need a symbol; perf reads an offset as decimal, whatever its form."""
    place = store_kernel(scene)
    add = ["probe", "add", KERNEL]
    scene.on_store(*add, "p:mine/hex vfs_read+0x1b n=%si", "p:mine/same vfs_read+27 n=%si", "p:mine/in ext4:ext4_open.cold+0x10",
                   "p:mine/at 0xffffffff81000010", "r5:mine/back _text")
    assert scene.on_store(*add, "p:mine/hex vfs_read+0x1b n=%si").summary == "added 0, known 1\n"
    text = (place / "probes").read_text()
    assert text.splitlines() == [
        "#mine:hex=vfs_read+27", "p:mine/hex vfs_read+27 n=%si", "#mine:same=vfs_read+27", "p:mine/same vfs_read+27 n=%si",
        "#mine:in=ext4_open.cold+16", "p:mine/in ext4:ext4_open.cold+16", "#mine:at=0xffffffff81000010",
        "p:mine/at 0xffffffff81000010", "#mine:back=_text%return", "r5:mine/back _text"], text
    for wrong in ("4441", "0xZZ", "vfs_read+", "vfs_read+zz", "vfs_read+010", "vfs_read-4", "vfs_read%return",
                  "ext4:0x10", "ext4:", "a*"):
        scene.one_error(*add, f"p:mine/bad {wrong}", status=USAGE, has=f"{wrong}'")
    assert (place / "probes").read_text() == text
    # perf shows its reading of a definition for the running kernel, without setting a probe
    if os.geteuid() == 0 and os.access("/sys/kernel/notes", os.R_OK):
        kernel = pathlib.Path("/sys/kernel/notes").read_bytes()
        kernel = kernel[kernel.index(b"GNU\0") + 4:][:20].hex()
        link = scene.store / ".build-id" / kernel[:2] / kernel[2:]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../[kernel.kallsyms]/{kernel}")
        place.rename(place.parent / kernel)
        listed = scene.perf("probe", "--cache", "--list")
        assert all(f"mine:{event}=" in listed for event in ("hex", "same", "in", "at", "back")), listed
        assert "p:mine/hex vfs_read+27 " in scene.perf("probe", "-D", "%mine:hex")


def case_kernel_image_is_recognized(scene):
    """The installed image is compressed and has no symbols; its addresses show that it is a kernel."""
    cases.need(shutil.which("gzip"), "no gzip")
    kernel = vmlinux(scene.home, KERNEL, "-s")
    image = bz_image(scene.home, kernel, ["gzip"], sized=False)
    scene.on_store("add", image)
    for number, operand in enumerate((KERNEL, image, kernel)):
        scene.on_store("probe", "add", operand, f"p:mine/open{number} do_sys_openat2+0x10")
    assert scene.events(KERNEL) == scene.events(image) == [f"mine:open{number}" for number in range(3)]
    lines = scene.on_store("probe", "show", image).stdout.splitlines()
    assert lines[-1] == "p:mine/open2 do_sys_openat2+16", lines


def case_kernel_probes_are_stored_by_id(scene):
    """Under the kernel's id, though perf stores them under its own name."""
    assert scene.run("add", "--kernel", status=None) is not None
    place = store_kernel(scene)
    scene.on_store("probe", "add", KERNEL, "p:mine/open do_sys_open+4 name=%si", "p:mine/in ext4:ext4_fill_super")
    text = (place / "probes").read_text()
    assert "#mine:open=do_sys_open+4\np:mine/open do_sys_open+4 name=%si\n" in text and "#mine:in=ext4_fill_super\n" in text, text
    done = scene.on_store("probe", "apply", KERNEL, status=REFUSED)
    assert done.stdout == "" and KERNEL in done.stderr, done.stderr


def case_kernel_probes_in_two_directories_are_merged(scene):
    """perf adds kernel probes under its own name, wherever the link leads, and leaves an empty file behind the link."""
    place, boot = scene.store / "[kernel.kallsyms]" / KERNEL, scene.store / "boot/vmlinux" / KERNEL
    link = scene.store / ".build-id" / KERNEL[:2] / KERNEL[2:]
    for directory in (place, boot, link.parent):
        directory.mkdir(parents=True, exist_ok=True)  # the kernel's id must not share a prefix with the program's
    link.symlink_to(f"../../boot/vmlinux/{KERNEL}")
    perfs = "#probe:open=do_sys_open\np:probe/open _text+4096\n"
    (place / "probes").write_text(perfs)
    assert scene.events(KERNEL) == ["probe:open"]
    scene.on_store("probe", "add", KERNEL, "p:mine/in do_sys_open+4")
    assert scene.events(KERNEL) == ["probe:open", "mine:in"]
    assert (place / "probes").read_text().startswith(perfs) and not (boot / "probes").exists()
    # perf list has created the empty file
    (boot / "probes").touch()
    assert scene.events(KERNEL) == ["probe:open", "mine:in"]
    # a removed probe does not reappear from the other directory
    scene.on_store("probe", "add", KERNEL, "p:mine/out do_sys_open+8")
    scene.on_store("probe", "remove", KERNEL, "*:*")
    scene.one_error("probe", "list", KERNEL, status=REFUSED, has="no probe definitions")
    # without perf's own directory the probes go where perf reads them
    (place / "probes").unlink()
    scene.on_store("probe", "add", KERNEL, "p:mine/in do_sys_open+4")
    assert scene.events(KERNEL) == ["mine:in"] and (boot / "probes").stat().st_size > 0


def note(build_id):
    ident = bytes.fromhex(build_id)
    head = b"\4\0\0\0\6\0\0\0\1\1\0\0Xen\0" + b"\6\0\0\0\4\0\0\0\0\1\0\0" + b"Linux\0\0\0" + b"\0\0\0\0"
    return head.replace(b"\6\0\0\0\1\1\0\0Xen\0", b"\4\0\0\0\1\1\0\0Xen\0abcd") + \
        len(b"GNU\0").to_bytes(4, sys.byteorder) + len(ident).to_bytes(4, sys.byteorder) + (3).to_bytes(4, sys.byteorder) + \
        b"GNU\0" + ident


def case_concurrent_writers_lose_no_event(scene):
    """bidctl and perf write at once, and all reported events are there afterwards."""
    rounds = 6
    failed = []

    def attempt(work):
        try:
            for number in range(rounds):
                work(number)
        except (AssertionError, subprocess.SubprocessError) as error:
            failed.append(error)

    def ours(name):
        return lambda number: scene.on_store("probe", "add", scene.id, scene.define(f"{name}{number}"))

    def perfs(number):
        scene.perf("probe", "-n", "-x", scene.program, "--cache", "--add", f"{scene.group}:perfs{number}=main")

    scene.perf("--version")
    threads = [threading.Thread(target=attempt, args=(work,)) for work in (ours("a"), ours("b"), perfs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    wanted = {f"{scene.group}:{name}{number}" for name in ("a", "b", "perfs") for number in range(rounds)}
    assert wanted <= set(scene.events(scene.id)), wanted - set(scene.events(scene.id))


def case_add_waits_for_a_writer(scene):
    """bidctl waits while another process has the file open as perf does, and keeps its changes."""
    cases.need(leases(scene.home), "no leases in the file system of the test's directory")
    theirs = f"#{scene.group}:theirs=main\n{scene.define('theirs')}\n"
    with open(scene.file, "r+", encoding="ascii") as file:
        text = file.read()
        with subprocess.Popen([scene.bidctl, "--store", scene.store, "probe", "add", scene.id, scene.define("ours")],
                              env=scene.environment, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.5)
            assert process.poll() is None, "it did not wait"
            file.seek(0)
            file.truncate()
            file.write(text + theirs)
            file.close()
            assert process.wait(TIMEOUT) == DONE
    assert scene.events(scene.id) == ["sdt_app:twice", f"{scene.group}:theirs", f"{scene.group}:ours"]


def case_open_file_refuses_add(scene):
    """A process that keeps the file open for writing would overwrite the addition; a reader does not matter."""
    cases.need(leases(scene.home), "no leases in the file system of the test's directory")
    add = ["probe", "add", scene.id, scene.define("ours")]
    for how in ("r+", "r"):
        with open(scene.file, how, encoding="ascii") as file:
            text = file.read()
            scene.one_error(*add, status=TROUBLE, has="try again")
            assert scene.file.read_text() == text
    scene.on_store(*add)
    assert f"{scene.group}:ours" in scene.events(scene.id)


def case_slow_perf_loses_no_event(scene):
    """perf is slow between reading and writing, and loses no event of either side."""
    cases.need(leases(scene.home), "no leases in the file system of the test's directory")
    cases.need(shutil.which("perf") and shutil.which("strace"), "no perf, or no strace")
    with subprocess.Popen(["strace", "-qq", "-f", "-o", scene.home / "trace", "-e", "trace=ftruncate",
                           "-e", "inject=ftruncate:delay_enter=4000000", "perf", "--buildid-dir", scene.store, "probe", "-n", "-x",
                           scene.program, "--cache", "--add", f"{scene.group}:perfs=main"], env=scene.environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
        trace = scene.home / "trace"
        while perf.poll() is None and not (trace.exists() and "ftruncate" in trace.read_text()):
            time.sleep(0.02)
        scene.one_error("probe", "add", scene.id, scene.define("ours"), status=TROUBLE, has="try again")
        assert perf.wait(TIMEOUT) == DONE
    scene.on_store("probe", "add", scene.id, scene.define("ours"))
    assert scene.events(scene.id) == ["sdt_app:twice", f"{scene.group}:perfs", f"{scene.group}:ours"]


def leases(directory):
    with open(directory / "leased", "w+", encoding="ascii") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            return False
    return True


if __name__ == "__main__":
    cases.main(globals(), Probed, tools=("cc", "readelf"))
