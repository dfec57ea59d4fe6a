# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs to debug and to profile, compiled by the test run."""
import pathlib
import re

import tools

BURN = """\
#include <stdlib.h>

volatile unsigned long sink;

__attribute__((noinline)) unsigned long @HOT@(unsigned long rounds)
{
	unsigned long local_sum = @SEED@;

	for (unsigned long i = 0; i < rounds; i++) {
		local_sum += i;
		sink = local_sum;
	}
	if (getenv("BURN_ABORT"))
		abort();
	return local_sum;
}

int main(int argc, char **argv)
{
	return @HOT@(argc > 1 ? strtoul(argv[1], NULL, 10) : 1000) == 1;
}
"""

SMALL = """\
int @NAME@_value = @SEED@;
int main(void) { return @NAME@_value != @SEED@; }
"""


def build_id(path):
    """The build-id as readelf prints it; None if there is none."""
    match = re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", path).stdout)
    return match and match[1]


class Program:
    """An executable, and if it was split its debug file."""

    def __init__(self, path, debug=None):
        self.path = pathlib.Path(path)
        self.debug = debug and pathlib.Path(debug)
        self.id = build_id(path)

    def copy_to(self, path):
        """One more path for the same build, as the next build of the same program takes its place."""
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(self.path.read_bytes())
        path.chmod(0o755)
        return Program(path, self.debug)


class Compiler:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.made = 0

    def source(self, text):
        self.made += 1
        path = self.directory / f"source-{self.made}.c"
        path.write_text(text)
        return path

    def compile(self, text, output, *flags):
        output = pathlib.Path(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.unlink(missing_ok=True)
        tools.run("gcc", "-O1", *flags, "-o", output, self.source(text))
        return Program(output)

    def burn(self, output, name="burn", seed=1, *flags):
        """A program that spends its time in the function `name`, unstripped."""
        return self.compile(BURN.replace("@HOT@", name).replace("@SEED@", str(seed)), output, "-g", *flags)

    def small(self, output, seed=1, *flags, name="small"):
        """Another build for each seed."""
        return self.compile(SMALL.replace("@NAME@", name).replace("@SEED@", str(seed)), output, *(flags or ["-g"]))

    def split(self, program, debug):
        """As packagers do: the debug information goes into a file of its own."""
        debug = pathlib.Path(debug)
        debug.parent.mkdir(parents=True, exist_ok=True)
        debug.unlink(missing_ok=True)
        tools.run("objcopy", "--only-keep-debug", program.path, debug)
        tools.run("strip", "--strip-all", program.path)
        tools.run("objcopy", f"--add-gnu-debuglink={debug}", program.path)
        assert build_id(debug) == program.id
        return Program(program.path, debug)


def into_store(store, ident, original, file, kind="elf"):
    """Put a file into a store as perf lays it out, without perf."""
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
