# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tree of the mount: each path with its type, size, content and inode number, and the refused operations."""
import ctypes
import errno
import mmap
import os
import pathlib
import shutil
import stat
import struct
import time

import pytest

import programs
import tools

KALLSYMS = b"ffffffff81000000 T _text\nffffffff81000100 T start_kernel\n"
PROBES = b"%sdt_app:start=start\np:sdt_app/start /usr/bin/app:0x1139\n"
KERNEL = "4eb1" * 10


@pytest.fixture
def stored(store, workdir):
    """Fill a store with one artifact of each kind in perf's layout; return them by name."""
    split = programs.split(programs.burn(workdir / "app", "split_hot"), workdir / "app.debug")
    whole = programs.burn(workdir / "whole", "whole_hot", 2)
    vdso = programs.small(workdir / "vdso.so", 3, "-shared", "-fPIC")
    programs.into_store(store, split.id, "/usr/bin/app", split.path)
    programs.into_store(store, split.id, "/usr/bin/app", split.debug, "debug")
    programs.into_store(store, split.id, "/usr/bin/app", PROBES, "probes")
    programs.into_store(store, whole.id, "/opt/whole", whole.path)
    programs.into_store(store, vdso.id, "[vdso]", vdso.path, "vdso")
    programs.into_store(store, KERNEL, "[kernel.kallsyms]", KALLSYMS, "kallsyms")
    return {"split": split, "whole": whole, "vdso": vdso}


def in_section(sections):
    return {f"section/{name}": content for name, content in sections.items()}


def expected_tree(stored):
    """Return {path: None for a directory, target of a link, or content of a file}."""
    elf, debug = stored["split"].path.read_bytes(), stored["split"].debug.read_bytes()
    whole, vdso = stored["whole"].path.read_bytes(), stored["vdso"].path.read_bytes()
    tree = {".debug": ".", "debug": "usr/lib/debug"}

    def artifacts(ident, original, by_path, **kinds):
        tree[f".build-id/{ident[:2]}/{ident[2:]}"] = f"../../{original}/{ident}"
        tree[f"usr/lib/debug/.build-id/{ident[:2]}"] = None
        if by_path:
            tree[f"by-path/{original}/{ident}"] = by_path
        for name, content in kinds.items():
            tree[f"buildid/{ident}/{name}"] = content
        if "elf" in kinds:
            tree[f"usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}"] = kinds["elf"]
            tree[f"usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}.debug"] = kinds["debuginfo"]

    split, other = stored["split"].id, stored["whole"].id
    sections = {**programs.sections(stored["split"].path), **programs.sections(stored["split"].debug)}
    artifacts(split, "usr/bin/app", elf, elf=elf, executable=elf, debuginfo=debug, probes=PROBES, **in_section(sections))
    artifacts(other, "opt/whole", whole, elf=whole, executable=whole, debuginfo=whole, unstripped=whole,
              **in_section(programs.sections(stored["whole"].path)))
    artifacts(stored["vdso"].id, "[vdso]", vdso, vdso=vdso)
    artifacts(KERNEL, "[kernel.kallsyms]", KALLSYMS, kallsyms=KALLSYMS)
    tree |= {f"usr/bin/app/{split}/elf": elf, f"usr/bin/app/{split}/debug": debug, f"usr/bin/app/{split}/probes": PROBES}
    tree |= {f"opt/whole/{other}/elf": whole, f"[vdso]/{stored['vdso'].id}/vdso": vdso,
             f"[kernel.kallsyms]/{KERNEL}/kallsyms": KALLSYMS}
    for path in list(tree):
        for parent in pathlib.PurePath(path).parents:
            if str(parent) != ".":
                tree[str(parent)] = None
    return tree


def walk(top):
    """Yield (path, DirEntry) of the tree below `top`, without following links."""
    for entry in os.scandir(top):
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from walk(entry.path)


OWN = (".bidfs", "info")  # files about the mount itself have tests of their own


def seen_tree(mount):
    tree = {}
    for entry in walk(mount.path):
        path = os.path.relpath(entry.path, mount.path)
        if path.startswith(OWN[0]) or path.endswith("/" + OWN[1]):
            continue
        if entry.is_symlink():
            tree[path] = os.readlink(entry.path)
        else:
            tree[path] = None if entry.is_dir() else pathlib.Path(entry.path).read_bytes()
    return tree


def test_every_path_of_the_mount_is_right(mount, mode, stored):
    seen = seen_tree(mount())
    expected = expected_tree(stored)
    assert sorted(seen) == sorted(expected)
    assert [path for path in expected if seen[path] != expected[path]] == []


def test_lower_stores_are_merged(mount, mode, stored, store, workdir):
    """The tree is the same wherever its parts are stored; a build in two stores is listed once."""
    lowers = [workdir / "first", workdir / "second"]
    for lower in lowers:
        shutil.copytree(store, lower, symlinks=True)
    shutil.rmtree(store / "opt")
    os.unlink(store / ".build-id" / stored["whole"].id[:2] / stored["whole"].id[2:])
    shutil.rmtree(lowers[0] / "usr")
    seen = seen_tree(mount(*[f"lower={lower}" for lower in lowers]))
    expected = expected_tree(stored)
    assert sorted(seen) == sorted(expected)
    assert [path for path in expected if seen[path] != expected[path]] == []


def test_foreign_lower_stores_are_served_by_id(mount, stored, workdir, env):
    """A tree of debug files and libdebuginfod's cache have no original paths, but ids."""
    app, whole = stored["split"], stored["whole"]
    tree, cache = workdir / "tree", pathlib.Path(env["DEBUGINFOD_CACHE_PATH"])
    (tree / ".build-id" / app.id[:2]).mkdir(parents=True)
    shutil.copy(app.debug, tree / ".build-id" / app.id[:2] / f"{app.id[2:]}.debug")
    (tree / "usr/lib").mkdir(parents=True)
    absent = "ab" * 20
    for ident, name in ((whole.id, "executable"), (absent, "debuginfo")):
        (cache / ident).mkdir(parents=True)
        (cache / ident / name).write_bytes(whole.read() if ident == whole.id else b"")
    (cache / absent / "debuginfo").chmod(0)
    (workdir / "empty").mkdir()
    mnt = mount(f"lower={tree}", "lower=debuginfod", on=workdir / "empty")
    assert sorted(os.listdir(mnt / "buildid")) == sorted([app.id, whole.id])
    assert sorted(os.listdir(mnt / "buildid" / app.id)) == ["debuginfo", "info", "section"]
    assert (mnt / "buildid" / app.id / "debuginfo").read_bytes() == app.debug.read_bytes()
    assert (mnt.link(whole.id) / "elf").read_bytes() == whole.read()
    assert sorted(os.listdir(mnt / ".build-id")) == sorted({app.id[:2], whole.id[:2]})
    assert "usr" in os.listdir(mnt.path) and os.listdir(mnt / "usr") == ["lib"] and os.listdir(mnt / "usr/lib") == ["debug"]
    assert os.listdir(workdir / "empty") == [".bidfs"], "something was written"


def test_bidctl_lists_mount_and_store_alike(mount, stored, store):
    """The lists have the same kinds, sizes and paths; only the mount adds derived probe definitions."""
    def listed(path):
        return tools.run(tools.BIDCTL, "--store", path, "list").stdout

    expected = listed(store)
    assert f"{stored['whole'].id}\telf\t{len(stored['whole'].read())}\t/opt/whole\n" in expected
    assert listed(mount().path) == expected


def test_unlisted_names_are_found(mount, stored):
    """Names that no listing shows can be opened, and links lead to them."""
    mnt = mount()
    split = stored["split"]
    assert (mnt / ".debug" / ".build-id" / split.id[:2] / split.id[2:] / "elf").read_bytes() == split.path.read_bytes()
    assert (mnt.link(split.id) / "debug").read_bytes() == split.debug.read_bytes()
    assert (mnt / "debug/.build-id" / split.id[:2] / f"{split.id[2:]}.debug").read_bytes() == split.debug.read_bytes()
    # perf's view lists one name of an unstripped file, and serves the other one, too
    assert not (mnt / "opt/whole" / stored["whole"].id / "nothing").exists()


# containers, caches and builders have a path component like an id; caches and builders with the name of an artifact below it
HEX_DIRS = ["/var/lib/overlay2/" + "5e" * 32 + "/diff/usr/bin/app", "/home/u/.cache/" + "5e" * 20 + "/executable",
            "/home/u/target/" + "5e" * 8 + "/debug/app", "/home/u/" + "5e" * 20 + "/elf"]


@pytest.mark.parametrize("original", HEX_DIRS)
def test_directory_named_like_an_id_stays_a_directory(mount, faults, mode, store, workdir, original):
    """The store has a directory of that name; servers do not change this."""
    program = programs.small(workdir / "app", 1)
    programs.into_store(store, program.id, original, program.path)
    for options in ((), (f"url={faults().url}",)):
        mnt = mount(*options)
        names = [path for path in pathlib.Path(original[1:]).parents if path.name]
        for path in reversed(names):
            assert os.listdir(mnt / path), path
            assert stat.S_ISDIR(os.stat(mnt / "by-path" / path).st_mode)
        for path in (mnt.link(program.id) / "elf", mnt / original[1:] / program.id / "elf",
                     mnt / "by-path" / original[1:] / program.id):
            assert path.read_bytes() == program.read(), path
        assert os.stat(mnt / original[1:]).st_ino == os.stat(mnt.link(program.id) / "..").st_ino
        mnt.unmount()


@pytest.mark.parametrize("server", ["without a server", "with a server"])
def test_id_aliases_lead_to_one_directory(mount, faults, store, workdir, server):
    sample = programs.small(workdir / "app")
    ours, other = (programs.forge(sample, "abcdef12" + rest * 16, workdir / rest) for rest in ("a0", "b0"))
    programs.into_store(store, ours.id, "/usr/bin/app", ours.path)
    mnt = mount(*[f"url={faults().url}"] if server == "with a server" else [])
    for spelling in (ours.id.upper(), ours.id[:7], ours.id[:8], ours.id[:9].upper()):
        assert os.readlink(mnt / "buildid" / spelling) == ours.id
        assert (mnt / "buildid" / spelling / "elf").read_bytes() == ours.read()
    assert tools.errno_of(os.stat, mnt / "buildid" / ours.id[:7].replace("f", "0")) == errno.ENOENT
    assert sorted(os.listdir(mnt / "buildid")) == [ours.id]
    programs.into_store(store, other.id, "/usr/bin/app", other.path)
    tools.wait_until(lambda: tools.errno_of(os.stat, mnt / "buildid" / ours.id[:8]) == errno.ENOENT, "two that begin so")
    assert os.readlink(mnt / "buildid" / ours.id[:9]) == ours.id


def test_directory_without_a_build_is_not_in_by_path(mount, faults, mode, store, workdir):
    """The directory is not listed, and a lookup in it starts no download."""
    program = programs.small(workdir / "app", 1)
    server = faults()
    server.serve(program)
    (store / "opt/app" / program.id).mkdir(parents=True)
    mnt = mount(f"url={server.url}")
    assert os.listdir(mnt / "by-path/opt/app") == [] and not (mnt / "by-path/opt/app" / program.id).exists()
    assert server.count() == 0


def test_errors_match_other_file_systems(mount, mode, store):
    (store / "opt/app").mkdir(parents=True)
    mnt = mount()
    for directory in (mnt.path, mnt / "buildid", mnt / "opt/app"):
        for call in (os.stat, os.mkdir):
            assert tools.errno_of(call, directory / ("a" * 256)) == errno.ENAMETOOLONG, directory
        assert tools.errno_of(os.stat, directory / ("a" * 255)) == errno.ENOENT
        assert tools.errno_of(os.mkfifo, directory / "fifo") == errno.EPERM
        assert tools.errno_of(os.getxattr, directory, "other.name") == errno.EOPNOTSUPP
        assert tools.errno_of(os.getxattr, directory, "user.name") == errno.ENODATA
        mode_before = stat.S_IMODE(directory.stat().st_mode)
        assert tools.errno_of(os.chmod, directory, 0o700) == errno.EPERM
        assert tools.errno_of(os.chmod, directory, mode_before) == 0
        assert stat.S_IMODE(directory.stat().st_mode) == mode_before


def test_info_has_the_time_of_its_last_change(mount, mode, stored, store, env, workdir):
    mnt = mount()
    split = stored["split"]
    path = mnt / "buildid" / split.id / "info"

    def content_and_times():
        return path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ctime_ns

    before, now = content_and_times(), time.time_ns()
    assert before[1] == before[2] < now
    # longer than the kernel caches names
    time.sleep(1.1)
    assert content_and_times() == before
    copy = workdir / "copy"
    shutil.copy(split.path, copy)
    tools.run(tools.BIDCTL, "--store", store, "add", copy, env=env)
    tools.wait_until(lambda: content_and_times()[0] != before[0], "the other path")
    assert content_and_times()[1] > before[1]


def test_listing_has_stored_derived_files(mount, mode, store, workdir, env):
    kernel = programs.kernel(workdir / "vmlinux", "part", 0xffffffff81000000, 1 << 20)
    tools.run(tools.BIDCTL, "--store", store, "add", kernel.path, env=env)
    mnt = mount()
    directory = mnt / "buildid" / kernel.id
    assert "kallsyms" not in os.listdir(directory)
    table = mnt.artifact(kernel.id, "kallsyms").read_bytes()
    tools.wait_until(lambda: "kallsyms" in os.listdir(directory), "the table")
    listed = tools.run(tools.BIDCTL, "--store", store, "list", env=env).stdout
    assert listed == f"{kernel.id}\telf,kallsyms\t{len(kernel.read()) + len(table)}\t{kernel.path}\n"


def test_sizes_times_and_modes_match_the_store(mount, mode, stored, store):
    mnt = mount("ro")
    for entry in walk(mnt.path):
        info = os.lstat(entry.path)
        if stat.S_ISREG(info.st_mode):
            assert info.st_size == len(pathlib.Path(entry.path).read_bytes()), entry.path
            assert not info.st_mode & 0o7222, f"{entry.path}: {oct(info.st_mode)}"
        elif stat.S_ISLNK(info.st_mode):
            assert info.st_size == len(os.readlink(entry.path)), entry.path
    split = stored["split"]
    below = os.stat(store / "usr/bin/app" / split.id / "elf")
    info = os.stat(mnt.artifact(split.id))
    assert (info.st_size, info.st_mtime_ns, info.st_uid, info.st_gid) == \
        (below.st_size, below.st_mtime_ns, below.st_uid, below.st_gid)


def raw_types(path):
    """Return {name: d_type} from getdents64(2), whose types perf uses."""
    libc = ctypes.CDLL(None, use_errno=True)
    getdents64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]
    buffer = ctypes.create_string_buffer(512)  # small, so that a directory takes several calls
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    types = {}
    try:
        while (size := libc.syscall(getdents64, fd, buffer, len(buffer))) > 0:
            at = 0
            while at < size:
                _, _, length, kind = struct.unpack_from("=QqHB", buffer, at)
                types[os.fsdecode(buffer.raw[at + 19:at + length].split(b"\0", 1)[0])] = kind
                at += length
        assert size == 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(fd)
    return types


def test_listing_has_entry_types(mount, stored):
    """perf uses d_type in [kernel.kcore] and skips DT_UNKNOWN."""
    mnt = mount()
    directories = [mnt.path] + [pathlib.Path(entry.path) for entry in walk(mnt.path) if entry.is_dir(follow_symlinks=False)]
    assert len(directories) > 20
    for directory in directories:
        types = raw_types(directory)
        assert {".", ".."} <= types.keys()
        assert set(types) - {".", ".."} == set(os.listdir(directory))
        for name, kind in types.items():
            assert kind << 12 == stat.S_IFMT(os.lstat(directory / name).st_mode), f"{directory}/{name}"


def inodes(mnt):
    return {os.path.relpath(entry.path, mnt.path): os.lstat(entry.path).st_ino for entry in walk(mnt.path)}


def test_rewinddir_shows_new_entries(mount, mode, stored, store, workdir):
    """POSIX: rewinddir(3) shows the current entries, not those at the time of opendir(3)."""
    mnt = mount("offline")
    other = programs.forge(stored["whole"], stored["whole"].id[:-2] + "00", workdir / "other")
    first = other.id[:2]
    directories = ["", "buildid", "by-path", "by-path/opt/whole", "opt/whole", f".build-id/{first}",
                   f"usr/lib/debug/.build-id/{first}"]
    opened = {name: os.open(mnt / name, os.O_RDONLY | os.O_DIRECTORY) for name in directories}
    try:
        before = {name: set(os.listdir(fd)) for name, fd in opened.items()}
        programs.into_store(store, other.id, "/opt/whole", other.path)
        programs.into_store(store, other.id, "/srv/whole", other.path)
        for name, fd in opened.items():
            # listdir() of a descriptor rewinds it
            tools.wait_until(lambda name=name, fd=fd: set(os.listdir(fd)) == set(os.listdir(mnt / name)) > before[name],
                             f"new entries of '{name}'")
    finally:
        for fd in opened.values():
            os.close(fd)


def test_inode_numbers_are_stable_and_unique(mount, mode, stored):
    mnt = mount()
    split, whole = stored["split"].id, stored["whole"].id
    numbers = inodes(mnt)
    # elfutils skips a debug file that has the inode number of its main file
    assert numbers[f"buildid/{split}/elf"] != numbers[f"buildid/{split}/debuginfo"]
    assert numbers[f"buildid/{whole}/elf"] == numbers[f"buildid/{whole}/debuginfo"]
    for one in (f"buildid/{split}/executable", f"by-path/usr/bin/app/{split}", f"usr/bin/app/{split}/elf"):
        assert numbers[one] == numbers[f"buildid/{split}/elf"], one
    # names with the same number are links to one file
    tree = expected_tree(stored)
    contents = {}
    for path in tree:
        contents.setdefault(numbers[path], []).append(tree[path])
    shared = [names for names in contents.values() if len(names) > 1]
    assert shared and all(isinstance(names[0], bytes) and names.count(names[0]) == len(names) for names in shared)
    # readdir(3) and stat(2) agree
    for entry in walk(mnt.path):
        assert entry.inode() == os.lstat(entry.path).st_ino, entry.path
    mnt.unmount()
    again = mount()
    # in another order than before
    for path in sorted(numbers, reverse=True):
        assert os.lstat(again / path).st_ino == numbers[path], path


def test_mmap_reads_the_file(mount, mode, stored):
    mnt = mount()
    split = stored["split"]
    for path, file in ((mnt.artifact(split.id), split.path), (mnt.debug_file(split.id), split.debug)):
        content = file.read_bytes()
        with open(path, "rb") as opened:
            for flags, prot in ((mmap.MAP_PRIVATE, mmap.PROT_READ), (mmap.MAP_SHARED, mmap.PROT_READ),
                                (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE),
                                (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)):
                with mmap.mmap(opened.fileno(), 0, flags, prot) as mapped:
                    assert mapped[:] == content
    # the file can be executed
    program = mnt / "by-path/opt/whole" / stored["whole"].id
    tools.run(program, "10")


def test_statfs_reports_the_store(mount, store, stored):
    mnt = mount("ro")
    above, below = os.statvfs(mnt.path), os.statvfs(store)
    assert (above.f_frsize, above.f_blocks, above.f_files, above.f_namemax) == \
        (below.f_frsize, below.f_blocks, below.f_files, below.f_namemax)
    assert above.f_flag & os.ST_RDONLY and above.f_flag & os.ST_NOSUID and above.f_flag & os.ST_NODEV


MALFORMED = [
    "buildid/ABCDEFG", "buildid/abc", "buildid/xyz0", "buildid/a", f"buildid/{'ab' * 65}", "buildid/.Trash",
    "buildid/aabb.debug",
    "buildid/{id}/nothing", "buildid/{id}/elf.gz", "buildid/{id}/ELF", "buildid/{id}/debug", "buildid/{id}/.hidden",
    ".build-id/zz", ".build-id/abc", ".build-id/AB", ".build-id/a", ".build-id/ab/cde", ".build-id/ab/xy", ".build-id/ab/cd.debug",
    "usr/lib/debug/.build-id/zz", "usr/lib/debug/.build-id/ab/cde.debug", "usr/lib/debug/.build-id/ab/cd.dwp",
    "usr/lib/debug/.build-id/ab/cd-gdb.py", "usr/lib/debug/.build-id/ab/.debug", f"usr/lib/debug/.build-id/ab/{'cd' * 64}.debug",
    ".build-id//u/sr", ".build-id//u/sr/bin/app/probes", "[kernel.kallsyms]/nothing", "[kernel.kcore]/nothing",
    "usr/lib/debug/.dwz", "usr/lib/debug/usr/bin/app.debug", "usr/bin/nothing", "by-path/usr/bin/nothing", "nothing",
    ".bidfs/nothing",
    ".Trash-0", "autorun.inf", "usr/lib/debug/nothing",
]


def test_malformed_names_reach_no_server(mount, faults, stored):
    """Malformed names are absent at once, though the server does not respond."""
    server = faults("stall-headers")
    mnt = mount(f"url={server.url}")
    for name in MALFORMED:
        assert tools.errno_of(os.stat, mnt / name.format(id="ab" * 20)) == errno.ENOENT, name
    assert server.count() == 0
    # a well-formed name does reach the server
    server.behave()
    assert tools.errno_of(os.stat, mnt.artifact("ab" * 20)) == errno.ENOENT
    assert server.count() == 1


def writes(top, file, directory, link):
    """Return {name: call} of each call that would change something."""
    new = f"{top}/{directory}/new"
    return {
        "open O_RDWR": lambda: os.close(os.open(f"{top}/{file}", os.O_RDWR)),
        "open O_WRONLY": lambda: os.close(os.open(f"{top}/{file}", os.O_WRONLY)),
        "create": lambda: os.close(os.open(new, os.O_WRONLY | os.O_CREAT)),
        "mkdir": lambda: os.mkdir(f"{new}-directory"),
        "mknod": lambda: os.mknod(f"{new}-fifo", stat.S_IFIFO | 0o600),
        "symlink": lambda: os.symlink("target", f"{new}-link"),
        "link": lambda: os.link(f"{top}/{file}", f"{new}-hard"),
        "chmod": lambda: os.chmod(f"{top}/{file}", 0o600),
        "chmod of a directory": lambda: os.chmod(f"{top}/{directory}", 0o700),
        "chown": lambda: os.chown(f"{top}/{file}", 0, 0),
        "lchown": lambda: os.lchown(f"{top}/{link}", 0, 0),
        "utimensat": lambda: os.utime(f"{top}/{file}", (1, 1)),
        "setxattr": lambda: os.setxattr(f"{top}/{file}", "user.mark", b"1"),
        "removexattr": lambda: os.removexattr(f"{top}/{file}", "user.mark"),
        "truncate": lambda: os.truncate(f"{top}/{file}", 0),
        "open O_TRUNC": lambda: os.close(os.open(f"{top}/{file}", os.O_WRONLY | os.O_TRUNC)),
        "rename": lambda: os.rename(f"{top}/{file}", f"{new}-name"),
        "rename back": lambda: os.rename(f"{new}-name", f"{top}/{file}"),
        "unlink": lambda: os.unlink(f"{top}/{file}"),
        "unlink of a link": lambda: os.unlink(f"{top}/{link}"),
        "rmdir": lambda: os.rmdir(f"{new}-directory"),
    }


def test_read_only_mount_refuses_all_writes(mount, mode, stored, workdir):
    mnt = mount("ro")
    split = stored["split"].id
    before = seen_tree(mnt)
    for file, directory in ((f"buildid/{split}/elf", f"buildid/{split}"), (".bidfs/status", ".bidfs"),
                            (f"usr/bin/app/{split}/probes", "usr/bin"),
                            (f"usr/lib/debug/.build-id/{split[:2]}/{split[2:]}.debug", "usr/lib/debug/.build-id")):
        for name, call in writes(mnt.path, file, directory, ".debug").items():
            assert tools.errno_of(call) == errno.EROFS, f"{name}: {file}"
    assert seen_tree(mnt) == before
    # each call succeeds on a writable directory
    plain = workdir / "plain"
    plain.mkdir()
    (plain / "file").write_text("content")
    (plain / "link").symlink_to("file")
    for name, call in writes(plain, "file", ".", "link").items():
        assert tools.errno_of(call) == 0, name
