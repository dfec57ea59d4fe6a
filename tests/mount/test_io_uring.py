# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests over io_uring: asked for and had, or a reason that is true."""
import concurrent.futures
import hashlib
import pathlib
import re

import pytest

import programs
import tools
from uring import PARAMETER, allowed, kept

N_BUILDS = 40
SERVERS = "there are servers to ask"


@pytest.fixture
def offered(needs_root):
    if tools.version(tools.run("pkg-config", "--modversion", "fuse3").stdout) < (3, 18):
        pytest.skip("io_uring needs libfuse 3.18")
    if not PARAMETER.exists():
        pytest.skip(f"this kernel has no '{PARAMETER}'")


@pytest.fixture
def over_uring(offered, mount):
    def make(*options):
        with allowed():
            m = mount("io_uring", *options)
            status = m.status()
        if status["io_uring_reason"] == "libfuse was built without liburing":
            m.expect("no io_uring: libfuse was built without liburing")
            m.permit("fuse: failed to start io-uring")
            pytest.skip("libfuse was built without liburing")
        assert status["io_uring"] and not status["io_uring_reason"], status
        return m

    return make


@pytest.fixture
def builds(place, store):
    made = [programs.small(place / f"p{n}", n) for n in range(2)] + [programs.small(place / "large", 2, "-DBALLAST=3000000")]
    for build in made:
        programs.into_store(store, build.id, f"/usr/bin/{build.path.name}", build.path)
    return made


def threads_of(m):
    return [comm.read_text().strip() for comm in pathlib.Path(f"/proc/{m.pid}/task").glob("*/comm")]


def test_it_carries_the_requests(over_uring, mode, builds):
    """Not only does status say so: its threads are there, and readers, more than it has places, get the right bytes."""
    m = over_uring()
    assert any(name.startswith("fuse-ring") for name in threads_of(m)), threads_of(m)
    right = {build.id: hashlib.sha256(build.read()).digest() for build in builds}

    def look(turn):
        build = builds[turn % len(builds)]
        return hashlib.sha256(m.artifact(build.id).read_bytes()).digest() == right[build.id]

    with concurrent.futures.ThreadPoolExecutor(N_BUILDS) as readers:
        assert all(readers.map(look, range(10 * N_BUILDS)))
    assert sorted(path.name for path in (m / "buildid").iterdir()) == sorted(right)


def test_status_does_not_take_the_wish_for_the_deed(offered, mount):
    """Kernel and libfuse agree, and yet one without liburing does not: what counts is how the first request came."""
    with allowed():
        m = mount("io_uring")
        status = m.status()
    m.permit("no io_uring: libfuse was built without liburing|failed to start io-uring")
    assert status["io_uring"] == any(name.startswith("fuse-ring") for name in threads_of(m)), status
    assert status["io_uring"] == (status["io_uring_reason"] == "")


def test_not_where_somebody_may_wait(offered, mount, faults):
    """libfuse does not tell of interrupts that come for what came over it; test_waits.py has what would become of Ctrl-C."""
    with allowed():
        m = mount("io_uring", f"url={faults().url}")
        status = m.status()
    m.expect(f"no io_uring: {SERVERS}")
    assert not status["io_uring"] and SERVERS in status["io_uring_reason"]
    assert not any(name.startswith("fuse-ring") for name in threads_of(m))


def test_unmounted_in_the_middle(over_uring, builds):
    """A daemon whose readers are at it ends as any, and the kernel's setting is what it was."""
    with kept() as before:
        pass
    m = over_uring()
    with open(m.artifact(builds[2].id), "rb") as file:
        assert file.read(4) == b"\x7fELF"
    m.unmount()
    with kept() as after:
        assert after == before


def test_told_of(mount):
    """Asked for or not: it is used, or there is a reason and a mount all the same."""
    for options in ([], ["io_uring"]):
        m = mount(*options)
        status = m.status()
        assert status["io_uring"] == (status["io_uring_reason"] == "")
        if options and not status["io_uring"]:
            m.expect(f"no io_uring: {status['io_uring_reason']}")
            assert re.search("libfuse before 3.18|enable_uring|liburing", status["io_uring_reason"])
        else:
            assert status["io_uring"] or re.search("libfuse before 3.18|not asked for", status["io_uring_reason"])
        m.unmount()
