#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Probe definitions in a store: those derived from static probes, against perf's for the same files.

usage: check_probes.py BIDCTL [CASE...]
"""
import os
import pathlib
import shutil
import subprocess

import cases
from bidctl_env import ID_ONE, REFUSED, TIMEOUT, Env

# A note as sys/sdt.h writes it, with any arguments: systemtap, includes/sys/sdt.h
SOURCE = r"""
    __asm__(".section .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n.weak _.stapsdt.base\n"
            ".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.previous\n");
    #define PROBE(provider, name, semaphore, arguments) __asm__ volatile("990: nop\n" \
        ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n.4byte 992f - 991f, 994f - 993f, 3\n991: .asciz \"stapsdt\"\n" \
        "992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " semaphore "\n.asciz \"" provider "\"\n" \
        ".asciz \"" name "\"\n" arguments "994: .balign 4\n.popsection")
    #define ARGUMENTS(text) ".asciz \"" text "\"\n"
    __attribute__((section(".probes"), used)) unsigned short first_semaphore, second_semaphore;
    int data[1000] = { 1 };
    static inline __attribute__((always_inline)) int twice(int n) { PROBE("app", "twice", "0", ARGUMENTS("-4@%edi")); return n; }
    int main(int argc, char **argv) {
        PROBES
        return twice(argc) + twice(data[argc]) == 0;
    }
"""
WIDTHS = ["1@%al", "-1@%ah", "2@%ax", "-2@%bx", "4@%eax", "-4@%ebx", "8@%rcx", "-8@%rdx", "%rax", "8f@%rax"]
REGISTERS = ["8@%rsi", "4@%edi", "8@%rbp", "8@%rsp", "8@%r8", "4@%r9d", "2@%r10w", "1@%r11b", "8@%r12", "8@%r15"]
MEMORY = ["4@(%rax)", "4@8(%rax)", "4@+8(%rbx)", "-4@-8(%rbp)", "8@0(%rsp)", "1@120(%r13)", "4@8(%rax,%rbx,4)", "-8@x(%rip)",
          "-4@$5", "4@$-1", "4@%fs:8"]
# arguments at which perf stops, or which the kernel refuses
NOT_PERFS = ["16@%rax", "8@%xmm0", "8@16(%rip)", "8@24%rax", "8@(%rax", "8@", "@%rax", "8@%", "8@-", "8@()", "8@(%)"]
AARCH64 = {"-4@x0": "%x0:s32", "8@x9": "%x9:u64", "8@x10": "%x10:u64", "8@x29": "%x29:u64", "8@x30": "%x30:u64",
           "8@[sp]": "+0(%sp):u64", "-4@[sp, 12]": "+12(%sp):s32", "8@x31": None, "4@w0": None, "8@[x1]": None, "8@[sp,": None,
           "8@[sp, x1]": None, "8@[sp": None, "2@[sp, 6]": "+6(%sp):u16"}
# programs of Debian's packages, if installed
SYSTEM = ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
          "/usr/lib/x86_64-linux-gnu/libpython3.13.so.1.0"]


def probe(name, arguments, provider="app", semaphore="0"):
    text = 'ARGUMENTS("' + " ".join(arguments) + '")' if arguments is not None else '""'
    return f'PROBE("{provider}", "{name}", "{semaphore}", {text});'


def compiled(env, name, probes, *flags):
    source, path = env.home / f"{name}.c", env.home / name
    source.write_text(SOURCE.replace("PROBES", "\n".join(probes)))
    subprocess.run(["cc", "-O1", "-Wl,--build-id", *flags, source, "-o", path], check=True, timeout=TIMEOUT)
    return path


def made(env, path):
    """Return the definitions that the store derives."""
    build_id = env.rows("add", path)[0]["id"]
    return pathlib.Path(env.on_store("get", "--offline", build_id, "probes").stdout.strip()).read_text()


def by_perf(env, path):
    """Return the definitions that perf derives in a cache of its own."""
    cases.need(shutil.which("perf"), "no perf")
    cache = env.home / "cache"
    subprocess.run(["perf", "--buildid-dir", cache, "buildid-cache", "-a", path], env=env.environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT)
    found = [file for file in cache.rglob("probes") if str(file).startswith(f"{cache}{os.path.realpath(path)}/")]
    text = found[0].read_text() if found else ""
    cases.need("%sdt_" in text, "this perf cannot read static probes")
    return text


def case_derived_probes_equal_perfs(env):
    """Byte for byte, for all that perf can express: forms of arguments, semaphores, several places of an event, a long name."""
    cases.need(os.uname().machine == "x86_64", "perf knows the operands of the machine it runs on")
    probes = [probe("widths", WIDTHS), probe("registers", REGISTERS), probe("memory", MEMORY), probe("none", []),
              probe("missing", None), probe("colon", [":"]), probe("counted", ["8@%rdi"], semaphore="second_semaphore"),
              probe("other", ["8@%rdi"], "other", "first_semaphore"), probe("long", [], "provider" * 9)]
    for name, flags in {"pie": [], "fixed": ["-no-pie"], "stripped": ["-s"]}.items():
        path = compiled(env, name, probes, *flags)
        wanted = by_perf(env, path)
        assert made(env, path) == wanted, f"{name}:\n{made(env, path)}\nperf:\n{wanted}"
        assert wanted.count("\np:sdt_app/twice ") > 1 and "(0x" in wanted and " arg9=" in wanted, wanted


def case_probes_of_packages_equal_perfs(env):
    cases.need(os.uname().machine == "x86_64", "perf knows the operands of the machine it runs on")
    there = [path for path in SYSTEM if os.path.exists(path)]
    cases.need(there, "none of these libraries is installed")
    for path in there:
        wanted = by_perf(env, path)
        assert made(env, path) == wanted, path


def case_unusable_probes_are_left_out(env):
    """Probes that perf or the kernel refuses are left out, and the following ones are not."""
    text = made(env, compiled(env, "odd", [probe("odd", [*NOT_PERFS, "8@%rdi"]), probe("next", ["8@%rsi"])]))
    assert [line.split()[2:] for line in text.splitlines() if line.startswith("p:") and "twice" not in line] == \
        [[f"arg{len(NOT_PERFS) + 1}=%di:u64"], ["arg1=%si:u64"]], text


def case_probes_use_file_offsets(env):
    """Places are file offsets, also if text and data are mapped at other distances."""
    path = compiled(env, "moved", [probe("here", [], semaphore="first_semaphore")], "-no-pie", "-Wl,-Tdata=0x900000",
                    "-Wl,-z,separate-code")
    line = next(line for line in made(env, path).splitlines() if line.startswith("p:sdt_app/here "))
    place, semaphore = (int(number, 16) for number in line.rsplit(":", 1)[1].rstrip(")").split("("))
    assert path.read_bytes()[place] == 0x90, line
    symbols = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" first_semaphore"))
    segments = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    loads = [[int(word, 16) for word in line.split()[1:6]] for line in segments.splitlines() if line.split()[:1] == ["LOAD"]]
    assert semaphore in [address - start + offset for offset, start, _, size, _ in loads if start <= address < start + size], line


def case_aarch64_arguments_are_converted(env):
    path = compiled(env, "arm", [probe("all", AARCH64)])
    content = bytearray(path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(content)
    line = next(line for line in made(env, path).splitlines() if line.startswith("p:sdt_app/all "))
    forms = list(AARCH64)
    # "[sp," joins the next word
    forms[forms.index("8@[sp,"):forms.index("8@[sp, x1]") + 1] = ["8@[sp, 8@[sp,", "x1]"]
    wanted = [f"arg{number}={AARCH64[form]}" for number, form in enumerate(forms, 1) if AARCH64.get(form)]
    assert line.split()[2:] == wanted, line


def case_derived_probes_are_stored_once(env):
    """Stored in perf's form; perf's own file stays, even if empty."""
    path = compiled(env, "once", [])
    build_id = env.rows("add", path)[0]["id"]
    stored = env.store / str(path)[1:] / build_id / "probes"
    # show derives nothing
    assert not stored.exists() and "probes" not in env.row("show", build_id)["artifacts"]
    env.on_store("get", "--offline", build_id, "probes")
    assert stored.stat().st_mode & 0o777 == 0o644 and env.row("show", build_id)["artifacts"]["probes"]["how"] == "added"
    listed = subprocess.run(["perf", "--buildid-dir", env.store, "probe", "--cache", "--list"], env=env.environment,
                            stdout=subprocess.PIPE, text=True, check=True).stdout if shutil.which("perf") else "sdt_app:twice"
    assert "sdt_app:twice" in listed, listed
    stored.write_text("")
    assert pathlib.Path(env.on_store("get", "--offline", build_id, "probes").stdout.strip()).read_text() == ""
    env.on_store("add", env.one)
    env.on_store("get", "--offline", ID_ONE, "probes", status=REFUSED)


def unnamed(env, path):
    """Turn an added build into a download without a known path; return its id and directory."""
    build_id = env.rows("add", path)[0]["id"]
    place = env.store / "[debuginfod]" / build_id
    place.mkdir(parents=True)
    (env.store / str(path)[1:] / build_id / "elf").rename(place / "elf")
    link = env.store / ".build-id" / build_id[:2] / build_id[2:]
    link.unlink()
    link.symlink_to(f"../../[debuginfod]/{build_id}")
    return build_id, place


def case_probes_of_unnamed_build_name_the_stored_file(env):
    """They name the file in the store, and are derived again once the path is known."""
    path = compiled(env, "unnamed-build", [])
    wanted = by_perf(env, path)
    build_id, place = unnamed(env, path)
    listed = env.rows("probe", "list", build_id)
    assert [row["event"] for row in listed] == ["sdt_app:twice"], listed
    own = f" {env.store.resolve()}/[debuginfod]/{build_id}/elf:0x"
    assert env.on_store("probe", "show", build_id).stdout == wanted.replace(f" {path}:0x", own)
    assert not (place / "probes").exists()
    # no process runs the stored file; running programs have the path, and their id is checked
    env.one_error("probe", "apply", build_id, status=REFUSED, has="name its file")
    # perf's link leads to the path that was added
    shutil.rmtree(place)
    (env.store / ".build-id" / build_id[:2] / build_id[2:]).unlink()
    env.on_store("add", path)
    assert env.on_store("probe", "show", build_id).stdout == wanted


if __name__ == "__main__":
    cases.main(globals(), Env, tools=("cc", "nm", "readelf"))
