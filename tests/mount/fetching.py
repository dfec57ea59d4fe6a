# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers and store contents for tests of downloads."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess

import tools


def reader(path, output=subprocess.DEVNULL):
    """Start a process that reads the file."""
    return subprocess.Popen(["cat", str(path)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)


def read(path):
    """Return the content or the errno."""
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        return error.errno


def read_all(paths):
    """Read many files at once; return the results in the order of the paths."""
    with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
        return list(pool.map(read, paths))


def names(mount, ident, kind="elf"):
    """Return two names of an artifact in different directories, which the kernel caches separately."""
    return mount.artifact(ident, kind), mount.debug_file(ident) if kind == "debuginfo" else mount.elf_file(ident)


def evict_all(env, store, *options):
    """Evict all downloads. Return the totals. With passthrough the kernel closes the files of a mount a moment after its end."""
    gc = [tools.BIDCTL, "--store", store, "--json", "gc", "--cache-size=1", *options]

    def totals():
        result = json.loads(tools.run(*gc, env=env, status=None).stdout)["totals"]
        return result if not result["in_use"] else None

    return tools.wait_until(totals, "the eviction")


def covered(env, store, *arguments, status=0):
    """
    Run `bidctl get` on a store below a mount, without servers in the environment. An absence is uncertain unless the mount reports
    its state within 2 s.
    """
    return tools.run(tools.BIDCTL, "--store", store, "get", *arguments, env=env, status=status)


def covered_many(env, store, ident, *arguments, status=0):
    """Run the same for a list of ids."""
    argv = ["sh", "-c", f'echo {ident} | "$@"', "sh", tools.BIDCTL, "--store", store, "get", *arguments]
    return tools.run(*argv, env=env, status=status)


def forget(mnt, server, ident):
    """Remove the files of server and store, as thousands of them would fill a disk."""
    for directory in (server.root / ident, mnt.store / "[debuginfod]" / ident):
        shutil.rmtree(directory, ignore_errors=True)


def await_waiters(mount, number):
    tools.wait_until(lambda: sum(row["waiters"] for row in mount.status()["downloads"]) >= number, f"{number} readers")


def await_transfer(mount):
    """Wait until a body is arriving."""
    tools.wait_until(lambda: any(download["received"] > 0 for download in mount.status()["downloads"]), "bytes of a download")


def contents(store):
    """Return every file and link of a store, without the records of origins and negative cache entries."""
    found = set()
    for at, _, files in os.walk(store):
        found |= {os.path.relpath(os.path.join(at, name), store) for name in files}
    own = (".bidfs/record/", ".bidfs/first/", ".bidfs/absent/", ".bidfs/fetching", ".bidfs/lock")
    return {path for path in found if not path.startswith(own)}


def leftovers(store):
    """Return files that a transaction should have removed, with a name or without."""
    return [path for path in contents(store) if path.startswith(".bidfs/tmp")]
