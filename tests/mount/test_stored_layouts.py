# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unusual store contents: compressed modules, odd ids, perf's old layouts, and entries planted for an attack."""
import errno
import os
import pathlib
import time

import pytest

import programs
import tools

PACKERS = {".gz": ["gzip", "-9"], ".xz": ["xz"], ".zst": ["zstd", "-q", "--rm"]}
CANARY = b"canary: outside of the store\n"


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_module_is_served_unpacked(mount, mode, store, workdir, suffix):
    module = programs.module(workdir / "foo.ko")
    plain = module.path.read_bytes()
    tools.run(*PACKERS[suffix], module.path)
    packed = pathlib.Path(f"{module.path}{suffix}")
    original = f"/lib/modules/6.1.0/kernel/foo.ko{suffix}"
    programs.into_store(store, module.id, original, packed)
    assert packed.read_bytes() != plain
    for mnt in (mount(), mount()):
        for path in (mnt.artifact(module.id), mnt.artifact(module.id, "debuginfo"), mnt.debug_file(module.id),
                     mnt / "by-path" / original[1:] / module.id, mnt / original[1:] / module.id / "elf"):
            assert os.stat(path).st_size == len(plain), path
            assert path.read_bytes() == plain, path
        assert programs.build_id(mnt.artifact(module.id)) == module.id


def test_damaged_module_is_an_error(mount, store, workdir):
    module = programs.module(workdir / "foo.ko")
    good = programs.module(workdir / "good.ko", 2)
    for built in (module, good):
        tools.run("xz", built.path)
    packed = pathlib.Path(f"{module.path}.xz").read_bytes()
    programs.into_store(store, module.id, "/lib/modules/6.1.0/foo.ko.xz", packed[:len(packed) // 2])
    programs.into_store(store, good.id, "/lib/modules/6.1.0/good.ko.xz", f"{good.path}.xz")
    time.sleep(0.03)  # the check cache, which reports a damaged file once, keeps no file younger than a clock tick
    mnt = mount()
    assert tools.errno_of(open, mnt.artifact(module.id), "rb") == errno.ENOENT
    assert mnt.artifact(good.id).exists()
    mnt.expect(rf"foo\.ko\.xz.*{module.id}")


def with_id(workdir, ident, name="app"):
    return programs.small(workdir / name, 1, f"-Wl,--build-id=0x{ident}")


def test_long_id_is_found_by_its_first_20_bytes(mount, store, workdir):
    """perf uses the first 20 bytes of a longer id; gdb and elfutils use all of them."""
    ident = "0123456789abcdef" * 4
    program = with_id(workdir, ident)
    assert program.id == ident
    programs.into_store(store, ident[:40], "/usr/bin/app", program.path)
    mnt = mount()
    for name in (ident, ident[:40]):
        assert mnt.artifact(name).read_bytes() == program.path.read_bytes()
        assert mnt.debug_file(name).read_bytes() == program.path.read_bytes()
        assert (mnt.link(name) / "elf").read_bytes() == program.path.read_bytes()
    # another end, or a prefix that perf does not use, is another id
    for name in (ident[:-2] + "00", ident[:42]):
        assert not mnt.artifact(name).exists(), name
        assert not (mnt.link(name) / "elf").exists(), name
    mnt.permit(f"wrong content: .* does not carry the build-id '{ident[:32]}")


def test_added_long_id_is_found_by_all_its_bytes(mount, store, workdir):
    ident = "fedcba9876543210" * 4
    program = with_id(workdir, ident)
    tools.run(tools.BIDCTL, "--store", store, "add", program.path)
    mnt = mount()
    assert mnt.artifact(ident).read_bytes() == mnt.artifact(ident[:40]).read_bytes() == program.path.read_bytes()


@pytest.mark.parametrize("stored", ["short", "padded"])
def test_padded_short_id_is_found(mount, store, workdir, stored):
    """lld's fast ids have 8 bytes; perf pads them with zeros when it reads them from perf.data."""
    ident = "1122334455667788"
    padded = ident + "00" * 12
    program = with_id(workdir, ident)
    programs.into_store(store, ident if stored == "short" else padded, "/usr/bin/app", program.path)
    mnt = mount()
    for name in (ident, padded):
        assert mnt.artifact(name).read_bytes() == program.path.read_bytes(), name
        assert mnt.debug_file(name).exists(), name
        assert (mnt.link(name) / "elf").exists(), name
    assert not mnt.artifact(ident + "00" * 11 + "01").exists()


def test_old_perf_layouts_are_served(mount, mode, store, workdir):
    """perf still reads these layouts."""
    linked = programs.small(workdir / "a", 1)
    (store / ".build-id" / linked.id[:2]).mkdir(parents=True)
    (store / ".build-id" / linked.id[:2] / linked.id[2:]).write_bytes(linked.path.read_bytes())
    flat = programs.small(workdir / "b", 2)
    (store / "usr/bin/flat").mkdir(parents=True)
    (store / "usr/bin/flat" / flat.id).write_bytes(flat.path.read_bytes())
    (store / ".build-id" / flat.id[:2]).mkdir(exist_ok=True)
    (store / ".build-id" / flat.id[:2] / flat.id[2:]).symlink_to(f"../../usr/bin/flat/{flat.id}")
    kernel = "4eb1" * 10
    (store / "[kernel.kallsyms]").mkdir()
    (store / "[kernel.kallsyms]" / kernel).write_bytes(b"ffffffff81000000 T _text\n")
    mnt = mount()
    for program in (linked, flat):
        assert mnt.artifact(program.id).read_bytes() == program.path.read_bytes()
        assert mnt.artifact(program.id, "debuginfo").read_bytes() == program.path.read_bytes()
        assert (mnt.link(program.id) / "elf").read_bytes() == program.path.read_bytes()
    assert mnt.artifact(kernel, "kallsyms").read_bytes() == b"ffffffff81000000 T _text\n"


def test_temporary_names_are_hidden(mount, mode, store, workdir):
    """An interrupted perf left temporary files beside an artifact."""
    program = programs.small(workdir / "app")
    directory = programs.into_store(store, program.id, "/usr/bin/app", program.path).parent
    left = [f".{kind}.aB3dEf" for kind in ("elf", "debug", "kallsyms", "vdso", "modules")]
    for name in left:
        (directory / name).write_bytes(program.read()[:1000])
    mnt = mount()
    for view in (mnt / "usr/bin/app" / program.id, mnt.link(program.id), mnt / "by-path/usr/bin/app", mnt / "buildid" / program.id):
        assert not [name for name in os.listdir(view) if name.startswith(".")], view
        assert {tools.errno_of(os.stat, view / name) for name in left} == {errno.ENOENT}, view
    assert mnt.artifact(program.id).read_bytes() == program.read()


def plant(store, workdir, victim):
    """Plant entries that lead out of the store, block, or deceive. Return {name: id}."""
    outside = workdir / "outside"
    planted = {}

    def entry(name, make, link=None):
        ident = f"{len(planted) + 1:040x}"
        planted[name] = ident
        directory = store / "evil" / name / ident
        directory.mkdir(parents=True)
        make(directory / "elf", ident)
        fanout = store / ".build-id" / ident[:2]
        fanout.mkdir(parents=True, exist_ok=True)
        (fanout / ident[2:]).symlink_to(link.format(id=ident) if link else f"../../evil/{name}/{ident}")

    # a mount that followed the links would serve the outer file, which has the right id
    for number in range(1, 12):
        directory = outside / f"{number:040x}"
        directory.mkdir(parents=True)
        programs.forge(victim, f"{number:040x}", directory / "elf")
        with open(directory / "elf", "ab") as file:
            file.write(CANARY)
    entry("absolute", lambda path, ident: path.symlink_to(outside / ident / "elf"))
    entry("relative", lambda path, ident: path.symlink_to(f"../../../../outside/{ident}/elf"))
    entry("link-up", lambda path, ident: None, "../../../outside/{id}")
    entry("link-absolute", lambda path, ident: None, f"{outside}/{{id}}")
    entry("link-through", lambda path, ident: None, "../../evil/door/{id}")
    entry("dotdot", lambda path, ident: None, "../../evil/dotdot/../../../outside/{id}")
    entry("procfs", lambda path, ident: path.symlink_to("/proc/self/exe"))
    entry("loop", lambda path, ident: path.symlink_to("elf"))
    entry("fifo", lambda path, ident: os.mkfifo(path))
    entry("directory", lambda path, ident: path.mkdir())
    entry("empty", lambda path, ident: path.touch())
    (store / "evil/door").symlink_to(outside)
    entry("device", lambda path, ident: os.mknod(path, 0o020666, os.makedev(1, 5)) if tools.IS_ROOT else os.mkfifo(path))
    entry("sparse", lambda path, ident: (path.touch(), os.truncate(path, 1 << 40)))
    entry("text", lambda path, ident: path.write_text("not an ELF file\n"))
    entry("wrong-id", lambda path, ident: path.write_bytes(victim.path.read_bytes()))
    entry("no-id", lambda path, ident: tools.run("objcopy", "--remove-section=.note.gnu.build-id", victim.path, path))
    return planted


def test_hostile_store_opens_nothing_outside(mount, mode, store, workdir):
    """A store full of foreign entries: nothing outside of it is opened, and valid builds are found."""
    victim = programs.small(workdir / "app")
    programs.into_store(store, victim.id, "/usr/bin/app", victim.path)
    planted = plant(store, workdir, victim)
    # junk in place of ids, and a name with control characters
    (store / ".build-id/AB").mkdir()
    (store / ".build-id/ab").mkdir()
    for junk in ("XYZ", "c" * 200, "cd.debug", "line\nbreak", "\udcff\udcfe", "CD" * 19):
        (store / ".build-id/ab" / junk).symlink_to("../../usr/bin")
    (store / "usr/bin/line\nbreak\x1b[31m").mkdir()

    mnt = mount()
    for name, ident in planted.items():
        for path in (mnt.artifact(ident), mnt.artifact(ident, "debuginfo"), mnt.debug_file(ident)):
            assert tools.errno_of(open, path, "rb") == errno.ENOENT, f"{name}: {path}"
        # a directory of the original paths without artifacts is an empty directory
        for path in (mnt / "evil" / name / ident / "elf", mnt / "by-path/evil" / name / ident, mnt.link(ident) / "elf"):
            assert tools.errno_of(open, path, "rb") in (errno.ENOENT, errno.EISDIR), f"{name}: {path}"
    everything = [pathlib.Path(at) / file for at, _, files in os.walk(mnt.path) for file in files]
    # the listing shows perf's links without a check, and other names only if they have an artifact
    for path in everything:
        assert path.is_relative_to(mnt / ".build-id") or path.exists(), path
    served = [path for path in everything if path.is_file()]
    assert not [path for path in served if CANARY in path.read_bytes()]
    assert not [path for path in served for ident in planted.values() if ident in str(path) and path.name != "info"]
    # other builds are served as always
    assert mnt.artifact(victim.id).read_bytes() == victim.path.read_bytes()
    assert sorted(os.listdir(mnt / "usr/bin")) == ["app", "line\nbreak\x1b[31m"]
    assert os.listdir(mnt / ".build-id/ab") == []
    for name in ("text", "wrong-id", "no-id", "empty", "sparse"):
        mnt.expect(f"evil/{name}/.*(does not carry|not an ELF)")
    mnt.unmount()
    # the traps work: the same files inside the store are served
    for number in range(1, 12):
        ident = f"{number:040x}"
        programs.into_store(workdir / "open", ident, "/usr/bin/app", workdir / "outside" / ident / "elf")
    control = mount(on=workdir / "open")
    for number in range(1, 12):
        assert CANARY in control.artifact(f"{number:040x}").read_bytes()


def overwrite(path, program):
    """Rewrite the file in place, without truncating it."""
    with open(path, "r+b", buffering=0) as file:
        file.write(program.read())
        file.truncate()


def test_changed_content_is_checked_again(mount, mode, store, workdir):
    """A valid file is changed in place after its first open."""
    first, second = programs.small(workdir / "a", 1), programs.small(workdir / "b", 2)
    stored = programs.into_store(store, first.id, "/usr/bin/app", first.path)
    mnt = mount()
    assert mnt.artifact(first.id).read_bytes() == first.path.read_bytes()
    overwrite(stored, second)
    tools.wait_until(lambda: tools.errno_of(open, mnt.artifact(first.id), "rb") == errno.ENOENT, "refusal of what was changed")
    mnt.expect(f"wrong content: .*{first.id}")
    overwrite(stored, first)
    tools.wait_until(lambda: tools.errno_of(open, mnt.artifact(first.id), "rb") == 0, "service of what was put right")
    assert mnt.artifact(first.id).read_bytes() == first.path.read_bytes()
