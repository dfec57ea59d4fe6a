#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kernels in a store: images, derived symbol tables, and Debian packages.

usage: check_kernel.py BIDCTL

BID_TEST_KERNELS is the directory with the packages that contrib/kernels fetched.
"""
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess

import cases
from add_helpers import in_namespace
from bidctl_env import DONE, REFUSED, Env, read_json

IDS = [f"{number:02x}" + "c0ffee00" * 4 + "000000" for number in range(1, 9)]
SOURCE = r"""
    int counter = 1; int zeros[100]; const int table[] = { 1, 2 }; static volatile int hidden = 3;
    __attribute__((weak)) int weak_code(void) { return hidden; }
    static __attribute__((noinline, used)) int local_code(int n) { return n + counter + table[n & 1]; }
    __asm__(".globl absolute; .set absolute, 0x1234\n"
            ".pushsection .text\nsecond: __third: weak_alias: first: __start_all: twice_end: __twice_end: .weak weak_alias\n"
            "$mapped: __ksymtab_x: __crc_x: LONGEST: LONGEST_:\n.popsection");
    void _start(void) { zeros[0] = local_code(weak_code()); }
""".replace("LONGEST", "l" * 511)
# symbols that scripts/mksysmap of the kernel removes from the output of "nm -n", and those longer than KSYM_NAME_LEN
LEFT_OUT = re.compile(r" [aNUw] | \S{512,}$| (\$|\.L|__crc_|__ksymtab_|__kstrtab_|__kstrtabns_)")


def vmlinux(directory, build_id, *flags):
    """Make a program at the addresses of a kernel, in the upper half of the address space."""
    source, output = directory / "vmlinux.c", directory / f"vmlinux-{build_id[:2]}"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-g", "-O1", "-nostdlib", "-static", "-no-pie", "-fno-pic", "-ffreestanding", "-mcmodel=kernel",
                    "-fno-asynchronous-unwind-tables", "-Wl,-Ttext-segment=0xffffffff81000000", f"-Wl,--build-id=0x{build_id}",
                    *flags, source, "-o", output], check=True)
    return output


def bz_image(directory, kernel, compress, sized):
    """Pack it as the kernel's build does: Documentation/arch/x86/boot.rst."""
    payload = subprocess.run(compress, stdin=open(kernel, "rb"), stdout=subprocess.PIPE, check=True).stdout
    if sized:
        payload += struct.pack("<I", kernel.stat().st_size)
    header = bytearray(4 * 512)
    header[0:2], header[0x1f1], header[0x202:0x208] = b"MZ", 3, b"HdrS\x0f\x02"
    struct.pack_into("<II", header, 0x248, 100, len(payload))
    image = directory / f"vmlinuz-{compress[0]}"
    image.write_bytes(header + bytes(100) + payload + bytes(1000))
    return image


def from_nm(path):
    """Return the same table from nm."""
    listed = subprocess.run(["nm", "-n", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line for line in listed.splitlines() if not LEFT_OUT.search(line)]


# symbols of one address, in the kernel's order
ALIASES = ["first", "second", "twice_end", "__third", "__start_all", "__twice_end", "weak_alias"]


def rank(line):
    """Return the sort key of scripts/kallsyms.c of the kernel; equal symbols keep nm's order."""
    address, letter, name = line.split()
    mark = len(name) >= 8 and re.match(r"__(start_|stop_|end_|.*_start$|.*_end$)", name) is not None
    return address, letter in "wW", mark, len(name) - len(name.lstrip("_"))


def in_order(lines):
    return sorted(lines, key=rank)


def big_endian_kernel(build_id):
    """Return a kernel of 64-bit PowerPC with two symbols, which no compiler here makes."""
    code, names, symbol = 0xc000000000000000, b"\0global\0local\0", struct.Struct(">I2BH2Q")
    note = struct.pack(">3I4s", 4, len(build_id) // 2, 3, b"GNU\0") + bytes.fromhex(build_id)
    symbols = bytes(symbol.size) + symbol.pack(1, 0x12, 0, 1, code, 4) + symbol.pack(8, 0x02, 0, 1, code + 8, 4)
    places, body = [], b""
    for part in note, symbols, names:
        places.append((64 + 2 * 56 + len(body), len(part)))
        body += part + bytes(-len(part) % 8)
    segments = b"".join(struct.pack(">2I6Q", kind, 5, *place) for kind, place in (
        (1, (0, code, code, 176, 176, 4)), (4, (places[0][0], 0, 0, places[0][1], places[0][1], 4))))
    # the code, the symbols, their names: which are those of the sections, too
    sections = bytes(64) + b"".join(struct.pack(">2I4Q2I2Q", 0, kind, flags, address, *place, link, 0, 8, size)
                                    for kind, flags, address, place, link, size in (
        (1, 6, code, (0, 176), 0, 0), (2, 0, 0, places[1], 3, symbol.size), (3, 0, 0, places[2], 0, 0)))
    header = b"\x7fELF\2\2\1" + bytes(9) + struct.pack(">2HI3QI6H", 2, 21, 1, code, 64, 176 + len(body), 0, 64, 56, 2, 64, 4, 3)
    return header + segments + body + sections


def case_derived_table_of_the_other_byte_order(env):
    kernel = env.home / "vmlinux-ppc64"
    kernel.write_bytes(big_endian_kernel(IDS[0]))
    env.on_store("add", kernel)
    assert made_table(env, IDS[0]) == ["c000000000000000 T global", "c000000000000008 t local"]


def case_derived_table_has_per_cpu_symbols(env):
    """Symbols of per-CPU data from address 0 on have the kernel's types."""
    data = (".pushsection percpu,\"aw\"\n.globl __per_cpu_start, __per_cpu_end\n__per_cpu_start: fixed_percpu_data: .quad 0\n"
            ".weak maybe\nmaybe: .quad 0\n__per_cpu_end:\n.popsection\n.section .note.GNU-stack\n")
    source = env.home / "percpu.s"
    source.write_text(data)
    table = {}
    for build_id, start in (IDS[0], "0"), (IDS[1], "0xffffffff90000000"):
        env.on_store("add", vmlinux(env.home, build_id, source, f"-Wl,--section-start=percpu={start}"))
        table[start] = {name: letter for _, letter, name in map(str.split, made_table(env, build_id))}
    names = ["__per_cpu_start", "fixed_percpu_data", "maybe", "__per_cpu_end", "counter", "_start"]
    assert [table["0"][name] for name in names] == ["A", "A", "A", "A", "D", "T"], table["0"]
    # in newer kernels per-CPU data has addresses and is ordinary data
    assert [table["0xffffffff90000000"][name] for name in names] == ["D", "d", "W", "D", "D", "T"], table


def case_derived_table_has_the_kernels_order(env):
    """The running kernel's table, if it is visible, has this order."""
    lines = [line for line in pathlib.Path("/proc/kallsyms").read_text().splitlines() if not re.search(r"\]$| [aNUw] ", line)]
    cases.need(lines and lines[-1].split()[0].strip("0"), "the kernel hides its addresses")
    assert in_order(lines) == lines
    assert len({line.split()[0] for line in lines}) < len(lines)


def made_table(env, build_id):
    return pathlib.Path(env.on_store("get", "--offline", build_id, "kallsyms").stdout.strip()).read_text().splitlines()


def case_derived_table_matches_the_kernels(env):
    kernel = vmlinux(env.home, IDS[0])
    env.on_store("add", kernel)
    table, wanted = made_table(env, IDS[0]), from_nm(kernel)
    assert table == in_order(wanted) and len(table) > 8, (table, wanted)
    assert [line.split()[2] for line in table if line.split()[2] in ALIASES] == ALIASES, table
    assert {line.split()[1] for line in table} >= set("TtDdBRWA"), table
    # a stored table is not derived again
    stored = env.store / ".bidfs/kallsyms" / IDS[0][:2] / IDS[0][2:]
    inode = stored.stat().st_ino
    assert made_table(env, IDS[0]) == table and stored.stat().st_ino == inode
    # perf must not see it, or it would not store the table of the running kernel
    assert not (env.store / "[kernel.kallsyms]").exists()
    env.on_store("verify")
    # a damaged table is derived again
    stored.chmod(0o644)
    stored.write_text("none\n")
    assert "has other bytes than were derived" in env.on_store("verify", status=None).stdout
    assert made_table(env, IDS[0]) == table
    env.on_store("verify")
    env.on_store("remove", IDS[0])
    assert not stored.exists()


def case_added_table_replaces_the_derived_one(env):
    """The table of the running kernel, with modules and other addresses, replaces a derived one."""
    cases.need(os.geteuid() == 0, "needs root, to lay something over /proc/kallsyms")
    kernel, shown = id_in(pathlib.Path("/sys/kernel/notes").read_bytes()), env.home / "shown"
    table = "0000000000000000 A fixed_percpu_data\nffffffff9a000000 T _text\nffffffffc0200000 t init\t[ext4]\n"
    shown.write_text(table)
    env.on_store("add", vmlinux(env.home, kernel))
    made = made_table(env, kernel)
    assert len(made) > 8
    script = 'mount --bind "$1" /proc/kallsyms; "$2" -s "$3" add --kernel'
    assert in_namespace(script, shown, env.bidctl, env.store, env=env).returncode == DONE
    assert made_table(env, kernel) == table.splitlines()
    env.on_store("verify")
    # without the added table the derived one is served
    (env.store / "[kernel.kallsyms]" / kernel / "kallsyms").unlink()
    assert made_table(env, kernel) == made
    # a missing kernel has no table
    for path in list(env.store.glob(f"**/{kernel}")):
        shutil.rmtree(path)
    env.on_store("get", "--offline", kernel, "kallsyms", status=REFUSED)
    assert "was derived from an absent file" in env.on_store("verify", "--repair", status=None).stdout
    assert not list((env.store / ".bidfs/kallsyms").glob("*/*"))


def case_debug_file_gives_a_stripped_kernel_symbols(env):
    """The debug file comes later."""
    kernel = vmlinux(env.home, IDS[1])
    wanted, debug = from_nm(kernel), env.home / "vmlinux.debug"
    subprocess.run(["objcopy", "--only-keep-debug", kernel, debug], check=True)
    subprocess.run(["strip", "-s", kernel], check=True)
    env.on_store("add", kernel)
    env.on_store("get", "--offline", IDS[1], "kallsyms", status=REFUSED)
    env.on_store("add", debug)
    # sections without bytes count as zeroed data, except for code
    assert [line.split()[::2] for line in made_table(env, IDS[1])] and \
        {line.split()[2] for line in made_table(env, IDS[1])} == {line.split()[2] for line in wanted}


def case_later_unstripped_kernel_gives_symbols(env):
    """/boot has a stripped kernel; the build directory, or the debug package, has the symbols."""
    for build_id, flags in ((IDS[2], ()), (IDS[3], ("-Wl,-S",))):
        kernel = vmlinux(env.home, build_id, *flags)
        image = env.home / "stripped"
        subprocess.run(["strip", "-s", "-o", image, kernel], check=True)
        env.on_store("add", image)
        env.on_store("get", "--offline", build_id, "kallsyms", status=REFUSED)
        env.on_store("add", kernel)
        assert sorted(made_table(env, build_id)) == sorted(from_nm(kernel))
        assert pathlib.Path(env.on_store("get", "--offline", build_id, "elf").stdout.strip()).read_bytes() == image.read_bytes()


def case_program_gets_no_kernel_table(env):
    """Its symbols are not those of a kernel."""
    env.on_store("add", env.one)
    build_id = env.rows("list")[0]["id"]
    env.on_store("get", "--offline", build_id, "kallsyms", status=REFUSED)
    assert not (env.store / "[kernel.kallsyms]").exists()


def case_kernel_images_are_stored_by_their_id(env):
    """Found in a tree by name, with any compression, and stored under the id of their content."""
    boot = env.home / "boot"
    boot.mkdir()
    packings = [(["gzip", "-nc"], False), (["xz", "--check=crc32", "--x86", "--lzma2"], True), (["zstd", "-qc"], True),
                (["lz4", "-lqc"], True), (["bzip2", "-c"], True)]
    kernels = {}
    for build_id, (compress, sized) in zip(IDS, packings):
        kernel = vmlinux(env.home, build_id)
        bz_image(boot, kernel, compress, sized)
        kernels[build_id] = kernel.read_bytes()
    (boot / "vmlinuz-damaged").write_bytes((boot / "vmlinuz-zstd").read_bytes()[:-1200])
    (boot / "initrd.img").write_bytes(lzma.compress(kernels[IDS[0]]))
    done = env.on_store("add", boot)
    assert f"added {len(kernels)}," in done.stdout and "damaged or cut short" in done.stdout + done.stderr, done
    whole = boot / "vmlinuz-zstd"
    for size in (whole.stat().st_size - 1200, 1000):
        (boot / "vmlinuz-damaged").write_bytes(whole.read_bytes()[:size])
        done = env.on_store("add", boot / "vmlinuz-damaged", status=REFUSED)
        assert "damaged or cut short" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    for build_id, content in kernels.items():
        assert pathlib.Path(env.on_store("get", "--offline", build_id, "elf").stdout.strip()).read_bytes() == content
        assert made_table(env, build_id)
    env.on_store("verify", "--deep")


def id_in(notes):
    """Return the build-id of notes, which follows the sizes of owner and id, type 3, and the owner."""
    found = re.search(re.escape(struct.pack("=I", 4)) + b"(....)" + re.escape(struct.pack("=I4s", 3, b"GNU\0")), notes, re.S)
    return notes[found.end():found.end() + struct.unpack("=I", found[1])[0]].hex() if found else None


def vdso():
    """Return the image in this process."""
    maps = re.search(r"^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$", pathlib.Path("/proc/self/maps").read_text(), re.M)
    with open("/proc/self/mem", "rb") as memory:
        begin, end = (int(number, 16) for number in maps.groups())
        memory.seek(begin)
        return memory.read(end - begin)


def own_symbols(text):
    """Return the symbols without those of modules, which come and go."""
    return [line for line in text.splitlines() if not line.endswith("]")]


def case_running_kernel_is_added_once(env):
    """The files of the running kernel are stored under their ids, once."""
    notes, symbols = pathlib.Path("/sys/kernel/notes"), own_symbols(pathlib.Path("/proc/kallsyms").read_text())
    kernel = id_in(notes.read_bytes()) if notes.exists() else None
    shown = kernel and any(line.strip("0")[0] != " " for line in symbols)
    first, again = (env.json("add", "--kernel", status=DONE if shown else REFUSED) for _ in range(2))
    for done in (first, again):
        totals = done["totals"]
        assert totals["seen"] == len(done["result"]) == totals["added"] + totals["known"] + totals["refused"], done
    assert first["totals"]["added"] > 0 and again["totals"]["added"] == 0, (first, again)
    assert again["totals"]["known"] == first["totals"]["added"] + first["totals"]["known"], (first, again)
    files = {file["file"]: file for file in again["result"]}
    image = vdso()
    assert files["[vdso]"]["id"] == id_in(image) and files["[vdso]"]["state"] == "known", files
    stored = pathlib.Path(env.on_store("get", "--offline", id_in(image), "vdso").stdout.strip())
    assert stored.read_bytes() == image
    if shown:
        assert files["[kernel.kallsyms]"]["id"] == kernel and files["[kernel.kallsyms]"]["kind"] == "kallsyms", files
        assert own_symbols("\n".join(made_table(env, kernel))) == symbols
        # a user without access to the original must not read it in the store
        assert (env.store / "[kernel.kallsyms]" / kernel / "kallsyms").stat().st_mode & 0o777 == 0o400
    else:
        assert files["/proc/kallsyms"]["state"] == "refused", files
    for name, file in files.items():
        if pathlib.Path(name).name.startswith("vmlinu"):
            assert file["id"] or file["state"] == "refused", file
    for path in ("/proc/kallsyms", "/sys/kernel/notes"):
        if os.access(path, os.R_OK):
            assert "'bidctl add --kernel'" in env.on_store("add", path, status=REFUSED).stderr, path
    env.one_error("add", "--kernel", "--perf-data=x", status=2, has="'--kernel'")


def case_vdso_files_are_stored_as_vdso(env):
    """The images from a kernel build, one for each kind of program, get perf's name for a vDSO."""
    cases.need(os.geteuid() == 0, "not root, who may mount")
    image, top, release = vdso(), env.home / "top", os.uname().release
    other = bytes(byte ^ 0xff for byte in bytes.fromhex(id_in(image)))
    image = image.replace(bytes.fromhex(id_in(image)), other)
    (env.home / "vdso64.so").write_bytes(image)
    top.mkdir()
    script = """mount -t tmpfs tmpfs "$1"; mkdir "$1/up" "$1/work"
        mount -t overlay -o "lowerdir=/usr/lib,upperdir=$1/up,workdir=$1/work" overlay /usr/lib
        mkdir -p "/lib/modules/$2/vdso"; cp "$3" "/lib/modules/$2/vdso"; shift 3; exec "$@" """
    done = subprocess.run(["unshare", "-m", "sh", "-euc", script, "sh", top, release, env.home / "vdso64.so",
                           env.bidctl, "--json", "--store", env.store, "add", "--kernel"],
                          capture_output=True, text=True, check=False)
    files = {file["file"]: file for file in read_json(done.stdout)["result"]}
    assert files[f"/lib/modules/{release}/vdso/vdso64.so"]["id"] == other.hex(), done
    stored = pathlib.Path(env.on_store("get", "--offline", other.hex(), "vdso").stdout.strip())
    assert stored.read_bytes() == image and "[vdso]" in str(stored)


def case_table_without_addresses_is_refused(env):
    """bidctl refuses it, and an added table with addresses replaces such a table that perf stored."""
    cases.need(os.geteuid() == 0, "needs root, to lay something over /proc/kallsyms")
    notes, (hidden, shown) = pathlib.Path("/sys/kernel/notes").read_bytes(), (env.home / name for name in ("hidden", "shown"))
    hidden.write_text("0000000000000000 T _text\n" * 5000)
    shown.write_text("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n")
    script = 'mount --bind "$1" /proc/kallsyms; "$2" -s "$3" add --kernel'
    done = in_namespace(script, hidden, env.bidctl, env.store, env=env)
    assert done.returncode == REFUSED and "its addresses are hidden" in done.stderr and "kallsyms" in done.stderr, done
    assert not (env.store / "[kernel.kallsyms]").exists() and (env.store / "[vdso]").exists()
    ident = id_in(notes)
    table = env.store / "[kernel.kallsyms]" / ident / "kallsyms"
    table.parent.mkdir(parents=True)
    shutil.copy(hidden, table)
    env.on_store("verify", status=None)
    done = in_namespace(script, shown, env.bidctl, env.store, env=env)
    assert done.returncode == DONE and "quarantined" in done.stderr and table.read_text() == shown.read_text(), done


def case_table_of_another_boot_is_kept(env):
    """perf relocates the first table; bidctl reports that it is not of this boot."""
    cases.need(os.geteuid() == 0, "needs root, to lay something over /proc/kallsyms")
    script = 'mount --bind "$1" /proc/kallsyms; "$2" -s "$3" add --kernel'
    shown = env.home / "shown"
    for boot, text in enumerate(("ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 T one\n",
                                 "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffffc0000000 t f\t[module]\n",
                                 "ffffffff81000000 T _stext\nffffffff95000000 T _text\nffffffff95000100 T one\n",
                                 "ffffffff95000000 T _stext\n")):
        shown.write_text(text)
        done = in_namespace(script, shown, env.bidctl, env.store, env=env)
        assert done.returncode == DONE and done.stderr.count("is of another boot, and perf relocates it") == (boot > 1), done
        assert next(env.store.glob("[[]kernel.kallsyms]/*/kallsyms")).read_text().endswith(" one\n")


def case_table_added_by_root_belongs_to_the_store_owner(env):
    """The store belongs to another user, who alone can read the table."""
    cases.need(os.geteuid() == 0, "needs root, to act for others")
    shown = env.home / "shown"
    shown.write_text("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n")
    env.store.mkdir(exist_ok=True)
    os.chown(env.store, 20001, 20001)
    script = 'mount --bind "$1" /proc/kallsyms; "$2" -s "$3" add --kernel'
    assert in_namespace(script, shown, env.bidctl, env.store, env=env).returncode == DONE
    stat = next(env.store.glob("[[]kernel.kallsyms]/*/kallsyms")).stat()
    assert (stat.st_uid, stat.st_mode & 0o777) == (20001, 0o400)


def case_symbols_replace_a_table_without_addresses(env):
    """The table is derived from the stored kernel instead."""
    kernel = vmlinux(env.home, IDS[4])
    table = env.store / "[kernel.kallsyms]" / IDS[4] / "kallsyms"
    table.parent.mkdir(parents=True)
    table.write_text("0000000000000000 T _text\n" * 5000)
    env.on_store("get", "--offline", IDS[4], "kallsyms", status=REFUSED)
    env.on_store("add", kernel)
    assert sorted(made_table(env, IDS[4])) == sorted(from_nm(kernel))


def debian_kernels(env):
    """Return the unpacked packages, or the reason why there are none."""
    source = os.environ.get("BID_TEST_KERNELS")
    if not source:
        raise cases.Skip("set BID_TEST_KERNELS to a directory that contrib/kernels has put Debian's kernels into")
    for package in sorted(pathlib.Path(source).glob("linux-image-*.deb")):
        root = env.home / package.stem
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        yield root


def embedded(image):
    """Unpack an image as scripts/extract-vmlinux of the kernel does: try each position with the magic of a compression."""
    content = image.read_bytes()
    for magic, command in ((b"\x02\x21\x4c\x18", ["lz4", "-dc"]), (b"\x28\xb5\x2f\xfd", ["zstd", "-dcq"]),
                           (b"\xfd7zXZ\0", ["xz", "-dc", "--single-stream"])):
        for found in re.finditer(re.escape(magic), content):
            # from a file, because bytes behind the kernel are not read
            with open(image, "rb") as file:
                file.seek(found.start())
                kernel = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
            if kernel.startswith(b"\x7fELF"):
                return kernel
    raise AssertionError(f"{image} is packed with something else")


def case_packaged_kernels_are_stored_side_by_side(env):
    """Two builds of a real kernel with all their modules."""
    seen = set()
    for root in debian_kernels(env):
        image, = (root / "boot").glob("vmlinuz-*")
        env.on_store("add", root)
        modules = list(root.glob("usr/lib/modules/**/*.ko*")) or list(root.glob("lib/modules/**/*.ko*"))
        unpacked = env.home / "unpacked"
        unpacked.write_bytes(embedded(image))
        readelf = subprocess.run(["readelf", "-n", unpacked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 check=False)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", readelf.stdout)[1]
        stored = pathlib.Path(env.on_store("get", "--offline", build_id, "elf").stdout.strip())
        assert stored.read_bytes() == unpacked.read_bytes()[:stored.stat().st_size]
        assert len(modules) > 100
        seen.add(build_id)
        # the module is stored unpacked
        for module in modules[:20]:
            plain = subprocess.run(["xz", "-dc", module], stdout=subprocess.PIPE, check=True).stdout if module.suffix == ".xz" \
                else module.read_bytes()
            unpacked.write_bytes(plain)
            readelf = subprocess.run(["readelf", "-n", unpacked], stdout=subprocess.PIPE, text=True, check=True).stdout
            ident = re.search(r"Build ID: ([0-9a-f]+)", readelf)[1]
            assert pathlib.Path(env.on_store("get", "--offline", ident, "elf").stdout.strip()).read_bytes() == plain
        shutil.rmtree(root)
    assert len(seen) == 2, seen


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "objcopy", "strip", "lz4", "zstd", "xz"])
