#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Add special files: privileged, impossible to link, or changing meanwhile.

usage: check_add_files.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases that need root or perf are skipped without it.
"""
import contextlib
import gzip
import os
import pathlib
import shutil
import struct
import threading
import time

import cases
from add_helpers import IDS, call, everything_is_right, readelf_id, stored, summary, system_tree
from bidctl_env import DONE, ID_ONE, ID_TWO, REFUSED, Env, build
from cases import need

# struct vfs_cap_data, linux/capability.h: revision 2, effective, CAP_NET_RAW
NET_RAW = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)


def case_second_build_with_other_bytes_is_known(env):
    """Debian has some ids twice with other bytes: the second file is known, and is no error."""
    content = env.stripped.read_bytes()
    assert b"GCC: (" in content
    for name, bytes_there in ("a", content), ("b", content.replace(b"GCC: (", b"GCC; (")):
        path = env.home / "tree" / name / "x.so"
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes_there)
        path.chmod(0o755)
    for number, order in enumerate(([""], ["b", "a"], ["a", "b"], ["a/x.so", "b/x.so"])):
        env.store.rename(env.home / f"store{number}")
        env.store.mkdir()
        done = env.on_store("add", *(env.home / "tree" / name for name in order))
        assert done.summary == "seen 2, added 1, known 1, refused 0\n", (order, done.stdout)
        assert "found 0" in (verified := env.on_store("verify").stdout) and "quarantine" not in verified, (order, verified)


def case_module_that_unpacks_to_too_much_is_refused(env):
    """It is no matter of the free space, and the exit status is that of other files that are refused."""
    module = env.home / "module.ko.gz"
    module.write_bytes(gzip.compress(env.one.read_bytes() + bytes(80 << 20), 9))
    done = env.on_store("add", module, status=REFUSED)
    assert "unpacks to more than 512 MiB" in done.stderr and done.summary == "seen 1, added 0, known 0, refused 1\n", done
    assert not list(env.store.rglob("elf"))


def case_privileged_file_is_copied_without_privileges(env):
    """Privileged and private files are copied without privileges, and so are files that cannot be linked."""
    need(os.geteuid() == 0, "needs root, for files that give rights")
    tree = env.home / "tree"
    tree.mkdir()
    names = ["setuid", "setgid", "both", "private", "capable", "immutable", "plain"]
    programs = {name: build(tree, name, IDS[number]) for number, name in enumerate(names)}
    for path in tree.glob("*.c"):
        path.unlink()
    for name, mode in (("setuid", 0o4755), ("setgid", 0o2755), ("both", 0o6755), ("private", 0o700)):
        programs[name].chmod(mode)
    copied = {"setuid", "setgid", "both", "private"}
    with contextlib.suppress(OSError):  # some file systems have none
        os.setxattr(programs["capable"], "security.capability", NET_RAW)
        copied.add("capable")
    immutable = shutil.which("chattr") and call("chattr", "+i", programs["immutable"]).returncode == 0
    try:
        assert summary(env.on_store("add", tree, "--link=auto"))[0] == (len(names), len(names), 0, 0)
    finally:
        if immutable:
            call("chattr", "-i", programs["immutable"])
    for number, name in enumerate(names):
        elf = stored(env, IDS[number]) / "elf"
        assert elf.read_bytes() == programs[name].read_bytes(), name
        assert elf.stat().st_mode & 0o6000 == 0 and "security.capability" not in os.listxattr(elf), name
        if name in copied:
            assert not elf.samefile(programs[name]), name
            assert elf.stat().st_mode & 0o7777 == (0o400 if name == "private" else 0o444), name
    if shutil.which("perf"):
        listed = call("perf", "--buildid-dir", env.store, "buildid-cache", "-l", env=env.environment).stdout
        assert {line.split()[0] for line in listed.splitlines()} == set(IDS[:len(names)]), listed
    if os.environ.get("BIDFS_FULL"):
        # as many links as ext4 allows
        with contextlib.suppress(OSError):
            for number in range(65000):
                os.link(programs["plain"], tree / f"link{number}")
        shutil.rmtree(env.store)
        env.store.mkdir()
        assert summary(env.on_store("add", programs["plain"]))[0] == (1, 1, 0, 0)
        assert (stored(env, IDS[names.index("plain")]) / "elf").read_bytes() == programs["plain"].read_bytes()


def give(path, how):
    """Make the file setuid, or give it a capability. Return False if the file system does not support it."""
    if how == "setuid":
        path.chmod(0o4755)
        return True
    with contextlib.suppress(OSError):
        os.setxattr(path, "security.capability", NET_RAW)
        return True
    return False


def gives_rights(path):
    return path.stat().st_mode & 0o6000 != 0 or "security.capability" in os.listxattr(path)


def case_file_privileged_later_is_replaced_by_a_copy(env):
    """A hard-linked file that became privileged is replaced under all its names by the next command that finds it."""
    need(os.geteuid() == 0, "needs root, for files that give rights")
    tree = env.home / "tree"
    for how in ("setuid", "capable"):
        for comes in ("add", "scan", "other", "verify"):
            shutil.rmtree(tree, ignore_errors=True)
            tree.mkdir()
            shutil.copy(env.one, tree / "program")
            os.link(tree / "program", tree / "alias")
            env.on_store("add", "--link=hard", tree)
            names = [env.store / str(tree)[1:] / name / ID_ONE / "elf" for name in ("program", "alias")]
            assert all(elf.samefile(tree / "program") for elf in names)
            if not give(tree / "program", how):
                continue
            assert all(gives_rights(elf) for elf in names)
            if comes == "other":
                # after an upgrade only the store has the old file
                shutil.rmtree(tree)
                assert summary(env.on_store("add", env.one))[0] == (1, 0, 1, 0)
            elif comes == "verify":
                found = env.on_store("verify", status=REFUSED).stdout.splitlines()
                assert len([line for line in found if line.startswith("rights\t")]) == 2, found
                env.on_store("verify", "--repair", status=REFUSED)
            else:
                added = summary(env.on_store("add", tree / "program" if comes == "add" else tree))[0]
                assert added[1] == 0 and added[3] == 0, added
            for elf in names:
                assert not gives_rights(elf) and elf.read_bytes() == env.one.read_bytes(), (how, comes, elf)
                assert elf.stat().st_mode & 0o7777 == 0o444
            assert names[0].samefile(names[1]), comes
            env.on_store("verify")
            env.on_store("remove", ID_ONE)


def names_in(env, path, ident):
    return env.store / str(path)[1:] / ident / "elf"


def case_private_file_is_copied_for_its_user(env):
    """
    A file that not everybody can reach and read is copied for its adder; private directories above both tree and store do not
    count.
    """
    user, group = 20001, 20100
    home, program = env.home / "home", env.home / "home" / "tree" / "program"
    need(os.geteuid() == 0, "needs root, for other users")
    program.parent.mkdir(parents=True)
    for path in (env.home.parent.parent, env.home.parent, env.home, env.store, home, program.parent):
        path.chmod(0o755)
    shutil.copy(env.one, program)
    for path in (home, program.parent, program):
        os.chown(path, user, group)
    elf = names_in(env, program, ID_ONE)
    cases = {  # (mode of the directory, of the file) -> everybody can read it
        (0o755, 0o755): True, (0o711, 0o744): True, (0o700, 0o755): False, (0o710, 0o755): False, (0o701, 0o755): False,
        (0o755, 0o640): False, (0o755, 0o604): False, (0o700, 0o640): False,
    }
    for (directory, mode), everybodys in cases.items():
        home.chmod(directory)
        program.chmod(mode)
        for what in (program, home):
            env.on_store("add", what)
            st = elf.stat()
            case = (oct(directory), oct(mode), what)
            assert elf.samefile(program) == everybodys, case
            assert everybodys or (st.st_mode & 0o777, st.st_uid) == (0o400, 0), case
            env.on_store("remove", ID_ONE)
    # an access control list may refuse a user: <linux/posix_acl_xattr.h>
    entries = ((1, 7, -1), (2, 0, 20002), (4, 5, -1), (16, 5, -1), (32, 5, -1))
    refuses = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    for listed in (home, program):
        home.chmod(0o755)
        program.chmod(0o755)
        os.setxattr(listed, "system.posix_acl_access", refuses)
        for what in (program, home):
            env.on_store("add", what)
            assert elf.stat().st_mode & 0o777 == 0o400, (listed, what)
            env.on_store("remove", ID_ONE)
        os.removexattr(listed, "system.posix_acl_access")
    home.chmod(0o700)
    program.chmod(0o755)
    own = home / "store"
    own.mkdir()
    call(env.bidctl, "-s", own, "add", program)
    assert (own / elf.relative_to(env.store)).samefile(program)


def case_private_copy_becomes_public_with_the_next_add(env):
    """A public file stays public; a private copy becomes public when the file is found in a public place."""
    tree = env.home / "tree"
    for path in (env.home.parent.parent, env.home.parent, env.home, env.store):
        path.chmod(0o755)
    for what in (tree, tree / "program"):
        tree.mkdir(mode=0o755)
        shutil.copy(env.one, tree / "program")
        elf = names_in(env, tree / "program", ID_ONE)
        env.on_store("add", tree / "program")
        tree.chmod(0o700)
        assert summary(env.on_store("add", what))[0] == (1, 0, 1, 0)
        assert elf.samefile(tree / "program") and elf.stat().st_mode & 0o777 == 0o755
        env.on_store("remove", ID_ONE)
        # older than a clock tick, so that the scan cache has it
        time.sleep(0.05)
        env.on_store("add", what)
        assert elf.stat().st_mode & 0o777 == 0o400
        tree.chmod(0o755)
        assert summary(env.on_store("add", what))[0] == (1, 0, 1, 0)
        assert elf.stat().st_mode & 0o777 == 0o555 and elf.read_bytes() == env.one.read_bytes()
        # and under another name, too
        tree.chmod(0o700)
        env.on_store("remove", ID_ONE)
        env.on_store("add", what)
        assert elf.stat().st_mode & 0o777 == 0o400
        env.on_store("add", env.one)
        assert elf.stat().st_mode & 0o777 == 0o555
        env.on_store("verify")
        env.on_store("remove", ID_ONE)
        shutil.rmtree(tree)


def churn(env, tree, number, builds, stop):
    """Write, replace and remove files of @builds in @tree until @stop is set."""
    whole = env.one.read_bytes()
    turn = 0
    while not stop.is_set():
        turn += 1
        directory = tree / f"dir{number}-{turn % 5}"
        directory.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            (directory / "grows").write_bytes(whole[:turn * 997 % len(whole)])
            with open(directory / "grows", "ab") as file:
                file.write(whole[file.tell():])
            # the same id and size, without a visible difference
            with open(directory / "rewritten", "r+b" if (directory / "rewritten").exists() else "wb", buffering=0) as file:
                data = builds[IDS[number]][turn // 5 % 2]
                for at in range(0, len(data), 4096):
                    file.write(data[at:at + 4096])
            shutil.copy(env.two if turn % 2 else env.one, directory / "replaced.new")
            os.rename(directory / "replaced.new", directory / "replaced")
            (directory / "fifo").unlink(missing_ok=True)
            if turn % 3:
                os.mkfifo(directory / "fifo")
            else:
                shutil.copy(env.far, directory / "fifo")
        if turn % 7 == 0:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def restless(env, tree, builds):
    stop = threading.Event()
    threads = [threading.Thread(target=churn, args=(env, tree, number, builds, stop)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def case_changing_files_are_added_whole_or_refused(env):
    """Files appear, disappear, grow and are replaced during the additions."""
    tree, ids = system_tree(env, 10)
    builds = {ID_ONE: [env.one.read_bytes()], ID_TWO: [env.two.read_bytes()]}
    for number in range(2):
        head = build(env.home, f"rewritten{number}", IDS[number]).read_bytes()
        builds[IDS[number]] = [head + bytes([fill]) * (1 << 20) for fill in range(2)]
    with restless(env, tree, builds):
        for turn in range(25):
            link = "copy" if turn % 2 else "auto"
            (seen, _, _, _), reasons = summary(env.on_store("add", tree, f"--link={link}"))
            assert seen >= len(ids), seen
            expected = {"damaged or cut short", "a program is writing it", "not an ELF file", "no build-id in it"}
            assert set(reasons) <= expected, reasons
            # copied to an empty store: each stored file has the bytes of one moment
            for build_id, contents in builds.items() if link == "copy" and turn < 20 else ():
                path = env.store / ".build-id" / build_id[:2] / build_id[2:] / "elf"
                assert not path.exists() or path.read_bytes() in contents, f"{build_id} is a mixture"
            if turn < 20:
                shutil.rmtree(env.store)
                env.store.mkdir()
    # a hard link to a file that was then written in place may have any bytes, but is not served
    for build_id in (*builds, *ids):
        got = call(env.bidctl, "-s", env.store, "get", "--offline", build_id, "elf", env=env.environment)
        assert got.returncode in (DONE, REFUSED), got
        assert got.returncode == REFUSED or readelf_id(got.stdout.rstrip("\n")) == build_id, got


def case_changed_hard_link_is_quarantined(env):
    """A hard link whose file became another build is quarantined when the right file is added."""
    tree, copies = env.home / "tree", env.home / "copies"
    for how in ("by name", "in a tree"):
        for directory in (tree, copies):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            shutil.copy(env.one, directory / "program")
        assert summary(env.on_store("add", "--link=hard", tree / "program"))[0][1] == 1
        with open(tree / "program", "r+b") as file:
            file.write(env.two.read_bytes())
            file.truncate()
        env.on_store("get", "--offline", ID_ONE, "elf", status=REFUSED)
        done = env.on_store("add", copies / "program" if how == "by name" else copies)
        assert summary(done) == ((1, 1, 0, 0), {}), done
        assert "as '.bidfs/quarantine/" in done.stderr, done.stderr
        got = env.on_store("get", "--offline", ID_ONE, "elf").stdout.rstrip("\n")
        assert pathlib.Path(got).read_bytes() == env.one.read_bytes()
        (quarantined,) = (env.store / ".bidfs/quarantine").iterdir()
        assert quarantined.samefile(tree / "program"), "nothing is lost"
        assert everything_is_right(env) == 2
        env.on_store("remove", ID_ONE)
        quarantined.unlink()


def case_first_of_ids_with_equal_beginning_stays(env):
    """Two ids share the first 20 bytes, which are all that perf's layout can hold: the first one stays."""
    longer, another = (build(env.home, name, ID_ONE + name[-2:]) for name in ("longer-00", "another-ff"))
    env.on_store("add", "--link=copy", env.one)
    elf = stored(env, ID_ONE) / "elf"
    for command in (["add", longer], ["add", "--link=copy", longer], ["update", longer], ["update", another]):
        done = env.on_store(*command, status=REFUSED)
        assert "another build is stored under the first 20 bytes" in done.stderr, done
        assert "wrong content" not in done.stderr and elf.read_bytes() == env.one.read_bytes(), done
    (_, added, _, refused), reasons = summary(env.on_store("add", env.home))
    assert added == 0 and refused == 2 and len(reasons) == 1, reasons
    assert env.on_store("get", "--offline", ID_ONE, "elf").stdout == f"{elf}\n"
    assert everything_is_right(env) == 1 and not (env.store / ".bidfs/quarantine").exists()
    # both ids find it while it is alone, and another file of that length does not replace it
    env.on_store("remove", ID_ONE)
    env.on_store("add", longer)
    env.on_store("add", another, status=REFUSED)
    for build_id in (ID_ONE + "00", ID_ONE):
        assert pathlib.Path(env.on_store("get", "--offline", build_id, "elf").stdout[:-1]).read_bytes() == longer.read_bytes()


def case_edited_hard_link_is_not_served(env):
    """The edited file stays until "verify --repair" finds it."""
    tree = env.home / "tree"
    tree.mkdir()
    shutil.copy(env.one, tree / "program")
    elf = names_in(env, tree / "program", ID_ONE)
    env.on_store("add", "--link=hard", tree / "program")
    with open(tree / "program", "r+b") as file:
        file.write(env.two.read_bytes())
        file.truncate()
    os.utime(tree / "program", (0, 1000000000))
    for command in (["get", "--offline", ID_ONE, "elf"], ["show", ID_ONE]):
        done = env.on_store(*command, status=REFUSED if command[0] == "get" else 0)
        assert done.stderr.count("does not carry the build-id") == 1 or command[0] == "show", done
        assert elf.samefile(tree / "program") and not (env.store / ".bidfs/quarantine").exists(), done
    env.on_store("verify", "--repair", status=REFUSED)
    (quarantined,) = (env.store / ".bidfs/quarantine").iterdir()
    assert quarantined.samefile(tree / "program") and not elf.exists(), "nothing is lost"
    # the right file can be added now
    shutil.copy(env.one, env.home / "program")
    assert summary(env.on_store("add", env.home / "program"))[0] == (1, 1, 0, 0)
    assert everything_is_right(env) == 1
    env.on_store("verify")


if __name__ == "__main__":
    cases.main(globals(), Env)
