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
from bidctl_scene import (DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_SHORT, ID_TWO, REFUSED, TIMEOUT, TROUBLE, USAGE, Scene, server)

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


def forge(scene, *members, name="forged.tar", packing=""):
    """Write an archive of these members in that order."""
    path = scene.home / name
    with tarfile.open(path, f"w:{packing}", format=tarfile.GNU_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def elf_of(scene, program, build_id, path="usr/bin/app"):
    return member(f"{path}/{build_id}/elf", getattr(scene, program).read_bytes(), mode=0o755)


def outside(scene):
    """Return the files beside the store, which no archive may change."""
    return sorted(str(path) for path in scene.store.parent.rglob("*") if scene.store not in path.parents)


def unarchive(scene, path, status=DONE):
    """Return {member: result}, and check that only artifacts were stored."""
    before = outside(scene)
    rows = scene.rows("unarchive", path, status=status)
    assert outside(scene) == before
    for entry in scene.store.rglob("*"):
        if ".bidfs" not in entry.parts:
            assert entry.is_dir() or entry.is_file() or ".build-id" in entry.parts, f"made by an archive: {entry}"
    assert scene.on_store("verify", "--deep").stdout.count("\n") == 1
    return {row["name"]: row for row in rows}


def case_wrong_usage_is_refused(scene):
    scene.on_store("add", scene.one)
    for arguments, has in (
            (["archive", ID_ONE], "'--output'"),
            (["archive", "--output=a.tar"], "'--perf-data'"),
            (["archive", "-o", "a.zip", ID_ONE], "'a.zip'"),
            (["archive", "-o", ".tar", ID_ONE], "'.tar'"),
            (["--json", "archive", "-o", "-", ID_ONE], "'--json'"),
            (["archive", "-o", "a.tar", "--url=http://127.0.0.1:1", ID_ONE], "'--fetch'"),
            (["unarchive"], "FILE"),
            (["unarchive", "--perf-data=x", "y"], "'--perf-data'"),
            (["list", "-o", "x"], "'--output'"),
    ):
        scene.one_error(*arguments, status=USAGE, has=has)
    target = scene.home / "a.tar"
    scene.one_error("archive", "-o", target, ID_FAR[:9], status=REFUSED, has="no such build-id")
    scene.one_error("unarchive", target, status=REFUSED, has="no such file")
    scene.one_error("archive", "-o", scene.home / "no" / "a.tar", ID_ONE, status=TROUBLE, has="no such directory")
    status, text = scene.on_terminal("--store", scene.store, "archive", "-o", "-", ID_ONE)
    assert status == USAGE and "terminal" in text, text
    assert not target.exists()


def case_archive_round_trip_restores_the_store(scene):
    """With each compression: into another store, and with tar into perf's cache directory."""
    scene.on_store("add", scene.one, scene.two, scene.short)
    ids = [ID_ONE, ID_TWO, ID_SHORT]
    for packing in PACKINGS:
        archive, other, plain = scene.home / f"a{packing}", scene.home / f"store{packing}", scene.home / f"plain{packing}"
        done = scene.json("archive", "-o", archive, *ids)
        assert (done["totals"]["packed"], done["totals"]["missing"]) == (3, 0), done
        assert [build["path"] for build in done["result"]] == [str(path) for path in (scene.one, scene.two, scene.short)], done
        other.mkdir()
        assert scene.run("--store", other, "unarchive", archive).summary.startswith("added 3, known 0, refused 0, ")
        assert scene.run("--store", other, "list").stdout == scene.on_store("list").stdout
        assert scene.run("--store", other, "verify", "--deep").stdout.count("\n") == 1
        assert scene.run("--store", other, "unarchive", archive).summary == "added 0, known 3, refused 0, size 0 B\n"
        shown = scene.run("--store", other, "--json", "show", ID_ONE).stdout
        assert '"how":"added"' in shown, shown
        plain.mkdir()
        done = subprocess.run(["tar", "-xf", archive, "-C", plain], capture_output=True, text=True, timeout=TIMEOUT, check=True)
        assert done.stderr == "", done.stderr
        assert (plain / ".build-id" / ID_ONE[:2] / ID_ONE[2:] / "elf").read_bytes() == scene.one.read_bytes()
        assert scene.run("--store", plain, "verify").summary.startswith("names 3,")


def case_archive_is_reproducible(scene):
    scene.on_store("add", scene.one, scene.two, scene.far)
    first, again = scene.home / "first.tar.gz", scene.home / "again.tar.gz"
    scene.on_store("archive", "-o", first, ID_ONE, ID_TWO, ID_FAR)
    # packed by any program, in any order and place
    scene.on_store("archive", "-o", again, ID_FAR, ID_ONE, ID_TWO, ID_ONE, LC_ALL="C.UTF-8", TZ="Asia/Tokyo")
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        infos = archive.getmembers()
    assert [info.name.rpartition("/")[2] for info in infos] == [ID_FAR[2:], "elf", ID_ONE[2:], "elf", ID_TWO[2:], "elf"], infos
    assert {(info.uid, info.gid, info.uname, info.gname) for info in infos} == {(0, 0, "", "")}
    assert {(info.mtime, info.mode) for info in infos} == {(1, 0o777), (1, 0o755)}


def case_unarchived_store_makes_the_same_archive(scene):
    """The artifacts have other times and modes in the second store."""
    scene.on_store("add", scene.one, scene.two)
    scene.on_store("probe", "add", ID_ONE, "p:group/event 0x2000")
    first, again, other = scene.home / "first.tar", scene.home / "again.tar", scene.home / "other"
    scene.on_store("archive", "-o", first, ID_ONE, ID_TWO)
    other.mkdir()
    scene.run("--store", other, "unarchive", first)
    for path in other.rglob("*"):
        if path.is_file() and ".bidfs" not in path.parts:
            os.utime(path, (1234567, 1234567))
    scene.run("--store", other, "archive", "-o", again, ID_TWO, ID_ONE)
    assert first.read_bytes() == again.read_bytes()


def case_archive_works_through_pipes(scene):
    scene.on_store("add", scene.one)
    other = scene.home / "other"
    other.mkdir()
    line = '"$0" --store="$1" archive -o - "$3" | "$0" --store="$2" unarchive -'
    done = subprocess.run(["sh", "-c", line, scene.bidctl, scene.store, other, ID_ONE], env=scene.environment, capture_output=True,
                          text=True, timeout=TIMEOUT)
    assert done.returncode == DONE and sorted(done.stderr.splitlines()) == ["added 1, known 0, refused 0, size 17 KiB",
                                                                            "packed 1, missing 0, size 17 KiB"], done
    # a missing build is reported, and the rest is packed
    done = scene.on_store("archive", "-o", scene.home / "a.tar", ID_ONE, ID_NOT_STORED, status=REFUSED)
    assert done.summary.startswith("packed 1, missing 1, ") and f"not in the store: '{ID_NOT_STORED}'" in done.stderr, done
    assert done.stderr.endswith(f"'{ID_NOT_STORED}'\n"), done.stderr
    # an empty archive is not written and replaces no older one
    before = (scene.home / "a.tar").read_bytes()
    scene.on_store("archive", "-o", scene.home / "a.tar", ID_NOT_STORED, status=REFUSED)
    assert (scene.home / "a.tar").read_bytes() == before


def case_failed_archive_keeps_the_old_archive(scene):
    """A failed write leaves the older archive and no other file."""
    scene.on_store("add", scene.one)
    target = scene.home / "a.tar"
    target.write_text("older")
    before = sorted(os.listdir(scene.home))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = subprocess.run([scene.bidctl, "--store", scene.store, "archive", "-o", target, ID_ONE], env=scene.environment,
                          preexec_fn=limit, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == TROUBLE and done.stderr.count("\n") == 1 and "a.tar" in done.stderr, done
    assert target.read_text() == "older" and sorted(os.listdir(scene.home)) == before


def case_full_store_refuses_unarchive(scene):
    """The error names the store, not the added file."""
    cases.need(os.geteuid() == 0, "needs root to mount a small file system")
    path, full = scene.home / "both.tar", scene.home / "full"
    scene.on_store("add", scene.one, scene.two)
    scene.on_store("archive", "--output", path, ID_ONE, ID_TWO)
    full.mkdir()
    for arguments, has in ((["unarchive", path], f"No space left on device: store '{full}'; what came before"),
                           (["add", "--link=copy", scene.one, scene.two], "no space left where the store is: '")):
        script = f'mount -t tmpfs -o size=24k tmpfs {full} && "$@"; status=$?; {scene.bidctl} -s {full} verify && exit $status'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", scene.bidctl, "--store", full, *arguments],
                              env=scene.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                              check=False)
        assert done.returncode == TROUBLE and has in done.stderr and "found 0," in done.stderr, done


def case_closed_output_keeps_text_out_of_the_archive(scene):
    """Text for a closed standard output must not go into the archive's descriptor."""
    scene.on_store("add", scene.one)
    path = scene.home / "quiet.tar.gz"
    argv = [scene.bidctl, "--store", scene.store, "archive", "-v", "--output", path, ID_ONE]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *argv], env=scene.environment, stderr=subprocess.PIPE,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == TROUBLE and done.stderr.endswith("bidctl: error: Bad file descriptor: 'standard output'\n"), done
    assert gzip.decompress(path.read_bytes()), "nothing behind the archive"


def case_every_kind_is_archived(scene):
    """All kinds of files of a build, in any order."""
    debug, code = scene.home / "debug", scene.home / "code"
    subprocess.run(["objcopy", "--only-keep-debug", scene.one, debug], check=True, timeout=TIMEOUT)
    subprocess.run(["strip", "-o", code, scene.one], check=True, timeout=TIMEOUT)
    module = subprocess.run(["xz", "-c", scene.two], check=True, capture_output=True, timeout=TIMEOUT).stdout
    members = {
        f"usr/bin/app/{ID_ONE}/probes": PROBES, f"usr/bin/app/{ID_ONE}/debug": debug.read_bytes(),
        f"usr/bin/app/{ID_ONE}/elf": code.read_bytes(), f"[kernel.kallsyms]/{KERNEL}/kallsyms": KALLSYMS,
        f"[kernel.kallsyms]/{KERNEL}/probes": b"", f"[vdso]/{ID_FAR}/vdso": scene.far.read_bytes(),
        f"lib/modules/6/two.ko.xz/{ID_TWO}/elf": module, f"[debuginfod]/{ID_SHORT}/elf": scene.short.read_bytes()}
    forged = forge(scene, member(".build-id", type=tarfile.DIRTYPE), *(member(name, content) for name, content in members.items()))
    found = unarchive(scene, forged)
    assert {name: row["state"] for name, row in found.items()} == {
        name: "known" if content == b"" else "added" for name, content in members.items()}, found
    # all files are known then, and so are perf's empty probe caches
    assert {row["state"] for row in unarchive(scene, forged).values()} == {"known"}
    for name in list(members)[:4]:
        assert (scene.store / name).read_bytes() == members[name], name
    assert (scene.store / f"lib/modules/6/two.ko.xz/{ID_TWO}/elf").read_bytes() == scene.two.read_bytes(), "not unpacked"
    assert scene.on_store("get", ID_ONE).stdout.endswith("/debug\n")
    assert [row["path"] for row in scene.rows("list") if row["id"] == ID_ONE] == ["/usr/bin/app"]
    # and the second store makes the same archive
    archive, other = scene.home / "a.tar.zst", scene.home / "other"
    scene.on_store("archive", "-o", archive, ID_ONE, ID_TWO, ID_FAR, ID_SHORT, KERNEL)
    other.mkdir()
    assert scene.run("--store", other, "unarchive", archive).summary.startswith("added 7, known 0, refused 0")
    assert scene.run("--store", other, "list").stdout == scene.on_store("list").stdout


def case_unreadable_artifact_is_reported(scene):
    """The unreadable file of a build is named, though the rest of the build is packed."""
    debug, archive = scene.home / "debug", scene.home / "a.tar"
    subprocess.run(["objcopy", "--only-keep-debug", scene.one, debug], check=True, timeout=TIMEOUT)
    scene.on_store("add", "--link=copy", scene.one, debug, scene.two)
    elf = scene.store / str(scene.one)[1:] / ID_ONE / "elf"
    elf.chmod(0o755)
    elf.write_text("something else")
    done = scene.on_store("archive", "-o", archive, ID_ONE, ID_TWO, status=REFUSED)
    assert done.summary.startswith("packed 2, missing 0, ") and f": elf of '{ID_ONE}' is left out\n" in done.stderr, done
    assert done.stderr.count("error: ") == 1, done
    with tarfile.open(archive) as packed:
        names = [name.rpartition("/")[2] for name in packed.getnames()]
    assert names == [ID_ONE[2:], "debug", ID_TWO[2:], "elf"], names
    rows = scene.rows("archive", "-o", archive, ID_ONE, ID_TWO, status=REFUSED)
    assert [(row["kinds"], row["left_out"]) for row in rows] == [(["debuginfo"], "elf"), (["elf"], None)], rows


def case_unarchive_adds_the_path_to_a_stored_build(scene):
    """A stored build gets the archive's path as another name; a download becomes an added build."""
    archive = forge(scene, elf_of(scene, "one", ID_ONE), elf_of(scene, "one", ID_ONE, "opt/app"),
                    member(f"opt/app/{ID_ONE}/elf", type=tarfile.LNKTYPE, linkname=f"usr/bin/app/{ID_ONE}/elf"))
    scene.on_store("unarchive", archive)
    assert scene.files() == [f"opt/app/{ID_ONE}/elf", f"usr/bin/app/{ID_ONE}/elf"]
    assert (scene.store / scene.files()[0]).samefile(scene.store / scene.files()[1])
    scene.on_store("verify", "--deep")


def hostile(scene):
    """Return {description: member that must be refused}."""
    one, far = scene.one.read_bytes(), scene.far.read_bytes()
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
        "a link out": member(f".build-id/{ID_ONE[:2]}/{ID_ONE[2:]}", type=tarfile.SYMTYPE, linkname="../../../../etc"),
        "a link to another id": member(f".build-id/{ID_ONE[:2]}/{ID_ONE[2:]}", type=tarfile.SYMTYPE,
                                         linkname=f"../../usr/{ID_TWO}"),
        "an absolute link": member(f".build-id/{ID_ONE[:2]}/{ID_ONE[2:]}", type=tarfile.SYMTYPE, linkname=f"/etc/{ID_ONE}"),
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


def case_hostile_member_is_refused_alone(scene):
    """Nothing of the member is left, and the good member behind it is stored."""
    for what, bad in hostile(scene).items():
        shutil.rmtree(scene.store)
        scene.store.mkdir()
        found = unarchive(scene, forge(scene, bad, elf_of(scene, "far", ID_FAR, "usr/bin/far")), status=REFUSED)
        assert [row["state"] for row in found.values()].count("refused") == 1, f"{what}: {found}"
        assert scene.files() == [f"usr/bin/far/{ID_FAR}/elf"], f"{what}: {scene.files()}"
        links = [path for path in scene.store.rglob("*") if path.is_symlink()]
        assert [os.readlink(link) for link in links] == [f"../../usr/bin/far/{ID_FAR}"], what


def case_many_refusals_are_counted(scene):
    """The first complaints are shown, the others counted."""
    bad = list(hostile(scene).values())
    done = scene.on_store("unarchive", forge(scene, *bad, elf_of(scene, "far", ID_FAR)), status=REFUSED)
    assert done.summary.startswith(f"added 1, known 0, refused {len(bad)}, "), done.stdout
    assert done.stderr.count("\n") == 21 and f"and {len(bad) - 20} more" in done.stderr, done.stderr
    rows = scene.rows("unarchive", scene.home / "forged.tar", status=REFUSED)
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


def case_huge_member_is_refused(scene):
    """A tebibyte of hole is refused, and so is a tebibyte of claimed data."""
    path = forge(scene, elf_of(scene, "far", ID_FAR))
    good = path.read_bytes()
    path.write_bytes(huge(f"usr/bin/app/{ID_ONE}/elf", 1 << 40) + good)
    found = unarchive(scene, path, status=REFUSED)
    refused = found[f"usr/bin/app/{ID_ONE}/elf"]
    assert refused["state"] == "refused" and refused["size"] == 1 << 40 and "limit" in refused["reason"], found
    assert scene.files() == [f"usr/bin/app/{ID_FAR}/elf"]
    info, _ = member(f"usr/bin/app/{ID_ONE}/elf")
    info.size = 1 << 40
    end = 512 + -(-scene.far.stat().st_size // 512) * 512
    path.write_bytes(good[:end] + info.tobuf(tarfile.GNU_FORMAT) + scene.one.read_bytes())
    done = scene.on_store("unarchive", path, status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.summary.startswith("added 0, known 1, "), done


def case_compression_bomb_is_refused(scene):
    """A few kibibytes that unpack to a lot end the archive, whether their member is wanted or not."""
    cases.need(shutil.which("zstd"), "no zstd")
    for name, head in ((f"usr/bin/app/{ID_ONE}/elf", scene.one.read_bytes()), ("anything", b"")):
        plain = scene.home / "bomb.tar"
        info, _ = member(name)
        info.size = 400 << 20
        plain.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + head)
        os.truncate(plain, info.size + 512)
        subprocess.run(["zstd", "-q", "-f", "-1", plain, "-o", scene.home / "bomb.tar.zst"], check=True, timeout=100)
        plain.unlink()
        assert (scene.home / "bomb.tar.zst").stat().st_size < 4 << 20
        done = scene.on_store("unarchive", scene.home / "bomb.tar.zst", status=REFUSED)
        assert "not read on" in done.stderr, done.stderr
        assert scene.files() == [] and os.listdir(scene.store / ".bidfs" / "tmp") == []


def case_bomb_of_many_modules_is_refused(scene):
    """Many small modules that unpack to the limit each exceed the limit for all."""
    cases.need(shutil.which("zstd"), "no zstd")
    large, ids = scene.home / "large.ko", [f"{n:02x}" * 20 for n in range(8)]
    members, head = [], scene.one.read_bytes()
    for build_id in ids:
        large.write_bytes(head.replace(bytes.fromhex(ID_ONE), bytes.fromhex(build_id)))
        os.truncate(large, 60 << 20)
        packed = subprocess.run(["zstd", "-q", "-1", "-c", large], capture_output=True, check=True, timeout=100).stdout
        members.append(member(f"lib/modules/6/m.ko.zst/{build_id}/elf", packed))
    path = forge(scene, *members)
    assert path.stat().st_size < 1 << 20
    done = scene.on_store("unarchive", path, status=REFUSED)
    assert "not read on" in done.stderr, done.stderr
    assert 0 < len(scene.files()) < len(ids) and os.listdir(scene.store / ".bidfs" / "tmp") == []


def case_other_file_is_no_archive(scene):
    scene.on_store("add", scene.one)
    good = scene.home / "a.tar.gz"
    scene.on_store("archive", "-o", good, ID_ONE)
    twice = scene.home / "twice.tar.gz"
    twice.write_bytes(gzip.compress(good.read_bytes()))
    for path in (scene.text, twice, scene.one):
        done = scene.on_store("unarchive", path, status=REFUSED)
        assert "not a tar archive" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    scene.on_store("unarchive", scene.home, status=TROUBLE)
    (scene.home / "perf.tar").write_bytes(bytes(10240))
    assert "nothing of the layout" in scene.on_store("unarchive", scene.home / "perf.tar", status=REFUSED).stderr


def case_damaged_header_ends_the_archive(scene):
    """Nothing behind a damaged header is used or shown as a member."""
    path = forge(scene, elf_of(scene, "one", ID_ONE), elf_of(scene, "far", ID_FAR))
    data = bytearray(path.read_bytes())
    data[data.index(b"usr/bin/app/" + ID_FAR.encode()) + 3] ^= 1
    path.write_bytes(data)
    done = scene.on_store("unarchive", path, status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert done.summary.startswith("added 1, known 0, refused 0, ") and scene.files() == [f"usr/bin/app/{ID_ONE}/elf"], done


def all_of(scene, symbols, name="perf.symbols.tar.bz2", recording="perf.data"):
    """Make a recording and the archive of its builds, packed as perf archive --all does."""
    return forge(scene, member(recording, b"PERFILE2" + bytes(4096)), member(name, symbols), name="all.tar.bz2", packing="bz2")


def case_archive_with_its_recording_is_taken(scene):
    for packing in PACKINGS:
        shutil.rmtree(scene.store)
        scene.store.mkdir()
        scene.on_store("add", scene.one, scene.far)
        symbols = scene.home / f"symbols{packing}"
        scene.on_store("archive", "-o", symbols, ID_ONE, ID_FAR)
        scene.on_store("remove", ID_ONE)
        path = all_of(scene, symbols.read_bytes(), f"perf.symbols{packing}", "home/recorded")
        found = unarchive(scene, path)
        assert {name.split("/")[-2]: row["state"] for name, row in found.items()} == {ID_ONE: "added", ID_FAR: "known"}, found


def case_hostile_archive_with_its_recording_is_refused(scene):
    """The limits of an archive hold for an archive inside it."""
    scene.on_store("add", scene.one)
    symbols = scene.home / "symbols.tar"
    scene.on_store("archive", "-o", symbols, ID_ONE)
    scene.on_store("remove", ID_ONE)
    good = symbols.read_bytes()
    # only builds are taken from the nested archive
    for bad in (member("perf.symbols.tar", good), member("perf.data", b"PERFILE2")):
        found = unarchive(scene, all_of(scene, forge(scene, bad).read_bytes()), status=REFUSED)
        assert {row["state"] for row in found.values()} == {"refused"} and scene.files() == [], found
    done = scene.on_store("unarchive", all_of(scene, good[:10000]), status=REFUSED)
    assert "damaged or cut short" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    # 300 MiB, packed twice
    bomb = forge(scene, member(f"usr/bin/app/{ID_ONE}/debug", scene.one.read_bytes() + bytes(300 << 20)), packing="gz")
    done = scene.on_store("unarchive", all_of(scene, bomb.read_bytes()), status=REFUSED)
    assert "unpacks to far more" in done.stderr, done.stderr


def case_archive_with_changed_bytes_is_refused(scene):
    """The first-seen digest of an id outlives its file, and other bytes are refused."""
    with server(scene) as url:
        scene.on_store("get", f"--url={url}", ID_NOT_STORED)
    scene.on_store("remove", ID_NOT_STORED)
    other = member(f"[debuginfod]/{ID_NOT_STORED}/debug", (scene.home / "unstripped").read_bytes())
    row, = unarchive(scene, forge(scene, other), status=REFUSED).values()
    assert row["state"] == "refused" and "other bytes than were fetched first" in row["reason"], row


def case_damaged_archive_yields_its_right_members(scene):
    """Cut off anywhere, or with changed bytes: stored members are right, and lost ones are reported."""
    scene.on_store("add", scene.one, scene.far)
    seed = int(os.environ.get("BID_TEST_SEED", "1"))
    rounds = int(os.environ.get("BID_TEST_ROUNDS", "12"))
    for packing in PACKINGS:
        whole = scene.home / f"a{packing}"
        scene.on_store("archive", "-o", whole, ID_ONE, ID_FAR)
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
            other = scene.home / "other"
            other.mkdir()
            done = subprocess.run([scene.bidctl, "--store", other, "unarchive", whole], env=scene.environment, capture_output=True,
                                  text=True, errors="replace", timeout=TIMEOUT)
            assert done.returncode in (DONE, REFUSED), f"{packing}, {number}: {done}"
            assert number % 2 == 0 or done.returncode == REFUSED, f"{packing}, {number}: cut short, and nothing was said: {done}"
            scene.run("--store", other, "verify", "--deep")
            assert os.listdir(other / ".bidfs" / "tmp") == []
            shutil.rmtree(other)


def case_archive_draws_progress(scene):
    scene.on_store("add", scene.one)
    archive = scene.home / "a.tar.zst"
    status, text = scene.on_terminal("--store", scene.store, "archive", "-o", archive, ID_ONE)
    assert status == DONE and "\rpacking: 1 of 1 builds" in text and "packed 1, missing 0" in text, text
    status, text = scene.on_terminal("--store", scene.store, "unarchive", archive)
    assert status == DONE and "\runpacking: " in text and "known 1" in text, text


def case_builds_of_lower_stores_are_archived(scene):
    other = scene.home / "other"
    other.mkdir()
    scene.run("--store", other, "add", scene.one)
    archive = scene.home / "a.tar"
    scene.on_store("archive", f"--lower={other}", "-o", archive, ID_ONE)
    unarchive(scene, archive)
    assert scene.files() == [f"{str(scene.one)[1:]}/{ID_ONE}/elf"]


def refers(scene, path, build_id):
    """Let the debug information of a file refer to the file of that id, as dwz -m does."""
    link = scene.home / "link"
    link.write_bytes(b"common.debug\0" + bytes.fromhex(build_id))
    subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={link}", path], check=True, timeout=TIMEOUT)


def case_dwz_file_is_archived_once(scene):
    """The file that debug information refers to is packed once, or reported missing."""
    for program in (scene.one, scene.far):
        copy = scene.home / f"{program.name}.dwz"
        shutil.copy(program, copy)
        refers(scene, copy, ID_TWO)
        scene.on_store("add", copy)
    archive, other = scene.home / "a.tar", scene.home / "other"
    done = scene.on_store("archive", "-o", archive, ID_ONE, ID_FAR, status=REFUSED)
    assert done.summary.startswith("packed 2, missing 1, ") and f"'{ID_TWO}', a dwz file" in done.stderr, done
    scene.on_store("add", scene.two)
    assert scene.totals("archive", "-o", archive, ID_ONE, ID_FAR)["packed"] == 3
    assert scene.totals("archive", "-o", archive, ID_ONE, ID_TWO)["packed"] == 2
    other.mkdir()
    scene.run("--store", other, "unarchive", archive)
    assert scene.run("--store", other, "get", "--offline", ID_TWO).stdout


def case_missing_dwz_file_is_downloaded(scene):
    served = scene.home / "served"
    for program, build_id in ((scene.far, ID_FAR), (scene.two, ID_TWO)):
        (served / build_id).mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", program, served / build_id / "debuginfo"], check=True, timeout=TIMEOUT)
    refers(scene, served / ID_FAR / "debuginfo", ID_TWO)
    with server(scene) as url:
        done = scene.rows("archive", "-o", scene.home / "a.tar", "--fetch", f"--url={url}", ID_FAR)
    assert [(build["id"], build["kinds"]) for build in done] == [(ID_FAR, ["debuginfo"]), (ID_TWO, ["debuginfo"])], done


def case_missing_builds_are_downloaded_into_the_archive(scene):
    archive = scene.home / "a.tar"
    with server(scene) as url:
        scene.on_store("archive", "-o", archive, ID_NOT_STORED, status=REFUSED)
        scene.on_store("archive", "-o", archive, "--fetch", f"--url={url}", ID_NOT_STORED)
    other = pathlib.Path(scene.home / "other")
    other.mkdir()
    assert scene.run("--store", other, "unarchive", archive).summary.startswith("added 2, ")
    # the unarchived file counts as added, and no eviction removes it
    assert "evicted 0" in scene.run("--store", other, "gc", "--cache-size=1").stdout
    # an earlier download counts as added, too
    told = scene.on_store("gc", "--cache-size=1", "--dry-run").stdout
    assert "evicted 2" in told, told
    assert {row["state"] for row in unarchive(scene, archive).values()} == {"known"}
    assert "evicted 0" in scene.on_store("gc", "--cache-size=1").stdout


if __name__ == "__main__":
    cases.main(globals(), Scene, tools=["cc", "objcopy", "strip", "tar", "xz", "bzip2"],
               fetching=[case_missing_dwz_file_is_downloaded, case_missing_builds_are_downloaded_into_the_archive,
                         case_archive_with_changed_bytes_is_refused])
