# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program whose sources only a server has."""
import contextlib
import pathlib
import shutil
import tempfile

import namespace
import programs
import servers
import tools

# a path that URLs must escape, and a path without a suffix
NAMES = "lib/inner.h", "lib/wörk +1%.c", "lib/extensionless", "main.c"


class ServedProgram:
    """A stripped program of several source files, and a server that indexed program and sources."""

    def __init__(self, workdir):
        self.workdir = workdir
        (workdir / "home").mkdir()
        self.env = tools.environment(workdir / "home")
        self.source = workdir / "src"
        (self.source / "lib").mkdir(parents=True)
        (self.source / "lib/inner.h").write_text("static inline int inner(int x) { return x + 1; }\n")
        (self.source / "lib/extensionless").write_text("static inline int other(int x) { return x + 2; }\n")
        (self.source / "lib/wörk +1%.c").write_text('#include "inner.h"\n#include "extensionless"\nint work(int x);\n'
                                                    "int work(int x)\n{\n\treturn inner(x) * other(x);\n}\n")
        (self.source / "main.c").write_text("int work(int x);\nint main(int argc, char **argv)\n{\n\treturn work(argc) == 0;\n}\n")
        shelf = workdir / "shelf"
        shelf.mkdir()
        program = shelf / "app"
        tools.run("gcc", "-g", "-O0", "-gz=zlib", "-o", program, self.source / "main.c", self.source / NAMES[1])
        self.app = programs.split(programs.Program(program), shelf / "app.debug")
        self.installed = workdir / "installed"
        shutil.copy(self.app.path, self.installed)
        self.server = servers.Debuginfod([shelf, self.source], workdir, self.env)
        self.server.await_scan()
        self.texts = {name: (self.source / name).read_bytes() for name in NAMES}

    def path(self, mount, name):
        """Return the path of a source file in the mount."""
        return mount.artifact(self.app.id, "source") / str(self.source / name).lstrip("/")

    def section(self, mount, name):
        return mount.artifact(self.app.id, "section") / name

    def listed(self, urls, cache):
        """Return gdb's listing of the program where the sources are hidden, so that gdb can only get them from `urls`."""
        gdb = f"gdb --batch -nx -iex 'set debuginfod enabled on' -iex 'set debug-file-directory /nothing' -ex 'list main' " \
              f"-ex 'list work' {self.installed}"
        env = {**self.env, "DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": str(cache)}
        return namespace.isolated(f"mount -t tmpfs none '{self.source}'; {gdb} 2>&1", env, status=None).stdout


@contextlib.contextmanager
def running(kind=ServedProgram):
    """Make a @kind in a new directory, with its server running."""
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="bm-work-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, workdir)
        made = kind(workdir)
        stack.callback(made.server.stop)
        yield made
