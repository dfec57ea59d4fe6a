# SPDX-License-Identifier: LGPL-2.1-or-later
"""A static tree that a publisher copies from a mount, nginx as its cache, and many clients (docs/COMPANY.md)."""
import collections
import concurrent.futures
import contextlib
import errno
import http.client
import random
import re

import pytest

import daemon
import exports
import programs
import servers
import tools

CLIENTS, OPENS, BUILDS = 1000, 20, 300


class Tree(exports.Nginx):
    """A web server for a directory."""

    def __init__(self, root, workdir):
        self.root = root
        super().__init__(workdir)

    def site(self, port):
        return f"server {{ listen 127.0.0.1:{port}; root {self.root}; location = / {{ return 404; }} }}"


class Cache(exports.Nginx):
    """The configuration of contrib/nginx in front of a tree."""

    log_format = "$request_uri $upstream_cache_status"

    def __init__(self, tree, workdir):
        self.tree = tree
        super().__init__(workdir)

    def site(self, port):
        return exports.filled_in("nginx/bidfs-cache.conf", **{
            "listen 8004": f"listen 127.0.0.1:{port}", r"http://symbols\.example\.com": self.tree.url,
            "/var/cache/nginx/bidfs": str(self.workdir / "cache"), "max_size=2000g": "max_size=1g"})

    def answers(self, ids):
        """Count the requests for these builds by cache status."""
        return collections.Counter(status for ident, status in
                                   re.findall(r"^/buildid/(\w+)/\S+ (\w+)$", self.log("access.log"), re.MULTILINE) if ident in ids)


@pytest.fixture
def served(workdir):
    """Return the tree of a directory, and the cache in front of it."""
    root = workdir / "symbols"
    (root / "buildid").mkdir(parents=True)
    with servers.stopping() as keep:
        tree = keep(Tree(root, workdir / "tree"))
        yield root, tree, keep(Cache(tree, workdir / "nginx"))


def await_file(path, program):
    """Open the file until the client has it."""
    def is_there():
        with contextlib.suppress(OSError):
            return path.read_bytes() == program.read()
        return False

    tools.wait_until(is_there, "the build")


def run_page(workdir, root, releases):
    """Run the steps of the publisher with other directories."""
    script, = re.findall(r"^```sh\n(.*?)^```$", (tools.ROOT / "docs/COMPANY.md").read_text(), re.MULTILINE | re.DOTALL)
    (workdir / "mnt").mkdir()
    for name, path in {"/var/lib/bidfs": workdir / "publisher", "/run/bidfs": workdir / "mnt", "/srv/symbols": root,
                       "/srv/releases":
                       releases, "mount.bidfs ": f"{tools.MOUNT_BIDFS} ", "bidctl ": f"{tools.BIDCTL} "}.items():
        script = script.replace(name, str(path))
    try:
        tools.run("sh", "-euc", script)
    finally:
        daemon.unmount(workdir / "mnt")


def test_published_build_reaches_client_once_for_all(mount, workdir, served):
    root, tree, cache = served
    releases = workdir / "releases"
    releases.mkdir()
    program = programs.split(programs.small(releases / "app"), releases / "app.debug")
    run_page(workdir, root, releases)
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == [f"buildid/{program.id}/{name}" for name in ("debuginfo", "executable")]
    for name in ("first", "second"):
        (workdir / name).mkdir()
        client = mount(f"url={cache.url}", on=workdir / name)
        assert (client / "buildid" / program.id / "elf").read_bytes() == program.read()
        assert (client / "debug/.build-id" / program.id[:2] / f"{program.id[2:]}.debug").read_bytes() == program.debug.read_bytes()
    tools.wait_until(lambda: sum(cache.answers([program.id]).values()) == 4, "the log of nginx")
    assert cache.answers([program.id]) == {"MISS": 2, "HIT": 2}


def test_build_published_after_404_is_found_by_refresh(mount, workdir, served):
    root, _, cache = served
    program = programs.small(workdir / "app")
    client = mount(f"url={cache.url}")
    path = client / "buildid" / program.id / "elf"
    assert tools.errno_of(path.stat) == errno.ENOENT
    (root / "buildid" / program.id).mkdir()
    (root / "buildid" / program.id / "executable").write_bytes(program.read())
    # the cache keeps its 404 for a minute
    (cache.workdir / "cache").rename(cache.workdir / "old")
    cache.stop()
    cache.start(int(cache.url.rpartition(":")[2]))
    tools.wait_until(cache.is_ready, "nginx")
    tools.run(tools.BIDCTL, "--store", client.store, "get", "--refresh", "--url", cache.url, program.id, "elf")
    await_file(path, program)


def test_outage_of_tree_is_not_absence(mount, workdir, served):
    root, tree, cache = served
    program = programs.small(workdir / "app")
    client = mount(f"url={cache.url}", "errors=strict")
    client.permit("unavailable|424|cannot be asked|unknown")
    tree.stop()
    path = client / "buildid" / program.id / "elf"
    assert tools.errno_of(path.stat) in (errno.EIO, errno.EHOSTUNREACH)
    (root / "buildid" / program.id).mkdir()
    (root / "buildid" / program.id / "executable").write_bytes(program.read())
    tree.start(int(tree.url.rpartition(":")[2]))
    tools.wait_until(tree.is_ready, "nginx")
    await_file(path, program)


@pytest.mark.limit(120)
def test_thousand_clients_get_each_build_from_tree_once(served):
    root, tree, cache = served
    ids = [f"{number:040x}" for number in range(BUILDS)]
    for ident in ids:
        (root / "buildid" / ident).mkdir()
        (root / "buildid" / ident / "executable").write_bytes(ident.encode() * 400)
    popularity = [1 / (rank + 1) for rank in range(BUILDS)]

    def be_client(seed):
        """Request each file that the client's store lacks."""
        own, chosen = set(), random.Random(seed).choices(ids, popularity, k=OPENS)
        connection = http.client.HTTPConnection(cache.url.removeprefix("http://"))
        try:
            for ident in chosen:
                if ident in own:
                    continue
                connection.request("GET", f"/buildid/{ident}/executable")
                body = connection.getresponse().read()
                assert body == ident.encode() * 400
                own.add(ident)
        finally:
            connection.close()
        return own

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        owned = list(pool.map(be_client, range(CLIENTS)))
    requests, wanted = sum(map(len, owned)), len(set().union(*owned))
    tools.wait_until(lambda: sum(cache.answers(ids).values()) == requests, "the log of nginx")
    from_tree = len(re.findall(r"^GET /buildid/.* 200$", tree.log("access.log"), re.MULTILINE))
    print(f"opens {CLIENTS * OPENS}, own {CLIENTS * OPENS - requests}, cache {requests - from_tree}, tree {from_tree}")
    assert from_tree == wanted and cache.answers(ids)["MISS"] == wanted
