# SPDX-License-Identifier: LGPL-2.1-or-later
"""R20: what a user may not read in the store he does not read through the mount, and what he may he does."""
import contextlib
import gzip
import hashlib
import json
import os
import struct
import time

import pytest

import programs
import tools

ALICE, BOB, CAROL, GROUP = 20001, 20002, 20003, 20100  # the owner, one of the file's group, and somebody else
USERS = {"root": (0, 0), "alice": (ALICE, ALICE), "bob": (BOB, GROUP), "carol": (CAROL, CAROL)}
MODES = (0o400, 0o440, 0o444, 0o040, 0o004, 0o000, 0o555, 0o604)
READ = """
import hashlib, json, sys
def tell(path):
    try:
        return hashlib.sha256(open(path, "rb").read()).hexdigest()
    except OSError as trouble:
        return trouble.errno
print(json.dumps([tell(path) for path in sys.argv[1:]]))
"""


def told(user, paths):
    """What each of the files is to a user: a digest, or an errno."""
    uid, gid = USERS[user]
    drop = [] if user == "root" else ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    return json.loads(tools.run(*drop, "/usr/bin/python3", "-c", READ, *paths).stdout)


@pytest.fixture
def files(place, store):
    """[(build, its file in the store)], one for each mode."""
    first = programs.small(place / "first")
    made = []
    for number, mode in enumerate(MODES):
        build = programs.forge(first, f"{number:08x}{first.id[8:]}", place / f"app{number}")
        build.path.chmod(0)
        stored = programs.into_store(store, build.id, f"/usr/bin/app{number}", (place / f"app{number}").read_bytes())
        os.chown(stored, ALICE, GROUP)
        stored.chmod(mode)
        made.append((build, stored))
    return made


@pytest.mark.parametrize("option", ["allow_other", "alone"])
def test_each_user_each_mode(needs_root, mount, mode, files, option):
    """64 cases: as the kernel answers where the file is, even if root has just read it; without allow_other, nobody else."""
    m = mount(*([option] if option == "allow_other" else []))
    mounted, at_source = [m.artifact(build.id) for build, _ in files], [stored for _, stored in files]
    right = [hashlib.sha256(build.read()).hexdigest() for build, _ in files]
    assert told("root", mounted) == right
    for user in ("alice", "bob", "carol", "root"):
        expected = told(user, at_source)
        if user == "root":
            assert expected == right
        elif option == "alone":
            expected = [13] * len(files)
        assert told(user, mounted) == expected, user
    # or all of this says nothing
    assert option == "alone" or len({json.dumps(told(user, mounted)) for user in USERS}) == len(USERS)


# what stands between a user and a file: the mode and the group of its directory, and of one above
WAYS = {
    "open": (0o755, 0, 0o755),
    "not listed": (0o711, 0, 0o755),
    "closed": (0o700, ALICE, 0o755),
    "closed above": (0o755, ALICE, 0o700),
    "a group's": (0o750, GROUP, 0o755),
    "a group's of root": (0o750, GROUP, 0o750),
    "all but a group's": (0o705, GROUP, 0o755),
}


def below(place, number, way, mode):
    """A program of alice's of this mode, and this way to it."""
    directory, group, above = WAYS[way]
    home = place / f"way{number}"
    (home / "here").mkdir(parents=True)
    build = programs.small(home / "here" / "program", number)
    os.chown(build.path, ALICE, GROUP)
    build.path.chmod(mode)
    os.chown(home / "here", 0 if "root" in way else ALICE, group)
    (home / "here").chmod(directory)
    os.chown(home, 0 if "root" in way else ALICE, GROUP if above == 0o750 else ALICE)
    home.chmod(above)
    return build


@pytest.mark.parametrize("how", ["auto", "copy", "scan"])
def test_the_directories_it_was_added_from(needs_root, mount, mode, place, store, how):
    """Who does not get to a file at its path does not read it here; whose way was open all along shares it with the store."""
    cases = [(way, bits) for way in WAYS for bits in (0o755, 0o750, 0o700)]
    builds = [below(place, number, way, bits) for number, (way, bits) in enumerate(cases)]
    what = [place / f"way{number}" for number in range(len(builds))] if how == "scan" else [build.path for build in builds]
    tools.run(tools.BIDCTL, "--store", store, "add", *(["--link=copy"] if how == "copy" else []), *what)
    m = mount("allow_other")
    sources, mounted = [build.path for build in builds], [m.artifact(build.id) for build in builds]
    right = told("root", sources)
    assert 13 not in right and told("root", mounted) == right
    for user in ("alice", "bob", "carol"):
        for case, source, there, whole in zip(cases, told(user, sources), told(user, mounted), right):
            assert there in (13, whole) and source in (13, whole), (user, case)
            assert source != 13 or there == 13, f"{user} reads what he may not: {case}"
            # what a mode can say, it does
            exact = case[0] != "all but a group's" and user != "alice"
            assert not exact or there == source, f"{user} does not read what he may: {case}"
    if how != "copy":
        shared = [case for case, build, there in zip(cases, builds, mounted)
                  if any(os.path.samefile(build.path, elf) for elf in store.glob(f"**/{build.id}/elf"))]
        assert shared == [("open", 0o755), ("not listed", 0o755)]


def within(store, first, number, way, bits):
    """A program of alice's in the store, of this mode, in directories like these."""
    directory, group, above = WAYS[way]
    build = programs.forge(first, f"{number:08x}{first.id[8:]}", first.path.parent / f"program{number}")
    stored = programs.into_store(store, build.id, f"/usr/way{number}/here/program", build.path.read_bytes())
    here = store / f"usr/way{number}/here"
    os.chown(stored, ALICE, GROUP)
    stored.chmod(bits)
    os.chown(here, 0 if "root" in way else ALICE, group)
    here.chmod(directory)
    os.chown(here.parent, 0 if "root" in way else ALICE, GROUP if above == 0o750 else ALICE)
    here.parent.chmod(above)
    return build, stored


def test_the_directories_inside_the_store(needs_root, mount, mode, place, store):
    """As those on the way to a file that is added."""
    cases = [(way, bits) for way in WAYS for bits in (0o755, 0o750, 0o700)]
    first = programs.small(place / "first")
    made = [within(store, first, number, way, bits) for number, (way, bits) in enumerate(cases)]
    m = mount("allow_other")
    sources, mounted = [stored for _, stored in made], [m.artifact(build.id) for build, _ in made]
    right = told("root", sources)
    assert 13 not in right and told("root", mounted) == right
    pieces = [m / "buildid" / build.id / "section" / ".text" for build, _ in made]
    for user in ("alice", "bob", "carol"):
        answers = told(user, sources), told(user, mounted), told(user, pieces)
        for case, whole, source, there, piece in zip(cases, right, *answers):
            assert there in (13, whole) and source in (13, whole), (user, case)
            assert source != 13 or (there == 13 and piece == 13), f"{user} reads what he may not: {case}"
            # what a mode can say, it does
            exact = case[0] != "all but a group's" and user != "alice"
            assert not exact or there == source, f"{user} does not read what he may: {case}"
    assert told("alice", mounted)[cases.index(("closed", 0o700))] != 13


@pytest.mark.parametrize("how", ["mode", "list"])
@pytest.mark.parametrize("held", [False, True], ids=["closed", "held"])
def test_a_directory_that_is_closed_later(needs_root, mount, mode, place, store, how, held):
    """Also of a file that a reader has open."""
    first = programs.small(place / "first")
    build, stored = within(store, first, 1, "open", 0o755)
    m = mount("allow_other")
    path = m.artifact(build.id)
    for _ in range(3):
        assert told("carol", [path]) == told("carol", [stored]) != [13]
        time.sleep(0.03)
    with path.open("rb") if held else contextlib.nullcontext():
        if how == "mode":
            stored.parents[2].chmod(0o750)
        else:
            try:
                os.setxattr(stored.parents[2], "system.posix_acl_access", acl(7, 5, 5, 5, {CAROL: 0}))
            except OSError as trouble:
                pytest.skip(f"no access control lists on this file system: {trouble}")
        assert told("carol", [stored]) == [13]
        tools.wait_until(lambda: told("carol", [path]) == [13], "carol is refused")
    assert told("root", [path]) == told("root", [stored]) != [13]
    stored.parents[2].chmod(0o755)
    if how == "list":
        os.removexattr(stored.parents[2], "system.posix_acl_access")
    tools.wait_until(lambda: told("carol", [path]) == told("carol", [stored]) != [13], "carol is let in")


def test_what_is_unpacked(needs_root, mount, mode, place, store):
    """Who may read a compressed module reads what is in it, which is kept beside it."""
    lower, packed = place / "lower", []
    builds = [programs.small(place / f"module{bits:o}", bits) for bits in (0o444, 0o440, 0o400)]
    for build, bits in zip(builds, (0o444, 0o440, 0o400)):
        packed.append(programs.into_store(lower, build.id, f"/lib/{bits:o}.ko.gz", gzip.compress(build.read())))
        os.chown(packed[-1], ALICE, GROUP)
        packed[-1].chmod(bits)
    m = mount("allow_other", f"lower={lower}")
    paths = [m.artifact(build.id) for build in builds]
    assert told("root", paths) == [hashlib.sha256(build.read()).hexdigest() for build in builds]
    kept = [path for path in (store / ".bidfs/unpacked").rglob("*") if path.is_file()]
    assert len(kept) == len(builds)
    for user in ("alice", "bob", "carol"):
        expected = [answer == 13 for answer in told(user, packed)]
        assert [answer == 13 for answer in told(user, paths)] == expected, user
    assert all(path.stat().st_gid == GROUP or not path.stat().st_mode & 0o040 or path.stat().st_mode & 0o004 for path in kept)


@pytest.mark.parametrize("where", ["the store", "above it"])
def test_a_store_of_a_group(needs_root, mount, mode, place, where):
    """Its group reads what it may where it is, and nobody else does."""
    store = place / "team/store"
    store.mkdir(parents=True)
    closed = store if where == "the store" else store.parent
    first, stored = programs.small(place / "first"), []
    builds = [programs.forge(first, f"{bits:08x}{first.id[8:]}", place / f"{bits:o}") for bits in (0o755, 0o750, 0o700)]
    for build, bits in zip(builds, (0o755, 0o750, 0o700)):
        stored.append(programs.into_store(store, build.id, f"/usr/bin/{bits:o}", build.path.read_bytes()))
        os.chown(stored[-1], 0, GROUP)
        stored[-1].chmod(bits)
    os.chown(closed, 0, GROUP)
    closed.chmod(0o750)
    m = mount("allow_other", on=store)
    m.expect("not open to others")
    mounted = [m.artifact(build.id) for build in builds]
    for user in USERS:
        assert told(user, mounted) == told(user, stored), user
    assert [answer == 13 for answer in told("bob", mounted)] == [False, False, True]
    info = m.artifact(builds[0].id, "info")
    assert told("bob", [info]) != [13] and told("carol", [info]) == [13]


@pytest.mark.parametrize("mode_wanted", [0o755, 0o444], ids=oct)
def test_temporary_file_is_its_owners_alone(needs_root, mount, mode, place, mode_wanted):
    """perf makes its copy 0755 before it fills it, and inotify tells the name."""
    build = programs.small(place / "program")
    m = mount("allow_other")
    directory = m / str(build.path)[1:] / build.id
    os.makedirs(directory)
    for temporary in (".elf.AbCdEf", "elf"):
        with open(directory / temporary, "wb", buffering=0) as file:
            os.fchmod(file.fileno(), mode_wanted)
            file.write(b"secret")
            assert os.stat(directory / temporary).st_mode & 0o077 == 0
            assert told("carol", [directory / temporary]) == [13]
            os.chmod(directory / temporary, mode_wanted)
            assert told("carol", [directory / temporary]) == [13]
            os.unlink(directory / temporary)


def test_copy_of_perf_is_its_owners_until_bidctl_adds_it(needs_root, mount, mode, place, store, env):
    """perf gives its copies mode 0755, whoever reads the originals; bidctl looks who does."""
    build = programs.small(place / "program")
    build.path.chmod(0o755)
    m = mount("allow_other")
    copy = m.artifact(build.id)
    tools.run("perf", "--buildid-dir", m, "buildid-cache", "-a", build.path, env=env)
    right = told("root", [copy])
    assert 13 not in right and told("carol", [copy, m.elf_file(build.id)]) == [13, 13]
    tools.run(tools.BIDCTL, "--store", store, "add", build.path, env=env)
    tools.wait_until(lambda: told("carol", [copy]) == right, "carol is let in")


TABLE = b"ffffffff81000000 T _text\nffffffffc0200000 t init\t[ext4]\n"


def of_a_kernel(m, ident):
    """The table, by its two names, and what is made of it."""
    offered = m / "[kernel.kcore]" / ident / "1970010100000000"
    return [m.artifact(ident, "kallsyms"), m / "[kernel.kallsyms]" / ident / "kallsyms", offered / "kallsyms", offered / "modules"]


def test_addresses_of_the_kernel(needs_root, mount, mode, store):
    """Who may not read a kernel's table does not learn from what is made of it where the kernel's code is."""
    idents = {mode: f"{mode:040x}" for mode in (0o400, 0o440, 0o444)}
    for table, ident in idents.items():
        stored = programs.into_store(store, ident, "[kernel.kallsyms]", TABLE, "kallsyms")
        os.chown(stored, ALICE, GROUP)
        stored.chmod(table)
    m = mount("allow_other")
    for table, ident in idents.items():
        paths = of_a_kernel(m, ident)
        right = told("root", paths)
        assert 2 not in right and 13 not in right
        readers = {"alice": 0o400, "bob": 0o040, "carol": 0o004}
        for user, bit in readers.items():
            assert told(user, paths) == (right if table & bit else [13] * len(paths)), (user, oct(table))
        for path in paths:
            assert (os.stat(path).st_mode & 0o777, os.stat(path).st_uid) == (table, ALICE), path
        # what is known of it is not what is in it
        assert told("carol", [m.artifact(ident, "info")]) != [13]


def test_perf_writes_a_table(needs_root, mount, mode, store):
    """perf lets everybody read its copy of /proc/kallsyms, which is the owner's alone here."""
    m, ident = mount("allow_other"), "ab" * 20
    directory = m / "[kernel.kallsyms]" / ident
    os.makedirs(directory)
    (directory / ".kallsyms.AbCdEf").write_bytes(TABLE)
    os.chmod(directory / ".kallsyms.AbCdEf", 0o755)
    os.link(directory / ".kallsyms.AbCdEf", directory / "kallsyms")
    os.unlink(directory / ".kallsyms.AbCdEf")
    paths = of_a_kernel(m, ident)
    assert told("root", paths)[:3] == [hashlib.sha256(TABLE).hexdigest()] * 3
    assert told("carol", paths) == [13] * len(paths)
    assert (store / "[kernel.kallsyms]" / ident / "kallsyms").stat().st_mode & 0o077 == 0


def test_a_store_that_is_closed(needs_root, mount, mode, place):
    """Nothing that is in it, or made of it, is read by others where they could not get at it; its owner reads all."""
    store = place / "alices" / "store"
    store.mkdir(parents=True)
    table = programs.into_store(store, "ab" * 20, "[kernel.kallsyms]", TABLE, "kallsyms")
    for path in (store, table):
        os.chown(path, ALICE, GROUP)
    table.chmod(0o444)
    store.chmod(0o700)
    m = mount("allow_other", on=store)
    m.expect("not open to others")
    paths = [*of_a_kernel(m, "ab" * 20), m.artifact("ab" * 20, "info")]
    right = told("root", paths)
    assert 13 not in right and told("alice", paths)[:4] == right[:4] and told("alice", paths)[4] != 13
    for user in ("bob", "carol"):
        assert told(user, paths) == [13] * len(paths), user


def test_a_mapped_user(needs_root, mount, mode, files):
    """Root of a user namespace is who he is outside, and sees what others may."""
    m = mount("allow_other")
    paths = [m.artifact(build.id) for build, _ in files]
    assert told("root", paths).count(13) == 0
    drop = ["setpriv", f"--reuid={CAROL}", f"--regid={CAROL}", "--clear-groups"]
    done = tools.run(*drop, "unshare", "--user", "--map-root-user", "/usr/bin/python3", "-c", READ, *paths, status=None)
    if "unshare failed" in done.stderr:
        pytest.skip("users may make no namespaces here")
    # the kernel may refuse such a user altogether, but gives him no more than Carol
    for inside, outside in zip(json.loads(done.stdout), told("carol", [stored for _, stored in files])):
        assert inside in (outside, 13)


def acl(owner, group, mask, other, named):
    """system.posix_acl_access as the kernel takes it: acl(5) in the form of <linux/posix_acl_xattr.h>."""
    nobody = 0xffffffff
    entries = [(1, owner, nobody), *[(2, rights, user) for user, rights in sorted(named.items())], (4, group, nobody),
               (16, mask, nobody), (32, other, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


LISTS = {
    "a user refused whom the mode lets in": acl(4, 4, 4, 4, {CAROL: 0}),
    "a group refused whom the mode, which is the mask, lets in": acl(4, 0, 4, 0, {CAROL: 4}),
    "nobody refused": acl(4, 4, 4, 4, {CAROL: 4}),
}


@pytest.mark.parametrize("what", LISTS)
def test_access_control_lists(needs_root, mount, mode, files, what):
    """Nobody is let in whom a list at the source refuses."""
    build, stored = files[0]
    try:
        os.setxattr(stored, "system.posix_acl_access", LISTS[what])
    except OSError as trouble:
        pytest.skip(f"no access control lists on this file system: {trouble}")
    m = mount("allow_other")
    paths = [m.artifact(build.id), m.elf_file(build.id)]
    if os.path.exists(section := m / "buildid" / build.id / "section" / ".text"):
        paths.append(section)
    told("root", paths)
    for user in ("alice", "bob", "carol"):
        (source,) = told(user, [stored])
        for path, through in zip(paths, told(user, paths)):
            assert source != 13 or through == 13, (user, path)
            assert user != "alice" or through != 13


def test_a_list_that_comes_later(needs_root, mount, mode, files):
    """The rights of a file that was read before, and is kept open, are looked at again."""
    build, stored = files[MODES.index(0o444)]
    m = mount("allow_other")
    path = m.artifact(build.id)
    with open(path, "rb") as file:
        for _ in range(3):
            assert told("carol", [path]) == told("carol", [stored]) != [13]
            time.sleep(0.03)  # longer than a tick: what is younger is looked at each time anyway
        try:
            os.setxattr(stored, "system.posix_acl_access", LISTS["a user refused whom the mode lets in"])
        except OSError as trouble:
            pytest.skip(f"no access control lists on this file system: {trouble}")
        assert told("carol", [stored]) == [13]
        # what is open is not looked up: its rights are those of the descriptor that is kept
        tools.wait_until(lambda: os.fstat(file.fileno()).st_mode & 0o077 == 0, "the list is seen")
    tools.wait_until(lambda: told("carol", [path]) == [13], "carol is refused")
