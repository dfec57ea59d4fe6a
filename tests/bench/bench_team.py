#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare members with empty stores that download the same builds: each from the server upstream, or through a shared mount.

usage: bench_team.py [--members N,N...] [--builds N] BUILD_DIRECTORY

Print the requests to the server upstream, the MiB that it sent, and the seconds of all members one after the other.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mount"))

DELAY_MS = 20
SIZE = 1 << 20


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--members", default="1,2,4,8", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--builds", default=20, type=int)
    parser.add_argument("build", type=pathlib.Path)
    return parser.parse_args()


@contextlib.contextmanager
def mounted(tools, place, url, *options):
    """Mount `place`/store, which is empty at first."""
    store, path = place / "store", pathlib.Path(tempfile.mkdtemp(prefix="mnt.", dir=place.parent))
    store.mkdir(parents=True, exist_ok=True)
    tools.run(tools.MOUNT_BIDFS, store, path, "-o", ",".join([f"url={url}" if url else "offline", *options]))
    try:
        yield path
    finally:
        tools.run("umount", path)


def read_all(place, idents):
    for ident in idents:
        if (place / "buildid" / ident / "elf").stat().st_size < SIZE:
            raise SystemExit(f"bench_team: {ident} came short")


def main():
    arguments = parse()
    os.environ["BIDFS_BUILD"] = str(arguments.build.resolve())
    import exports
    import programs
    import servers
    import tools
    top = pathlib.Path(tempfile.mkdtemp(prefix="bench-team."))
    try:
        made = [programs.small(top / f"app{seed}", seed, f"-DBALLAST={SIZE}") for seed in range(arguments.builds)]
        idents = [program.id for program in made]

        def upstream(name):
            server = servers.Faults(top / name, [])
            for program in made:
                server.serve(program, "executable")
            server.behave(f"delay:{DELAY_MS / 1000}")
            return server

        print(f"{arguments.builds} builds of {SIZE >> 20} MiB, {DELAY_MS} ms upstream")
        print(f"{'members':>8} {'alone: GETs':>12} {'MiB':>6} {'s':>7} {'shared: GETs':>13} {'MiB':>6} {'s':>7}"
              f" {'time shared/alone':>18}")
        for number, members in enumerate(arguments.members):
            row = []
            for way in ("alone", "shared"):
                place = top / f"{way}{number}"
                place.mkdir()
                server = upstream(f"{way}-served{number}")
                with contextlib.ExitStack() as stack:
                    stack.callback(server.stop)
                    url = server.url
                    if way == "shared":
                        options = ["allow_other"] if tools.IS_ROOT else []
                        shared = stack.enter_context(mounted(tools, place / "shared", url, *options))
                        here = stack.enter_context(mounted(tools, place / "shared", None, *options))
                        nginx = exports.NginxOverMount(shared, here, place / "nginx")
                        stack.callback(nginx.stop)
                        url = nginx.url
                    begun = time.monotonic()
                    for member in range(members):
                        with mounted(tools, place / f"member{member}", url) as mount:
                            read_all(mount, idents)
                    row.append((server.count(), time.monotonic() - begun))
            (alone, alone_s), (shared, shared_s) = row
            print(f"{members:8} {alone:12} {alone * SIZE >> 20:6} {alone_s:7.2f} {shared:13} {shared * SIZE >> 20:6} "
                  f"{shared_s:7.2f} {shared_s / alone_s:18.2f}")
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    sys.exit(main())
