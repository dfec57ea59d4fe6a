#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Move builds between stores with bidctl archive and unarchive and with tar, and refuse hostile archives.

usage: check_archive.py BIDCTL [--no-fetch] [CASE...]
"""
import gzip
import io
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tarfile

import cases
from bidctl_env import (DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_SHORT, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env, server)

PACKINGS = (".tar", ".tar.bz2", ".tar.gz", ".tar.xz", ".tar.zst")
KERNEL = "4eb1" * 10
KALLSYMS = b"ffffffff81000000 T _stext\nffffffffc0000000 t helper\t[module]\n"
PROBES = b"%sdt_app:start=start\np:sdt_app/start /usr/bin/app:0x1139\n"


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def forge(env, *members, name="forged.tar", packing=""):
    """Write an archive of these members in that order."""
    path = env.home / name
    with tarfile.open(path, f"w:{packing}", format=tarfile.GNU_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def elf_of(env, program, build_id, path="usr/bin/app"):
    return member(f"{path}/{build_id}/elf", getattr(env, program).read_bytes(), mode=0o755)


def outside(env):
    """Return the files beside the store, which no archive may change."""
    return sorted(str(path) for path in env.store.parent.rglob("*") if env.store not in path.parents)


def unarchive(env, path, status=DONE):
    """Return {member: result}, and check that only artifacts were stored."""
    before = outside(env)
    rows = env.rows("unarchive", path, status=status)
    assert outside(env) == before
    for entry in env.store.rglob("*"):
        if ".bidfs" not in entry.parts:
            assert entry.is_dir() or entry.is_file() or ".build-id" in entry.parts, f"made by an archive: {entry}"
    assert env.on_store("verify", "--deep").stdout.count("\n") == 1
    return {row["name"]: row for row in rows}


def case_wrong_usage_is_refused(env):
    env.on_store("add", env.one)
    for arguments, has in (
            (["archive", ID_ONE], "'--output'"),
            (["archive", "--output=a.tar"], "'--perf-data'"),
            (["archive", "-o", "a.zip", ID_ONE], "'a.zip'"),
            (["archive", "-o", ".tar", ID_ONE], "'.tar'"),
            (["--json", "archive", "-o", "-", ID_ONE], "'--json'"),
            (["unarchive"], "FILE"),
            (["unarchive", "--perf-data=x", "y"], "'--perf-data'"),
            (["list", "-o", "x"], "'--output'"),
    ):
        env.one_error(*arguments, status=USAGE, has=has)
    target = env.home / "a.tar"
    env.one_error("archive", "-o", target, ID_FAR[:9], status=REFUSED, has="no such build-id")
    env.one_error("unarchive", target, status=REFUSED, has="no such file")
    env.one_error("archive", "-o", env.home / "no" / "a.tar", ID_ONE, status=ERROR, has="no such directory")
    status, text = env.on_terminal("--store", env.store, "archive", "-o", "-", ID_ONE)
    assert status == USAGE and "terminal" in text, text
    assert not target.exists()


def case_archive_round_trip_restores_the_store(env):
    """With each compression: into another store, and with tar into perf's cache directory."""
    env.on_store("add", env.one, env.two, env.short)
    ids = [ID_ONE, ID_TWO, ID_SHORT]
    for packing in PACKINGS:
        archive, other, plain = env.home / f"a{packing}", env.home / f"store{packing}", env.home / f"plain{packing}"
        done = env.json("archive", "-o", archive, *ids)
        assert (done["totals"]["packed"], done["totals"]["missing"]) == (3, 0), done
        assert [build["path"] for build in done["result"]] == [str(path) for path in (env.one, env.two, env.short)], done
        other.mkdir()
        assert env.run("--store", other, "unarchive", archive).summary.startswith("added 3, known 0, refused 0, ")
        assert env.run("--store", other, "list").stdout == env.on_store("list").stdout
        assert env.run("--store", other, "verify", "--deep").stdout.count("\n") == 1
        assert env.run("--store", other, "unarchive", archive).summary == "added 0, known 3, refused 0, size 0 B\n"
        shown = env.run("--store", other, "--json", "show", ID_ONE).stdout
        assert '"how":"added"' in shown, shown
        plain.mkdir()
        done = subprocess.run(["tar", "-xf", archive, "-C", plain], capture_output=True, text=True, timeout=TIMEOUT, check=True)
        assert done.stderr == "", done.stderr
        assert (plain / ".build-id" / ID_ONE[:2] / ID_ONE[2:] / "elf").read_bytes() == env.one.read_bytes()
        assert env.run("--store", plain, "verify").summary.startswith("names 3,")


def case_archive_is_reproducible(env):
    env.on_store("add", env.one, env.two, env.far)
    first, again = env.home / "first.tar.gz", env.home / "again.tar.gz"
    env.on_store("archive", "-o", first, ID_ONE, ID_TWO, ID_FAR)
    # packed by any program, in any order and place
    env.on_store("archive", "-o", again, ID_FAR, ID_ONE, ID_TWO, ID_ONE, LC_ALL="C.UTF-8", TZ="Asia/Tokyo")
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        infos = archive.getmembers()
    assert [info.name.rpartition("/")[2] for info in infos] == [ID_FAR[2:], "elf", ID_ONE[2:], "elf", ID_TWO[2:], "elf"], infos
    assert {(info.uid, info.gid, info.uname, info.gname) for info in infos} == {(0, 0, "", "")}
    assert {(info.mtime, info.mode) for info in infos} == {(1, 0o777), (1, 0o755)}


def case_unarchived_store_makes_the_same_archive(env):
    """The artifacts have other times and modes in the second store."""
    env.on_store("add", env.one, env.two)
    env.on_store("probe", "add", ID_ONE, "p:group/event 0x2000")
    first, again, other = env.home / "first.tar", env.home / "again.tar", env.home / "other"
    env.on_store("archive", "-o", first, ID_ONE, ID_TWO)
    other.mkdir()
    env.run("--store", other, "unarchive", first)
    for path in other.rglob("*"):
        if path.is_file() and ".bidfs" not in path.parts:
            os.utime(path, (1234567, 1234567))
    env.run("--store", other, "archive", "-o", again, ID_TWO, ID_ONE)
    assert first.read_bytes() == again.read_bytes()


def case_archive_works_through_pipes(env):
    env.on_store("add", env.one)
    other = env.home / "other"
    other.mkdir()
    line = '"$0" --store="$1" archive -o - "$3" | "$0" --store="$2" unarchive -'
    done = subprocess.run(["sh", "-c", line, env.bidctl, env.store, other, ID_ONE], env=env.environment, capture_output=True,
                          text=True, timeout=TIMEOUT)
    assert done.returncode == DONE and sorted(done.stderr.splitlines()) == ["added 1, known 0, refused 0, size 17 KiB",
                                                                            "packed 1, missing 0, size 17 KiB"], done
    # a missing build is reported, and the rest is packed
    done = env.on_store("archive", "-o", env.home / "a.tar", ID_ONE, ID_NOT_STORED, status=REFUSED)
    assert done.summary.startswith("packed 1, missing 1, ") and f"not in the store: '{ID_NOT_STORED}'" in done.stderr, done
    assert done.stderr.endswith(f"'{ID_NOT_STORED}'\n"), done.stderr
    # an empty archive is not written and replaces no older one
    before = (env.home / "a.tar").read_bytes()
    env.on_store("archive", "-o", env.home / "a.tar", ID_NOT_STORED, status=REFUSED)
    assert (env.home / "a.tar").read_bytes() == before


def case_failed_archive_keeps_the_old_archive(env):
    """A failed write leaves the older archive and no other file."""
    env.on_store("add", env.one)
    target = env.home / "a.tar"
    target.write_text("older")
    before = sorted(os.listdir(env.home))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = subprocess.run([env.bidctl, "--store", env.store, "archive", "-o", target, ID_ONE], env=env.environment,
                          preexec_fn=limit, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == ERROR and done.stderr.count("\n") == 1 and "a.tar" in done.stderr, done
    assert target.read_text() == "older" and sorted(os.listdir(env.home)) == before


def case_full_store_refuses_unarchive(env):
    """The error names the store, not the added file."""
    cases.need(os.geteuid() == 0, "needs root to mount a small file system")
    path, full = env.home / "both.tar", env.home / "full"
    env.on_store("add", env.one, env.two)
    env.on_store("archive", "--output", path, ID_ONE, ID_TWO)
    full.mkdir()
    for arguments, has in ((["unarchive", path], f"No space left on device: store '{full}'; bidctl added the files before that"),
                           (["add", "--link=copy", env.one, env.two], "no space left on the file system of the store: '")):
        script = f'mount -t tmpfs -o size=24k tmpfs {full} && "$@"; status=$?; {env.bidctl} -s {full} verify && exit $status'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", env.bidctl, "--store", full, *arguments],
                              env=env.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                              check=False)
        assert done.returncode == ERROR and has in done.stderr and "found 0," in done.stderr, done


def case_closed_output_keeps_text_out_of_the_archive(env):
    """Text for a closed standard output must not go into the archive's descriptor."""
    env.on_store("add", env.one)
    path = env.home / "quiet.tar.gz"
    argv = [env.bidctl, "--store", env.store, "archive", "-v", "--output", path, ID_ONE]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *argv], env=env.environment, stderr=subprocess.PIPE,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == ERROR and done.stderr.endswith("bidctl: error: Bad file descriptor: 'standard output'\n"), done
    assert gzip.decompress(path.read_bytes()), "nothing behind the archive"


def case_every_kind_is_archived(env):
    """All kinds of files of a build, in any order."""
    debug, code = env.home / "debug", env.home / "code"
    subprocess.run(["objcopy", "--only-keep-debug", env.one, debug], check=True, timeout=TIMEOUT)
    subprocess.run(["strip", "-o", code, env.one], check=True, timeout=TIMEOUT)
    module = subprocess.run(["xz", "-c", env.two], check=True, capture_output=True, timeout=TIMEOUT).stdout
    members = {
        f"usr/bin/app/{ID_ONE}/probes": PROBES, f"usr/bin/app/{ID_ONE}/debug": debug.read_bytes(),
        f"usr/bin/app/{ID_ONE}/elf": code.read_bytes(), f"[kernel.kallsyms]/{KERNEL}/kallsyms": KALLSYMS,
        f"[kernel.kallsyms]/{KERNEL}/probes": b"", f"[vdso]/{ID_FAR}/vdso": env.far.read_bytes(),
        f"lib/modules/6/two.ko.xz/{ID_TWO}/elf": module, f"[debuginfod]/{ID_SHORT}/elf": env.short.read_bytes()}
    forged = forge(env, member(".build-id", type=tarfile.DIRTYPE), *(member(name, content) for name, content in members.items()))
    found = unarchive(env, forged)
    assert {name: row["state"] for name, row in found.items()} == {
        name: "known" if content == b"" else "added" for name, content in members.items()}, found
    # all files are known then, and so are perf's empty probe caches
    assert {row["state"] for row in unarchive(env, forged).values()} == {"known"}
    for name in list(members)[:4]:
        assert (env.store / name).read_bytes() == members[name], name
    assert (env.store / f"lib/modules/6/two.ko.xz/{ID_TWO}/elf").read_bytes() == env.two.read_bytes(), "not unpacked"
    assert env.on_store("get", ID_ONE).stdout.endswith("/debug\n")
    assert [row["path"] for row in env.rows("list") if row["id"] == ID_ONE] == ["/usr/bin/app"]
    # and the second store makes the same archive
    archive, other = env.home / "a.tar.zst", env.home / "other"
    env.on_store("archive", "-o", archive, ID_ONE, ID_TWO, ID_FAR, ID_SHORT, KERNEL)
    other.mkdir()
    assert env.run("--store", other, "unarchive", archive).summary.startswith("added 7, known 0, refused 0")
    assert env.run("--store", other, "list").stdout == env.on_store("list").stdout


def case_unreadable_artifact_is_reported(env):
    """The unreadable file of a build is named, though the rest of the build is packed."""
    debug, archive = env.home / "debug", env.home / "a.tar"
    subprocess.run(["objcopy", "--only-keep-debug", env.one, debug], check=True, timeout=TIMEOUT)
    env.on_store("add", "--link=copy", env.one, debug, env.two)
    elf = env.store / str(env.one)[1:] / ID_ONE / "elf"
    elf.chmod(0o755)
    elf.write_text("something else")
    done = env.on_store("archive", "-o", archive, ID_ONE, ID_TWO, status=REFUSED)
    assert done.summary.startswith("packed 2, missing 0, ") and f": elf of '{ID_ONE}' is left out\n" in done.stderr, done
    assert done.stderr.count("error: ") == 1, done
    with tarfile.open(archive) as packed:
        names = [name.rpartition("/")[2] for name in packed.getnames()]
    assert names == [ID_ONE[2:], "debug", ID_TWO[2:], "elf"], names
    rows = env.rows("archive", "-o", archive, ID_ONE, ID_TWO, status=REFUSED)
    assert [(row["kinds"], row["left_out"]) for row in rows] == [(["debuginfo"], "elf"), (["elf"], None)], rows


def case_unarchive_adds_the_path_to_a_stored_build(env):
    """A stored build gets the archive's path as another name; a download becomes an added build."""
    archive = forge(env, elf_of(env, "one", ID_ONE), elf_of(env, "one", ID_ONE, "opt/app"),
                    member(f"opt/app/{ID_ONE}/elf", type=tarfile.LNKTYPE, linkname=f"usr/bin/app/{ID_ONE}/elf"))
    env.on_store("unarchive", archive)
    assert env.files() == [f"opt/app/{ID_ONE}/elf", f"usr/bin/app/{ID_ONE}/elf"]
    assert (env.store / env.files()[0]).samefile(env.store / env.files()[1])
    env.on_store("verify", "--deep")


def hostile(env):
    """Return {description: member that must be refused}."""
    one, far = env.one.read_bytes(), env.far.read_bytes()
    return {
        "absolute": member(f"/usr/bin/app/{ID_ONE}/elf", one),
        "upwards": member(f"usr/../../../{ID_ONE}/elf", one),
        "upwards at once": member(f"../{ID_ONE}/elf", one),
        "our own folder": member(f".bidfs/tmp/{ID_ONE}/elf", one),
        "the links' folder": member(f".build-id/ab/{ID_ONE}/elf", one),
        "without a path": member(f"{ID_ONE}/elf", one),
        "an empty name": member(f"usr//bin/{ID_ONE}/elf", one),
        "in brackets": member(f"[vdso]/../{ID_ONE}/elf", one),
        "no id": member("usr/bin/app/xyz/elf", one),
        "capitals": member(f"usr/bin/app/{ID_ONE.upper()}/elf", one),
        "no artifact": member(f"usr/bin/app/{ID_ONE}/passwd", one),
        "anything": member("perf.data", b"anything"),
        "an archive of builds elsewhere": member("usr/perf.symbols.tar", b"anything"),
        "an archive of builds that is none": member("perf.symbols.tar.bz2", b"anything"),
        "a link in the place of a directory": member("usr", type=tarfile.SYMTYPE, linkname="/etc"),
        "a link in the place of a file": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        "a hard link out": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "a hard link to another id": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.LNKTYPE,
                                            linkname=f"usr/bin/far/{ID_FAR}/elf"),
        "a hard link to nothing": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.LNKTYPE, linkname=f"usr/bin/b/{ID_ONE}/elf"),
        "a hard link to itself, which is nothing": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.LNKTYPE,
                                                          linkname=f"usr/bin/app/{ID_ONE}/elf"),
        "a hard link out to itself": member(f".build-id/{ID_ONE[:2]}/../../passwd", type=tarfile.LNKTYPE,
                                            linkname=f".build-id/{ID_ONE[:2]}/../../passwd"),
        "anything, to itself": member("perf.data", type=tarfile.LNKTYPE, linkname="perf.data"),
        "a device": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        "a block device": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.BLKTYPE, devmajor=8),
        "a FIFO": member(f"usr/bin/app/{ID_ONE}/elf", type=tarfile.FIFOTYPE),
        "another id": member(f"usr/bin/app/{ID_ONE}/elf", far),
        "another id, debug": member(f"usr/bin/app/{ID_ONE}/debug", far),
        "no ELF file": member(f"usr/bin/app/{ID_ONE}/elf", b"#!/bin/sh\n" * 9),
        "empty": member(f"usr/bin/app/{ID_ONE}/elf"),
        "cut short": member(f"usr/bin/app/{ID_ONE}/elf", one[:5000]),
        "packed, damaged": member(f"usr/bin/app/{ID_ONE}/elf", gzip.compress(one)[:-20]),
        "packed, another": member(f"usr/bin/app/{ID_ONE}/elf", gzip.compress(far)),
        "no vDSO": member(f"[vdso]/{ID_ONE}/vdso", far),
        "no symbols": member(f"[kernel.kallsyms]/{KERNEL}/kallsyms", b"\x7fELF" + bytes(100)),
        "symbols and escapes": member(f"[kernel.kallsyms]/{KERNEL}/kallsyms", KALLSYMS + b"0 T \033[2J\n"),
        "symbols without addresses": member(f"[kernel.kallsyms]/{KERNEL}/kallsyms", b"0000000000000000 T hidden\n" * 4000),
        "no symbols at all": member(f"[kernel.kallsyms]/{KERNEL}/kallsyms"),
        "no probes": member(f"usr/bin/app/{ID_ONE}/probes", b"rm -rf /\n\0"),
        "probes of nothing": member(f"usr/bin/app/{ID_NOT_STORED}/probes", PROBES),
    }


def case_hostile_member_is_refused_alone(env):
    """Nothing of the member is left, and the good member behind it is stored."""
    for what, bad in hostile(env).items():
        shutil.rmtree(env.store)
        env.store.mkdir()
        found = unarchive(env, forge(env, bad, elf_of(env, "far", ID_FAR, "usr/bin/far")), status=REFUSED)
        assert [row["state"] for row in found.values()].count("refused") == 1, f"{what}: {found}"
        assert env.files() == [f"usr/bin/far/{ID_FAR}/elf"], f"{what}: {env.files()}"
        links = [path for path in env.store.rglob("*") if path.is_symlink()]
        assert [os.readlink(link) for link in links] == [f"../../usr/bin/far/{ID_FAR}"], what


def case_links_of_an_archive_are_not_read(env):
    """The store makes perf's links itself, whatever those in the archive lead to."""
    for target in ("../../../../etc", f"../../usr/{ID_TWO}", f"/etc/{ID_ONE}"):
        shutil.rmtree(env.store)
        env.store.mkdir()
        link = member(f".build-id/{ID_ONE[:2]}/{ID_ONE[2:]}", type=tarfile.SYMTYPE, linkname=target)
        found = unarchive(env, forge(env, link, elf_of(env, "far", ID_FAR, "usr/bin/far")))
        assert [row["state"] for row in found.values()] == ["added"], found
        assert env.files() == [f"usr/bin/far/{ID_FAR}/elf"], env.files()
        assert [os.readlink(path) for path in env.store.rglob("*") if path.is_symlink()] == [f"../../usr/bin/far/{ID_FAR}"]


def case_many_refusals_are_counted(env):
    """The first complaints are shown, the others counted."""
    bad = list(hostile(env).values())
    done = env.on_store("unarchive", forge(env, *bad, elf_of(env, "far", ID_FAR)), status=REFUSED)
    assert done.summary.startswith(f"added 1, known 0, refused {len(bad)}, "), done.stdout
    assert done.stderr.count("\n") == 21 and f"and {len(bad) - 20} more" in done.stderr, done.stderr
    rows = env.rows("unarchive", env.home / "forged.tar", status=REFUSED)
    assert all(row["reason"] for row in rows if row["state"] == "refused")


def huge(name, size):
    """Return a header of a sparse member (GNU format) with this size, which has no data."""
    info = tarfile.TarInfo(name)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    octal = b"\x80" + size.to_bytes(11, "big")
    header[386:386 + 24] = octal + (0).to_bytes(12, "big").replace(b"\0", b"0")
    header[124:136] = b"00000000000\0"
    header[483:495] = octal
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def case_huge_member_is_refused(env):
    """A tebibyte of hole is refused, and so is a tebibyte of claimed data."""
    path = forge(env, elf_of(env, "far", ID_FAR))
    good = path.read_bytes()
    path.write_bytes(huge(f"usr/bin/app/{ID_ONE}/elf", 1 << 40) + good)
    found = unarchive(env, path, status=REFUSED)
    refused = found[f"usr/bin/app/{ID_ONE}/elf"]
    assert refused["state"] == "refused" and refused["size"] == 1 << 40 and "limit" in refused["reason"], found
    assert env.files() == [f"usr/bin/app/{ID_FAR}/elf"]
    info, _ = member(f"usr/bin/app/{ID_ONE}/elf")
    info.size = 1 << 40
    end = 512 + -(-env.far.stat().st_size // 512) * 512
    path.write_bytes(good[:end] + info.tobuf(tarfile.GNU_FORMAT) + env.one.read_bytes())
    done = env.on_store("unarchive", path, status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.summary.startswith("added 0, known 1, "), done


def case_compression_bomb_is_refused(env):
    """A few kibibytes that unpack to a lot end the archive, whether their member is wanted or not."""
    cases.need(shutil.which("zstd"), "no zstd")
    for name, head in ((f"usr/bin/app/{ID_ONE}/elf", env.one.read_bytes()), ("anything", b"")):
        plain = env.home / "bomb.tar"
        info, _ = member(name)
        info.size = 400 << 20
        plain.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + head)
        os.truncate(plain, info.size + 512)
        subprocess.run(["zstd", "-q", "-f", "-1", plain, "-o", env.home / "bomb.tar.zst"], check=True, timeout=100)
        plain.unlink()
        assert (env.home / "bomb.tar.zst").stat().st_size < 4 << 20
        done = env.on_store("unarchive", env.home / "bomb.tar.zst", status=REFUSED)
        assert "stopped reading" in done.stderr, done.stderr
        assert env.files() == [] and os.listdir(env.store / ".bidfs" / "tmp") == []


def case_bomb_of_many_modules_is_refused(env):
    """Many small modules that unpack to the limit each exceed the limit for all."""
    cases.need(shutil.which("zstd"), "no zstd")
    large, ids = env.home / "large.ko", [f"{n:02x}" * 20 for n in range(8)]
    members, head = [], env.one.read_bytes()
    for build_id in ids:
        large.write_bytes(head.replace(bytes.fromhex(ID_ONE), bytes.fromhex(build_id)))
        os.truncate(large, 60 << 20)
        packed = subprocess.run(["zstd", "-q", "-1", "-c", large], capture_output=True, check=True, timeout=100).stdout
        members.append(member(f"lib/modules/6/m.ko.zst/{build_id}/elf", packed))
    path = forge(env, *members)
    assert path.stat().st_size < 1 << 20
    done = env.on_store("unarchive", path, status=REFUSED)
    assert "stopped reading" in done.stderr, done.stderr
    assert 0 < len(env.files()) < len(ids) and os.listdir(env.store / ".bidfs" / "tmp") == []


def case_other_file_is_no_archive(env):
    env.on_store("add", env.one)
    good = env.home / "a.tar.gz"
    env.on_store("archive", "-o", good, ID_ONE)
    twice = env.home / "twice.tar.gz"
    twice.write_bytes(gzip.compress(good.read_bytes()))
    for path in (env.text, twice, env.one):
        done = env.on_store("unarchive", path, status=REFUSED)
        assert "not a tar archive" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    env.on_store("unarchive", env.home, status=ERROR)
    (env.home / "perf.tar").write_bytes(bytes(10240))
    assert "no file in the layout" in env.on_store("unarchive", env.home / "perf.tar", status=REFUSED).stderr


def case_damaged_header_ends_the_archive(env):
    """Nothing behind a damaged header is used or shown as a member."""
    path = forge(env, elf_of(env, "one", ID_ONE), elf_of(env, "far", ID_FAR))
    data = bytearray(path.read_bytes())
    data[data.index(b"usr/bin/app/" + ID_FAR.encode()) + 3] ^= 1
    path.write_bytes(data)
    done = env.on_store("unarchive", path, status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert done.summary.startswith("added 1, known 0, refused 0, ") and env.files() == [f"usr/bin/app/{ID_ONE}/elf"], done


def all_of(env, symbols, name="perf.symbols.tar.bz2", recording="perf.data"):
    """Make a recording and the archive of its builds, packed as perf archive --all does."""
    return forge(env, member(recording, b"PERFILE2" + bytes(4096)), member(name, symbols), name="all.tar.bz2", packing="bz2")


def case_archive_with_its_recording_is_taken(env):
    for packing in PACKINGS:
        shutil.rmtree(env.store)
        env.store.mkdir()
        env.on_store("add", env.one, env.far)
        symbols = env.home / f"symbols{packing}"
        env.on_store("archive", "-o", symbols, ID_ONE, ID_FAR)
        env.on_store("remove", ID_ONE)
        path = all_of(env, symbols.read_bytes(), f"perf.symbols{packing}", "home/recorded")
        found = unarchive(env, path)
        assert {name.split("/")[-2]: row["state"] for name, row in found.items()} == {ID_ONE: "added", ID_FAR: "known"}, found


def case_hostile_archive_with_its_recording_is_refused(env):
    """The limits of an archive hold for an archive inside it."""
    env.on_store("add", env.one)
    symbols = env.home / "symbols.tar"
    env.on_store("archive", "-o", symbols, ID_ONE)
    env.on_store("remove", ID_ONE)
    good = symbols.read_bytes()
    # only builds are taken from the nested archive
    for bad in (member("perf.symbols.tar", good), member("perf.data", b"PERFILE2")):
        found = unarchive(env, all_of(env, forge(env, bad).read_bytes()), status=REFUSED)
        assert {row["state"] for row in found.values()} == {"refused"} and env.files() == [], found
    done = env.on_store("unarchive", all_of(env, good[:10000]), status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    # 300 MiB, packed twice
    bomb = forge(env, member(f"usr/bin/app/{ID_ONE}/debug", env.one.read_bytes() + bytes(300 << 20)), packing="gz")
    done = env.on_store("unarchive", all_of(env, bomb.read_bytes()), status=REFUSED)
    assert "unpacks to far more" in done.stderr, done.stderr


def case_archive_with_changed_bytes_is_refused(env):
    """The first-seen digest of an id outlives its file, and other bytes are refused."""
    with server(env) as url:
        env.on_store("get", f"--url={url}", ID_NOT_STORED)
    env.on_store("remove", ID_NOT_STORED)
    other = member(f"[debuginfod]/{ID_NOT_STORED}/debug", (env.home / "unstripped").read_bytes())
    row, = unarchive(env, forge(env, other), status=REFUSED).values()
    assert row["state"] == "refused" and "other bytes than the first download" in row["reason"], row


def case_damaged_archive_yields_its_right_members(env):
    """Cut off anywhere, or with changed bytes: stored members are right, and lost ones are reported."""
    env.on_store("add", env.one, env.far)
    seed = int(os.environ.get("BID_TEST_SEED", "1"))
    rounds = int(os.environ.get("BID_TEST_ROUNDS", "12"))
    for packing in PACKINGS:
        whole = env.home / f"a{packing}"
        env.on_store("archive", "-o", whole, ID_ONE, ID_FAR)
        content = whole.read_bytes()
        generator = random.Random(f"{seed}{packing}")
        for number in range(rounds):
            damaged = bytearray(content)
            if number % 2:
                # a cut within the end of the tar archive counts as well, which is 10 KiB of zeros at most
                del damaged[generator.randrange(len(damaged) * 2 // 3):]
            else:
                for _ in range(generator.randrange(1, 20)):
                    damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
            whole.write_bytes(damaged)
            other = env.home / "other"
            other.mkdir()
            done = subprocess.run([env.bidctl, "--store", other, "unarchive", whole], env=env.environment, capture_output=True,
                                  text=True, errors="replace", timeout=TIMEOUT)
            assert done.returncode in (DONE, REFUSED), f"{packing}, {number}: {done}"
            assert number % 2 == 0 or done.returncode == REFUSED, f"{packing}, {number}: cut short, and nothing was said: {done}"
            env.run("--store", other, "verify", "--deep")
            assert os.listdir(other / ".bidfs" / "tmp") == []
            shutil.rmtree(other)


def case_archive_draws_progress(env):
    env.on_store("add", env.one)
    archive = env.home / "a.tar.zst"
    status, text = env.on_terminal("--store", env.store, "archive", "-o", archive, ID_ONE)
    assert status == DONE and "\rpacking: 1 of 1 builds" in text and "packed 1, missing 0" in text, text
    status, text = env.on_terminal("--store", env.store, "unarchive", archive)
    assert status == DONE and "\runpacking: " in text and "known 1" in text, text


def case_builds_of_lower_stores_are_archived(env):
    other = env.home / "other"
    other.mkdir()
    env.run("--store", other, "add", env.one)
    archive = env.home / "a.tar"
    env.on_store("archive", f"--lower={other}", "-o", archive, ID_ONE)
    unarchive(env, archive)
    assert env.files() == [f"{str(env.one)[1:]}/{ID_ONE}/elf"]


def refers(env, path, build_id):
    """Let the debug information of a file refer to the file of that id, as dwz -m does."""
    link = env.home / "link"
    link.write_bytes(b"common.debug\0" + bytes.fromhex(build_id))
    subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={link}", path], check=True, timeout=TIMEOUT)


def case_dwz_file_is_archived_once(env):
    """The file that debug information refers to is packed once, or reported missing."""
    for program in (env.one, env.far):
        copy = env.home / f"{program.name}.dwz"
        shutil.copy(program, copy)
        refers(env, copy, ID_TWO)
        env.on_store("add", copy)
    archive, other = env.home / "a.tar", env.home / "other"
    done = env.on_store("archive", "-o", archive, ID_ONE, ID_FAR, status=REFUSED)
    assert done.summary.startswith("packed 2, missing 1, ") and f"'{ID_TWO}', a dwz file" in done.stderr, done
    env.on_store("add", env.two)
    assert env.totals("archive", "-o", archive, ID_ONE, ID_FAR)["packed"] == 3
    assert env.totals("archive", "-o", archive, ID_ONE, ID_TWO)["packed"] == 2
    other.mkdir()
    env.run("--store", other, "unarchive", archive)
    assert env.run("--store", other, "get", "--offline", ID_TWO).stdout


def case_downloads_are_archived_and_count_as_added(env):
    archive = env.home / "a.tar"
    with server(env) as url:
        env.on_store("archive", "-o", archive, ID_NOT_STORED, status=REFUSED)
        for kind in ("debuginfo", "elf"):
            env.on_store("get", f"--url={url}", ID_NOT_STORED, kind)
    env.on_store("archive", "-o", archive, ID_NOT_STORED)
    other = pathlib.Path(env.home / "other")
    other.mkdir()
    assert env.run("--store", other, "unarchive", archive).summary.startswith("added 2, ")
    # the unarchived file counts as added, and no eviction removes it
    assert "evicted 0" in env.run("--store", other, "gc", "--cache-size=1").stdout
    # the member takes the place of an earlier download
    output = env.on_store("gc", "--cache-size=1", "--dry-run").stdout
    assert "evicted 2" in output, output
    assert {row["state"] for row in unarchive(env, archive).values()} == {"added"}
    assert {row["state"] for row in unarchive(env, archive).values()} == {"known"}
    assert "evicted 0" in env.on_store("gc", "--cache-size=1").stdout


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "objcopy", "strip", "tar", "xz", "bzip2"],
               fetching=[case_downloads_are_archived_and_count_as_added, case_archive_with_changed_bytes_is_refused])
