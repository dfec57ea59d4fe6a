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
IDS = {}  # of what was read: digest -> build-id


def build_id(path):
    """The build-id as readelf prints it; None if there is none. Most files are copies of a few: each content is read once."""
    key = hashlib.sha256(pathlib.Path(path).read_bytes()).digest()
    if key not in IDS:
        match = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", path).stdout)
        IDS[key] = match and match[1]
    return IDS[key]


class Program:
    """An ELF file, and if it was split its debug file."""

    def __init__(self, path, debug=None, ident=None):
        self.path = pathlib.Path(path)
        self.debug = debug and pathlib.Path(debug)
        self.id = ident or build_id(path)

    def read(self):
        return self.path.read_bytes()


@functools.cache
def cache():
    """A directory for what was compiled, of all tests of a run."""
    if directory := os.environ.get("BID_TEST_CACHE"):
        return pathlib.Path(directory)
    made = tempfile.TemporaryDirectory(prefix="bidfs-programs-")
    atexit.register(made.cleanup)
    return pathlib.Path(made.name)


def compile_c(source, output, *flags):
    """Compile a source once for the same flags; each output is a copy."""
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    # an earlier build may run
    output.unlink(missing_ok=True)
    command = ["gcc", "-O1", "-D_GNU_SOURCE", *flags]
    key = hashlib.sha256("\0".join([*command, str(SOURCES / source)]).encode() + (SOURCES / source).read_bytes()).hexdigest()
    compiled = cache() / key
    if not compiled.exists():
        # a name of this process: another may compile the same
        made = cache() / f"{key}.{os.getpid()}"
        tools.run(*command, "-o", made, SOURCES / source)
        made.rename(compiled)
    shutil.copy(compiled, output)
    return output


def burn(output, name="burn", seed=1, *flags):
    """A program that spends its time in the function `name`, not stripped."""
    return Program(compile_c("burn.c", output, "-g", f"-DHOT={name}", f"-DSEED={seed}", *flags))


def small(output, seed=1, *flags):
    """Another build for each seed."""
    return Program(compile_c("small.c", output, "-g", f"-DSEED={seed}", *flags))


def module(output, seed=1):
    """A relocatable object with a build-id, as kernel modules are."""
    plain = compile_c("small.c", f"{output}.o", "-g", "-c", f"-DSEED={seed}")
    tools.run("ld", "-r", "--build-id=sha1", "-o", output, plain)
    return Program(output)


def split(program, debug):
    """As packagers do: the debug information goes into a file of its own."""
    tools.run("objcopy", "--only-keep-debug", program.path, debug)
    tools.run("strip", "--strip-all", program.path)
    tools.run("objcopy", f"--add-gnu-debuglink={debug}", program.path)
    assert build_id(debug) == program.id
    return Program(program.path, debug)


def shrunk(directory):
    """Two programs whose debug files refer to a third file, which dwz made of what they had in common: the programs, and that."""
    made = [split(Program(compile_c("shared.c", directory / name, "-g", "-O0", f"-DNAME={name}")), directory / f"{name}.debug")
            for name in ("one", "two")]
    tools.run("dwz", "-m", directory / "common.debug", "-M", "/nowhere/common.debug", *(program.debug for program in made))
    return *made, Program(directory / "common.debug")


def sections(file):
    """The bytes of each section that has some, by name, compressed ones as they are; the first of a name counts."""
    found, content = {}, file.read_bytes()
    for name, kind, offset, size in re.findall(r"\d\] (\S+) +([A-Z]\S+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)",
                                               tools.run("readelf", "-SW", file).stdout):
        if kind not in ("NOBITS", "NULL"):
            found.setdefault(name, content[int(offset, 16):int(offset, 16) + int(size, 16)])
    return found


def forge(program, ident, output):
    """The same program under another build-id of the same length."""
    content = program.read()
    assert content.count(bytes.fromhex(program.id)) == 1 and len(ident) == len(program.id)
    output = pathlib.Path(output)
    output.write_bytes(content.replace(bytes.fromhex(program.id), bytes.fromhex(ident)))
    return Program(output, ident=ident)


def into_store(store, ident, original, file, kind="elf"):
    """Put a file, or bytes, into a store as perf lays it out, without perf."""
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
    # ld's own does not take symbols into account
    ident = hashlib.sha1(text.encode()).hexdigest()
    tools.run("gcc", "-nostdlib", f"-Wl,--build-id=0x{ident}", *flags, "-o", output, source)
    source.unlink()
    return Program(output)


def _functions(names, each):
    return [f".globl {name}; .type {name}, @function; {name}: .skip {each}; .size {name}, {each}" for name in names]


def kernel(output, name, start, size, each=1 << 20):
    """A vmlinux that has code from `start` on, where a recording's samples are; its functions are called `name`_0, `name`_1, ..."""
    names = [f"{name}_{number}" for number in range(size // each + 1)]
    return _assembled(output, [".text; .globl _text, _stext; _text: _stext:", *_functions(names, each),
                               ".globl _etext; _etext:"], "-static", "-no-pie",
                      f"-Wl,-Ttext={start:#x},-e,_text")


def kernel_module(output, name, size):
    """A module of one function, `name`, of that size."""
    return _assembled(output, [".text", *_functions([name], size)], "-r")
