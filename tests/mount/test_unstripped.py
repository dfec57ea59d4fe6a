# SPDX-License-Identifier: LGPL-2.1-or-later
"""An ELF file joined with its debuginfo as by eu-unstrip, for tools that read one file."""
import errno
import json
import os
import pathlib
import re
import subprocess

import pytest

import fetching
import programs
import tools

SPLITS = {
    "strip": ("objcopy --only-keep-debug {0} {0}.debug", "strip {0}", "objcopy --add-gnu-debuglink={0}.debug {0}"),
    "strip-g": ("objcopy --only-keep-debug {0} {0}.debug", "strip -g {0}"),
    "eu-strip": ("eu-strip -f {0}.debug {0}",),
    "eu-strip-g": ("eu-strip -g -f {0}.debug {0}",),
    "minidebug": ("objcopy --only-keep-debug {0} {0}.debug", "strip {0}", "objcopy --add-section .gnu_debugdata=/etc/passwd {0}"),
}


def built(workdir, name="app", split="strip", *flags):
    """Make a program, and its debug file with a real tool."""
    program = programs.Program(programs.burn(workdir / name, "burn", len(name), *flags).path, workdir / f"{name}.debug")
    for command in SPLITS[split]:
        tools.run(*command.format(program.path).split())
    return program


def reference(program, workdir):
    """Return eu-unstrip's result for the pair, without the section that only the ELF file has."""
    path, bare = workdir / "reference", program.path
    if ".gnu_debugdata" in programs.sections(bare):
        bare = workdir / "bare"
        tools.run("objcopy", "--remove-section=.gnu_debugdata", program.path, bare)
    tools.run("eu-unstrip", "-o", path, bare, program.debug)
    return path


def symbols(file):
    return {line.split(":", 1)[1] for line in tools.run("readelf", "-sW", file).stdout.splitlines() if re.match(r" +\d+: ", line)}


def headers(file):
    """Return name, type, address, size and flags of each section, without offsets and links."""
    text = tools.run("readelf", "-SW", file).stdout
    return sorted(re.sub(r" [0-9a-f]{6} ", " ", line.split("]", 1)[1]) for line in text.splitlines()
                  if re.match(r" +\[ *\d+\]", line) and ".symtab" not in line and ".shstrtab" not in line)


def source_lines(file):
    return tools.run("objdump", "-d", "-l", "--disassemble=burn", file).stdout.split("\n", 3)[3]


def complaints(file):
    """Return eu-elflint's complaints about a file, without symbol indices."""
    output = subprocess.run(["eu-elflint", "--gnu-ld", file], capture_output=True, text=True, check=False).stdout
    return set(re.sub(r"symbol \d+", "symbol", output).splitlines())


def assert_equal(file, expected, debug):
    """Compare sections, symbols, lines, and eu-elflint's complaints."""
    ours, theirs = programs.sections(file), programs.sections(expected)
    assert sorted(ours) == sorted(theirs)
    loose = (".symtab", ".strtab", ".shstrtab")
    assert {name: data for name, data in ours.items() if name not in loose} == \
        {name: data for name, data in theirs.items() if name not in loose}
    assert [line.split()[:2] for line in headers(file)] == [line.split()[:2] for line in headers(expected)]
    assert tools.run("readelf", "-lW", file).stdout.replace(str(file), "") == \
        tools.run("readelf", "-lW", expected).stdout.replace(str(expected), "")
    found, wanted = (source_lines(path).count(".c:") for path in (file, expected))
    assert found > 0
    if wanted > 0:
        assert symbols(file) == symbols(expected) and found == wanted and complaints(file) <= complaints(expected)
    else:
        # eu-unstrip 0.192 writes zero addresses if both files have symbols: objdump finds no function there
        assert symbols(debug) <= symbols(file)


def kept(store):
    return [path for path in (store / ".bidfs/unstripped").rglob("*") if path.is_file()]


@pytest.mark.parametrize("flags", [(), ("-gz=zlib",), ("-static",)], ids=["plain", "compressed", "static"])
@pytest.mark.parametrize("split", SPLITS)
def test_unstripped_file_equals_that_of_eu_unstrip(workdir, store, env, split, flags):
    program = built(workdir, "app", split, *flags)
    bidctl = [tools.BIDCTL, "--store", store]
    tools.run(*bidctl, "add", program.path, program.debug, env=env)
    path = pathlib.Path(tools.run(*bidctl, "get", "--offline", program.id, "unstripped", env=env).stdout.strip())
    assert_equal(path, reference(program, workdir), program.debug)
    assert kept(store) == [path]
    tools.run(*bidctl, "verify", "--deep", env=env)
    shown, = json.loads(tools.run(*bidctl, "--json", "show", program.id, env=env).stdout)["result"]
    assert shown["artifacts"]["unstripped"]["size"] == path.stat().st_size


def test_dwz_file_stays_referenced(workdir, store, env):
    one, _, common = programs.shrunk(workdir)
    tools.run(tools.BIDCTL, "--store", store, "add", one.path, one.debug, common.path, env=env)
    path = pathlib.Path(tools.run(tools.BIDCTL, "--store", store, "get", "--offline", one.id, "unstripped", env=env).stdout.strip())
    assert programs.sections(path) == programs.sections(reference(one, workdir))
    assert common.id in tools.run("readelf", "--debug-dump=links", path).stdout.replace(" ", "")


@pytest.mark.limit(120)
def test_both_files_are_downloaded_and_tools_read_the_result(mount, mode, faults, workdir, store):
    program = built(workdir)
    server = faults()
    server.serve(program)
    mnt = mount(f"url={server.url}", "wait=30")
    path = mnt.artifact(program.id, "unstripped")
    assert "unstripped" not in os.listdir(mnt / f"buildid/{program.id}")
    assert_equal(path, reference(program, workdir), program.debug)
    assert (server.count(program.id), server.count(program.id, "debuginfo")) == (1, 1)
    assert os.access(path, os.X_OK) and fetching.read(path) == kept(store)[0].read_bytes()
    assert "unstripped" in os.listdir(mnt / f"buildid/{program.id}")
    assert "burn.c" in tools.run("gdb", "-batch", "-nx", "-ex", "info line burn", path).stdout
    assert "return local_sum;" in tools.run("objdump", "-dS", "--disassemble=burn", path).stdout
    assert tools.run("eu-addr2line", "-e", path, "burn").stdout.startswith("/")
    assert server.count() == 2
    mnt.unmount()
    assert fetching.read(mount("offline").artifact(program.id, "unstripped")) == kept(store)[0].read_bytes()


def test_absent_debuginfo_makes_unstripped_absent(mount, mode, faults, workdir, store):
    program = built(workdir)
    server = faults()
    server.serve(program, "executable")
    mnt = mount(f"url={server.url}", "wait=30")
    path = mnt.artifact(program.id, "unstripped")
    assert tools.errno_of(path.stat) == errno.ENOENT and server.count(program.id, "debuginfo") == 1
    assert tools.errno_of(mnt.artifact("12" * 20, "unstripped").stat) == errno.ENOENT
    assert tools.errno_of(mount().artifact("12" * 20, "unstripped").stat) == errno.ENOENT
    assert not kept(store)


def test_evicted_unstripped_file_is_derived_again(mount, mode, workdir, store, env):
    program = built(workdir)
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, program.debug, env=env)
    mnt = mount()
    path = mnt.artifact(program.id, "unstripped")
    before = fetching.read(path)
    with path.open("rb") as opened:
        kept(store)[0].unlink()
        assert opened.read() == before
    mnt.unmount()
    assert fetching.read(mount().artifact(program.id, "unstripped")) == before and len(kept(store)) == 1
    tools.run(tools.BIDCTL, "--store", store, "remove", program.id, env=env)
    assert not kept(store)


def test_gc_evicts_only_the_unstripped_file(workdir, store, env):
    program = built(workdir)
    bidctl = [tools.BIDCTL, "--store", store]
    tools.run(*bidctl, "add", program.path, program.debug, env=env)
    tools.run(*bidctl, "get", "--offline", program.id, "unstripped", env=env)
    output = json.loads(tools.run(*bidctl, "--json", "gc", "--cache-size=1", env=env).stdout)
    assert [(row["kind"], row["origin"], row["state"]) for row in output["result"]] == [("unstripped", "derived", "evicted")]
    assert not kept(store) and len(list(store.glob(f"**/{program.id}/*"))) == 2


def test_listing_derives_no_unstripped_file(mount, mode, workdir, store, env):
    program = built(workdir)
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, program.debug, env=env)
    mnt = mount()
    tools.run("ls", "-lR", mnt / f"buildid/{program.id}")
    assert not kept(store)


def test_unstripped_program_is_the_file_itself(mount, mode, workdir, store, env):
    program = programs.burn(workdir / "app")
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, env=env)
    mnt = mount()
    paths = [mnt.artifact(program.id, kind) for kind in ("elf", "debuginfo", "unstripped")]
    assert len({path.stat().st_ino for path in paths}) == 1 and fetching.read(paths[2]) == program.read()
    assert not kept(store)


def test_files_of_different_builds_are_refused(mount, mode, workdir, store, env):
    program, other = built(workdir), built(workdir, "other", "strip", "-O0")
    forged = programs.forge(programs.Program(other.debug, ident=other.id), program.id, workdir / "forged")
    programs.into_store(store, program.id, program.path, program.path)
    programs.into_store(store, program.id, program.path, forged.path, "debug")
    done = tools.run(tools.BIDCTL, "--store", store, "get", "--offline", program.id, "unstripped", env=env, status=1)
    assert "do not belong together" in done.stderr
    mnt = mount()
    mnt.expect("cannot put the ELF file and the debuginfo of .* together: they do not belong together")
    assert tools.errno_of(mnt.artifact(program.id, "unstripped").stat) == errno.ENOENT
    assert fetching.read(mnt.artifact(program.id)) == program.read() and not kept(store)


def test_unstripped_module_is_refused_with_a_reason(workdir, store, env):
    module = programs.module(workdir / "module.ko")
    tools.run("objcopy", "--only-keep-debug", module.path, workdir / "module.debug")
    tools.run("strip", "-g", module.path)
    bidctl = [tools.BIDCTL, "--store", store]
    tools.run(*bidctl, "add", module.path, workdir / "module.debug", env=env)
    done = tools.run(*bidctl, "get", "--offline", module.id, "unstripped", env=env, status=1)
    assert "relocatable" in done.stderr and not kept(store)


def test_unwritable_store_serves_unstripped_from_memory(needs_root, mount, workdir, store, env):
    program = built(workdir)
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, program.debug, env=env)
    expected = reference(program, workdir)
    tools.run("mount", "--bind", store, store)
    try:
        tools.run("mount", "-o", "remount,bind,ro", store)
        mnt = mount("ro")
        assert_equal(mnt.artifact(program.id, "unstripped"), expected, program.debug)
        mnt.unmount()
    finally:
        tools.run("umount", store)
    assert not kept(store)


def test_verify_finds_damaged_and_orphaned_unstripped_files(workdir, store, env):
    program = built(workdir)
    bidctl = [tools.BIDCTL, "--store", store]
    tools.run(*bidctl, "add", program.path, program.debug, env=env)
    for damage, kind in ((lambda path: os.truncate(path, 4096), "record"), (None, "stale")):
        path = pathlib.Path(tools.run(*bidctl, "get", "--offline", program.id, "unstripped", env=env).stdout.strip())
        path.chmod(0o755)
        if damage:
            damage(path)
        else:
            for file in store.glob(f"**/{program.id}/*"):
                file.unlink()
        assert kind in tools.run(*bidctl, "verify", env=env, status=1).stdout
        tools.run(*bidctl, "verify", "--repair", env=env, status=None)
        assert not kept(store)
