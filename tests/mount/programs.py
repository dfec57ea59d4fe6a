# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs to debug, profile and download, compiled by the test run."""
import atexit
import functools
import hashlib
import os
import pathlib
import re
import shutil
import tempfile

import tools

SOURCES = pathlib.Path(__file__).resolve().parent / "src"
IDS = {}  # digest of the content -> build-id


def build_id(path):
    """Return the build-id that readelf prints, or None. Equal contents are read once, as most files are copies of a few."""
    key = hashlib.sha256(pathlib.Path(path).read_bytes()).digest()
    if key not in IDS:
        match = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", path).stdout)
        IDS[key] = match and match[1]
    return IDS[key]


class Program:
    """An ELF file and, if split, its debug file."""

    def __init__(self, path, debug=None, ident=None):
        self.path = pathlib.Path(path)
        self.debug = debug and pathlib.Path(debug)
        self.id = ident or build_id(path)

    def read(self):
        return self.path.read_bytes()


@functools.cache
def cache():
    """Return the directory of compiled programs, which all tests of a run share."""
    if directory := os.environ.get("BID_TEST_CACHE"):
        return pathlib.Path(directory)
    made = tempfile.TemporaryDirectory(prefix="bidfs-programs-")
    atexit.register(made.cleanup)
    return pathlib.Path(made.name)


def compile_c(source, output, *flags):
    """Compile a source once for the same flags; each output is a copy."""
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    # tests of an earlier build may run at the same time
    output.unlink(missing_ok=True)
    command = ["gcc", "-O1", "-D_GNU_SOURCE", *flags]
    key = hashlib.sha256("\0".join([*command, str(SOURCES / source)]).encode() + (SOURCES / source).read_bytes()).hexdigest()
    compiled = cache() / key
    if not compiled.exists():
        # a name per process, as another test may compile the same source
        made = cache() / f"{key}.{os.getpid()}"
        tools.run(*command, "-o", made, SOURCES / source)
        made.rename(compiled)
    shutil.copy(compiled, output)
    return output


def burn(output, name="burn", seed=1, *flags):
    """Make an unstripped program that spends its time in the function `name`."""
    return Program(compile_c("burn.c", output, "-g", f"-DHOT={name}", f"-DSEED={seed}", *flags))


def small(output, seed=1, *flags):
    """Make a small program; each seed gives another build."""
    return Program(compile_c("small.c", output, "-g", f"-DSEED={seed}", *flags))


def module(output, seed=1):
    """Make a relocatable object with a build-id, as kernel modules are."""
    plain = compile_c("small.c", f"{output}.o", "-g", "-c", f"-DSEED={seed}")
    tools.run("ld", "-r", "--build-id=sha1", "-o", output, plain)
    return Program(output)


def split(program, debug):
    """Move the debug information into a separate file, as packages do."""
    tools.run("objcopy", "--only-keep-debug", program.path, debug)
    tools.run("strip", "--strip-all", program.path)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", program.path)
    assert build_id(debug) == program.id
    return Program(program.path, debug)


def shrunk(directory):
    """
    Make two programs whose debug files refer to a third file, into which dwz moved their common part. Return the programs and that
    file.
    """
    made = [split(Program(compile_c("shared.c", directory / name, "-g", "-O0", f"-DNAME={name}")), directory / f"{name}.debug")
            for name in ("one", "two")]
    tools.run("dwz", "-m", directory / "common.debug", "-M", "/nowhere/common.debug", *(program.debug for program in made))
    return *made, Program(directory / "common.debug")


def sections(file):
    """Return {name: bytes} of the sections, compressed ones as stored; the first section of a name counts."""
    found, content = {}, file.read_bytes()
    for name, kind, offset, size in re.findall(r"\d\] (\S+) +([A-Z]\S+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)",
                                               tools.run("readelf", "-SW", file).stdout):
        if kind not in ("NOBITS", "NULL"):
            found.setdefault(name, content[int(offset, 16):int(offset, 16) + int(size, 16)])
    return found


def forge(program, ident, output):
    """Copy a program with another build-id of the same length."""
    content = program.read()
    assert content.count(bytes.fromhex(program.id)) == 1 and len(ident) == len(program.id)
    output = pathlib.Path(output)
    output.write_bytes(content.replace(bytes.fromhex(program.id), bytes.fromhex(ident)))
    return Program(output, ident=ident)


def into_store(store, ident, original, file, kind="elf"):
    """Put a file or bytes into a store in perf's layout, without perf."""
    store, original = pathlib.Path(store), str(original).lstrip("/")
    directory = store / original / ident
    directory.mkdir(parents=True, exist_ok=True)
    (directory / kind).write_bytes(file if isinstance(file, bytes) else pathlib.Path(file).read_bytes())
    (directory / kind).chmod(0o755 if kind == "elf" else 0o644)
    link = store / ".build-id" / ident[:2] / ident[2:]
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(f"../../{original}/{ident}")
    return directory / kind


def _assembled(output, lines, *flags):
    source, text = pathlib.Path(f"{output}.s"), "\n".join(lines) + "\n"
    source.write_text(text)
    # ld's own build-id does not depend on symbols
    ident = hashlib.sha1(text.encode()).hexdigest()
    tools.run("gcc", "-nostdlib", f"-Wl,--build-id=0x{ident}", *flags, "-o", output, source)
    source.unlink()
    return Program(output)


def _functions(names, each):
    return [f".globl {name}; .type {name}, @function; {name}: .skip {each}; .size {name}, {each}" for name in names]


def kernel(output, name, start, size, each=1 << 20):
    """Make a vmlinux with code from `start` on, where the samples of a recording are, in functions `name`_0, `name`_1, ..."""
    names = [f"{name}_{number}" for number in range(size // each + 1)]
    return _assembled(output, [".text; .globl _text, _stext; _text: _stext:", *_functions(names, each),
                               ".globl _etext; _etext:"], "-static", "-no-pie",
                      f"-Wl,-Ttext={start:#x},-e,_text")


def kernel_module(output, name, size):
    """Make a module with one function, `name`, of that size."""
    return _assembled(output, [".text", *_functions([name], size)], "-r")
