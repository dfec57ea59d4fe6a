# SPDX-License-Identifier: LGPL-2.1-or-later
"""A team reads a mount over NFS: a real server with the configuration of contrib/nfs."""
import hashlib
import itertools
import json
import os
import signal
import subprocess

import pytest

import exports
import programs
import servers
import tools

VERSIONS = [3, 4]
CLIENT = ["/usr/bin/python3", tools.ROOT / "tests/mount/nfs_client.py"]


@pytest.fixture
def ganesha(mount, workdir):
    missing = exports.why_no_nfs()
    if missing:
        pytest.skip(missing)
    numbers = itertools.count()
    with servers.stopping() as keep:
        yield lambda exported: keep(exports.Ganesha(exported, workdir / f"nfs{next(numbers)}"))


@pytest.mark.limit(180)
@pytest.mark.parametrize("version", VERSIONS)
def test_thousand_files_are_equal_over_nfs(ganesha, mount, mode, store, workdir, version):
    """Compare every byte of some real programs and many small files."""
    count = int(os.environ.get("BID_TEST_NFS_FILES", "1000"))
    sample = programs.small(workdir / "app", 1)
    contents = {}
    for number in range(count):
        ident = f"{number % 256:02x}{number:038x}"
        forged = programs.forge(sample, ident, workdir / "forged")
        programs.into_store(store, ident, f"/usr/bin/app{number}", forged.path)
        contents[ident] = forged.read()
    server = ganesha(mount("allow_other", "ro"))
    assert set(server.names(version, "buildid")) == set(contents)
    # four at a time
    parts = [list(contents)[part::4] for part in range(4)]
    clients = [subprocess.Popen(server.command(*CLIENT, version, "/bid", *(f"buildid/{ident}/elf" for ident in part)),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for part in parts]
    digests = [client.communicate()[0].split() for client in clients]
    assert digests == [[hashlib.sha256(contents[ident]).hexdigest() for ident in part] for part in parts]


@pytest.mark.limit(90)
@pytest.mark.parametrize("version", VERSIONS)
def test_miss_is_downloaded_once_for_all_clients(ganesha, mount, mode, faults, workdir, version):
    server = faults()
    program = programs.small(workdir / "app", 1)
    server.serve(program, "executable")
    nfs = ganesha(mount("allow_other", f"url={server.url}"))
    for _ in range(3):
        assert nfs.cat(version, f"buildid/{program.id}/elf") == program.read()
    assert server.count(program.id) == 1
    absent = "00" * 20
    nfs.cat(version, f"buildid/{absent}/elf", status=None)
    assert server.count(absent) == 1
    assert program.id in nfs.names(version, "buildid") and absent not in nfs.names(version, "buildid")


@pytest.mark.limit(60)
def test_status_is_readable_over_nfs(ganesha, mount, mode, faults, workdir):
    """The status is read to its end though it grows while the server caches its size; it is current with NFSv4 (docs/TEAM.md)."""
    version = 4
    upstream = faults()
    exported = mount("allow_other", f"url={upstream.url}")
    nfs = ganesha(exported)

    def absent():
        return json.loads(nfs.cat(version, ".bidfs/status"))["servers"][0].get("absent", 0)

    assert absent() == 0
    idents = [f"{number:040x}" for number in range(1, 9)]
    for ident in idents:
        nfs.cat(version, f"buildid/{ident}/elf", status=None)
        json.loads(nfs.cat(version, ".bidfs/status"))
    tools.wait_until(lambda: absent() == exported.status()["servers"][0].get("absent", 0) >= len(idents), "the content")


@pytest.mark.limit(90)
@pytest.mark.parametrize("version", VERSIONS)
def test_simultaneous_clients_download_once(ganesha, mount, mode, faults, workdir, version):
    upstream = faults("delay:1")
    program = programs.small(workdir / "app", 1, "-DBALLAST=1000000")
    upstream.serve(program, "executable")
    nfs = ganesha(mount("allow_other", f"url={upstream.url}", "wait=60"))
    herd = [subprocess.Popen(nfs.command("nfs-cat", nfs.url(version, f"buildid/{program.id}/elf")), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE) for _ in range(8)]
    assert [process.communicate()[0] == program.read() for process in herd] == 8 * [True]
    assert upstream.count(program.id) == 1


@pytest.mark.limit(90)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("failure", ["error:503", "stall-headers"])
def test_upstream_outage_is_an_error_not_absence(ganesha, mount, faults, workdir, store, version, failure):
    """
    With the options of docs/TEAM.md no client takes an outage for absence; stored files are readable meanwhile, and all files
    afterwards.
    """
    upstream = faults()
    program, kept = (programs.small(workdir / f"app{number}", number) for number in range(2))
    upstream.serve(program, "executable")
    programs.into_store(store, kept.id, "/usr/bin/kept", kept.path)
    # three responses of one kind come within a second except on a busy machine; responses of the other kind never come
    wait = ["wait=60"] if failure == "error:503" else []
    exported = mount("allow_other", f"url={upstream.url}", *exports.team_options(), *wait)
    exported.permit(upstream.url)
    nfs, name = ganesha(exported), f"buildid/{program.id}/elf"
    upstream.behave(failure)
    # kernel clients retry for longer than wait=, until the file is there
    error = "SERVERFAULT" if failure == "error:503" else "NFS3ERR_JUKEBOX" if version == 3 else "NFS4ERR_DELAY"
    assert error in nfs.run("nfs-cat", nfs.url(version, name), status=10).stderr
    assert nfs.cat(version, f"buildid/{kept.id}/elf") == kept.read()
    upstream.behave()
    upstream.release()
    tools.wait_until(lambda: nfs.run("nfs-cat", nfs.url(version, name), status=None, text=False).stdout == program.read(),
                     "the file")


@pytest.fixture
def shared(needs_root, workdir):
    """Make a directory whose mounts propagate into the server's namespace."""
    path = workdir / "shared"
    path.mkdir()
    tools.run("mount", "--bind", path, path)
    tools.run("mount", "--make-shared", path)
    yield path
    tools.run("umount", "-R", path)


def take_device(shared, device):
    """Occupy the lowest free device numbers up to @device, as a new mount gets the lowest one."""
    for _ in range(50):
        other = shared / f"other{len(list(shared.iterdir()))}"
        other.mkdir()
        tools.run("mount", "-t", "tmpfs", "tmpfs", other)
        if os.stat(other).st_dev == device:
            break


@pytest.mark.limit(120)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", ["killed", "reexported"])
def test_client_survives_remount(shared, ganesha, mount, mode, store, workdir, version, how):
    """
    Daemon and server are killed and restarted, or the running server releases the mount and takes the new one, which has another
    device number. The client keeps reading by its handles.
    """
    built = [programs.small(workdir / f"app{seed}", seed) for seed in range(3)]
    for program in built:
        programs.into_store(store, program.id, f"/usr/bin/{program.path.name}", program.path)
    mnt = mount("allow_other", "ro", at=shared / "m")
    server, device = ganesha(mnt), os.stat(mnt.path).st_dev
    names = [f"buildid/{program.id}/elf" for program in built]
    with subprocess.Popen(server.command(*CLIENT, version, "/bid", *names),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        expected = [hashlib.sha256(program.read()).hexdigest() for program in built]
        assert client.stdout.readline().split() == expected
        if how == "killed":
            mnt.die()
            server.server.kill()
            server.server.wait()
            tools.run("umount", "-l", mnt.path)
        else:
            server.release_fd()
            mnt.unmount()
        take_device(shared, device)
        while os.stat((again := mount("allow_other", "ro", at=mnt.path)).path).st_dev == device:
            # another mount had the number and has released it
            again.unmount()
            take_device(shared, device)
        if how == "killed":
            server.start()
        else:
            server.take()
        client.stdin.write("again\n")
        client.stdin.close()
        assert client.stdout.readline().split() == expected
        assert client.wait() == 0
    for name, program in zip(names, built):
        assert server.cat(version, name) == program.read()
    assert server.server.poll() is None


@pytest.mark.limit(60)
@pytest.mark.parametrize("version", VERSIONS)
def test_private_file_is_refused_to_clients(ganesha, mount, store, workdir, version):
    """All_Squash maps each client to nobody, whatever user it claims."""
    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path).chmod(0o700)
    server = ganesha(mount("allow_other", "ro"))
    refused = server.run("nfs-cat", server.url(version, f"buildid/{program.id}/elf"), status=None, text=False)
    assert refused.returncode != 0 and program.read()[:64] not in refused.stdout


@pytest.mark.limit(900 if os.environ.get("BIDFS_FULL") else 60)
@pytest.mark.parametrize("version", VERSIONS)
def test_forged_nfs_handle_is_refused(ganesha, mount, store, workdir, version):
    """
    R29: truncated, flipped and random handles, near a valid one and far from it. The server refuses them, and server and daemon
    survive.
    """
    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, "/usr/bin/app", program.path)
    mnt = mount("allow_other", "ro")
    server, name = ganesha(mnt), f"buildid/{program.id}/elf"
    count = 100000 if os.environ.get("BIDFS_FULL") else 2000
    forger = ["/usr/bin/python3", tools.ROOT / "tests/mount/nfs_forger.py", version, "/bid", name,
              os.stat(mnt / name).st_ino, count]
    answers = json.loads(server.run(*forger).stdout)
    print(answers)
    # three requests for each handle give NFS3ERR_STALE or NFS3ERR_BADHANDLE; some forged numbers are valid by chance
    assert answers["70"] > count and answers["10001"] > count and answers.get("0", 0) < count / 10, answers
    assert server.server.poll() is None and server.cat(version, name) == program.read()
    assert mnt.end(signal.SIGTERM) == 0
