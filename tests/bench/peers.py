# SPDX-License-Identifier: LGPL-2.1-or-later
"""Build and mount other file systems over the same store."""
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
GENTLE = "left out by --gentle"
LL = pathlib.Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")
SOURCE = HERE.parents[1] / "contrib" / "fuse3-source"


def compile_example(source, program, *command):
    """Compile and return None, or the reason why it failed."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, stdout=subprocess.PIPE, text=True).stdout
    command = [*map(str, command), "-O2", str(source), "-o", str(program), *flags.split(), "-pthread"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"no {command[0]}"
    return f"it does not compile: {done.stderr.strip().splitlines()[-1]}" if done.returncode else None


def build_ll(program):
    if not LL.exists():
        return f"no '{LL}'"
    return compile_example(LL, program, "gcc", "-DFUSE_USE_VERSION=312")


def build_hp(program):
    """Build passthrough_hp, a C++ example that only Debian's source package has."""
    source = program.with_name("fuse3-source")
    done = subprocess.run([str(SOURCE), str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    why = compile_example(source / "example/passthrough_hp.cc", program, "g++", "-std=c++17", "-D_FILE_OFFSET_BITS=64")
    shutil.rmtree(source)
    return why


def mount(bench, stack, store):
    """Mount the peers over `store` and return ({name: directory}, {name: reason why it is missing})."""
    peers, missing = {}, {}
    built = bench.top / "passthrough_ll", bench.top / "passthrough_hp"
    for program, build in zip(built, (build_ll, build_hp)):
        if why := GENTLE if bench.gentle and build is build_hp else build(program):
            missing[program.name] = why
    ll, hp = built
    # let both cache names and attributes as long as bidfs does
    for program, command in ((ll, [ll, "-f", "-o", f"source={store},cache=always,timeout=3600", "@"]),
                             (hp, [hp, "--foreground", store, "@"])):
        if program.name not in missing:
            peers[program.name] = stack.enter_context(bench.mounted(f"m-{program.name}", command, background=True))
    if bench.gentle:
        missing["rclone"] = GENTLE
    elif shutil.which("rclone"):
        command = ["rclone", "mount", "--vfs-cache-mode", "full", "--cache-dir", bench.top / "rclone-cache",
                   "--config", "/dev/null", "--dir-cache-time", "1h", "--links", store, "@"]
        peers["rclone"] = stack.enter_context(bench.mounted("rclone", command, background=True))
    else:
        missing["rclone"] = "not installed"
    return peers, missing
