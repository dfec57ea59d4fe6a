# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each test has its own directory, store, mounts, servers and time limit, and fails for unexpected errors in its daemons' logs."""
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading

import pytest

import daemon
import servers
import tools
from clock import Clock
from container import Container, why_no_container

sys.dont_write_bytecode = True

LIMIT = 60  # seconds, unless the marker "limit" names others
GRACE = 30  # seconds later the daemons are killed, to end a wait that no signal interrupts


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of the list release, unless BIDFS_FULL is set or the command line names the test."""
    if os.environ.get("BIDFS_FULL"):
        return
    release = {line.strip() for line in (tools.ROOT / "tests/lists/release").read_text().splitlines()}
    release -= {arg.partition("[")[0].rpartition("/")[2] for arg in config.args}
    left_out = [item for item in items if f"{item.path.name}::{item.originalname}" in release]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): how long the test may take")
    for mode in ("passthrough", "daemon", "no_open"):
        config.addinivalue_line("markers", f"{mode}: in that mode")
    # a shell starts background programs with SIGINT ignored, which all children would inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config):
    return f"bidfs: {tools.BUILD}; passthrough: {tools.why_no_passthrough() or 'yes'}"


@contextlib.contextmanager
def limited(item):
    marker = item.get_closest_marker("limit")
    seconds = (marker.args[0] if marker else LIMIT) * tools.PATIENCE

    def too_long(*_):
        raise tools.TimeLimit(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, GRACE)
    watchdog = threading.Timer(seconds + GRACE, kill_daemons, [item])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def kill_daemons(item):
    for mount in getattr(item, "bidfs_mounts", []):
        mount.process.kill()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    with limited(item):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with limited(item):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    with limited(item):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for mount in getattr(item, "bidfs_mounts", []):
            if mount.log_path.exists():
                report.sections.append((f"log of {mount.path}", mount.log()))


@pytest.fixture
def workdir():
    """Make a directory for the test. Its path is short, and other users may enter it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="bm-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    left = [mounted for mounted in daemon.mount_points() if mounted.startswith(f"{path}/")]
    for mounted in reversed(left):
        daemon.unmount(mounted, "-l")
    shutil.rmtree(path)
    assert not left, f"still mounted at the end: {left}"


@pytest.fixture
def env(workdir):
    (workdir / "home").mkdir(mode=0o700)
    return tools.environment(workdir / "home")


@pytest.fixture
def store(workdir):
    path = workdir / "store"
    path.mkdir()
    return path


@pytest.fixture
def memory():
    """Make a directory in memory, if possible: a disk takes half a minute to delete ten thousand ids."""
    there = "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="bm-", dir=there if os.access(there, os.W_OK) else None) as path:
        yield pathlib.Path(path)


@pytest.fixture
def needs_root():
    if not tools.IS_ROOT:
        pytest.skip("needs root")


@pytest.fixture(params=[pytest.param(mode, marks=getattr(pytest.mark, mode)) for mode in tools.MODES])
def mode(request):
    """Set how mounts of the test read files; "no_open" mounts are read-only."""
    return request.param


@pytest.fixture
def mount(request, workdir, store, env):
    """
    Return a function that mounts a store, by default that of the test. At the end all mounts are unmounted and all logs checked.
    """
    mounts = request.node.bidfs_mounts = []
    mode = request.getfixturevalue("mode") if "mode" in request.fixturenames else None

    def make(*options, at=None, on=None, env_more=None, program=tools.MOUNT_BIDFS):
        path = pathlib.Path(at or workdir / f"m{len(mounts)}")
        path.mkdir(exist_ok=True)
        if mode:
            read_only = ["ro"] if mode == "no_open" else []
            options = [f"passthrough={'auto' if mode == 'passthrough' else 'off'}", *read_only, *options]
        made = daemon.Mount(on or store, path, options, {**env, **(env_more or {})}, workdir / f"log-{len(mounts)}", program)
        mounts.append(made)
        made.await_ready()
        if mode:
            expected = "no_open" if mode == "daemon" and "ro" in options else mode
            assert made.status()["mode"] == expected, made.status()["mode_reason"]
        return made

    yield make
    failures = []
    for made in reversed(mounts):
        try:
            made.unmount()
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)


@pytest.fixture
def clock(workdir):
    """Make a clock that the test moves: mount(..., env_more=clock.env)."""
    return Clock(workdir / "clock")


@pytest.fixture
def with_descriptors(workdir):
    """Return a function that makes a mount.bidfs with a limit of descriptors."""
    def make(descriptors):
        program = workdir / f"with-{descriptors}"
        program.write_text(f'#!/bin/sh\nulimit -n {descriptors}\nexec {tools.MOUNT_BIDFS} "$@"\n')
        program.chmod(0o755)
        return program

    return make


@pytest.fixture
def container(workdir):
    """Start a container with systemd."""
    if why_no_container():
        pytest.skip(why_no_container())
    made = Container(workdir)
    yield made
    made.end()


@pytest.fixture
def mountpoint(workdir):
    """Make a directory for a mount in the background, whose daemon is found by its command line."""
    path = workdir / "mnt"
    path.mkdir()
    yield path
    if daemon.is_mounted(path):
        # `bidctl status` of other tests reads every mount of the machine
        tools.wait_until(lambda: daemon.unmount(path).returncode == 0, f"unmounting '{path}'")
    if daemon.other_namespaces_with(path):
        for pid in daemon.daemons_of(path):
            os.kill(pid, signal.SIGTERM)
    tools.wait_until(lambda: not daemon.daemons_of(path), f"end of the daemon of '{path}'")


@pytest.fixture
def faults(workdir):
    """Return a function that starts a misbehaving server (tests/faults/server.py)."""
    with servers.stopping() as keep:
        def start(*behaviours, root=None, port=0, certificate=None):
            root = pathlib.Path(root or workdir / "served")
            root.mkdir(exist_ok=True)
            return keep(servers.Faults(root, behaviours, port, certificate))

        yield start


@pytest.fixture
def certificate(workdir):
    """Make a self-signed certificate of this machine and its key, in one file."""
    path = workdir / "front.pem"
    tools.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch", "-days", "2",
              "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", path)
    return path


@pytest.fixture(scope="session", autouse=True)
def built():
    """Fail unless the tested programs are built."""
    missing = [str(path) for path in (tools.MOUNT_BIDFS, tools.BIDCTL) if not os.access(path, os.X_OK)]
    assert not missing, f"not built: {missing}: name the build directory in BIDFS_BUILD"
