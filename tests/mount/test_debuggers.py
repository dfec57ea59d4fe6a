# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unmodified debuggers over a mount whose store is empty at first, with a real debuginfod as its server."""
import os
import pathlib
import re
import shutil

import pytest

import programs
import servers
import tools
import served_program

HOT = "shipped_hot"
FRAME = rf"^#0 +{HOT} \(rounds=1000\) at .*burn\.c:\d+"
NO_DEBUGINFOD = ("-iex", "set debuginfod enabled off")


class DebuggedProgram:
    """A stripped program, this system's libc, and a server with the debug information of both."""

    def __init__(self, workdir):
        self.workdir = workdir
        (workdir / "home").mkdir()
        self.env = tools.environment(workdir / "home")
        shelf = workdir / "shelf"
        (shelf / "debug").mkdir(parents=True)
        self.app = programs.split(programs.burn(shelf / "app", HOT, 5, "-O0"), shelf / "debug/app.debug")
        self.libc = self.stock_libc(shelf)
        self.installed = workdir / "installed/app"
        self.installed.parent.mkdir()
        shutil.copy(self.app.path, self.installed)
        # the start of the function, as only the debug information knows it
        symbol = re.search(rf"^([0-9a-f]+) \w {HOT}$", tools.run("nm", self.app.debug).stdout, re.MULTILINE)
        self.address = f"0x{symbol[1]}"
        self.server = servers.Debuginfod([shelf], workdir, self.env)
        self.server.await_scan()

    @staticmethod
    def stock_libc(shelf):
        libc = programs.Program(tools.run("gcc", "-print-file-name=libc.so.6").stdout.strip())
        debug = pathlib.Path("/usr/lib/debug/.build-id") / libc.id[:2] / f"{libc.id[2:]}.debug"
        shutil.copy(libc.path.resolve(), shelf / "libc.so.6")
        shutil.copy(debug, shelf / "debug/libc.debug")
        return programs.Program(shelf / "libc.so.6", shelf / "debug/libc.debug")

    def gdb(self, directory, *commands, program=None, first=NO_DEBUGINFOD, env=None):
        """Return the output of gdb, which searches debug information below `directory` only."""
        argv = ["gdb", "--batch", "-nx", *first, "-iex", f"set debug-file-directory {directory}"]
        for command in commands:
            argv += ["-ex", command]
        return tools.run(*argv, *([program] if program else []), env={**self.env, **(env or {})}, status=None, cwd=self.workdir,
                         errors="replace").stdout

    def tool(self, *argv, **options):
        return tools.run(*argv, env=self.env, **options).stdout


@pytest.fixture(scope="module")
def served():
    with served_program.running(DebuggedProgram) as made:
        yield made


def session(served, directory):
    """Run a session that shows names, lines and a variable of the program, and a line of libc."""
    return served.gdb(directory, f"break {HOT}", "run", "next 3", "print local_sum", "backtrace", "info line puts", "kill",
                      program=served.installed)


def is_resolved(text):
    wanted = (FRAME, r"^#1 .* main \(argc=1, .*burn\.c:\d+", r"^\$1 = 5$", r'^Line \d+ of ".*ioputs\.c" starts at address')
    return all(re.search(pattern, text, re.MULTILINE) for pattern in wanted)


def test_gdb_finds_debuginfo_and_source(mount, mode, served, workdir):
    blind = session(served, workdir / "nothing")
    assert "exited normally" in blind and HOT not in blind and not is_resolved(blind), blind
    mnt = mount(f"url={served.server.url}", "wait=30")
    text = session(served, mnt / "usr/lib/debug")
    assert is_resolved(text), text
    assert mnt.counter("fetched") >= 2
    mnt.unmount()
    # now the store has every file: use the short name, without any server
    again = mount("offline")
    text = session(served, again / "debug")
    assert is_resolved(text), text


def test_gdb_finds_program_of_core(mount, mode, served, workdir):
    core = workdir / "core"
    served.gdb(workdir / "nothing", f"symbol-file {served.app.debug}", f"break {HOT}", "run", f"generate-core-file {core}", "kill",
               program=served.installed)
    away = served.installed.rename(workdir / "away")
    try:
        # a core without program and symbols shows addresses only
        assert HOT not in served.gdb(workdir / "nothing", f"core-file {core}", "backtrace")
        mnt = mount(f"url={served.server.url}", "wait=30")
        for opened in (mnt, mount("offline")):
            text = served.gdb(opened / "usr/lib/debug", f"core-file {core}", "backtrace", "info inferiors")
            assert re.search(FRAME, text, re.MULTILINE), text
            assert str(opened / "usr/lib/debug/.build-id") in text
    finally:
        away.rename(served.installed)


def test_gdb_finds_deleted_program_and_library_of_core(mount, store, env, workdir):
    """With the mount as its server, gdb 13 finds the library, too."""
    library, app, core = workdir / "libgone.so.1", workdir / "app", workdir / "core"
    (workdir / "library.c").write_text("int in_library(int number) { return number + 1; }\n")
    (workdir / "app.c").write_text("int in_library(int number); int main(void) { return in_library(41) != 42; }\n")
    tools.run("gcc", "-g", "-O0", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", library, workdir / "library.c")
    tools.run("gcc", "-g", "-O0", f"-Wl,-rpath,{workdir}", "-o", app, workdir / "app.c", library)
    tools.run("gdb", "--batch", "-nx", *NO_DEBUGINFOD, "-ex", "break in_library", "-ex", "run", "-ex", f"generate-core-file {core}",
              "-ex", "kill", app, env=env)
    tools.run(tools.BIDCTL, "-s", store, "add", "--link=copy", library, app, env=env)
    library.unlink()
    app.unlink()

    def backtrace(**more):
        return tools.run("gdb", "--batch", "-nx", "-iex", "set debuginfod enabled on", "-ex", f"core-file {core}",
                         "-ex", "backtrace", env={**env, **more}, status=None).stdout

    assert "in_library" not in backtrace()
    text = backtrace(DEBUGINFOD_URLS=f"file://{mount('offline')}")
    assert re.search(r"^#0 .*in_library \(number=41\) at .*library\.c:1\n#1 .* main \(\) at .*app\.c:1$", text, re.MULTILINE), text


def elfutils_and_binutils(served, mnt):
    """Run each tool on the function, by different names of the mount, and return their outputs."""
    app, address = served.app.id, served.address
    return {
        "eu-addr2line": served.tool("eu-addr2line", f"--debuginfo-path={mnt}/usr/lib/debug", "-f", "-e", served.installed, address),
        "eu-addr2line -e": served.tool("eu-addr2line", "-f", "-e", mnt.artifact(app, "debuginfo"), address),
        "eu-readelf": served.tool("eu-readelf", "-n", mnt.artifact(app)),
        "addr2line": served.tool("addr2line", "-f", "-e", mnt.artifact(app, "debuginfo"), address),
        "objdump": served.tool("objdump", "-d", mnt.artifact(app)),
        # binutils search .build-id/xx/rest.debug
        "objdump -l": served.tool("objdump", "-d", "-l", mnt.artifact(app, "executable"), cwd=mnt / "usr/lib/debug"),
        "readelf": served.tool("readelf", "--debug-dump=info", mnt.debug_file(app)),
        "nm": served.tool("nm", mnt.artifact(app, "debuginfo")),
    }


def check_elfutils_and_binutils(served, outputs):
    line = re.compile(rf"{HOT}\n.*burn\.c:\d+")
    for name in ("eu-addr2line", "eu-addr2line -e", "addr2line"):
        assert line.search(outputs[name]), f"{name}: {outputs[name]}"
    assert f"Build ID: {served.app.id}" in outputs["eu-readelf"]
    assert f"{int(served.address, 16):x}:" in outputs["objdump"] and HOT not in outputs["objdump"]
    assert re.search(r"burn\.c:\d+", outputs["objdump -l"]), outputs["objdump -l"][:2000]
    assert HOT in outputs["readelf"] and f" {HOT}" in outputs["nm"]


def test_elfutils_and_binutils_find_debuginfo(mount, mode, served, workdir):
    unresolved = served.tool("eu-addr2line", f"--debuginfo-path={workdir}", "-f", "-e", served.installed, served.address)
    assert HOT not in unresolved and "burn.c" not in unresolved
    mnt = mount(f"url={served.server.url}", "wait=30")
    outputs = elfutils_and_binutils(served, mnt)
    check_elfutils_and_binutils(served, outputs)
    mnt.unmount()
    assert elfutils_and_binutils(served, mount("offline", at=mnt.path)) == outputs


def test_mount_serves_libdebuginfod_as_file_url(mount, mode, served, workdir):
    """DEBUGINFOD_URLS=file://M works for all users of libdebuginfod."""
    mnt = mount(f"url={served.server.url}", "wait=30")
    env = {**served.env, "DEBUGINFOD_URLS": f"file://{mnt}", "DEBUGINFOD_CACHE_PATH": str(workdir / "cache")}
    for kind, wanted in (("debuginfo", served.app.debug), ("executable", served.app.path)):
        found = tools.run("debuginfod-find", kind, served.app.id, env=env).stdout.strip()
        assert found.startswith(str(workdir / "cache"))
        assert pathlib.Path(found).read_bytes() == wanted.read_bytes()
    absent = tools.run("debuginfod-find", "debuginfo", "ab" * 20, env=env, status=None)
    assert absent.returncode == 1 and "No such file" in absent.stderr
    env["DEBUGINFOD_CACHE_PATH"] = str(workdir / "another-cache")
    text = served.gdb(workdir / "nothing", f"info line {HOT}", program=served.installed,
                      first=("-iex", "set debuginfod enabled on"),
                      env=env)
    assert re.search(r'Line \d+ of ".*burn\.c" starts at address', text), text


def test_large_debuginfo_is_equal_byte_for_byte(mount, served, store):
    """Compare libc's debug information, the largest file here, and check that it is served from the store."""
    mnt = mount(f"url={served.server.url}", "wait=30")
    assert mnt.artifact(served.libc.id, "debuginfo").read_bytes() == served.libc.debug.read_bytes()
    stored = store / "[debuginfod]" / served.libc.id / "debug"
    assert stored.read_bytes() == served.libc.debug.read_bytes()
    assert os.stat(stored).st_mtime == os.stat(mnt.artifact(served.libc.id, "debuginfo")).st_mtime
