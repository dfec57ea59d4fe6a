# SPDX-License-Identifier: LGPL-2.1-or-later
"""Extended attributes of files. test_get_verbose.py has those of the directory of an id."""
import errno
import os

import pytest

import programs
import tools


@pytest.fixture
def elf(mount, store, workdir):
    program = programs.small(workdir / "app")
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    return mount().artifact(program.id)


def test_file_has_its_kind_as_attribute(elf):
    assert os.listxattr(elf) == ["user.bidfs.kind"] and os.getxattr(elf, "user.bidfs.kind") == b"elf"
    for path in (elf.parent, elf.parent / "info", elf.parent.parent, elf.parent.parent.parent / ".bidfs/status"):
        assert os.listxattr(path) == [], path
        assert tools.errno_of(os.getxattr, path, "user.bidfs.kind") == errno.ENODATA


@pytest.mark.parametrize("name", ["user.bidfs.server", "user.bidfs.", "user.bidfs", "user.other", "security.capability",
                                  "system.posix_acl_access", "trusted.x"])
def test_missing_attribute_is_enodata(elf, name):
    if name.startswith("trusted.") and not tools.IS_ROOT:
        pytest.skip("needs root")
    assert tools.errno_of(os.getxattr, elf, name) == errno.ENODATA
    for act in (lambda: os.setxattr(elf, "user.bidfs.kind", b"x"), lambda: os.removexattr(elf, "user.bidfs.kind")):
        assert tools.errno_of(act) in (errno.EROFS, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP)
