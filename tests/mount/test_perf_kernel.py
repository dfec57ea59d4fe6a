# SPDX-License-Identifier: LGPL-2.1-or-later
"""perf resolves kernel samples with the symbols of the recorded build, never with those of the running kernel."""
import os
import pathlib
import re
import shutil
import tempfile

import pytest

import programs
import recordings
import tools

UNKNOWN = "0bad" * 10


@pytest.fixture(scope="module")
def kernel_samples():
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="bm-kernel-", dir="/tmp"))
    try:
        yield recordings.record_kernel(tools.environment(workdir))
    except LookupError as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(workdir)


@pytest.fixture
def report(workdir, env):
    def run(cache, data, *options):
        return tools.run("perf", "--buildid-dir", cache, "report", "--stdio", "--sort", "dso,sym", "-i", data, *options, env=env,
                         cwd=workdir).stdout
    return run


def symbols(text):
    """Return the names of the samples, and the addresses without a name."""
    return set(re.findall(r"\[k\] (\S+)", text))


def are_named(text, prefix):
    """Return whether all samples have such names, except for one in a hundred, as of an interrupt in a module."""
    shares = [(float(share), name) for share, name in re.findall(r"([\d.]+)% .*\[k\] (\S+)", text)]
    others = sum(share for share, name in shares if not name.startswith(prefix))
    return others <= 1 and any(name.startswith(prefix) for _, name in shares)


def are_addresses(text):
    return are_named(text, "0x")


@pytest.fixture
def guesses(kernel_samples, workdir, report):
    """Return whether this perf, as 7.2, uses the running kernel's symbols for a build that it cannot find."""
    return not are_addresses(report(workdir / "nothing", kernel_samples.save(workdir / "guess.data", UNKNOWN)))


def foreign(samples, workdir, name="foreign", elsewhere=0):
    """Make a kernel with code where the running kernel has it, or at an offset."""
    _, start, size = samples.kernel()
    return programs.kernel(workdir / f"vmlinux-{name}", name, start + elsewhere, size)


VDSO32 = r"""
    static long call(long number, long a, long b, long c)
    {
    	long result;
    	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
    	return result;
    }
    __attribute__((used)) void print_image(long *stack)
    {
    	stack += *stack + 2;
    	while (*stack++)
    		;
    	/* AT_SYSINFO_EHDR; an image without what follows its section headers is whole */
    	for (; stack[0]; stack += 2)
    		if (stack[0] == 33) {
    			unsigned char *image = (unsigned char *)stack[1];
    			unsigned short *sections = (unsigned short *)(image + 46); /* e_shentsize, e_shnum */
    			call(4, 1, stack[1], *(unsigned *)(image + 32) + sections[0] * sections[1]);
    		}
    	call(1, 0, 0, 0);
    }
    __asm__(".globl _start; _start: mov %esp, %eax; push %eax; call print_image");
"""


@pytest.fixture(params=[64, 32])
def vdso(request, workdir, store, env):
    """Return a 64-bit image, as bidctl adds it, or a 32-bit one, as a program prints it; both are in the store."""
    if request.param == 64:
        tools.run(tools.BIDCTL, "--store", store, "add", "--kernel", env=env, status=None)
        image, = (store / "[vdso]").glob("*/vdso")
        return programs.Program(image)
    source = workdir / "vdso32.c"
    source.write_text(VDSO32)
    tools.run("gcc", "-m32", "-O1", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie", "-fno-stack-protector", "-o",
              workdir / "vdso32", source)
    try:
        image = tools.run(workdir / "vdso32", text=False).stdout
    except OSError as error:
        pytest.skip(f"the kernel runs no 32-bit programs: {error}")
    (workdir / "image").write_bytes(image)
    ident = programs.build_id(workdir / "image")
    return programs.Program(programs.into_store(store, ident, "[vdso]", image, "vdso"), ident=ident)


def test_vdso_is_served_by_its_id(mount, mode, vdso, workdir, env):
    """The id alone finds an image of any size."""
    mnt = mount()
    linked = mnt.link(vdso.id) / "vdso"
    assert mnt.artifact(vdso.id, "vdso").read_bytes() == linked.read_bytes() == vdso.read()
    assert programs.build_id(linked) == vdso.id
    assert "vdso_" in tools.run("nm", "-D", linked).stdout
    assert not mnt.artifact(UNKNOWN, "vdso").exists() and not (mnt / "[vdso]" / UNKNOWN).exists()


@pytest.mark.parametrize("name, soname, within", [("vdso32.so", "linux-gate.so.1", False), ("vdso64.so", "linux-vdso.so.1", True),
                                                  ("vdso-tools.so", "libvdso.so.1", False)])
def test_vdso_file_is_added_as_vdso(mount, workdir, store, env, name, soname, within):
    """An image of any machine from /lib/modules, named or found in a directory, is added as vDSO and as ELF file."""
    directory = workdir / "lib/modules/6.1.0/vdso"
    directory.mkdir(parents=True)
    (workdir / "vdso.c").write_text("int __vdso_time(void) { return 1; }")
    tools.run("gcc", *["-m32"] * (name == "vdso32.so"), "-shared", "-nostdlib", "-fPIC", f"-Wl,-soname,{soname},--build-id=sha1",
              "-o", directory / name, workdir / "vdso.c")
    image, ident = (directory / name).read_bytes(), programs.build_id(directory / name)
    for _ in range(2):
        tools.run(tools.BIDCTL, "--store", store, "add", directory if within else directory / name, env=env)
    mnt = mount()
    assert mnt.artifact(ident, "elf").read_bytes() == image
    is_vdso = soname.startswith("linux")
    for path in (mnt.artifact(ident, "vdso"), mnt.link(ident) / "vdso", store / ".build-id" / ident[:2] / ident[2:] / "vdso"):
        assert path.exists() == is_vdso and (not is_vdso or path.read_bytes() == image), path
    assert (mnt / "by-path" / str(directory)[1:] / name / ident).read_bytes() == image
    mnt.unmount()
    tools.run(tools.BIDCTL, "--store", store, "verify", "--deep", env=env)


def test_foreign_vdso_symbols_resolve(mount, workdir, store, env, report):
    """An image of another machine is added from a file; no other id gets its symbols."""
    source = workdir / "clock.c"
    source.write_text("#include <time.h>\nint main(void) { struct timespec t; for (int i = 0; i < 3000000; i++)"
                      " clock_gettime(CLOCK_MONOTONIC, &t); return 0; }")
    tools.run("gcc", "-O1", "-o", workdir / "clock", source)
    tools.run(tools.BIDCTL, "--store", store, "add", "--kernel", env=env, status=None)
    image, = (store / "[vdso]").glob("*/vdso")
    other = programs.forge(programs.Program(image), "05d0" * 10, workdir / "vdso64.so")
    tools.run(tools.BIDCTL, "--store", store, "add", other.path, env=env)
    data = workdir / "clock.data"
    tools.run("perf", "record", "-q", "-N", "--no-buildid-mmap", "-e", "cpu-clock:u", "-o", data, workdir / "clock", env=env)
    content, ident = data.read_bytes(), bytes.fromhex(image.parent.name)
    assert content.count(ident) == 1
    mnt = mount()
    for name in (other.id, UNKNOWN):
        (workdir / name).write_bytes(content.replace(ident, bytes.fromhex(name)))
        resolved = re.findall(r"\[vdso\] +\[\.\] (\S+)", report(mnt, workdir / name))
        assert resolved and ("clock_gettime" in " ".join(resolved)) == (name == other.id), resolved


def table_of(kernel):
    """Return a symbol table in the form of /proc/kallsyms."""
    lines = tools.run("nm", "-n", kernel.path).stdout.splitlines()
    return "".join(f"{line}\n" for line in lines if re.search(r" T (_[se]?text|\w+_\d+)$", line))


def test_vmlinux_resolves_only_its_kernel(mount, mode, kernel_samples, workdir, store, env, report, guesses):
    """Two kernels are in one store as vmlinux, and a third one is missing."""
    kernels = [foreign(kernel_samples, workdir, name) for name in ("one", "two")]
    for kernel in kernels:
        tools.run(tools.BIDCTL, "--store", store, "add", kernel.path, env=env)
    mnt = mount()
    for name, kernel in zip(("one", "two"), kernels):
        data = kernel_samples.save(workdir / f"{name}.data", kernel.id)
        text = report(mnt, data)
        assert are_named(text, f"{name}_"), text
        hottest = re.search(r"\[k\] (\S+)", text)[1]
        annotated = tools.run("perf", "--buildid-dir", mnt, "annotate", "--stdio", "-i", data, hottest, env=env, cwd=workdir).stdout
        assert "Disassembly" in annotated, annotated
    assert guesses or are_addresses(report(mnt, kernel_samples.save(workdir / "unknown.data", UNKNOWN)))


def file_vmlinux(kernel, store, env):
    tools.run(tools.BIDCTL, "--store", store, "add", kernel.path, env=env)


def file_table(kernel, store, _):
    programs.into_store(store, kernel.id, "[kernel.kallsyms]", table_of(kernel).encode(), "kallsyms")


def file_both(kernel, store, env):
    """Store image and vmlinux as Debian packages them: the image has no symbols."""
    file_table(kernel, store, env)
    tools.run("strip", "--strip-all", kernel.path)
    file_vmlinux(kernel, store, env)
    assert "no symbols" in tools.run("nm", kernel.path).stderr


def test_kallsyms_resolves_kernel_symbols(mount, mode, kernel_samples, workdir, store, env, report, guesses):
    """`perf record` stored the table; newer perf looks for a matching copy of /proc/kcore."""
    kernel = foreign(kernel_samples, workdir)
    file_table(kernel, store, env)
    mnt = mount()
    data = kernel_samples.save(workdir / "data", kernel.id)
    assert are_named(report(mnt, data), "foreign_")
    done = tools.run("perf", "--buildid-dir", mnt, "report", "-vv", "--stdio", "-i", data, env=env, cwd=workdir)
    assert f"Using {mnt}/[kernel.kcore]/{kernel.id}/1970010100000000/kallsyms for symbols" in done.stdout + done.stderr
    assert guesses or are_addresses(report(mnt, kernel_samples.save(workdir / "unknown.data", UNKNOWN)))


@pytest.mark.parametrize("file", [file_vmlinux, file_table, file_both])
def test_moved_kernel_resolves_the_same(mount, kernel_samples, workdir, store, env, report, guesses, file):
    """The recording is of another boot with another address (KASLR). A perf that guesses needs the table by option."""
    kernels = {name: foreign(kernel_samples, workdir, name, elsewhere) for name, elsewhere in (("here", 0), ("moved", 0x4000000))}
    for kernel in kernels.values():
        file(kernel, store, env)
    mnt, found = mount(), {}
    for name, kernel in kernels.items():
        options = ["--kallsyms", mnt.artifact(kernel.id, "kallsyms")] if guesses and name == "moved" \
            and file != file_vmlinux else []
        text = report(mnt, kernel_samples.save(workdir / f"{name}.data", kernel.id), *options)
        assert are_named(text, f"{name}_"), text
        found[name] = re.findall(r"(\S+%) .*\[k\] [a-z]+_(\d+)", text)
    assert found["here"] == found["moved"] != [], found


WORK = "__attribute__((noinline)) int kernel_work(int first) { return first * 3; } void _start(void) { kernel_work(1); }\n"


@pytest.mark.parametrize("separate", [False, True])
def test_perf_probe_finds_kernel_by_id(mount, workdir, store, env, separate):
    """docs/PERF.md, 9: perf probe looks for a kernel by its release, so an option names the file."""
    source, kernel = workdir / "work.c", workdir / "vmlinux"
    source.write_text(WORK)
    tools.run("gcc", "-g", "-O1", "-nostdlib", "-static", "-no-pie", "-fno-pic", "-ffreestanding", "-mcmodel=kernel",
              "-Wl,-Ttext-segment=0xffffffff81000000,--build-id=sha1", "-o", kernel, source)
    ident = programs.build_id(kernel)
    files = [kernel]
    if separate:
        files = [workdir / "vmlinux.debug", kernel]
        tools.run("objcopy", "--only-keep-debug", kernel, files[0])
        tools.run("strip", "--strip-all", kernel)
    tools.run(tools.BIDCTL, "--store", store, "add", *files, env=env)
    for file in files:
        file.unlink()
    mnt = mount()
    done = tools.run("perf", "probe", "-k", mnt.artifact(ident, "debuginfo"), "-D", "kernel_work first", env=env, cwd=workdir)
    assert re.fullmatch(r"p:probe/kernel_work kernel_work\+0 first=\S+:s32\n", done.stdout), done


def test_running_kernel_resolves_only_its_recording(mount, kernel_samples, workdir, store, env, report, guesses):
    """The running kernel's symbols fit only a recording of it."""
    tools.run(tools.BIDCTL, "--store", store, "add", "--kernel", env=env, status=None)
    notes = pathlib.Path("/sys/kernel/notes").read_bytes()
    ident = notes[notes.index(b"GNU\0") + 4:][:20].hex()
    mnt = mount()
    own = report(mnt, kernel_samples.save(workdir / "own.data", ident))
    assert any(re.match(r"[a-z_]", name) for name in symbols(own)), own
    assert guesses or are_addresses(report(mnt, kernel_samples.save(workdir / "unknown.data", UNKNOWN)))


PACKERS = {"": None, ".gz": ["gzip"], ".xz": ["xz", "--check=crc32"], ".zst": ["zstd", "-q", "--rm"]}


@pytest.mark.parametrize("suffix", PACKERS)
def test_module_of_any_compression_resolves(mount, kernel_samples, workdir, store, env, report, guesses, suffix):
    """docs/PERF.md, 9. A module that perf cannot unpack gets its short name."""
    _, start, size = kernel_samples.kernel()
    address = start + size // 2 & ~0xfff
    directory = workdir / "lib/modules/6.1.0/kernel"
    directory.mkdir(parents=True)
    module = programs.kernel_module(directory / "worker.ko", "module_work", start + size - address)
    if PACKERS[suffix]:
        tools.run(*PACKERS[suffix], module.path)
    path = f"{module.path}{suffix}"
    name = "[worker]" if suffix == ".zst" else path
    data = kernel_samples.save(workdir / "data", UNKNOWN, (name, module.id, address))
    assert "module_work" not in report(workdir / "nothing", data, *() if suffix == ".zst" else ("--symfs", workdir / "nothing"))
    tools.run(tools.BIDCTL, "--store", store, "add", path, env=env)
    pathlib.Path(path).unlink()
    mnt = mount()
    text = report(mnt, data)
    assert "module_work" in symbols(text), text
    assert symbols(text) - {"module_work"} and (guesses or are_addresses(text.replace("[k] module_work", "")))


def largest_function(module):
    """Return its name, and the address of its middle relative to the module's code."""
    text = re.search(r"\[ *(\d+)\] \.text ", tools.run("readelf", "-SW", module).stdout)
    functions = re.findall(rf": ([0-9a-f]+) +(\d+) FUNC +\w+ +\w+ +{text[1]} (\S+)", tools.run("readelf", "-sW", module).stdout)
    value, size, name = max(functions, key=lambda function: int(function[1]))
    return name, int(value, 16) + int(size) // 2


@pytest.mark.limit(180)
def test_packaged_kernels_resolve_side_by_side(mount, kernel_samples, workdir, store, env, report, guesses):
    """
    Packaged images have no symbols, so kernel samples have none. Both kernels have a module of the same name, compressed or not,
    and a sample gets the name that the recorded build has there. BID_TEST_KERNELS is the directory of packages from
    contrib/kernels.
    """
    if guesses:
        pytest.skip("this perf takes the running kernel's symbols for those of any")
    source = os.environ.get("BID_TEST_KERNELS")
    if not source:
        pytest.skip("set BID_TEST_KERNELS to a directory that contrib/kernels has put Debian's kernels into")
    (workdir / "roots").mkdir()
    for package in pathlib.Path(source).glob("linux-image-*.deb"):
        tools.run("dpkg-deb", "-x", package, workdir / "roots" / package.stem)
    tools.run(tools.BIDCTL, "--store", store, "add", workdir / "roots", env=env)
    builds = tools.rows(tools.run(tools.BIDCTL, "--store", store, "list", "--json", env=env))
    mnt = mount()
    roots = sorted((workdir / "roots").iterdir())
    assert len(roots) == 2, roots
    for root in roots:
        kernel, = (build["id"] for build in builds if build["path"].startswith(f"{root}/boot/vmlinuz-"))
        (xfs, path), = ((build["id"], build["path"]) for build in builds
                        if build["path"].startswith(f"{root}/") and "/xfs.ko" in build["path"])
        text = report(mnt, kernel_samples.save(workdir / "kernel.data", kernel))
        assert are_addresses(text), text
        # map a module so that the hottest sample falls into it
        hottest = int(re.search(r"\[k\] 0x([0-9a-f]+)", text)[1], 16)
        name, offset = largest_function(mnt.artifact(xfs))
        shutil.rmtree(root)
        text = report(mnt, kernel_samples.save(workdir / "module.data", kernel, (path, xfs, hottest - offset)))
        assert name in symbols(text), (name, text)
