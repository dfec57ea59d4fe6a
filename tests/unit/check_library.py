#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compile the program of docs/LIBRARY.md against the installed files, let it find a stored artifact and download another one.
Compile each installed header alone.

usage: BID_BUILD_ROOT=DIR BID_SOURCE_ROOT=DIR check_library.py BIDCTL CC...
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = pathlib.Path(os.environ["BID_BUILD_ROOT"]), pathlib.Path(os.environ["BID_SOURCE_ROOT"])
STORED, SERVED, ABSENT = "11" * 20, "22" * 20, "33" * 20


def option(name):
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    return next(one["value"] for one in options if one["name"] == name)


def compile_page(cc, root):
    """Compile the program of the page against the library installed in @root; return it and the environment to run it."""
    libdir = pathlib.Path(f"{root}{option('prefix')}") / option("libdir")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": root}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "bid"], env=environment, check=True, capture_output=True,
                           text=True).stdout.split()
    sanitize = option("b_sanitize")
    sanitize = ",".join(sanitize) if isinstance(sanitize, list) else sanitize
    if sanitize not in ("", "none"):
        flags.append(f"-fsanitize={sanitize}")
    code = re.search(r"^```c\n(.*?)^```$", (SOURCE / "docs/LIBRARY.md").read_text(), re.S | re.M)[1]
    source = pathlib.Path(root, "debuginfo-of.c")
    for header in sorted((SOURCE / "include/bid").glob("*.h")):
        source.write_text(f"#include <bid/{header.name}>\n")
        subprocess.run([*cc, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source, *flags], check=True)
    source.write_text(code)
    subprocess.run([*cc, "-Wall", "-Wextra", "-Werror", "-o", source.with_suffix(""), source, *flags], check=True)
    return source.with_suffix(""), {**environment, "LD_LIBRARY_PATH": str(libdir)}


def build_program(directory, build_id):
    source = directory / f"{build_id}.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-g", f"-Wl,--build-id=0x{build_id}", "-o", source.with_suffix(""), source], check=True)
    return source.with_suffix("")


def main():
    bidctl, *cc = sys.argv[1:]
    if not shutil.which("pkg-config"):
        print("skipped: needs pkg-config")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bid-library-") as root:
        top = pathlib.Path(root)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True)
        program, environment = compile_page(cc, root)
        home, tree = top / "home", top / "tree"
        home.mkdir()
        (tree / "buildid" / SERVED).mkdir(parents=True)
        shutil.copy(build_program(top, SERVED), tree / "buildid" / SERVED / "debuginfo")
        stored = build_program(top, STORED)
        environment.update(HOME=str(home), DEBUGINFOD_URLS=f"file://{tree}")
        environment.pop("PERF_CONFIG", None)
        subprocess.run([bidctl, "add", stored], env=environment, check=True, stdout=subprocess.DEVNULL)

        def run(build_id):
            return subprocess.run([program, build_id], env=environment, capture_output=True, text=True, timeout=60)

        assert run(STORED).stdout == f"{stored.stat().st_size} bytes\n", run(STORED)
        assert run(SERVED).stdout == f"{(top / SERVED).stat().st_size} bytes\n", run(SERVED)
        assert (home / ".debug/.build-id" / SERVED[:2] / SERVED[2:]).is_symlink()
        shutil.rmtree(tree)
        assert run(SERVED).returncode == 0, "what was fetched is not in the store"
        assert run(ABSENT).returncode == 1 and run("no-id").returncode == 1


if __name__ == "__main__":
    main()
