# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers, and the contents of a store, for the tests of downloads."""
import concurrent.futures
import json
import os
import pathlib
import subprocess

import tools


def reader(path, output=subprocess.DEVNULL):
    """A process that reads the file."""
    return subprocess.Popen(["cat", str(path)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)


def read(path):
    """The content, or the errno."""
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as trouble:
        return trouble.errno


def read_all(paths):
    """The same for many at once, in the order of the paths."""
    with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
        return list(pool.map(read, paths))


def names(mount, ident, kind="elf"):
    """Two names for one artifact in different directories: what the kernel remembers of the one, it does not know of the other."""
    return mount.artifact(ident, kind), mount.debug_file(ident) if kind == "debuginfo" else mount.elf_file(ident)


def evict_all(env, store):
    """Evict what was fetched. With passthrough the kernel closes the files of a mount a moment after it has ended."""
    gc = [tools.BIDCTL, "--store", store, "--json", "gc", "--cache-size=1"]
    tools.wait_until(lambda: not json.loads(tools.run(*gc, env=env, status=None).stdout)["totals"]["in_use"], "the eviction")


def covered(env, store, *arguments, status=0):
    """
    What `bidctl get` says of a store that a mount covers, in which it has no servers of its own. Of an absence it is not sure if
    the mount does not tell within 2 s how it fares.
    """
    return tools.run(tools.BIDCTL, "--store", store, "get", *arguments, env=env, status=status)


def covered_many(env, store, ident, *arguments, status=0):
    """The same of a list."""
    argv = ["sh", "-c", f'echo {ident} | "$@"', "sh", tools.BIDCTL, "--store", store, "get", *arguments]
    return tools.run(*argv, env=env, status=status)


def await_waiters(mount, number):
    tools.wait_until(lambda: sum(one["waiters"] for one in mount.status()["downloads"]) >= number, f"{number} readers", 60)


def await_transfer(mount):
    """Wait until a body is coming in."""
    tools.wait_until(lambda: any(download["received"] > 0 for download in mount.status()["downloads"]), "bytes of a download")


def contents(store):
    """Every file and link of a store, but what is remembered of where things came from, and are not."""
    found = set()
    for at, _, files in os.walk(store):
        found |= {os.path.relpath(os.path.join(at, name), store) for name in files}
    own = (".bidfs/record/", ".bidfs/first/", ".bidfs/absent/", ".bidfs/fetching", ".bidfs/lock")
    return {path for path in found if not path.startswith(own)}


def leftovers(store):
    """Files that a transaction should have removed, named or not."""
    return [path for path in contents(store) if path.startswith(".bidfs/tmp")]
