#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl as people and scripts do, on stores that are filled with programs compiled here.

usage: check_bidctl.py BIDCTL [--no-fetch]

With --no-fetch BIDCTL was built without fetching, and must say so. Exits 0 if all is as it should be, 1 if not, 77 without a
compiler.
"""
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request

import cases

DONE, REFUSED, USAGE, TROUBLE = 0, 1, 2, 3
TIMEOUT = 30
SERVER = pathlib.Path(__file__).resolve().parent.parent / "faults" / "server.py"

# long enough to tell apart, with pairs that begin alike: by 8 digits, and by 9
ID_ONE = "abcdef0112345678901234567890123456789012"
ID_TWO = "abcdef0198765432109876543210987654321098"
ID_ODD = "abcdef0198000000000000000000000000000000"
ID_FAR = "1234567890123456789012345678901234567890"
ID_SHORT = "fedcba9876543210"
ID_NOT_STORED = "00112233445566778899aabbccddeeff00112233"


def build(directory, name, build_id, flags=()):
    """A program of that id."""
    path = directory / name
    source = directory / f"{name}.c"
    source.write_text(f'const char name[] = "{name}";\nint main(void) {{ return name[0] == 0; }}\n')
    build_id_flag = f"-Wl,--build-id={'0x' + build_id if build_id else 'none'}"
    subprocess.run(["cc", "-g", build_id_flag, *flags, "-o", path, source], check=True, timeout=TIMEOUT)
    return path


@functools.cache
def programs(directory):
    found = {
        "one": build(directory, "one", ID_ONE),
        "two": build(directory, "two", ID_TWO),
        "odd": build(directory, "odd", ID_ODD),
        "far": build(directory, "far", ID_FAR),
        "short": build(directory, "short", ID_SHORT),
        "stripped": build(directory, "stripped", ID_NOT_STORED, ["-s"]),
        "nameless": build(directory, "nameless", None),
    }
    text = directory / "text"
    text.write_text("this is no program\n")
    cut = directory / "cut"
    cut.write_bytes(found["one"].read_bytes()[:5000])
    return {**found, "text": text, "cut": cut}


class Scene:
    """A home directory, programs to add, and bidctl."""

    def __init__(self, bidctl, built, directory):
        self.bidctl = bidctl
        self.home = directory / "home"
        self.store = directory / "store"
        self.home.mkdir()
        self.store.mkdir()
        for name, path in programs(built).items():
            setattr(self, name, path)
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C",
                            "PERF_CONFIG_NOSYSTEM": "1", "DEBUGINFOD_URLS": ""}
        # of a sanitizer, if it was built with one
        self.environment |= {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}

    def run(self, *arguments, status=DONE, **environment):
        """Run it, and check what holds for every run: its exit status, and that errors are lines of its own."""
        done = subprocess.run([self.bidctl, *map(str, arguments)], env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="surrogateescape", timeout=TIMEOUT)
        assert status in (None, done.returncode), \
            f"exit status {done.returncode}, not {status}: {arguments}\n{done.stdout}{done.stderr}"
        for line in done.stderr.splitlines():
            assert re.match(r"bidctl: (error|warning): \S|  (and )?[0-9a-f]", line), f"not a message: {line!r}"
        assert "\033" not in done.stdout + done.stderr, "colours in a pipe"
        return done

    def on_store(self, *arguments, **keywords):
        return self.run("--store", self.store, *arguments, **keywords)

    def json(self, *arguments, **keywords):
        return json.loads(self.on_store("--json", *arguments, **keywords).stdout)

    def one_error(self, *arguments, status, has):
        done = self.on_store(*arguments, status=status)
        assert done.stdout == "", done.stdout
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr

    def on_terminal(self, *arguments, columns=120, **environment):
        """What it writes if standard output and error are a terminal."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        with subprocess.Popen([self.bidctl, *map(str, arguments)], env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            text = b""
            with contextlib.suppress(OSError):  # EIO is the end of a terminal
                while chunk := os.read(ours, 65536):
                    text += chunk
            process.wait(TIMEOUT)
        os.close(ours)
        return process.returncode, text.decode()

    def files(self):
        """What lies in the store, but for its private folder."""
        return sorted(str(path.relative_to(self.store)) for path in self.store.rglob("*")
                      if path.is_file() and ".bidfs" not in path.parts)


def case_help(scene):
    text = scene.run("--help").stdout
    for command in ("add", "list", "show", "get", "status"):
        assert re.search(rf"^  {command} ", text, re.M), command
        one = scene.run(command, "--help").stdout
        assert f"bidctl {command}" in one and "--store" in one
        assert ("--link" in one) == (command == "add") and ("--url" in one) == (command in ("add", "get")), one
    assert re.fullmatch(r"bidctl \d+\.\d+\.\d+\n", scene.run("--version").stdout)
    assert scene.run("-V").stdout == scene.run("--version").stdout


def case_usage(scene):
    for arguments, has in (
            ([], "no command"),
            (["frobnicate"], "'frobnicate'"),
            (["--frobnicate"], "'--frobnicate'"),
            (["-x", "list"], "'-x'"),
            (["--json", "-vx"], "'-x'"),
            (["list", "-s"], "missing"),
            (["list", "--ver"], "'--ver'"),
            (["list", "--json=yes"], "takes no argument: '--json=yes'"),
            (["list", "extra"], "'extra'"),
            (["list", "--link=copy"], "'--link'"),
            (["add"], "FILE"),
            (["add", "--link=soft", "file"], "'soft'"),
            (["add", "--refresh", "file"], "'--refresh'"),
            (["show"], "ID"),
            (["get"], "ID"),
            (["get", ID_ONE, "source"], "'source'"),
            (["get", ID_ONE, "elf", "more"], "'more'"),
            (["get", ID_ONE, "--offline", "--url=http://127.0.0.1:1"], "'--offline'"),
            (["list", "--store"], "'--store'"),
    ):
        done = scene.run(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == ""


def case_add(scene):
    missing, fifo = scene.home / "missing", scene.home / "fifo"
    os.mkfifo(fifo)
    done = scene.on_store("add", scene.one, scene.text, scene.two, scene.cut, scene.nameless, fifo, missing, status=REFUSED)
    assert done.stdout == "seen 7, added 2, known 0, refused 5\n", done.stdout
    errors = done.stderr.splitlines()
    assert len(errors) == 5, errors
    refused = {scene.text: "not an ELF file", scene.cut: "damaged or cut short", scene.nameless: "no build-id in it",
               fifo: "not a regular file", missing: "no such file"}
    assert errors == [f"bidctl: error: {reason}: '{path}'" for path, reason in refused.items()], errors

    assert scene.on_store("add", scene.one).stdout == "seen 1, added 0, known 1, refused 0\n"
    stored = scene.store / str(scene.one)[1:] / ID_ONE / "elf"
    assert stored.read_bytes() == scene.one.read_bytes()
    link = scene.store / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
    assert os.readlink(link) == f"../..{scene.one}/{ID_ONE}", "perf would not find it"

    files = scene.json("add", scene.far, scene.one, scene.text, status=REFUSED)["files"]
    # what is refused is said at once
    text, one, known = files
    assert (one["file"], one["id"], one["kind"], one["known"]) == (str(scene.far), ID_FAR, "elf", False), one
    assert known["known"] and known["link"] is None, known
    assert text == {"file": str(scene.text), "refused": "not an ELF file"}, text


def case_add_verbose(scene):
    lines = scene.on_store("--verbose", "add", scene.one, "--link=copy").stdout.splitlines()
    assert lines == [f"{ID_ONE} elf copy {scene.one}", "seen 1, added 1, known 0, refused 0"], lines


def case_add_link(scene):
    """What was asked for is done or refused, and never something else."""
    scene.on_store("add", "--link=copy", scene.one)
    assert (scene.store / str(scene.one)[1:] / ID_ONE / "elf").stat().st_ino != scene.one.stat().st_ino
    # the store of a test and its programs are on one file system
    scene.on_store("add", "--link=hard", scene.two)
    assert (scene.store / str(scene.two)[1:] / ID_TWO / "elf").stat().st_ino == scene.two.stat().st_ino
    private = pathlib.Path(shutil.copy(scene.far, scene.home / "private"))
    private.chmod(0o4755)
    assert scene.json("add", private)["files"][0]["link"] != "hard", "a setuid file was linked"


def case_add_dash(scene):
    """A file whose name begins with a dash, and one with control characters in it, of which some have two bytes in UTF-8."""
    shutil.copy(scene.one, scene.home / "-dash")
    shutil.copy(scene.two, scene.home / "new\nline\033\u009b31m")
    shutil.copy(scene.far, os.fsencode(scene.home) + b"/latin\xe9")
    arguments = ["add", f"--store={scene.store}", "--", "-dash", "new\nline\033\u009b31m", b"latin\xe9"]
    done = subprocess.run([scene.bidctl, *arguments], cwd=scene.home, env=scene.environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"seen 3, added 3, known 0, refused 0\n", done.stdout
    lines = scene.on_store("list").stdout.split("\n")
    assert len(lines) == 4 and lines[3] == "", lines
    assert lines[2].endswith("/new?line??31m"), lines
    paths = [row["path"] for row in scene.json("list")]
    assert [path.rsplit("/", 1)[1] for path in paths] == ["latin\ufffd", "-dash", "new\nline\033\u009b31m"], paths


def case_stores(scene):
    """Which store is used, and which one is made."""
    default = scene.home / ".debug"
    assert scene.run("list").stdout == "" and not default.exists(), "listing must not make a store"
    assert json.loads(scene.run("list", "--json").stdout) == []
    assert json.loads(scene.run("status", "--json").stdout)["store"] == {"path": str(default), "exists": False}
    scene.run("show", ID_ONE, status=REFUSED)
    scene.run("add", scene.one)
    assert scene.run("list").stdout.startswith(ID_ONE) and (default / ".build-id").is_dir()

    (scene.home / ".perfconfig").write_text(f"[buildid]\n\tdir = {scene.store} ; as perf\n")
    scene.run("add", scene.two)
    assert scene.run("list").stdout.startswith(ID_TWO)
    assert scene.run("list", "-s", default).stdout.startswith(ID_ONE)

    (scene.home / ".perfconfig").write_text("[buildid]\n\tdir\n")
    done = scene.run("list", status=TROUBLE)
    assert done.stderr == f"bidctl: error: bad line 2 in '{scene.home}/.perfconfig'\n", done.stderr

    missing = scene.home / "missing"
    for command in (["add", scene.one], ["list"], ["show", ID_ONE], ["get", ID_ONE], ["status"]):
        done = scene.run("--store", missing, *command, status=TROUBLE)
        assert done.stderr == (f"bidctl: error: no such store: '{missing}': create it with 'mkdir -p {missing}', or name another\n"
                               ), done.stderr
        assert not missing.exists()


def case_list(scene):
    scene.on_store("add", scene.one, scene.two, scene.odd, scene.far, scene.short)
    rows = [line.split("\t") for line in scene.on_store("list").stdout.splitlines()]
    assert [row[0] for row in rows] == [ID_FAR, ID_ONE, ID_ODD, ID_TWO, ID_SHORT], rows
    for row, path in zip(rows, (scene.far, scene.one, scene.odd, scene.two, scene.short)):
        assert row[1:] == ["elf", str(path.stat().st_size), str(path)], row
    found = scene.json("list")
    assert all(abs(row.pop("changed") - time.time()) < 100 for row in found)
    assert found == [{"id": row[0], "kinds": ["elf"], "size": int(row[2]), "path": row[3]} for row in rows]

    # perf's other kinds, and a link that leads to nothing
    directory = scene.store / str(scene.one)[1:] / ID_ONE
    (directory / "probes").write_text("#x\n")
    (scene.store / ".build-id" / "00").mkdir()
    (scene.store / ".build-id" / "00" / "11223344556677").symlink_to("../../gone/0011223344556677")
    rows = {row["id"]: row for row in scene.json("list")}
    assert rows[ID_ONE]["kinds"] == ["elf", "probes"] and rows[ID_ONE]["size"] == scene.one.stat().st_size + 3, rows[ID_ONE]
    assert rows["0011223344556677"] == {"id": "0011223344556677", "kinds": [], "size": 0, "changed": None, "path": "/gone"}
    assert "0011223344556677\t-\t0\t/gone\n" in scene.on_store("list").stdout
    scene.one_error("show", "0011223", status=REFUSED, has="its link leads to nothing")


def case_list_terminal(scene):
    scene.on_store("add", scene.one, scene.short)
    status, text = scene.on_terminal("list", "-s", scene.store)
    heading, *rows = text.replace("\r", "").splitlines()
    assert status == DONE and "\033[1m" in heading, heading
    heading = re.sub(r"\033\[[0-9;]*m", "", heading)
    assert heading.split() == ["BUILD-ID", "KINDS", "SIZE", "PATH"] and len(rows) == 2, text
    assert all(row.index(str(path)) == heading.index("PATH") for row, path in zip(rows, (scene.one, scene.short))), text
    assert "\033" not in scene.on_terminal("list", "-s", scene.store, NO_COLOR="1")[1]
    assert "\033" not in scene.on_terminal("list", "-s", scene.store, TERM="dumb")[1]


def case_show(scene):
    scene.on_store("add", scene.one, scene.stripped)
    text = scene.on_store("show", ID_ONE).stdout
    assert re.search(rf"^build-id +{ID_ONE}$", text, re.M) and re.search(rf"^path +{re.escape(str(scene.one))}$", text, re.M), text
    assert re.search(rf"^elf .*\({scene.one.stat().st_size} bytes\), added \d{{4}}-\d\d-\d\d ", text, re.M), text
    assert re.search(r"^debuginfo +the same file as elf$", text, re.M), text
    info = scene.json("show", ID_ONE)
    assert info["id"] == ID_ONE and info["paths"] == [str(scene.one)], info
    # further names, in order; one that is gone is not named
    copies = [shutil.copy(scene.one, f"{scene.home}/{name}") for name in ("b", "a", "c")]
    scene.on_store("add", *copies)
    assert scene.json("show", ID_ONE)["paths"] == [str(scene.one), *sorted(copies)] == \
        re.findall(r"^path +(.*)$", scene.on_store("show", ID_ONE).stdout, re.M)
    scene.on_store("remove", copies[1])
    scene.on_store("verify")
    assert scene.json("show", ID_ONE)["paths"] == [str(scene.one), copies[0], copies[2]]
    # perf's link leads to another name then
    scene.on_store("remove", scene.one)
    assert sorted(scene.json("show", ID_ONE)["paths"]) == [copies[0], copies[2]]
    # what was lost is found again
    shutil.rmtree(scene.store / ".bidfs/name")
    assert len(scene.json("show", ID_ONE)["paths"]) == 1
    scene.on_store("verify", "--repair", "--offline")
    assert len(scene.json("show", ID_ONE)["paths"]) == 2
    scene.on_store("remove", ID_ONE)
    assert not list((scene.store / ".bidfs/name").glob("*/*"))
    scene.on_store("add", scene.one)
    info = scene.json("show", ID_ONE)
    assert info["artifacts"]["elf"]["size"] == scene.one.stat().st_size and info["artifacts"]["elf"]["how"] == "added", info
    assert "debuginfo" not in scene.json("show", ID_NOT_STORED)["artifacts"], "a stripped program has none"

    # another build under this name: it is said, and not served
    elf = scene.store / str(scene.stripped)[1:] / ID_NOT_STORED / "elf"
    elf.unlink()
    shutil.copy(scene.two, elf)
    done = scene.on_store("show", ID_NOT_STORED)
    assert re.search(r"^elf +not served: ", done.stdout, re.M), done.stdout
    assert "wrong content" in done.stderr, done.stderr


def case_abbreviations(scene):
    scene.on_store("add", scene.one, scene.two, scene.odd, scene.far, scene.short)
    for found, digits in ((ID_FAR, (7, 8, 21, 40)), (ID_ONE, (9, 40)), (ID_TWO, (11,)), (ID_SHORT, (7, 16))):
        for text in (found[:n] for n in digits):
            assert scene.json("show", text)["id"] == found, text
            assert scene.json("get", text, "elf")["id"] == found, text
    candidates = "".join(f"  {found}\n" for found in sorted((ID_ONE, ID_ODD, ID_TWO)))
    for command in ("show", "get"):
        done = scene.on_store(command, ID_ONE[:8], status=REFUSED)
        error, *listed = done.stderr.splitlines(keepends=True)
        assert error == f"bidctl: error: ambiguous: 3 build-ids begin with '{ID_ONE[:8]}'\n", done.stderr
        assert "".join(sorted(listed)) == candidates, done.stderr
        assert done.stdout == ""
        scene.one_error(command, "7654321", status=REFUSED, has="no such build-id in the store: '7654321'")
        for malformed in (ID_FAR[:6], "", "../../etc", ID_FAR + "0" * 100, ID_FAR[:20] + "g"):
            scene.one_error(command, malformed, status=USAGE, has=f"'{malformed}'")


def case_capitals(scene):
    """An id is the same in capitals, whole or not."""
    scene.on_store("add", scene.one)
    for text in (ID_ONE.upper(), ID_ONE.capitalize(), ID_ONE[:9].upper()):
        assert scene.json("show", text)["id"] == ID_ONE, text
        assert scene.json("get", text, "elf")["id"] == ID_ONE, text
    scene.one_error("get", "--offline", ID_NOT_STORED.upper(), status=REFUSED, has=f"'{ID_NOT_STORED}'")
    assert scene.on_store("missing", ID_ONE.upper()).stdout == ""
    scene.on_store("verify", ID_ONE.upper())
    assert scene.on_store("remove", ID_ONE.upper()).stdout.startswith("removed 1 names, ")


def case_many_candidates(scene):
    """Twelve links that begin alike: ten are shown."""
    directory = scene.store / ".build-id" / "aa"
    directory.mkdir(parents=True)
    for i in range(12):
        (directory / f"bbccdd{i:032x}").symlink_to(f"../../gone/aabbccdd{i:032x}")
    lines = scene.on_store("show", "aabbccd", status=REFUSED).stderr.splitlines()
    assert len(lines) == 12 and lines[-1] == "  and 2 more", lines
    assert lines[0] == "bidctl: error: ambiguous: 12 build-ids begin with 'aabbccd'", lines
    assert len(set(lines[1:-1])) == 10


def case_get_local(scene):
    scene.on_store("add", scene.one, scene.stripped)
    stored = scene.store / str(scene.one)[1:] / ID_ONE / "elf"
    for kind in ("elf", "executable", "debuginfo"):
        assert scene.on_store("get", ID_ONE, kind).stdout == f"{stored}\n"
    assert scene.on_store("get", ID_ONE).stdout == f"{stored}\n", "debuginfo is the default"
    assert scene.json("get", ID_ONE) == {"id": ID_ONE, "kind": "debuginfo", "served_as": "elf", "path": str(stored),
                                         "size": stored.stat().st_size}
    scene.one_error("get", ID_NOT_STORED, "--offline", status=REFUSED, has="no server is asked with '--offline'")
    scene.one_error("get", ID_ONE, "kallsyms", status=REFUSED, has="no server has this kind")
    failed = scene.json("get", ID_NOT_STORED, "--offline", status=REFUSED)
    assert (failed["id"], failed["kind"], failed["servers"]) == (ID_NOT_STORED, "debuginfo", []), failed
    # a wrong file is not served, whatever its name
    stored.unlink()
    shutil.copy(scene.two, stored)
    done = scene.on_store("get", ID_ONE, "elf", "--offline", status=REFUSED)
    assert done.stdout == "" and "does not carry this build-id" in done.stderr, done.stderr


def case_get_read_only(scene):
    """What is there is found in a store that cannot be written."""
    scene.on_store("add", scene.one)
    shutil.rmtree(scene.store / ".bidfs")
    scene.store.chmod(0o555)
    try:
        if os.geteuid() == 0:
            # another user, to whom modes mean something
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", scene.bidctl]
            for parent in (scene.store.parent, scene.store.parent.parent):
                parent.chmod(0o755)
        else:
            command = [scene.bidctl]
        run = functools.partial(subprocess.run, env=scene.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = run([*command, "-s", scene.store, "get", ID_ONE], check=True)
        assert done.stdout.endswith(f"/{ID_ONE}/elf\n") and done.stderr == "", done
        done = run([*command, "-s", scene.store, "add", scene.two], check=False)
        wanted = f"permission denied: '{scene.store}': let its owner give you the rights, or name another store"
        assert done.returncode == TROUBLE and done.stderr == f"bidctl: error: {wanted}\n", done
    finally:
        scene.store.chmod(0o755)


def case_get_fetched_read_only(scene):
    """What is not in a store that cannot be written is not known to be absent if there are servers, of which none is asked."""
    scene.on_store("add", scene.one)
    shutil.rmtree(scene.store / ".bidfs")
    scene.store.chmod(0o555)
    for parent in (scene.store.parent, scene.store.parent.parent):
        parent.chmod(0o755)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []

    def run(*arguments, status, lines="", urls=""):
        done = subprocess.run([*other, scene.bidctl, "-s", scene.store, "get", *arguments], input=lines, text=True,
                              env=scene.environment | {"DEBUGINFOD_URLS": urls}, capture_output=True, check=False, timeout=TIMEOUT)
        assert done.returncode == status and done.stderr.count("\n") <= 1, done
        return done

    try:
        for url, urls in ("--url=http://127.0.0.1:1", ""), ("--json", "http://127.0.0.1:1"):
            done = run(ID_FAR, url, urls=urls, status=TROUBLE)
            assert "no server is asked, as the store cannot be written" in done.stderr, done
            done = run("-", url, urls=urls, lines=f"{ID_ONE}\n{ID_FAR}\n{ID_TWO}\n", status=TROUBLE)
            assert done.stderr == f"bidctl: error: the store cannot be written, so no server is asked: '{scene.store}'\n", done
            assert "absent" not in done.stdout.replace("absent 0", "").replace('"absent": 0', ""), done
            assert done.stdout.count("nobody was asked") == 4, done
            # what is here is here
            assert run("-", url, urls=urls, lines=f"{ID_ONE}\n", status=DONE).stderr == ""
        # who has no servers, or wants none, has the answer
        for arguments in ([], ["--offline"]):
            assert "no such artifact in the store" in run(ID_FAR, *arguments, status=REFUSED).stderr
            assert "absent 2" in run("-", *arguments, lines=f"{ID_FAR}\n", status=REFUSED).stdout
    finally:
        scene.store.chmod(0o755)


def case_show_path(scene):
    """Every build of a path, whatever is there now, and by a link to it too."""
    program = scene.home / "program"
    for made in (scene.one, scene.two):
        program.unlink(missing_ok=True)
        shutil.copy(made, program)
        scene.on_store("add", "--link=copy", program)
    (scene.home / "alias").symlink_to(program)
    for name in ("program", "alias"):
        text = scene.on_store("show", scene.home / name).stdout
        assert sorted(re.findall("^build-id +([0-9a-f]+)$", text, re.M)) == sorted([ID_ONE, ID_TWO]), text
    assert sorted(row["id"] for row in scene.json("show", program)) == sorted([ID_ONE, ID_TWO])
    # as a shell has it; and perf's own names, as a list shows them
    for name in ("alias", "./alias"):
        found = subprocess.run([scene.bidctl, "--store", scene.store, "--json", "show", name], env=scene.environment,
                               cwd=scene.home, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)
        assert sorted(row["id"] for row in json.loads(found.stdout)) == sorted([ID_ONE, ID_TWO]), name
    vdso = scene.store / "[vdso]" / ID_FAR
    vdso.mkdir(parents=True)
    shutil.copy(scene.far, vdso / "vdso")
    (scene.store / ".build-id" / ID_FAR[:2]).mkdir()
    (scene.store / ".build-id" / ID_FAR[:2] / ID_FAR[2:]).symlink_to(f"../../[vdso]/{ID_FAR}")
    assert [row["id"] for row in scene.json("show", "[vdso]")] == [ID_FAR]
    scene.one_error("show", "nothing-here", status=USAGE, has="not a build-id")
    assert scene.json("show", scene.text, status=REFUSED) == []
    scene.one_error("show", scene.text, status=REFUSED, has="no build of this path")
    scene.run("show", scene.text, status=REFUSED)


def case_shortest_id(scene):
    """One byte leaves nothing for the name of perf's link: such a file is refused, and leaves nothing."""
    tiny, two = build(scene.home, "tiny", "ab"), build(scene.home, "tiny2", "abcd")
    done = scene.on_store("add", "--verbose", tiny, two, status=REFUSED)
    assert f"no build-id in it: '{tiny}'" in done.stderr and "added 1, known 0, refused 1" in done.stdout, done
    assert len(scene.files()) == 1 and scene.on_store("verify").stdout.count("\n") == 1


def case_status(scene):
    scene.on_store("add", scene.one, scene.two)
    status = scene.json("status")
    store = status["store"]
    assert store["path"] == str(scene.store) and store["writable"] is True and store["ids"] == 2, status
    assert 0 < store["bytes_free"] <= store["bytes_total"] and isinstance(status["mounts"], list), status
    text = scene.on_store("status").stdout
    assert re.search(rf"^store +{re.escape(str(scene.store))}$", text, re.M) and re.search(r"^  ids +2$", text, re.M), text


def case_write_error(scene):
    scene.on_store("add", scene.one)
    for arguments in (["list"], ["list", "--json"], ["show", ID_ONE], ["status", "--json"], ["--help"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([scene.bidctl, "-s", scene.store, *arguments], env=scene.environment, stdout=full,
                                  stderr=subprocess.PIPE, check=False, text=True)
        assert done.returncode == TROUBLE, (arguments, done)
        assert done.stderr == "bidctl: error: No space left on device: standard output\n", (arguments, done)


@contextlib.contextmanager
def server(scene, *behaviours):
    """A debuginfod that has "stripped" as an executable, and as its debug information."""
    root = scene.home / "served"
    (root / ID_NOT_STORED).mkdir(parents=True, exist_ok=True)
    shutil.copy(scene.stripped, root / ID_NOT_STORED / "executable")
    unstripped = build(scene.home, "unstripped", ID_NOT_STORED)
    subprocess.run(["objcopy", "--only-keep-debug", unstripped, root / ID_NOT_STORED / "debuginfo"], check=True, timeout=TIMEOUT)
    arguments = [item for behaviour in behaviours for item in ("--behaviour", behaviour)]
    with subprocess.Popen([sys.executable, SERVER, "--root", root, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def stats(url):
    """What the server has seen."""
    return json.load(urllib.request.urlopen(f"{url}/control/stats", timeout=TIMEOUT))


def asked(url):
    """How many requests the server has seen."""
    return stats(url)["requests"]


def case_get_fetched_without_debug_information(scene):
    """It carries the id, and nothing to debug with: it is not said that it were another build."""
    with server(scene) as url:
        bare = scene.home / "served" / ID_NOT_STORED / "debuginfo"
        shutil.copy(scene.stripped, bare)
        done = scene.on_store("get", f"--url={url}", ID_NOT_STORED, status=REFUSED)
    assert "no server delivered what was asked for" in done.stderr and "without debug sections" in done.stderr, done
    assert "carry" not in done.stderr and done.stdout == "", done


def case_get_fetched(scene):
    with server(scene) as url:
        done = scene.on_store("get", f"--url={url}", ID_NOT_STORED)
        path = pathlib.Path(done.stdout.rstrip("\n"))
        assert done.stderr == "" and path.is_relative_to(scene.store), done
        assert path.read_bytes() == (scene.home / "served" / ID_NOT_STORED / "debuginfo").read_bytes()
        before = asked(url)
        assert scene.on_store("get", f"--url={url}", ID_NOT_STORED[:9]).stdout == done.stdout, "fetched: now it can be abbreviated"
        assert asked(url) == before, "it was asked for again"
        # the environment's servers, and more than one of them
        done = scene.on_store("get", ID_NOT_STORED, "elf", DEBUGINFOD_URLS=f"http://127.0.0.1:1 {url}")
        assert done.stderr == "" and pathlib.Path(done.stdout.rstrip("\n")).read_bytes() == scene.stripped.read_bytes(), done
    assert scene.json("show", ID_NOT_STORED)["artifacts"]["debuginfo"]["how"] == "fetched"


def case_get_fetched_other_bytes(scene):
    """Sound, but not what was fetched first under that id: refused, and told by what option it is taken."""
    with server(scene) as url:
        scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf")
        scene.on_store("gc", "--cache-size=1")
        served = scene.home / "served" / ID_NOT_STORED / "executable"
        served.write_bytes(served.read_bytes() + bytes(16))
        done = scene.on_store("get", f"--url={url}", ID_NOT_STORED, "elf", status=REFUSED)
        assert "other bytes than were fetched first" in done.stderr.splitlines()[0], done
        assert "'--accept' takes" in done.stderr.splitlines()[-1] and done.stderr.count("\n") == 2, done
        path = scene.on_store("get", f"--url={url}", "--accept", ID_NOT_STORED, "elf").stdout.rstrip("\n")
        assert pathlib.Path(path).read_bytes() == served.read_bytes()


def case_get_fetched_headers_file(scene):
    """One that is not used is named, with why and what to do; and what is in it is not shown."""
    path = scene.home / "headers"
    with server(scene) as url:
        def warnings(where=path, mode=0o600, text=b"X-Key: secret\n"):
            path.write_bytes(text)
            path.chmod(mode)
            done = scene.on_store("get", "--refresh", f"--url={url}", ID_NOT_STORED, "elf", DEBUGINFOD_HEADERS_FILE=str(where))
            assert "secret" not in done.stderr and done.stderr.count(str(where)) == done.stderr.count("\n"), done
            return done.stderr

        assert warnings() == ""
        assert "others may write it" in warnings(mode=0o602) and "'chmod o-w'" in warnings(mode=0o602)
        assert "others can read" in warnings(mode=0o644) and "'chmod go-r'" in warnings(mode=0o644)
        assert "no regular file" in warnings(scene.home) and "put them into one" in warnings(scene.home)
        assert "No such file" in warnings(scene.home / "none") and "name a file" in warnings(scene.home / "none")
        text = warnings(text=b"X: secret\n" * 8192)
        assert "larger than 64 KiB" in text and "shorten it" in text, text
        assert "no text" in warnings(text=b"X: secret\0\n")
        text = warnings(text=b"X: 1\nsecret\n")
        assert "line ignored; write it as 'Name: value'" in text and f"'{path}:2'" in text, text
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            assert "another user's file" in warnings() and "'chown' it" in warnings()


def case_get_failures(scene):
    """Each server has its line, and the exit status tells "no" from "not known"."""
    with server(scene, "absent") as no, server(scene, "wrong-id:" + str(scene.one)) as wrong:
        done = scene.on_store("get", f"--url={no}", ID_FAR, status=REFUSED)
        assert done.stderr.count("\n") == 2 and f"server '{no}" in done.stderr and "absent" in done.stderr, done.stderr
        done = scene.on_store("get", f"--url={no}", "--url=http://127.0.0.1:1", ID_FAR, status=TROUBLE)
        assert done.stderr.count("\n") == 3 and "unreachable" in done.stderr and "could not be asked" in done.stderr, done.stderr
        failed = scene.json("get", f"--url={no}", f"--url={wrong}", ID_NOT_STORED, "elf", status=REFUSED)
        assert [answer["outcome"] for answer in failed["servers"]] == ["absent", "rejected"], failed
        assert failed["servers"][0]["name"].startswith(no), failed
        scene.one_error("get", f"--url={no}", ID_FAR[:10], status=REFUSED, has="no such build-id in the store")
    assert scene.files() == [], "something was left behind"
    # libdebuginfod shares the list, and takes URLs of other kinds too
    done = scene.on_store("get", ID_FAR, status=REFUSED, DEBUGINFOD_URLS="gopher://a")
    assert "warning: " in done.stderr and "gopher://a" in done.stderr and "no server is configured" in done.stderr, done.stderr


def interrupted(scene, url, *arguments, caught=signal.SIGINT):
    """Run bidctl and send it a signal when it has asked the server at @url. It ends by that, at once; returns what it printed."""
    process = subprocess.Popen([scene.bidctl, "-s", scene.store, *arguments], env=scene.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + TIMEOUT
    while asked(url) == 0:
        assert time.monotonic() < deadline and process.poll() is None, "it never asked"
        time.sleep(0.02)
    begun = time.monotonic()
    process.send_signal(caught)
    out, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + caught and errors == "", (process.returncode, out, errors)
    assert time.monotonic() - begun < 5, "it did not end at once"
    return out


def case_get_interrupted(scene):
    for caught in (signal.SIGINT, signal.SIGTERM):
        with server(scene, "slow:200") as url:
            assert interrupted(scene, url, "get", f"--url={url}", ID_NOT_STORED, caught=caught) == ""
    assert scene.files() == [] and scene.on_store("list").stdout == ""


def case_get_progress(scene):
    size = scene.stripped.stat().st_size
    with server(scene, f"slow:{size}") as url:
        status, text = scene.on_terminal("get", "-s", scene.store, f"--url={url}", ID_NOT_STORED, "elf", columns=70)
    # the line is taken back, and the path is the last that stands there
    *drawn, last = text.split("\r\033[K") if "\r\033[K" in text else [text]
    assert status == DONE and last.strip().endswith("/elf"), text
    lines = re.findall(r"\r([^\r\033]+)\033\[K", "".join(drawn) + "\033[K")
    assert any(re.search(r"127\.0\.0\.1:\d+ .* \[=*>? *\] +\d+%", line) for line in lines), lines
    assert all(len(line) < 70 for line in lines), lines


def case_refused_urls(scene):
    for url in ("ftp://127.0.0.1", "ftp://user:secret@127.0.0.1"):
        scene.one_error("get", f"--url={url}", ID_ONE, status=USAGE, has="'ftp://127.0.0.1'")


def case_without_fetch(scene):
    scene.one_error("get", ID_NOT_STORED, "--url=http://127.0.0.1:1", status=USAGE, has="without fetching")
    scene.one_error("get", ID_NOT_STORED, status=REFUSED, has="without fetching")


if __name__ == "__main__":
    cases.main(globals(), Scene, without_fetch=[case_without_fetch],
               fetching=[case_refused_urls, case_get_fetched, case_get_fetched_read_only,
                         case_get_fetched_without_debug_information, case_get_fetched_other_bytes, case_get_fetched_headers_file,
                         case_get_failures, case_get_interrupted, case_get_progress])
