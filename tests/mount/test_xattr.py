# SPDX-License-Identifier: LGPL-2.1-or-later
"""Origins of files as extended attributes."""
import errno
import os
import shutil
import time

import pytest

import programs
import tools
from fetching import names, read


def attributes(path):
    return {name.removeprefix("user.bidfs."): os.getxattr(path, name).decode() for name in os.listxattr(path)}


def test_downloaded_file_has_attributes(mount, mode, faults, workdir):
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    begun = int(time.time())
    mnt = mount(f"url={server.url}")
    path = mnt.artifact(program.id)
    assert read(path) == program.read()
    found = attributes(path)
    assert begun <= int(found.pop("time")) <= time.time()
    assert found.pop("digest").startswith("xxh3-128:")
    assert server.url in found.pop("url")
    assert {name: found[name] for name in ("id", "kind", "origin", "server")} == \
        {"id": program.id, "kind": "elf", "origin": "fetched", "server": server.url}
    # another name of the file
    assert attributes(names(mnt, program.id)[1])["origin"] == "fetched"
    # cp copies the attributes
    if shutil.which("getfattr"):
        text = tools.run("getfattr", "-d", path).stdout
        assert f'user.bidfs.server="{server.url}"' in text, text


def test_added_file_has_attributes(mount, mode, store, workdir, env):
    program = programs.small(workdir / "app")
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, env=env)
    found = attributes(mount().artifact(program.id))
    assert found["origin"] == "added" and "server" not in found and found["kind"] == "elf"


def test_file_without_record_has_no_attributes(mount, mode, store, workdir):
    """perf added the file."""
    program = programs.small(workdir / "app")
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    mnt = mount()
    assert attributes(mnt.artifact(program.id)) == {"id": program.id, "kind": "elf", "origin": "added"}
    for path in (mnt.path, mnt / "buildid", mnt / "buildid" / program.id, mnt / ".bidfs/status", mnt.artifact(program.id, "info")):
        assert os.listxattr(path) == [], path
        assert tools.errno_of(os.getxattr, path, "user.bidfs.id") == errno.ENODATA


@pytest.mark.parametrize("name", ["user.bidfs.server", "user.bidfs.", "user.bidfs", "user.other", "security.capability",
                                  "system.posix_acl_access", "trusted.x"])
def test_missing_attribute_is_enodata(mount, store, workdir, name):
    if name.startswith("trusted.") and not tools.IS_ROOT:
        pytest.skip("needs root")
    program = programs.small(workdir / "app")
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    path = mount().artifact(program.id)
    assert tools.errno_of(os.getxattr, path, name) == errno.ENODATA
    assert tools.errno_of(os.setxattr, path, "user.bidfs.id", b"x") in (errno.EROFS, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP)
    assert tools.errno_of(os.removexattr, path, "user.bidfs.id") in (errno.EROFS, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP)
