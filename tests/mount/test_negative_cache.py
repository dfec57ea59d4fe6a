# SPDX-License-Identifier: LGPL-2.1-or-later
"""Negative cache entries: one request for each absent artifact, kept over restarts, shared by all programs, dropped on request."""
import errno
import os
import time

import pytest

import programs
import tools
from daemon import CACHED
from fetching import covered, covered_many, evict_all, names, read, read_all


@pytest.fixture
def program(workdir):
    return programs.small(workdir / "app")


def get(mnt, env, program, *options, status=0):
    return tools.run(tools.BIDCTL, "--store", mnt.store, "get", *options, program.id, "elf", env=env, status=status)


def test_absence_is_cached_over_restarts(mount, mode, faults, program, env):
    server = faults()
    mnt = mount(f"url={server.url}")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    mnt.unmount()
    mnt = mount(f"url={server.url}")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    # bidctl uses the entry, too, and names the option for a retry
    done = get(mnt, env, program, f"--url={server.url}", status=1)
    assert "--refresh" in done.stderr
    assert server.count(program.id) == 1


def test_refused_request_is_not_cached_as_absent(mount, mode, faults, workdir, program, env):
    """Storage services send 403 for absent files, too: the id has a backoff and no negative entry; other ids are requested."""
    server, other = faults("error:403"), programs.forge(program, "ab" * 20, workdir / "other")
    mnt = mount(f"url={server.url}", "errors=strict")
    mnt.permit(server.url)
    first, second = names(mnt, program.id)
    assert read(first) == errno.EHOSTUNREACH
    time.sleep(0.3)  # longer than the result stays for other readers
    assert read(second) == errno.EHOSTUNREACH
    assert server.count(program.id) == 1 and mnt.counter("negative_entries") == 0
    assert mnt.status()["servers"][0]["breaker"] == "closed"
    server.serve(other)
    server.behave("ok")
    assert read(mnt.artifact(other.id)) == other.read()
    # another process does not share the backoff
    server.serve(program)
    get(mnt, env, program, f"--url={server.url}")
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "the stored file")


def test_refresh_drops_the_negative_entry_for_all_programs(mount, mode, faults, program, env):
    """After a 404, `bidctl get --refresh` finds the file, and the mount has it at once, too."""
    server = faults()
    mnt = mount(f"url={server.url}")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT
    get(mnt, env, program, f"--url={server.url}", "--refresh", status=1)
    server.serve(program)
    get(mnt, env, program, f"--url={server.url}", status=1)
    assert server.count(program.id) == 2
    get(mnt, env, program, f"--url={server.url}", "--refresh")
    tools.wait_until(lambda: read(first) == read(second) == program.read(), "the file")
    assert server.count(program.id) == 3


def test_absence_is_cached_per_server(mount, faults, workdir, program):
    """The first server responds 404 and the second one 410; the third one has the file or not."""
    servers = [faults(root=workdir / f"server-{number}") for number in range(3)]
    servers[1].behave("gone")
    forged = [programs.forge(program, f"{number:02x}" * 20, workdir / f"app-{number}") for number in range(40)]
    here = forged[::2]
    for build in here:
        servers[2].serve(build)
    mnt = mount(*(f"url={server.url}" for server in servers), "wait=30")
    for _ in range(3):
        answers = read_all([mnt.artifact(build.id) for build in forged])
        assert answers == [build.read() if build in here else errno.ENOENT for build in forged]
    for build in forged:
        assert servers[2].count(build.id) == 1
        assert all(server.count(build.id) <= 1 for server in servers[:2])
        assert build in here or all(server.count(build.id) == 1 for server in servers)


def test_outage_is_not_cached_as_absence(mount, faults, workdir, program):
    healthy, sick = faults(root=workdir / "healthy"), faults("error:500", root=workdir / "sick")
    mnt = mount(f"url={healthy.url}", f"url={sick.url}")
    mnt.permit(sick.url)
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT
    sick.serve(program)
    sick.behave()
    tools.wait_until(lambda: read(second) == program.read(), "the file")
    # nothing further happens at the healthy server
    assert healthy.count(program.id) == 1


@pytest.mark.parametrize("answer", ["error:501", "error:405", "error:422", "error:503::invalid buildid"])
def test_unsupported_request_is_not_cached_as_absence(mount, mode, faults, program, answer):
    """The server does not support the request or its form: requests have a backoff, but no lasting negative entry."""
    server = faults(answer)
    mnt = mount(f"url={server.url}")
    for name in names(mnt, program.id) * 3:
        assert read(name) == errno.ENOENT
    assert server.count(program.id) == 1
    assert mnt.counter("negative_entries") == 0
    mnt.unmount()
    server.behave()
    server.serve(program)
    mnt = mount(f"url={server.url}")
    assert read(mnt.artifact(program.id)) == program.read()


def test_damaged_negative_cache_is_ignored(mount, faults, program, store):
    """A damaged file counts as an empty cache."""
    server = faults()
    (store / ".bidfs").mkdir(exist_ok=True)
    (store / ".bidfs/absent").write_bytes(bytes(range(256)) * 20)
    mnt = mount(f"url={server.url}")
    first, second = names(mnt, program.id)
    assert read(first) == errno.ENOENT and read(second) == errno.ENOENT
    assert server.count(program.id) == 1
    assert len([path for path in (store / ".bidfs/absent").rglob("*") if path.is_symlink()]) == 1


def test_status_counts_hits_misses_and_absences(mount, mode, faults, program, env):
    """Found artifacts are a part of the responses; requests without a response are counted apart."""
    server = faults("hang-up")
    mnt = mount(f"url={server.url}")
    mnt.expect("broke off without a response")
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    server.behave()
    server.serve(program)
    tools.wait_until(lambda: read(mnt.artifact(program.id)) == program.read(), "an answer")
    tools.await_status(env, mnt.store, "   100%       1 ")


def forget(mnt, text):
    os.setxattr(mnt / ".bidfs", "user.bidfs.refresh", text.encode())


def every_name(mnt, ident):
    """Return the names of both files in each view."""
    build, perf, debug = mnt / "buildid" / ident, mnt / "[debuginfod]" / ident, mnt / "usr/lib/debug/.build-id" / ident[:2]
    return ([build / "elf", build / "executable", perf / "elf", debug / ident[2:]],
            [build / "debuginfo", perf / "debug", debug / f"{ident[2:]}.debug"])


def test_refresh_requests_absent_file_again(mount, mode, faults, workdir, program, store):
    """R8: under all names that were looked up before, once the kernel's negative names expired; kept over a restart."""
    server = faults()
    mnt = mount(f"url={server.url}", at=store)
    elfs, debugs = every_name(mnt, program.id)
    assert all(read(name) == errno.ENOENT for name in elfs + debugs)
    server.serve(program)
    assert all(read(name) == errno.ENOENT for name in elfs + debugs)
    assert server.count(program.id) == server.count(program.id, "debuginfo") == 1
    forget(mnt, program.id)
    assert mnt.counter("negative_entries") == 0
    time.sleep(CACHED)
    assert all(read(name) == program.read() for name in elfs + debugs)
    mnt.unmount()
    # other mounts of the store have dropped the entry, too
    other = mount(f"url={server.url}")
    assert other.counter("negative_entries") == 0


def test_refresh_of_one_kind_keeps_the_others(mount, mode, faults):
    server = faults()
    mnt = mount(f"url={server.url}")
    # an absent build has no sections, so a refresh of a section includes the build
    for number, (what, count) in enumerate((("executable", 1), ("debuginfo", 1), ("source/usr/src/a.c", 3)), 1):
        ident, before = f"{number:02x}" * 20, mnt.counter("negative_entries")
        # the source first: a build with two absent files causes no request for sources
        paths = [mnt / "buildid" / ident / "source/usr/src/a.c", mnt.artifact(ident), mnt.artifact(ident, "debuginfo")]
        assert [read(path) for path in paths] == 3 * [errno.ENOENT]
        assert mnt.counter("negative_entries") == before + 3
        requests = server.count()
        forget(mnt, f"{ident}/{what}")
        assert mnt.counter("negative_entries") == before + 3 - count
        time.sleep(CACHED)
        assert [read(path) for path in paths] == 3 * [errno.ENOENT]
        assert server.count() == requests + count


def test_refresh_needs_the_owner_or_root(mount, faults, program, store):
    server = faults()
    mnt = mount(f"url={server.url}", "allow_other" if tools.IS_ROOT else "rw", at=store)
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    for text in ("", "xyz", program.id[1:], f"{program.id}/", f"{program.id}/kallsyms", f"{program.id}/source/", f"/{program.id}"):
        assert tools.errno_of(forget, mnt, text) == errno.EINVAL, text
    assert tools.errno_of(os.setxattr, mnt / ".bidfs", "user.bidfs.other", b"x") == errno.EOPNOTSUPP
    assert tools.errno_of(os.setxattr, mnt / "buildid", "user.bidfs.refresh", program.id.encode()) == errno.EOPNOTSUPP
    if tools.IS_ROOT:
        argv = ["setpriv", "--reuid=20001", "--regid=20001", "--clear-groups", "/usr/bin/python3", "-c",
                "import os, sys; os.setxattr(sys.argv[1], 'user.bidfs.refresh', sys.argv[2].encode())", mnt / ".bidfs", program.id]
        assert "PermissionError" in tools.run(*argv, status=1).stderr
    assert mnt.counter("negative_entries") == 1
    mnt.unmount()
    mnt = mount(f"url={server.url}", "ro", at=store)
    assert tools.errno_of(forget, mnt, program.id) == errno.EROFS
    assert mnt.counter("negative_entries") == 1


def test_refresh_of_covered_store_reaches_the_mount(mount, mode, faults, workdir, program, env, store):
    """With a mount over the store, bidctl lets the mount refresh, past the names that the kernel cached."""
    server = faults()
    mnt = mount(f"url={server.url}", at=store)

    def refresh(ident, *what, status=0):
        return tools.run(tools.BIDCTL, "--store", store, "get", "--refresh", ident, *what, env=env, status=status)

    first, other = (programs.forge(program, ident * 20, workdir / ident) for ident in ("01", "02"))
    covered(env, store, first.id, "elf", status=1)
    server.serve(first)
    covered(env, store, first.id, "elf", status=1)
    assert server.count(first.id) == 1
    path = refresh(first.id, "elf").stdout.strip()
    assert read(path) == first.read() and server.count(first.id) == 2
    # a list of ids
    covered(env, store, other.id, "debuginfo", status=1)
    server.serve(other)
    many = tools.run("sh", "-c", f'echo {other.id} | "$@"', "sh", tools.BIDCTL, "--store", store, "get", "--refresh", "-",
                     "debuginfo", env=env).stderr
    assert "here 1" in many and read(mnt.artifact(other.id, "debuginfo")) == other.read()
    # a source file, whose negative entry only the mount knows
    ident, what = "03" * 20, ["source", "/usr/src/a.c"]
    for _ in range(2):
        covered(env, store, ident, *what, status=1)
    assert server.count(ident, "source/usr/src/a.c") == 1
    refresh(ident, *what, status=1)
    assert server.count(ident, "source/usr/src/a.c") == 2


def test_refused_refresh_names_reason_and_remedy(mount, faults, program, env, store):
    """One line names the reason and the remedy, and nothing is reported as refreshed."""
    server = faults()
    mnt = mount(f"url={server.url}", "ro", at=store)
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    for option in ("--refresh", "--accept"):
        done = covered(env, store, option, program.id, "elf", status=1)
        assert "read-only" in done.stderr and "mount it without 'ro'" in done.stderr and done.stderr.count("\n") == 1, done.stderr
        done = covered_many(env, store, program.id, option, "-", "elf", status=1)
        assert "read-only" in done.stderr and "absent 1" in done.stderr and done.stderr.count("\n") == 2, done
    mnt.unmount()
    mnt = mount(f"url={server.url}", at=store)
    server.serve(program)
    covered(env, store, "--refresh", program.id, "elf")
    mnt.unmount()
    # a stored file needs no request
    mnt = mount(f"url={server.url}", "ro", at=store)
    assert covered(env, store, "--refresh", program.id, "elf").stderr == ""


def test_accept_in_covered_store_takes_the_new_digest(mount, mode, faults, program, env, store):
    """Other bytes than the first download are accepted by an option and become the first-seen digest."""
    server = faults()
    server.serve(program)

    def begin_again():
        mnt = mount(f"url={server.url}", at=store)
        mnt.expect("other bytes than the first download")
        return mnt

    def evict(mnt):
        mnt.unmount()
        evict_all(env, store)
        return begin_again()

    mnt = mount(f"url={server.url}", at=store)
    covered(env, store, program.id, "elf")
    served = server.root / program.id / "executable"
    mnt = evict(mnt)
    served.write_bytes(program.read() + bytes(16))
    for option in ([], ["--refresh"]):
        covered(env, store, *option, program.id, "elf", status=3)
    path = covered(env, store, "--accept", program.id, "elf").stdout.strip()
    assert read(path) == served.read_bytes() != program.read()
    # the digest of the accepted file counts from now on
    evict(mnt)
    served.write_bytes(program.read() + bytes(32))
    covered(env, store, program.id, "elf", status=3)
