# SPDX-License-Identifier: LGPL-2.1-or-later
"""Passthrough to a store on stacked file systems: beyond one layer the daemon reads by itself, and reports so."""
import pathlib

import pytest

import daemon
import programs
import tools
from test_status import parse_metrics

BALLAST = 4_000_000

pytestmark = [pytest.mark.usefixtures("needs_root", "needs_passthrough"), pytest.mark.passthrough]


@pytest.fixture
def needs_passthrough():
    if missing := tools.why_no_passthrough():
        pytest.skip(missing)


@pytest.fixture
def layers(workdir):
    """
    Return a function that adds an overlay; the first one lies over a tmpfs. List this fixture before `mount`, to be removed after
    it.
    """
    base = workdir / "base"
    base.mkdir()
    tools.run("mount", "-t", "tmpfs", "tmpfs", base)
    made = []

    def make():
        at = base / f"on{len(made)}"
        lower = made[-1] if made else at / "lower"
        for directory in (at / "upper", at / "work", at / "merged", lower):
            directory.mkdir(parents=True, exist_ok=True)
        options = f"lowerdir={lower},upperdir={at}/upper,workdir={at}/work"
        tools.run("mount", "-t", "overlay", "-o", options, "overlay", at / "merged")
        made.append(at / "merged")
        return made[-1]

    yield make
    for path in [*reversed(made), base]:
        # `bidctl status` of other tests opens each mount for a moment
        tools.wait_until(lambda path=path: daemon.unmount(path).returncode == 0, f"unmounting '{path}'")


def build_in(workdir, store):
    store.mkdir(parents=True, exist_ok=True)
    build = programs.small(workdir / "large", 3, f"-DBALLAST={BALLAST}")
    programs.into_store(store, build.id, "/usr/bin/large", build.path)
    return build


def read_by_daemon(mnt, build):
    """Return the bytes that the daemon reads while a reader reads the whole file, and check the content."""
    def bytes_read():
        return int(dict(line.split(": ") for line in pathlib.Path(f"/proc/{mnt.pid}/io").read_text().splitlines())["rchar"])

    before = bytes_read()
    assert mnt.artifact(build.id).read_bytes() == build.read()
    return bytes_read() - before


def not_taken(mnt):
    return parse_metrics((mnt / ".bidfs/metrics").read_text())["bidfs_not_passed_through_total"]


def test_store_on_overlayfs_works(layers, mount, workdir):
    store = layers() / "store"
    build = build_in(workdir, store)
    mnt = mount("passthrough=on", on=store)
    assert read_by_daemon(mnt, build) < BALLAST / 10
    assert (mnt.status()["mode"], mnt.status()["mode_reason"], not_taken(mnt)) == ("passthrough", "", 0)


def test_store_on_two_overlays_works(layers, mount, workdir):
    layers()
    store = layers() / "store"
    build = build_in(workdir, store)
    mnt = mount("passthrough=on", on=store)
    mnt.expect("because the kernel does not: they lie below too many file systems")
    for _ in range(3):
        assert read_by_daemon(mnt, build) > 0
    assert mnt.status()["mode_reason"] == f"except {not_taken(mnt):.0f} opens of files that the kernel refused: " \
                                        "Too many levels of symbolic links" and not_taken(mnt) >= 1
    assert mnt.log().count("because the kernel does not") == 1


@pytest.mark.parametrize("more", [0, 1])
def test_mount_over_mount_exceeds_passthrough_depth(layers, mount, workdir, store, more):
    """Passthrough of each mount is a layer; with an overlay below them they exceed the kernel's limit."""
    lower_store = layers() / "store" if more else workdir / "team"
    build = build_in(workdir, lower_store)
    lower = mount("passthrough=on", on=lower_store)
    mnt = mount("passthrough=on", f"lower={lower}")
    if more:
        mnt.expect("because the kernel does not: they lie below too many file systems")
    passed = read_by_daemon(mnt, build) < BALLAST / 10
    assert passed == (not more) == (not_taken(mnt) == 0)


def test_overlayfs_on_mount_works(layers, mount, workdir, store):
    """Container engines stack overlayfs like this."""
    build = build_in(workdir, store)
    mnt = mount("passthrough=on")
    at = layers().parent / "over"
    at.mkdir()
    tools.run("mount", "-t", "overlay", "-o", f"lowerdir={mnt}:{workdir}/base/on0/lower", "overlay", at)
    try:
        assert (at / "buildid" / build.id / "elf").read_bytes() == build.read()
    finally:
        tools.run("umount", at)
