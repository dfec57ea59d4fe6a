# SPDX-License-Identifier: LGPL-2.1-or-later
"""R20: a file that not everybody can read is readable through the mount by its owner and root alone."""
import gzip
import hashlib
import json
import os
import struct
import time

import pytest

import programs
import tools

ALICE, BOB, CAROL, GROUP = 20001, 20002, 20003, 20100  # the owner, a member of the file's group, and another user
USERS = {"root": (0, 0), "alice": (ALICE, ALICE), "bob": (BOB, GROUP), "carol": (CAROL, CAROL)}
MODES = (0o400, 0o440, 0o444, 0o040, 0o004, 0o000, 0o555, 0o604)
EVERYBODY = (0o444, 0o555)  # modes with which everybody can read
READ = """
import hashlib, json, sys
def tell(path):
    try:
        return hashlib.sha256(open(path, "rb").read()).hexdigest()
    except OSError as trouble:
        return trouble.errno
print(json.dumps([tell(path) for path in sys.argv[1:]]))
"""


def read_as(user, paths):
    """Read the files as a user; return a digest or an errno for each."""
    uid, gid = USERS[user]
    drop = [] if user == "root" else ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    return json.loads(tools.run(*drop, "/usr/bin/python3", "-c", READ, *paths).stdout)


@pytest.fixture
def files(workdir, store):
    """Store a build for each mode; return [(build, stored file)]."""
    first = programs.small(workdir / "first")
    made = []
    for number, mode in enumerate(MODES):
        build = programs.forge(first, f"{number:08x}{first.id[8:]}", workdir / f"app{number}")
        build.path.chmod(0)
        stored = programs.into_store(store, build.id, f"/usr/bin/app{number}", (workdir / f"app{number}").read_bytes())
        os.chown(stored, ALICE, GROUP)
        stored.chmod(mode)
        made.append((build, stored))
    return made


@pytest.mark.parametrize("option", ["allow_other", "alone"])
def test_permissions_hold_for_each_user_and_mode(needs_root, mount, mode, files, option):
    """
    64 cases: everybody can read a file, or its owner and root can, also after root has read it; without allow_other only root can.
    """
    mnt = mount(*([option] if option == "allow_other" else []))
    mounted = [mnt.artifact(build.id) for build, _ in files]
    right = [hashlib.sha256(build.read()).hexdigest() for build, _ in files]
    assert read_as("root", mounted) == right
    for user in ("alice", "bob", "carol"):
        reads = [option == "allow_other" and (bits in EVERYBODY or (user == "alice" and bits & 0o400 != 0)) for bits in MODES]
        assert read_as(user, mounted) == [whole if does else 13 for whole, does in zip(right, reads)], user
    assert read_as("root", mounted) == right


# permissions on the path to the file: mode and group of its directory, and of one above
WAYS = {
    "open": (0o755, 0, 0o755),
    "not listed": (0o711, 0, 0o755),
    "closed": (0o700, ALICE, 0o755),
    "closed above": (0o755, ALICE, 0o700),
    "a group's": (0o750, GROUP, 0o755),
    "a group's of root": (0o750, GROUP, 0o750),
    "all but a group's": (0o705, GROUP, 0o755),
}


def below(workdir, number, way, mode):
    """Make a program of alice's with this mode, below a path with these permissions."""
    directory, group, above = WAYS[way]
    home = workdir / f"way{number}"
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
def test_added_file_is_readable_by_all_or_by_its_adder(needs_root, mount, mode, workdir, store, how):
    """
    Everybody can read it if everybody could reach and read the original; otherwise root can, who added it, and its owner cannot.
    """
    cases = [(way, bits) for way in WAYS for bits in (0o755, 0o4755, 0o750, 0o640, 0o700)]
    builds = [below(workdir, number, way, bits) for number, (way, bits) in enumerate(cases)]
    everybody = [way in ("open", "not listed") and bits in (0o755, 0o4755) for way, bits in cases]
    what = [workdir / f"way{number}" for number in range(len(builds))] if how == "scan" else [build.path for build in builds]
    tools.run(tools.BIDCTL, "--store", store, "add", *(["--link=copy"] if how == "copy" else []), *what)
    mnt = mount("allow_other")
    mounted = [mnt.artifact(build.id) for build in builds]
    right = read_as("root", mounted)
    assert right == read_as("root", [build.path for build in builds]) and 13 not in right
    for user in ("alice", "bob", "carol"):
        assert read_as(user, mounted) == [whole if does else 13 for whole, does in zip(right, everybody)], user
    for case, build, does in zip(cases, builds, everybody):
        (elf,) = store.glob(f"**/{build.id}/elf")
        shared, st = os.path.samefile(elf, build.path), elf.stat()
        assert shared == (how != "copy" and does and case[1] == 0o755), case
        assert does or (st.st_mode & 0o7777, st.st_uid) == (0o400, 0), case
        assert not st.st_mode & 0o6000, case
    # derived files have the readers of their source
    pieces = [mnt / "buildid" / build.id / "section" / ".text" for build in builds]
    assert 13 not in read_as("root", pieces)
    assert [answer != 13 for answer in read_as("carol", pieces)] == everybody


def test_file_stays_public_when_its_directories_are_closed_later(needs_root, mount, mode, workdir, store):
    """The readers are decided when the file is added; later changes of directories do not matter."""
    build = below(workdir, 1, "open", 0o755)
    tools.run(tools.BIDCTL, "--store", store, "add", build.path)
    mnt = mount("allow_other")
    path = mnt.artifact(build.id)
    right = read_as("root", [path])
    (elf,) = store.glob(f"**/{build.id}/elf")
    build.path.parent.chmod(0o700)
    elf.parents[1].chmod(0o700)
    tools.run(tools.BIDCTL, "--store", store, "add", build.path)
    assert read_as("carol", [path]) == right != [13]


def test_unpacked_module_keeps_its_readers(needs_root, mount, mode, workdir, store):
    """A module unpacked from alice's store has the readers of the compressed file, and is stored so."""
    lower, packed = workdir / "lower", []
    builds = [programs.small(workdir / f"module{bits:o}", bits) for bits in (0o444, 0o440, 0o400)]
    for build, bits in zip(builds, (0o444, 0o440, 0o400)):
        packed.append(programs.into_store(lower, build.id, f"/lib/{bits:o}.ko.gz", gzip.compress(build.read())))
        os.chown(packed[-1], ALICE, GROUP)
        packed[-1].chmod(bits)
    os.chown(lower, ALICE, GROUP)
    mnt = mount("allow_other", f"lower={lower}")
    paths = [mnt.artifact(build.id) for build in builds]
    assert read_as("root", paths) == [hashlib.sha256(build.read()).hexdigest() for build in builds]
    kept = [path for path in (store / ".bidfs/unpacked").rglob("*") if path.is_file()]
    assert len(kept) == len(builds)
    for user, reads in (("alice", 3), ("bob", 1), ("carol", 1)):
        assert [answer != 13 for answer in read_as(user, paths)] == [number < reads for number in range(3)], user
    assert sorted(path.stat().st_mode & 0o777 for path in kept) == [0o400, 0o400, 0o444]


def test_lock_file_has_the_mode_of_the_private_directory(needs_root, mount, mode, faults, workdir, store):
    """The group of the directory may write the lock file, and no other file that the daemon creates."""
    program = programs.small(workdir / "app")
    server = faults()
    server.serve(program)
    private = store / ".bidfs"
    private.mkdir()
    os.chown(private, ALICE, GROUP)
    private.chmod(0o2775)
    mnt = mount(f"url={server.url}")
    assert mnt.artifact(program.id).read_bytes() == program.read()
    found = (private / "lock").stat()
    assert (oct(found.st_mode & 0o7777), found.st_uid, found.st_gid) == ("0o660", ALICE, GROUP)


@pytest.mark.parametrize("mode_wanted", [0o755, 0o444], ids=oct)
def test_temporary_file_is_private(needs_root, mount, mode, workdir, mode_wanted):
    """perf makes its copy 0755 before it fills it, and inotify shows the name."""
    build = programs.small(workdir / "program")
    mnt = mount("allow_other")
    directory = mnt / str(build.path)[1:] / build.id
    os.makedirs(directory)
    for temporary in (".elf.AbCdEf", "elf"):
        with open(directory / temporary, "wb", buffering=0) as file:
            os.fchmod(file.fileno(), mode_wanted)
            file.write(b"secret")
            assert os.stat(directory / temporary).st_mode & 0o077 == 0
            assert read_as("carol", [directory / temporary]) == [13]
            os.chmod(directory / temporary, mode_wanted)
            assert read_as("carol", [directory / temporary]) == [13]
            os.unlink(directory / temporary)


def test_copy_by_perf_is_private_until_added_by_bidctl(needs_root, mount, mode, workdir, store, env):
    """perf's copies have mode 0755, whoever can read the originals; bidctl checks whether everybody can."""
    build = programs.small(workdir / "program")
    build.path.chmod(0o755)
    mnt = mount("allow_other")
    copy = mnt.artifact(build.id)
    tools.run("perf", "--buildid-dir", mnt, "buildid-cache", "-a", build.path, env=env)
    right = read_as("root", [copy])
    assert 13 not in right and read_as("carol", [copy, mnt.elf_file(build.id)]) == [13, 13]
    tools.run(tools.BIDCTL, "--store", store, "add", build.path, env=env)
    tools.wait_until(lambda: read_as("carol", [copy]) == right, "carol is let in")


TABLE = b"ffffffff81000000 T _text\nffffffffc0200000 t init\t[ext4]\n"


def of_a_kernel(mnt, ident):
    """Return the paths of a symbol table and of the files derived from it."""
    offered = mnt / "[kernel.kcore]" / ident / "1970010100000000"
    return [mnt.artifact(ident, "kallsyms"), mnt / "[kernel.kallsyms]" / ident / "kallsyms",
            offered / "kallsyms", offered / "modules"]


def test_kernel_addresses_stay_private(needs_root, mount, mode, store):
    """Files derived from a private symbol table do not reveal kernel addresses."""
    idents = {mode: f"{mode:040x}" for mode in (0o400, 0o440, 0o444)}
    for table, ident in idents.items():
        stored = programs.into_store(store, ident, "[kernel.kallsyms]", TABLE, "kallsyms")
        os.chown(stored, ALICE, GROUP)
        stored.chmod(table)
    mnt = mount("allow_other")
    for table, ident in idents.items():
        paths = of_a_kernel(mnt, ident)
        right = read_as("root", paths)
        assert 2 not in right and 13 not in right
        for user in ("alice", "bob", "carol"):
            reads = user == "alice" or table == 0o444
            assert read_as(user, paths) == (right if reads else [13] * len(paths)), (user, oct(table))
        for path in paths:
            assert (os.stat(path).st_mode & 0o777, os.stat(path).st_uid) == (0o444 if table == 0o444 else 0o400, ALICE), path
        # facts about the table are not its content
        assert read_as("carol", [mnt.artifact(ident, "info")]) != [13]


def test_table_written_by_perf_is_private(needs_root, mount, mode, store):
    """perf makes its copy of /proc/kallsyms readable by everybody; here only the owner can read it."""
    mnt, ident = mount("allow_other"), "ab" * 20
    directory = mnt / "[kernel.kallsyms]" / ident
    os.makedirs(directory)
    (directory / ".kallsyms.AbCdEf").write_bytes(TABLE)
    os.chmod(directory / ".kallsyms.AbCdEf", 0o755)
    os.link(directory / ".kallsyms.AbCdEf", directory / "kallsyms")
    os.unlink(directory / ".kallsyms.AbCdEf")
    paths = of_a_kernel(mnt, ident)
    assert read_as("root", paths)[:3] == [hashlib.sha256(TABLE).hexdigest()] * 3
    assert read_as("carol", paths) == [13] * len(paths)
    assert (store / "[kernel.kallsyms]" / ident / "kallsyms").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("closed", ["the store", "above it"])
@pytest.mark.parametrize("bits", [0o700, 0o750], ids=oct)
def test_private_store_is_private(needs_root, mount, mode, workdir, closed, bits):
    """Only owner and root can read its files and files derived from them."""
    store = workdir / "alices" / "store"
    store.mkdir(parents=True)
    table = programs.into_store(store, "ab" * 20, "[kernel.kallsyms]", TABLE, "kallsyms")
    for path in (store.parent, store, table):
        os.chown(path, ALICE, GROUP)
    table.chmod(0o444)
    (store if closed == "the store" else store.parent).chmod(bits)
    mnt = mount("allow_other", on=store)
    mnt.expect("closed to other users")
    paths = [*of_a_kernel(mnt, "ab" * 20), mnt.artifact("ab" * 20, "info")]
    right = read_as("root", paths)
    assert 13 not in right and read_as("alice", paths)[:4] == right[:4] and read_as("alice", paths)[4] != 13
    for user in ("bob", "carol"):
        assert read_as(user, paths) == [13] * len(paths), user


def test_mapped_root_has_the_rights_of_its_outer_user(needs_root, mount, mode, files):
    """Root of a user namespace has the rights of the outer user."""
    mnt = mount("allow_other")
    paths = [mnt.artifact(build.id) for build, _ in files]
    assert read_as("root", paths).count(13) == 0
    drop = ["setpriv", f"--reuid={CAROL}", f"--regid={CAROL}", "--clear-groups"]
    done = tools.run(*drop, "unshare", "--user", "--map-root-user", "/usr/bin/python3", "-c", READ, *paths, status=None)
    if "unshare failed" in done.stderr:
        pytest.skip("users may make no namespaces here")
    # the kernel may refuse such a user, but never grants more than Carol has
    for inside, outside in zip(json.loads(done.stdout), read_as("carol", [stored for _, stored in files])):
        assert inside in (outside, 13)


def acl(owner, group, mask, other, named):
    """Return system.posix_acl_access for the kernel: acl(5) in the form of <linux/posix_acl_xattr.h>."""
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
def test_acl_of_source_is_respected(needs_root, mount, mode, files, what):
    """An access control list of the source may refuse a user, who must not get access through the mount."""
    build, stored = files[0]
    try:
        os.setxattr(stored, "system.posix_acl_access", LISTS[what])
    except OSError as error:
        pytest.skip(f"no access control lists on this file system: {error}")
    mnt = mount("allow_other")
    paths = [mnt.artifact(build.id), mnt.elf_file(build.id)]
    if os.path.exists(section := mnt / "buildid" / build.id / "section" / ".text"):
        paths.append(section)
    read_as("root", paths)
    for user in ("alice", "bob", "carol"):
        (source,) = read_as(user, [stored])
        for path, through in zip(paths, read_as(user, paths)):
            assert source != 13 or through == 13, (user, path)
            assert user != "alice" or through != 13


def test_later_acl_of_cached_file_is_respected(needs_root, mount, mode, files):
    """The access rights of an open, cached file are read again."""
    build, stored = files[MODES.index(0o444)]
    mnt = mount("allow_other")
    path = mnt.artifact(build.id)
    with open(path, "rb") as file:
        for _ in range(3):
            assert read_as("carol", [path]) == read_as("carol", [stored]) != [13]
            time.sleep(0.03)  # longer than the clock's resolution: younger files are never cached
        try:
            os.setxattr(stored, "system.posix_acl_access", LISTS["a user refused whom the mode lets in"])
        except OSError as error:
            pytest.skip(f"no access control lists on this file system: {error}")
        assert read_as("carol", [stored]) == [13]
        # the daemon uses its cached descriptor, without a lookup, and must check the rights of that
        tools.wait_until(lambda: os.fstat(file.fileno()).st_mode & 0o077 == 0, "the list is seen")
    tools.wait_until(lambda: read_as("carol", [path]) == [13], "carol is refused")
