#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl as users and scripts do, on stores filled with programs compiled here.

usage: check_bidctl.py BIDCTL [--no-fetch] [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler.
"""
import http.server
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import cases
from bidctl_env import (DONE, ID_FAR, ID_NOT_STORED, ID_ODD, ID_ONE, ID_SHORT, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env,
                        build, read_json, server)


def case_help_prints_commands_and_options(env):
    text = env.run("--help").stdout
    for command in ("add", "list", "show", "get", "status"):
        assert re.search(rf"^  {command} ", text, re.M), command
        one = env.run(command, "--help").stdout
        assert f"bidctl {command}" in one and "--store" in one
        assert ("--link=" in one) == (command == "add") and ("--url" in one) == (command == "get"), one
        assert env.run("help", command).stdout == one
    assert env.run("help").stdout == text and max(map(len, text.splitlines())) <= 90
    assert re.fullmatch(r"bidctl \d+\.\d+\.\d+([+-]\S+)?\n", env.run("--version").stdout)
    assert env.run("-V").stdout == env.run("--version").stdout


def case_summary_follows_the_rows(env):
    done = subprocess.run([env.bidctl, "-s", env.store, "-v", "add", env.one], env=env.environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=True, timeout=TIMEOUT)
    assert done.stdout.startswith(ID_ONE) and done.stdout.endswith("seen 1, added 1, known 0, refused 0\n"), done


def case_bidctl_alone_prints_the_help(env):
    done = subprocess.run([env.bidctl], env=env.environment, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == USAGE and done.stdout == env.run("--help").stdout, done
    assert done.stderr == "bidctl: error: no command: 'bidctl'\n", done


def case_wrong_usage_is_refused(env):
    for arguments, has in (
            (["frobnicate"], "'frobnicate'"),
            (["--frobnicate"], "'--frobnicate'"),
            (["-x", "list"], "'-x'"),
            (["--json", "-vx"], "'-x'"),
            (["list", "-s"], "missing"),
            (["list", "--ver"], "'--ver' - did you mean '--verbose'?"),
            (["list", "--js"], "'--js' - did you mean '--json'?"),
            (["get", "--urll=x", ID_ONE], "'--urll' - did you mean '--url'?"),
            (["--stor", "/x", "list"], "'--stor' - did you mean '--store'?"),
            (["lis"], "'lis' - did you mean 'list'?"),
            (["ls"], "'ls' - did you mean 'list'?"),
            (["help", "rm"], "'rm' - did you mean 'remove'?"),
            (["help", "gte"], "'gte' - did you mean 'get'?"),
            (["offline", "onn"], "'onn' - did you mean 'on'?"),
            (["get", ID_ONE, "debuginof"], "'debuginof' - did you mean 'debuginfo'?"),
            (["list", "--by=siez"], "'siez' - did you mean 'size'?"),
            (["quarantine", "keep"], "'keep' - name one of list, show, restore, drop"),
            (["list", "--color=red"], "'red'"),
            (["verify", "--repair", "--offline", "--url=http://127.0.0.1:1"], "'--offline'"),
            (["verify", "--repair", "--url=gopher://x"], "'gopher://x'"),
            (["list", "--json=yes"], "takes no argument: '--json=yes'"),
            (["list", "some", "extra"], "'extra'"),
            (["list", "--link=copy"], "'--link'"),
            *((["list", "--content-keys", word], "'--content-keys'") for word in
              ("x", "--kind=elf", "--missing=elf", "--by=size", "--format=x", "-0")),
            (["add"], "FILE"),
            (["add", "--link=soft", "file"], "'soft'"),
            (["add", "--refresh", "file"], "'--refresh'"),
            (["show"], "ID"),
            (["get"], "ID"),
            (["get", ID_ONE, "source"], "'source'"),
            (["get", ID_ONE, "elf", "more"], "'more'"),
            (["get", ID_ONE, "--offline", "--url=http://127.0.0.1:1"], "'--offline'"),
            (["list", "--store"], "'--store'"),
            (["-s", "/s", "mount", "/t", "/m"], "the store is named twice: '/t'"),
            (["quarantine", "keep", "name"], "'keep'"),
            (["quarantine", "list", "extra"], "no operand"),
            (["quarantine", "drop"], "NAME"),
    ):
        done = env.run(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == "" or "--json" in arguments
    # the help of the command, also after an error in an option
    for arguments in (["--js", "list"], ["list", "--js"], ["-s", "add", "list", "-x"], ["list", "some", "extra"]):
        assert env.run(*arguments, status=USAGE).hint == "list --help'.\n"


# command, case, operands, exit status; {...} is a name of the environment, and FULL and CLOSED are stores
EXITS = (
    ("add", "a file", ["{one}"], DONE), ("add", "no program", ["{text}"], REFUSED), ("add", "no operand", [], USAGE),
    ("add", "a file with an unreadable store", ["-s", "{home}/none", "{one}"], REFUSED),
    ("list", "all", [], DONE), ("list", "no such store", ["-s", "{home}/none"], REFUSED), ("list", "no order", ["--by=x"], USAGE),
    ("show", "a build", [ID_ONE], DONE), ("show", "no build", [ID_FAR], REFUSED), ("show", "no operand", [], USAGE),
    ("get", "a stored file", ["--offline", ID_ONE, "elf"], DONE), ("get", "an absent file", ["--offline", ID_FAR], REFUSED),
    ("get", "no kind", [ID_ONE, "x"], USAGE), ("get", "no answer", ["--url=http://127.0.0.1:1", ID_FAR], ERROR),
    ("remove", "a build", ["-n", ID_ONE], DONE), ("remove", "no build", [ID_FAR], REFUSED), ("remove", "no operand", [], USAGE),
    ("update", "a file", ["-n", "{one}"], DONE), ("update", "no program", ["{text}"], REFUSED), ("update", "none", [], USAGE),
    ("missing", "a build", [ID_ONE], DONE), ("missing", "no build", [ID_FAR], REFUSED), ("missing", "no id", ["x"], USAGE),
    ("archive", "a build", ["-o", "{home}/a.tar", ID_ONE], DONE), ("archive", "no build", ["-o", "{home}/b.tar", ID_FAR], REFUSED),
    ("archive", "no output", [ID_ONE], USAGE), ("archive", "no directory", ["-o", "{home}/none/a.tar", ID_ONE], ERROR),
    ("unarchive", "an archive", ["{home}/a.tar"], DONE), ("unarchive", "no archive", ["{text}"], REFUSED),
    ("unarchive", "no operand", [], USAGE), ("unarchive", "a directory", ["{home}"], ERROR),
    ("probe", "list", ["list"], DONE), ("probe", "no definition", ["show", ID_ONE], REFUSED), ("probe", "no verb", ["x"], USAGE),
    ("verify", "all", [], DONE), ("verify", "no build", [ID_FAR], REFUSED), ("verify", "no repair", ["--offline"], USAGE),
    ("du", "all", [], DONE), ("du", "no such store", ["-s", "{home}/none"], REFUSED), ("du", "an operand", ["x"], USAGE),
    ("gc", "no limit", [], DONE), ("gc", "a limit out of reach", ["--min-free=100%"], REFUSED),
    ("gc", "no size", ["--min-free=x"], USAGE),
    ("log", "all", [], DONE), ("log", "no such store", ["-s", "{home}/none"], REFUSED), ("log", "no number", ["-n", "x"], USAGE),
    ("pin", "a build", [ID_ONE], DONE), ("pin", "no build", [ID_FAR], REFUSED), ("pin", "no operand", [], USAGE),
    ("unpin", "a build", [ID_ONE], DONE), ("unpin", "no build", [ID_FAR], REFUSED), ("unpin", "no operand", [], USAGE),
    ("quarantine", "all", [], DONE), ("quarantine", "no file", ["drop", "x"], REFUSED), ("quarantine", "no verb", ["x"], USAGE),
    ("mount", "json", ["--json"], USAGE), ("umount", "no mount", ["{home}"], REFUSED),
    ("watch", "no interval", ["--interval=x"], USAGE), ("watch", "no such store", ["-s", "{home}/none"], REFUSED),
    ("offline", "no mount", ["on", "{home}"], REFUSED), ("offline", "no state", ["x"], USAGE),
    ("setup", "nothing to undo", ["system", "--undo", "--root={home}"], REFUSED), ("setup", "no name", ["x"], USAGE),
    ("status", "the store", [], DONE), ("status", "no such store", ["-s", "{home}/none"], REFUSED),
    ("status", "no watch", ["--interval=1"], USAGE), ("doctor", "an operand", ["x"], USAGE),
    ("help", "all", [], DONE), ("help", "no command", ["x"], USAGE),
)


def case_exit_status_of_each_command(env):
    env.on_store("add", env.one)
    wrong = []
    for command, case, operands, status in EXITS:
        words = [word.format(one=env.one, text=env.text, home=env.home) for word in operands]
        done = env.on_store(command, *words, status=None)
        wrong += [(command, case, done.returncode, done.stderr)] if done.returncode != status else []
    assert not wrong, wrong
    listed = re.findall(r"^  ([a-z]+) ", env.run("--help").stdout, re.M)
    assert set(listed) <= {command for command, *_ in EXITS}, "a command without a row"


def case_add_reports_each_file(env):
    missing, fifo = env.home / "missing", env.home / "fifo"
    os.mkfifo(fifo)
    done = env.on_store("add", env.one, env.text, env.two, env.cut, env.no_id, fifo, missing, status=REFUSED)
    assert done.summary == "seen 7, added 2, known 0, refused 5\n", done.stdout
    errors = done.stderr.splitlines()
    assert len(errors) == 5, errors
    refused = {env.text: "not an ELF file", env.cut: "damaged or cut short", env.no_id: "no build-id in it",
               fifo: "not a regular file", missing: "no such file"}
    assert errors == [f"bidctl: error: {reason}: '{path}'" for path, reason in refused.items()], errors

    assert env.on_store("add", env.one).summary == "seen 1, added 0, known 1, refused 0\n"
    stored = env.store / str(env.one)[1:] / ID_ONE / "elf"
    assert stored.read_bytes() == env.one.read_bytes()
    link = env.store / ".build-id" / ID_ONE[:2] / ID_ONE[2:]
    assert os.readlink(link) == f"../..{env.one}/{ID_ONE}", "perf would not find it"

    files = env.rows("add", env.far, env.one, env.text, status=REFUSED)
    # an error comes before any work
    text, one, known = files
    assert (one["file"], one["id"], one["kind"], one["state"]) == (str(env.far), ID_FAR, "elf", "added"), one
    assert known["state"] == "known" and known["link"] is None, known
    assert text == {"file": str(env.text), "id": None, "kind": None, "state": "refused", "link": None,
                    "reason": "not an ELF file"}, text


def case_add_verbose_names_link_and_path(env):
    lines = env.on_store("--verbose", "add", env.one, "--link=copy").stdout.splitlines()
    assert lines == [f"{ID_ONE}\telf\tadded\tcopy\t{env.one}", "seen 1, added 1, known 0, refused 0"], lines


def case_add_link_is_done_or_refused(env):
    """The requested link mode is used, or the file is refused."""
    env.on_store("add", "--link=copy", env.one)
    assert (env.store / str(env.one)[1:] / ID_ONE / "elf").stat().st_ino != env.one.stat().st_ino
    # the store of a test and its programs are on one file system
    env.on_store("add", "--link=hard", env.two)
    assert (env.store / str(env.two)[1:] / ID_TWO / "elf").stat().st_ino == env.two.stat().st_ino
    private = pathlib.Path(shutil.copy(env.far, env.home / "private"))
    private.chmod(0o4755)
    assert env.rows("add", private)[0]["link"] != "hard", "a setuid file was linked"


def case_add_takes_names_with_a_dash(env):
    """Names that begin with a dash, that contain control characters, and some of these in two bytes of UTF-8."""
    hostile = "new\nline\033\u009b31m\x7f\u202egpj"
    shutil.copy(env.one, env.home / "-dash")
    shutil.copy(env.two, env.home / hostile)
    shutil.copy(env.far, os.fsencode(env.home) + b"/latin\xe9")
    arguments = ["add", f"--store={env.store}", "--", "-dash", hostile, b"latin\xe9"]
    done = subprocess.run([env.bidctl, *arguments], cwd=env.home, env=env.environment, stderr=subprocess.PIPE, check=True)
    assert done.stderr == b"seen 3, added 3, known 0, refused 0\n", done
    lines = env.on_store("list").stdout.split("\n")
    assert len(lines) == 4 and lines[3] == "", lines
    assert lines[2].endswith(r"/new\x0aline\x1b\xc2\x9b31m\x7f\xe2\x80\xaegpj"), lines
    paths = [row["path"] for row in env.rows("list")]
    assert [path.rsplit("/", 1)[1] for path in paths] == ["latin\ufffd", "-dash", hostile], paths
    for command in (["list", "--json"], ["show", "--json", ID_TWO], ["add", "--json", "--", env.home / hostile]):
        text = env.on_store(*command).stdout
        assert r"new\nline\u001B\u009B31m\u007F\u202Egpj" in text, (command, text)


def case_store_is_chosen_by_option_and_environment(env):
    """Check which store is used, and which one is created."""
    default = env.home / ".debug"
    assert env.run("list").stdout == "" and not default.exists(), "listing must not make a store"
    assert read_json(env.run("list", "--json").stdout)["result"] == []
    assert read_json(env.run("status", "--json").stdout)["result"][0]["state"] == "absent"
    env.run("show", ID_ONE, status=REFUSED)
    env.run("add", env.one)
    assert env.run("list").stdout.startswith(ID_ONE) and (default / ".build-id").is_dir()

    (env.home / ".perfconfig").write_text(f"[buildid]\n\tdir = {env.store} ; as perf\n")
    env.run("add", env.two)
    assert env.run("list").stdout.startswith(ID_TWO)
    assert env.run("list", "-s", default).stdout.startswith(ID_ONE)

    (env.home / ".perfconfig").write_text("[buildid]\n\tdir\n")
    done = env.run("list", status=ERROR)
    assert done.stderr == f"bidctl: error: bad line 2 in '{env.home}/.perfconfig'\n", done.stderr

    missing = env.home / "missing"
    for command in (["add", env.one], ["list"], ["show", ID_ONE], ["get", ID_ONE], ["status"]):
        done = env.run("--store", missing, *command, status=REFUSED)
        assert done.stderr == (f"bidctl: error: no such store: '{missing}' - create it with 'mkdir -p {missing}', or name another\n"
                               ), done.stderr
        assert not missing.exists()


def case_list_prints_one_line_per_build(env):
    env.on_store("add", env.one, env.two, env.odd, env.far, env.short)
    rows = [line.split("\t") for line in env.on_store("list").stdout.splitlines()]
    assert [row[0] for row in rows] == [ID_FAR, ID_ONE, ID_ODD, ID_TWO, ID_SHORT], rows
    for row, path in zip(rows, (env.far, env.one, env.odd, env.two, env.short)):
        assert row[1:] == ["elf", str(path.stat().st_size), str(path)], row
    found = env.rows("list")
    assert all(abs(row.pop("time") - time.time()) < 100 for row in found)
    assert found == [{"id": row[0], "kinds": ["elf"], "size": int(row[2]), "path": row[3]} for row in rows]

    # perf's other kinds, and a dangling link
    directory = env.store / str(env.one)[1:] / ID_ONE
    (directory / "probes").write_text("#x\n")
    (env.store / ".build-id" / "00").mkdir()
    (env.store / ".build-id" / "00" / "11223344556677").symlink_to("../../gone/0011223344556677")
    rows = {row["id"]: row for row in env.rows("list")}
    assert rows[ID_ONE]["kinds"] == ["elf", "probes"] and rows[ID_ONE]["size"] == env.one.stat().st_size + 3, rows[ID_ONE]
    assert rows["0011223344556677"] == {"id": "0011223344556677", "kinds": [], "size": 0, "time": None, "path": "/gone"}
    assert "0011223344556677\t-\t0\t/gone\n" in env.on_store("list").stdout
    env.one_error("show", "0011223", status=REFUSED, has="dangling link: the store has no file of this build")


def case_list_is_filtered_by_path_and_kind(env):
    env.on_store("add", env.one, env.two, env.far)
    (env.store / str(env.one)[1:] / ID_ONE / "probes").write_text("#x\n")

    def ids(*arguments):
        return [row["id"] for row in env.rows("list", *arguments)]

    assert ids("two") == ids("*/two") == [ID_TWO] and ids("two*") == [] and ids("no-such") == []
    assert ids("--kind=probes") == [ID_ONE] and ids("--kind", "elf", "--missing=probes") == [ID_FAR, ID_TWO]
    assert ids("--by=path", "--missing=elf") == []
    assert env.on_store("list", "-0", "two").stdout == f"{ID_TWO}\telf\t{env.two.stat().st_size}\t{env.two}\0"
    env.one_error("list", "--kind=core", status=USAGE, has="'core'")


def case_list_finds_each_path_of_a_build(env):
    """By a second path, by a link to it, and as perf records a build that was downloaded before."""
    second = env.home / "second"
    shutil.copy(env.one, second)
    (env.home / "alias").symlink_to(second)
    env.on_store("add", env.one, second)
    recorded = env.store / "usr/bin/recorded" / ID_TWO
    unnamed = env.store / "[debuginfod]" / ID_TWO
    for objdir in (recorded, unnamed):
        objdir.mkdir(parents=True)
        shutil.copy(env.two, objdir / "elf")
    (env.store / ".build-id" / ID_TWO[:2]).mkdir(exist_ok=True)
    (env.store / ".build-id" / ID_TWO[:2] / ID_TWO[2:]).symlink_to(f"../../[debuginfod]/{ID_TWO}")
    for pattern, build_id, path in (
            (env.one, ID_ONE, env.one), (second, ID_ONE, second), (env.home / "alias", ID_ONE, second),
            ("/usr/bin/recorded", ID_TWO, "/usr/bin/recorded"), (ID_TWO, ID_TWO, "[debuginfod]")):
        assert [(row["id"], row["path"]) for row in env.rows("list", pattern)] == [(build_id, str(path))], pattern
        assert env.on_store("list", "--format=%(path)", pattern).stdout == f"{path}\n", pattern
    assert env.rows("list", "/usr/bin") == env.rows("list", "/usr/bin/record") == []


def case_list_prints_the_format(env):
    env.on_store("add", env.one, env.two)
    size = env.one.stat().st_size
    row = env.rows("list", "one")[0]
    for form, text in (("%(path)", f"{env.one}"), ("%(id) %(kinds)\t%(size)%%", f"{ID_ONE} elf\t{size}%"), ("", ""),
                       ("x%(time)y", f"x{row['time']}y")):
        assert env.on_store("list", "one", f"--format={form}").stdout == f"{text}\n", form
    assert env.on_store("list", "--format=%(id)", "-0").stdout == f"{ID_ONE}\0{ID_TWO}\0"
    assert env.on_terminal("-s", env.store, "list", "one", "--format=%(id)")[1] == f"{ID_ONE}\r\n"
    for form in ("%", "%(id", "%(ids)", "%d", "%(path)%("):
        env.one_error("list", f"--format={form}", status=USAGE, has="%(id), %(kinds)")
    env.one_error("list", "--json", "--format=%(id)", status=USAGE, has="--json")


def case_list_on_a_terminal_is_a_table(env):
    env.on_store("add", env.one, env.short)
    status, text = env.on_terminal("list", "-s", env.store)
    heading, *rows = text.replace("\r", "").splitlines()
    assert status == DONE and "\033[1m" in heading, heading
    heading = re.sub(r"\033\[[0-9;]*m", "", heading)
    assert heading.split() == ["ID", "KINDS", "SIZE", "PATH"] and len(rows) == 2, text
    assert all(row.index(str(path)) == heading.index("PATH") for row, path in zip(rows, (env.one, env.short))), text
    assert "\033" not in env.on_terminal("list", "-s", env.store, NO_COLOR="1")[1]
    assert "\033" not in env.on_terminal("list", "-s", env.store, TERM="dumb")[1]
    assert env.on_terminal("list", "-s", env.store, "no-such-path")[1] == "builds 0\r\n"


def case_show_prints_artifacts_and_paths(env):
    env.on_store("add", env.one, env.stripped)
    text = env.on_store("show", ID_ONE).stdout
    assert re.search(rf"^build-id +{ID_ONE}$", text, re.M) and re.search(rf"^path +{re.escape(str(env.one))}$", text, re.M), text
    assert re.search(rf"^elf .*\({env.one.stat().st_size} bytes\), added$", text, re.M), text
    assert re.search(r"^debuginfo +the same file as elf$", text, re.M), text
    info = env.row("show", ID_ONE)
    assert info["id"] == ID_ONE and info["paths"] == [str(env.one)], info
    # further names, in order, without removed ones
    copies = [shutil.copy(env.one, f"{env.home}/{name}") for name in ("b", "a", "c")]
    env.on_store("add", *copies)
    assert env.row("show", ID_ONE)["paths"] == [str(env.one), *sorted(copies)] == \
        re.findall(r"^path +(.*)$", env.on_store("show", ID_ONE).stdout, re.M)
    env.on_store("remove", copies[1])
    env.on_store("verify")
    assert env.row("show", ID_ONE)["paths"] == [str(env.one), copies[0], copies[2]]
    # perf's link then leads to another name
    env.on_store("remove", env.one)
    assert sorted(env.row("show", ID_ONE)["paths"]) == [copies[0], copies[2]]
    # the lost name is restored
    shutil.rmtree(env.store / ".bidfs/name")
    assert len(env.row("show", ID_ONE)["paths"]) == 1
    env.on_store("verify", "--repair", "--offline")
    assert len(env.row("show", ID_ONE)["paths"]) == 2
    env.on_store("remove", ID_ONE)
    assert not list((env.store / ".bidfs/name").glob("*/*"))
    env.on_store("add", env.one)
    info = env.row("show", ID_ONE)
    assert info["artifacts"]["elf"]["size"] == env.one.stat().st_size and info["artifacts"]["elf"]["how"] == "added", info
    assert "debuginfo" not in env.row("show", ID_NOT_STORED)["artifacts"], "a stripped program has none"

    # a different build under this name is reported and not served
    elf = env.store / str(env.stripped)[1:] / ID_NOT_STORED / "elf"
    elf.unlink()
    shutil.copy(env.two, elf)
    done = env.on_store("show", ID_NOT_STORED)
    assert re.search(r"^elf +not served: ", done.stdout, re.M), done.stdout
    assert "wrong content" in done.stderr, done.stderr


def case_abbreviated_id_is_accepted(env):
    env.on_store("add", env.one, env.two, env.odd, env.far, env.short)
    for found, digits in ((ID_FAR, (7, 8, 21, 40)), (ID_ONE, (9, 40)), (ID_TWO, (11,)), (ID_SHORT, (7, 16))):
        for text in (found[:n] for n in digits):
            assert env.row("show", text)["id"] == found, text
            assert env.row("get", text, "elf")["id"] == found, text
    candidates = "".join(f"  {found}\n" for found in sorted((ID_ONE, ID_ODD, ID_TWO)))
    for command in ("show", "get"):
        done = env.on_store(command, ID_ONE[:8], status=REFUSED)
        error, *listed = done.stderr.splitlines(keepends=True)
        assert error == f"bidctl: error: ambiguous: 3 build-ids begin with '{ID_ONE[:8]}'\n", done.stderr
        assert "".join(sorted(listed)) == candidates, done.stderr
        assert done.stdout == ""
        env.one_error(command, "7654321", status=REFUSED, has="no such build-id in the store: '7654321'")
        for malformed in (ID_FAR[:6], "", "../no-such", ID_FAR + "0" * 100, ID_FAR[:20] + "g"):
            env.one_error(command, malformed, status=REFUSED, has=f"'{malformed}'")


def case_id_in_capitals_is_accepted(env):
    """Whole ids and abbreviations."""
    env.on_store("add", env.one)
    for text in (ID_ONE.upper(), ID_ONE.capitalize(), ID_ONE[:9].upper()):
        assert env.row("show", text)["id"] == ID_ONE, text
        assert env.row("get", text, "elf")["id"] == ID_ONE, text
    env.one_error("get", "--offline", ID_NOT_STORED.upper(), status=REFUSED, has=f"'{ID_NOT_STORED}'")
    assert env.on_store("missing", ID_ONE.upper()).stdout == ""
    assert env.on_store("missing", "-").stdout == "", "the empty standard input"
    env.on_store("verify", ID_ONE.upper())
    assert env.on_store("remove", ID_ONE.upper()).summary.startswith("builds 1, paths removed 1, ")


def case_operands_name_the_same_build(env):
    """An id, a file, the path of a removed file, and the kind before or behind it."""
    program = pathlib.Path(shutil.copy(env.one, env.home / "program"))
    env.on_store("add", "--link=copy", program, env.far)
    path = env.on_store("get", ID_ONE, "elf").stdout
    assert path == env.on_store("get", "elf", ID_ONE).stdout == env.on_store("get", program, "elf").stdout
    assert path == env.on_store("get", env.one, "elf").stdout
    assert env.on_store("verify", program).summary.startswith("names 1,")
    program.unlink()
    assert env.on_store("get", program, "elf").stdout == path
    env.one_error("get", env.home / "no-such", status=REFUSED, has="no such file, and no build of this path")
    env.one_error("get", env.text, status=REFUSED, has=str(env.text))
    shutil.copy(env.two, program)
    env.on_store("add", "--link=copy", program)
    program.unlink()
    assert "ambiguous: 2 builds of this path" in env.on_store("get", program, status=REFUSED).stderr


def case_summary_is_on_standard_error(env):
    for options, summary in (([], b"seen 1, added 0, known 1, refused 0\n"), (["-q"], b""), (["--json"], b"")):
        env.on_store("add", env.one)
        done = subprocess.run([env.bidctl, "-s", env.store, "add", *options, env.one], env=env.environment,
                              capture_output=True, check=True, timeout=TIMEOUT)
        assert done.stderr == summary and (options == ["--json"] or done.stdout == b""), done
    assert env.on_store("--json", "remove", ID_ONE).summary == ""


def case_colours_are_forced_or_off(env):
    env.on_store("add", env.one)
    done = subprocess.run([env.bidctl, "-s", env.store, "--color=always", "show", ID_ONE], env=env.environment,
                          capture_output=True, check=True, timeout=TIMEOUT)
    assert b"\033[1m" in done.stdout, done
    status, text = env.on_terminal("-s", env.store, "--color=never", "show", ID_ONE)
    assert status == DONE and "\033" not in text, text


def case_doctor_names_each_problem(env):
    def results(*options, status):
        return {row["check"]: row for row in env.rows("doctor", *options, status=status)}

    found = results("--offline", status=None)
    assert {"fuse", "privilege", "mount.bidfs", "store"} <= set(found) and "server" not in found, found
    assert found["store"]["state"] == "ok", found
    assert found["fuse"]["state"] == ("ok" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "bad"), found
    assert all((row["state"] == "ok") == (row["remedy"] is None) for row in found.values()), found
    assert results(status=None)["server"]["reason"] in ("no server is configured", "this bidctl is built without fetching")
    text = env.on_store("doctor", "--offline", status=None).stdout
    assert re.search(rf"^ok\tstore\t{env.store}\t-$", text, re.M), text
    # an unreadable configuration of perf names no store
    (env.home / ".perfconfig").mkdir()
    text = env.run("-q", "doctor", "--offline", status=REFUSED).stdout
    assert re.search("^bad\tstore\t", text, re.M) and not re.search("^ok", text, re.M), text


def case_doctor_reports_an_uncheckable_server(env):
    url = "http://127.0.0.1:1"
    row, = (row for row in env.rows("doctor", f"--url={url}", TMPDIR="/nowhere", status=REFUSED) if row["check"] == "server")
    assert row["state"] == "bad" and f"cannot check {url}: '/nowhere/" in row["reason"], row


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def case_doctor_names_a_url_that_is_no_debuginfod(env):
    with server(env) as url:
        for path, state, reason in (("", "ok", ""), ("/wrong", "bad", ": HTTP 503: webapi error, unrecognized '/operation'")):
            row, = (row for row in env.rows("doctor", f"--url={url}{path}", status=None) if row["check"] == "server")
            assert row["state"] == state and row["reason"] == f"{url}{path}{reason}", row
        done = env.on_store("get", f"--url={url}/wrong", ID_FAR, status=ERROR)
        assert "unavailable" in done.stderr and "HTTP 503: webapi error" in done.stderr, done
    with http.server.HTTPServer(("127.0.0.1", 0), QuietHandler) as plain:
        threading.Thread(target=plain.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{plain.server_port}"
        row, = (row for row in env.rows("doctor", f"--url={url}", status=None) if row["check"] == "server")
        assert row["state"] == "note" and row["reason"] == f"{url}: HTTP 404 with a web page", row
        plain.shutdown()


def case_quarantine_is_listed_shown_restored_and_dropped(env):
    assert env.rows("quarantine") == [] and env.on_store("quarantine", "list").stdout == ""
    place = env.store / ".bidfs" / "quarantine"
    place.mkdir(parents=True)
    names = [f"{ID_FAR}.elf.1", f"{ID_TWO}.elf.2"]
    shutil.copy(env.one, place / names[0])
    shutil.copy(env.text, place / names[1])
    assert [(row["name"], row["id"]) for row in env.rows("quarantine")] == [(names[0], ID_ONE), (names[1], None)]
    rows = [line.split("\t")[2:] for line in env.on_store("quarantine").stdout.splitlines()]
    assert rows == [[ID_ONE, names[0]], ["-", names[1]]], rows
    rows = [line.split("\t")[2:] for line in env.on_store("quarantine", "show", *names).stdout.splitlines()]
    assert rows == [[ID_ONE, "-", f"{place}/{names[0]}"], ["-", "not an ELF file", f"{place}/{names[1]}"]], rows
    done = env.on_store("quarantine", "restore", "--dry-run", names[0])
    assert done.stdout.startswith(f"would be restored\t{names[0]}\n"), done
    env.one_error("quarantine", "restore", "--dry-run", names[1], status=REFUSED, has="not an ELF file")
    assert env.on_store("quarantine", "drop", "-n", names[0]).stdout.startswith(f"would be dropped\t{names[0]}\n")
    assert sorted(path.name for path in place.iterdir()) == names
    env.on_store("quarantine", "restore", names[0])
    assert env.on_store("list").stdout.startswith(ID_ONE)
    env.one_error("quarantine", "restore", names[1], status=REFUSED, has=names[1])
    (place / "inner").mkdir()
    for path in (place / "inner/kept", place.parent / "kept"):
        shutil.copy(env.far, path)
    for verb in ("drop", "restore", "show"):
        for name in ("inner/kept", "../kept", "..", "no-such"):
            assert name in env.on_store("quarantine", verb, name, status=REFUSED).stderr
    assert (place / "inner/kept").exists() and (place.parent / "kept").exists() and ID_FAR not in env.on_store("list").stdout
    env.on_store("quarantine", "drop", names[1])
    assert [path.name for path in place.iterdir()] == ["inner"]


def case_truncated_file_is_not_restored_with_and_without_a_dry_run(env):
    place = env.store / ".bidfs" / "quarantine"
    place.mkdir(parents=True)
    shutil.copy(env.cut, place / "cut")
    for options in (["--dry-run"], []):
        env.one_error("quarantine", "restore", *options, "cut", status=REFUSED, has="'cut'")
    assert (place / "cut").exists()


def case_unreadable_quarantine_is_an_error(env):
    place = env.store / ".bidfs" / "quarantine"
    place.parent.mkdir()
    place.touch()
    for verb in (["list"], ["drop", "-n", "x"], ["restore", "-n", "x"]):
        env.one_error("quarantine", *verb, status=ERROR, has=f"'{place}'")


def case_quarantined_file_stays_if_the_store_has_other_bytes_of_its_build(env):
    env.on_store("add", "--link=copy", env.one)
    quarantined = env.store / ".bidfs" / "quarantine" / f"{ID_ONE}.elf.1"
    quarantined.parent.mkdir(parents=True)
    quarantined.write_bytes(env.one.read_bytes() + b"more")
    env.one_error("quarantine", "restore", quarantined.name, status=REFUSED, has="the store has other bytes of this build")
    assert quarantined.exists()
    env.on_store("remove", ID_ONE)
    env.on_store("quarantine", "restore", quarantined.name)
    stored = pathlib.Path(env.on_store("get", ID_ONE, "elf", "--offline").stdout.strip())
    assert stored.read_bytes().endswith(b"more") and not quarantined.exists()
    shutil.copy(stored, quarantined)
    env.on_store("quarantine", "restore", quarantined.name)
    assert not quarantined.exists()


def case_pin_operand_without_utf8_is_text_in_json(env):
    paths = [shutil.copy(made, f"{env.home}/\udcff{made.name}") for made in (env.one, env.two)]
    env.on_store("add", env.one, env.two)
    assert [row["id"] for row in env.rows("pin", *paths)] == [ID_ONE, ID_TWO]


def case_dry_run_of_remove_counts_stored_files(env):
    env.on_store("add", env.one)
    done = env.on_store("remove", "-n", ID_ONE, ID_FAR, status=REFUSED)
    assert "dry run: builds 1, " in done.stdout, done


def case_mount_runs_the_adjacent_helper(env):
    place = env.home / "bin"
    place.mkdir()
    bidctl = pathlib.Path(shutil.copy(env.bidctl, place / "bidctl"))
    helper = place / "mount.bidfs"
    helper.write_text('#!/bin/sh\nfor word; do printf "%s|" "$word"; done\nexit 32\n')
    helper.chmod(0o755)
    for arguments, passed in (([], ""), (["/s", "/m", "-o", "ro,url=x"], "/s|/m|-o|ro,url=x|"),
                              (["-o", "ro", "--options=url=x"], "-o|ro|-o|url=x|"), (["-s", "/s", "/m"], "/s|/m|")):
        done = subprocess.run([bidctl, "mount", *arguments], env=env.environment, capture_output=True, text=True, timeout=TIMEOUT,
                              check=False)
        assert (done.returncode, done.stdout) == (32, passed), done
    helper.unlink()
    done = subprocess.run([bidctl, "mount"], env=env.environment | {"PATH": "/nowhere"}, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == ERROR and "cannot run 'mount.bidfs': " in done.stderr, done
    env.one_error("umount", env.home, status=REFUSED, has="no mount of bidfs")


def case_ambiguous_id_shows_ten_candidates(env):
    """Twelve links have this prefix."""
    directory = env.store / ".build-id" / "aa"
    directory.mkdir(parents=True)
    for i in range(12):
        (directory / f"bbccdd{i:032x}").symlink_to(f"../../gone/aabbccdd{i:032x}")
    lines = env.on_store("show", "aabbccd", status=REFUSED).stderr.splitlines()
    assert len(lines) == 12 and lines[-1] == "  and 2 more", lines
    assert lines[0] == "bidctl: error: ambiguous: 12 build-ids begin with 'aabbccd'", lines
    assert len(set(lines[1:-1])) == 10


def case_show_path_prints_every_build(env):
    """All builds of a path, whatever is there now, also by a link to it."""
    program = env.home / "program"
    for made in (env.one, env.two):
        program.unlink(missing_ok=True)
        shutil.copy(made, program)
        env.on_store("add", "--link=copy", program)
    (env.home / "alias").symlink_to(program)
    for name in ("program", "alias"):
        text = env.on_store("show", env.home / name).stdout
        assert sorted(re.findall("^build-id +([0-9a-f]+)$", text, re.M)) == sorted([ID_ONE, ID_TWO]), text
    assert sorted(row["id"] for row in env.rows("show", program)) == sorted([ID_ONE, ID_TWO])
    # in the form of a shell, and perf's own names in the form of a list
    for name in ("alias", "./alias"):
        found = subprocess.run([env.bidctl, "--store", env.store, "--json", "show", name], env=env.environment,
                               cwd=env.home, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)
        assert sorted(row["id"] for row in read_json(found.stdout)["result"]) == sorted([ID_ONE, ID_TWO]), name
    vdso = env.store / "[vdso]" / ID_FAR
    vdso.mkdir(parents=True)
    shutil.copy(env.far, vdso / "vdso")
    (env.store / ".build-id" / ID_FAR[:2]).mkdir()
    (env.store / ".build-id" / ID_FAR[:2] / ID_FAR[2:]).symlink_to(f"../../[vdso]/{ID_FAR}")
    assert [row["id"] for row in env.rows("show", "[vdso]")] == [ID_FAR]
    # a build that the store has without its path
    unnamed = env.store / "[debuginfod]" / ID_FAR
    unnamed.mkdir(parents=True)
    (vdso / "vdso").rename(unnamed / "elf")
    (env.store / ".build-id" / ID_FAR[:2] / ID_FAR[2:]).unlink()
    (env.store / ".build-id" / ID_FAR[:2] / ID_FAR[2:]).symlink_to(f"../../[debuginfod]/{ID_FAR}")
    assert [row["id"] for row in env.rows("show", env.far)] == [ID_FAR]
    env.one_error("show", "nothing-here", status=REFUSED, has="neither a build-id")
    assert env.rows("show", env.text, status=REFUSED) == []
    env.one_error("show", env.text, status=REFUSED, has="no build of this path")
    env.run("show", env.text, status=REFUSED)


def case_one_byte_id_is_refused(env):
    """perf's link would have an empty name: the file is refused, and nothing is stored."""
    tiny, two = build(env.home, "tiny", "ab"), build(env.home, "tiny2", "abcd")
    done = env.on_store("add", "--verbose", tiny, two, status=REFUSED)
    assert f"no build-id in it: '{tiny}'" in done.stderr and "added 1, known 0, refused 1" in done.summary, done
    assert len(env.files()) == 1 and env.on_store("verify").stdout.count("\n") == 1


def case_status_without_mounts_is_empty(env):
    env.on_store("add", env.one, env.two)
    store, *mounts = env.rows("status")
    assert store["store"] == str(env.store) and store["writable"] is True and store["builds"] == 2, store
    assert 0 < store["free"] <= store["size"] and all("mount" in mount for mount in mounts), (store, mounts)
    text = env.on_store("status").stdout
    assert re.search(rf"^STORE +STATE +BUILDS .*\n{re.escape(str(env.store))} +writable +2 ", text), text


def case_watched_status_is_printed_again(env):
    with subprocess.Popen([env.bidctl, "-s", env.store, "status", "--watch", "--interval=1"], env=env.environment,
                          stdout=subprocess.PIPE, text=True) as process:
        seen = 0
        while seen < 2:
            line = process.stdout.readline()
            assert line, "it has ended"
            seen += line.startswith("STORE ")
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == -signal.SIGINT
    env.one_error("status", "--interval=1", status=USAGE, has="--watch")


def case_write_error_is_reported(env):
    env.on_store("add", env.one)
    for arguments in (["list"], ["list", "--json"], ["show", ID_ONE], ["status", "--json"], ["--help"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([env.bidctl, "-s", env.store, *arguments], env=env.environment, stdout=full,
                                  stderr=subprocess.PIPE, check=False, text=True)
        assert done.returncode == ERROR, (arguments, done)
        assert done.stderr == "bidctl: error: No space left on device: 'standard output'\n", (arguments, done)


if __name__ == "__main__":
    cases.main(globals(), Env, fetching=[case_doctor_reports_an_uncheckable_server, case_doctor_names_a_url_that_is_no_debuginfod])
