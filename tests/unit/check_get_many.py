#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl get for all artifacts of a profile, a core file, a process or a list.

usage: check_get_many.py BIDCTL [--no-fetch] [CASE...]
"""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time

from bidctl_env import (DONE, ID_FAR, ID_NOT_STORED, ID_ONE, ID_SHORT, ID_TWO, REFUSED, TIMEOUT, ERROR, USAGE, Env, build, divide,
                        read_json, request_count, server, stats)
from cases import main, need
from check_add_perf_data import ID_GONE, USER, Recording

COUNTS = ("here", "added", "fetched", "absent", "refused", "failed", "interrupted")


def serve(env, *paths):
    """Let the server have these programs, too."""
    for path, build_id in paths:
        root = env.home / "served" / build_id
        root.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / "executable")
        subprocess.run(["objcopy", "--only-keep-debug", path, root / "debuginfo"], check=True, timeout=TIMEOUT)


def get(env, *arguments, status=DONE, lines=None):
    """Return the results {(id, kind): item}, and the whole JSON."""
    command = [env.bidctl, "--json", "--store", env.store, "get", *map(str, arguments)]
    done = subprocess.run(command, env=env.environment, input=lines or "", capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert status in (None, done.returncode), (done.returncode, done.stdout, done.stderr)
    value = read_json(done.stdout)
    found = value["totals"]
    items = [item for item in value["result"] if item["id"]]
    assert found["needed"] == len(items) == sum(found[state] for state in COUNTS), found
    return {(item["id"], item["kind"]): item for item in items}, \
        found | {"items": items, "paths": [item["path"] for item in value["result"] if item["state"] == "unidentified"]}


def states(items):
    return {key: item["state"] for key, item in items.items()}


def case_wrong_usage_is_refused(env):
    for arguments, has in (
            (["get"], "ID"),
            (["get", "--core=a", "--perf-data=b"], "together"),
            (["get", "--pid=1", "--perf-data=b"], "together"),
            (["list", "--pid=1"], "'--pid'"),
            (["get", "--core=a", "elf", "more"], "'more'"),
            (["get", "--core=a", "source"], "'source'"),
            (["get", "-", "no-kind"], "'no-kind'"),
            (["add", "--core=a", env.one], "'--core'"),
    ):
        env.one_error(*arguments, status=USAGE, has=has)


def case_offline_list_finds_stored_files(env):
    env.on_store("add", env.one)
    items, found = get(env, "-", "--offline", lines=f"{ID_ONE} /usr/bin/one\n\n{ID_FAR}\n{ID_ONE}\n", status=REFUSED)
    assert states(items) == {(ID_ONE, "debuginfo"): "here", (ID_ONE, "elf"): "here", (ID_FAR, "debuginfo"): "absent",
                             (ID_FAR, "elf"): "absent"}, items
    assert found["needed"] == 4 and items[ID_FAR, "elf"]["path"] is None and "--offline" in items[ID_FAR, "elf"]["reason"], found
    assert items[ID_ONE, "elf"]["path"] == "/usr/bin/one" and items[ID_ONE, "elf"]["reason"] is None
    items, found = get(env, "-", "elf", "--offline", lines=f"{ID_ONE}\n{ID_ONE.upper()}\n")
    assert states(items) == {(ID_ONE, "elf"): "here"}, "in capitals it is the same"
    assert get(env, "-", "--offline")[1]["needed"] == 0


def case_bad_lines_are_reported_alone(env):
    """The other lines are processed."""
    env.on_store("add", env.one)
    lines = f"NONSENSE\n{ID_ONE} /usr/bin/one\nmore of it\n{ID_FAR}\n??\n"
    for command in (["get", "-", "elf", "--offline"], ["missing"]):
        done = subprocess.run([env.bidctl, "-s", env.store, *command], env=env.environment, input=lines, capture_output=True,
                              text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == USAGE and ID_FAR in done.stdout and f"{ID_ONE}\telf\tabsent" not in done.stdout, done
        assert "line 1: 'NONSENSE'" in done.stderr and "2 more lines" in done.stderr and "more of it" not in done.stderr, done


def case_list_downloads_missing_files(env):
    serve(env, (env.far, ID_FAR))
    env.on_store("add", env.one)
    with server(env) as url:
        items, found = get(env, "-", f"--url={url}", lines=f"{ID_ONE}\n{ID_NOT_STORED}\n{ID_FAR}\n{ID_GONE}\n", status=REFUSED)
        assert found["fetched"] == 4 and found["here"] == 2 and found["absent"] == 2, found
        assert found["received"] == sum(path.stat().st_size for path in (env.home / "served").rglob("*") if path.is_file()), found
        assert items[ID_GONE, "elf"]["reason"] == f"{url}: HTTP 404", items
        assert items[ID_FAR, "elf"]["received"] == env.far.stat().st_size, items
        assert request_count(url) == 6, "what is here costs nothing"
        # again: stored files need no request, and absent ones get another
        items, found = get(env, "-", f"--url={url}", lines=f"{ID_ONE}\n{ID_NOT_STORED}\n{ID_FAR}\n")
        assert found["here"] == found["needed"] == 6 and request_count(url) == 6, found
    # the readable output
    done = subprocess.run([env.bidctl, "-s", env.store, "get", "-", "--offline"], env=env.environment,
                          input=f"{ID_ONE}\n{ID_TWO}\n", capture_output=True, text=True, timeout=TIMEOUT, check=False)
    lines = divide(done).stdout.splitlines()
    rows = [line.split("\t")[:4] for line in lines[:-1]]
    stored = env.on_store("get", "--offline", ID_ONE, "elf").stdout.strip()
    assert rows == [[ID_ONE, "debuginfo", "here", stored], [ID_ONE, "elf", "here", stored], [ID_TWO, "debuginfo", "absent", "-"],
                    [ID_TWO, "elf", "absent", "-"]], done
    assert lines[-1] == "needed 4, here 2, added 0, fetched 0, absent 2, refused 0, failed 0, interrupted 0, unidentified 0", done


def case_list_reports_outage_and_absence_apart(env):
    with server(env, f"wrong-id:{env.one}") as url:
        items, _ = get(env, "-", "elf", f"--url={url}", lines=f"{ID_NOT_STORED}\n", status=REFUSED)
        assert items[ID_NOT_STORED, "elf"]["state"] == "refused", items
        assert f"carries the build-id '{ID_ONE}'" in items[ID_NOT_STORED, "elf"]["reason"], items
    items, found = get(env, "-", "--url=http://127.0.0.1:1", lines=f"{ID_FAR}\n", status=ERROR)
    assert found["failed"] == 2 and "127.0.0.1:1" in items[ID_FAR, "elf"]["reason"], items
    # a server without the file is not the reason while another server is unreachable
    with server(env, "absent") as url:
        items, _ = get(env, "-", "elf", "--url=http://127.0.0.1:1", f"--url={url}", lines=f"{ID_FAR}\n", status=ERROR)
        assert "127.0.0.1:1" in items[ID_FAR, "elf"]["reason"], items


def case_list_finds_debuginfo_in_a_downloaded_program(env):
    """The server has an unstripped program and no debuginfo."""
    program = env.home / "program"
    subprocess.run(["cc", "-g", f"-Wl,--build-id=0x{ID_NOT_STORED}", "-xc", "-", "-o", program],
                   input="int main(void) { return 0; }", text=True, check=True, timeout=TIMEOUT)
    root = env.home / "served" / "buildid" / ID_NOT_STORED
    root.mkdir(parents=True)
    shutil.copy(program, root / "executable")
    items, _ = get(env, "-", f"--url=file://{env.home}/served", lines=f"{ID_NOT_STORED}\n")
    assert {item["state"] for item in items.values()} == {"fetched"}, items
    assert items[ID_NOT_STORED, "debuginfo"]["file"] == items[ID_NOT_STORED, "elf"]["file"], items


def case_list_refuses_changed_bytes(env):
    """Other bytes than the first download of the id: the message names the option that accepts them."""
    with server(env) as url:
        get(env, "-", "elf", f"--url={url}", lines=f"{ID_NOT_STORED}\n")
        env.on_store("gc", "--cache-size=1")
        served = env.home / "served" / ID_NOT_STORED / "executable"
        served.write_bytes(served.read_bytes() + bytes(16))
        items, _ = get(env, "-", "elf", f"--url={url}", lines=f"{ID_NOT_STORED}\n{ID_FAR}\n", status=REFUSED)
        why = items[ID_NOT_STORED, "elf"]["reason"]
        assert items[ID_NOT_STORED, "elf"]["state"] == "refused" and why.endswith(" - 'bidctl get --accept' accepts them"), items
        assert "--accept" not in items[ID_FAR, "elf"]["reason"], items
        items, _ = get(env, "-", "elf", "--accept", f"--url={url}", lines=f"{ID_NOT_STORED}\n")
        assert states(items) == {(ID_NOT_STORED, "elf"): "fetched"}, items


def case_dwz_file_is_downloaded_with_debuginfo(env):
    """Debug information that refers to another file (dwz -m) is useless without it."""
    serve(env, (env.far, ID_FAR), (env.two, ID_TWO))
    (env.home / "link").write_bytes(b"common.debug\0" + bytes.fromhex(ID_TWO))
    subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={env.home}/link",
                    env.home / "served" / ID_FAR / "debuginfo"], check=True, timeout=TIMEOUT)
    with server(env) as url:
        items, _ = get(env, "-", f"--url={url}", lines=f"{ID_FAR} /usr/bin/far\n{ID_FAR}\n")
        assert states(items) == {(ID_FAR, "debuginfo"): "fetched", (ID_FAR, "elf"): "fetched", (ID_TWO, "debuginfo"): "fetched"}
        assert items[ID_TWO, "debuginfo"]["path"] == "/usr/bin/far" and request_count(url) == 3, items
        items, _ = get(env, "-", "debuginfo", f"--url={url}", lines=f"{ID_FAR}\n{ID_TWO}\n")
        assert len(items) == 2 and set(states(items).values()) == {"here"} and request_count(url) == 3, items
        # debug information that was stored without it, and one alone
        env.on_store("remove", ID_TWO)
        done = env.on_store("get", f"--url={url}", ID_FAR)
        assert done.stderr == "" and done.stdout.count("\n") == 1 and request_count(url) == 4, done
        assert env.row("show", ID_TWO)["artifacts"]["debuginfo"]["how"] == "fetched"
        # no server has it
        env.on_store("remove", ID_TWO)
        shutil.rmtree(env.home / "served" / ID_TWO)
        done = env.on_store("get", f"--url={url}", ID_FAR)
        assert "dwz" in done.stderr and ID_TWO in done.stderr and done.stdout.count("\n") == 1, done
        assert states(get(env, "-", "debuginfo", "--offline", lines=ID_FAR, status=REFUSED)[0])[ID_TWO, "debuginfo"] == "absent"


def case_dwz_of_strings_is_debuginfo_fetched_or_added(env):
    """dwz -m makes such a file for programs that share strings and no types."""
    strings = env.home / "strings"
    subprocess.run(["objcopy", "-j", ".note.gnu.build-id", "-j", ".debug_str", env.far, strings], check=True, timeout=TIMEOUT)
    root = env.home / "served" / ID_FAR
    root.mkdir(parents=True)
    shutil.copy(strings, root / "debuginfo")
    with server(env) as url:
        items, _ = get(env, "-", "debuginfo", f"--url={url}", lines=f"{ID_FAR}\n")
    assert states(items) == {(ID_FAR, "debuginfo"): "fetched"}, items
    env.on_store("remove", ID_FAR)
    env.on_store("add", strings)
    assert list(env.row("show", ID_FAR)["artifacts"]) == ["debuginfo"]


def case_offline_recording_adds_local_files(env):
    """Unchanged files at the recorded paths are added; replaced ones are not."""
    recording = Recording(env.home).lists(env.one, ID_ONE).lists(env.two, ID_FAR)
    recording.lists("/gone", ID_GONE).lists("[vdso]", ID_TWO)
    items, found = get(env, "--perf-data", recording.write(), "--offline", status=REFUSED)
    assert states(items) == {(ID_ONE, "debuginfo"): "here", (ID_ONE, "elf"): "added", (ID_FAR, "debuginfo"): "absent",
                             (ID_FAR, "elf"): "absent", (ID_GONE, "debuginfo"): "absent", (ID_GONE, "elf"): "absent"}, items
    assert items[ID_GONE, "elf"]["path"] == "/gone" and found["needed"] == 6
    assert (env.store / str(env.one)[1:] / ID_ONE / "elf").read_bytes() == env.one.read_bytes()
    env.one_error("get", "--perf-data", env.text, status=REFUSED, has="not a recording")
    env.one_error("get", "--perf-data", env.home / "none", status=REFUSED, has="no such file")


def case_recording_without_ids_is_incomplete(env):
    """All its known builds are stored, but others have no id."""
    env.on_store("add", env.one)
    recording = Recording(env.home).maps(env.one, ID_ONE).maps(env.two).write()
    done = env.on_store("get", "--perf-data", recording, "elf", "--offline", status=REFUSED)
    assert done.summary == ("needed 1, here 1, added 0, fetched 0, absent 0, refused 0, failed 0, interrupted 0, "
                           "unidentified 1\n"), done.stdout
    assert "no build-id for 1 paths" in done.stderr and "--buildid-mmap" in done.stderr, done.stderr


def case_recording_downloads_missing_files(env):
    serve(env, (env.far, ID_FAR))
    recording = Recording(env.home).lists(env.one, ID_ONE).lists(env.two, ID_FAR).lists("/gone", ID_NOT_STORED)
    with server(env) as url:
        _, found = get(env, "--perf-data", recording.write(), f"--url={url}")
        assert found["added"] == 1 and found["here"] == 1 and found["fetched"] == 4 and request_count(url) == 4, found


AT_ONCE = 8  # requests to a server


def libraries(env):
    """Make more libraries than requests run at once, the last of which has the samples; return {path: id}."""
    source = env.home / "spin.c"
    source.write_text("void spin(void) { for (volatile long i = 0; i < 300000000; i++); }\n")
    found = {}
    for number in range(AT_ONCE + 2):
        path = env.home / f"lib{number:02}.so"
        found[path] = f"{0xA0 + number:02x}" * 20
        if number == 0:
            subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", f"-Wl,--build-id=0x{found[path]}", "-o", path, source],
                           check=True, timeout=TIMEOUT)
            first = path.read_bytes()
        else:
            path.write_bytes(first.replace(b"\xa0" * 20, bytes.fromhex(found[path])))
            path.chmod(0o755)
    return found


def record_libraries(env, found, file):
    """Record a program that maps all of them and runs in the last."""
    source, path = env.home / "spinner.c", env.home / "spinner"
    source.write_text("void spin(void);\nint main(void) { spin(); }\n")
    hot = list(found)[-1]
    subprocess.run(["cc", "-o", path, source, hot], check=True, timeout=TIMEOUT)
    preload = ":".join(map(str, [hot, *found]))
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "--buildid-all", "-o", file, "env",
                           f"LD_PRELOAD={preload}", path], env=env.environment, check=False, capture_output=True, timeout=TIMEOUT)
    need(done.returncode == 0, f"perf cannot record: {done.stderr[:200]}")


def case_most_sampled_build_is_requested_first(env):
    """From a file and from a pipe."""
    need(shutil.which("perf"), "needs perf")
    found = libraries(env)
    hot = list(found.values())[-1]
    serve(env, *found.items())
    file, streamed = (env.home / f"{name}.data" for name in ("file", "streamed"))
    record_libraries(env, found, file)
    streamed.write_bytes(subprocess.run(["perf", "inject", "--buildid-all", "-i", file, "-o", "-"], env=env.environment,
                                        check=True, capture_output=True, timeout=TIMEOUT).stdout)
    for recording in (file, streamed):
        with server(env) as url:
            items, _ = get(env, "--perf-data", recording, "debuginfo", f"--url={url}", status=None)
            order = [path.split("/")[2] for path in stats(url)["paths"]]
        samples = [item["samples"] for item in items.values()]
        assert set(found.values()) <= set(order) and samples == sorted(samples, reverse=True), (recording, items)
        assert next(iter(items)) == (hot, "debuginfo") and items[hot, "debuginfo"]["samples"] > sum(samples[1:]), items
        # simultaneous requests may arrive in any order
        assert order.index(hot) < AT_ONCE, (recording, order)
        shutil.rmtree(env.store)
        env.store.mkdir()


def zipped_library(env):
    """Make a program that maps a library inside a zip archive, as on Android; return it and the archive."""
    archive = env.home / "base.apk"
    text = env.one.read_bytes()
    archive.write_bytes(b"PK\3\4".ljust(4096, b"\0") + text.ljust(-(-len(text) // 4096) * 4096, b"\0"))
    source = env.home / "maps.c"
    source.write_text("#include <fcntl.h>\n#include <signal.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
                      "int main(int n, char **v) {\n"
                      f'int fd = open("{archive}", O_RDONLY);\n'
                      "for (int i = 0; i < 2; i++) mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 8192);\n"
                      "mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);\n"
                      'if (n > 1) raise(SIGSEGV);\nwrite(1, "x", 1);\npause(); }\n')
    path = env.home / "maps"
    subprocess.run(["cc", f"-Wl,--build-id=0x{ID_TWO}", "-o", path, source], check=True, timeout=TIMEOUT)
    return path, archive


def program(env, *flags):
    """Make a program that waits, or crashes by option; return it and its id."""
    source = env.home / "victim.c"
    source.write_text("#include <signal.h>\n#include <unistd.h>\n"
                      "int main(int n, char **v) { if (n > 1) raise(SIGSEGV); write(1, \"x\", 1); pause(); }\n")
    path = env.home / "victim"
    subprocess.run(["cc", "-g", f"-Wl,--build-id=0x{ID_TWO}", *flags, "-o", path, source], check=True, timeout=TIMEOUT)
    return path


def running(*command):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.read(1) == b"x"
    return process


def gcore(env, path):
    with running(path) as process:
        subprocess.run(["gcore", "-o", env.home / "saved", str(process.pid)], check=True, capture_output=True, timeout=TIMEOUT)
        process.kill()
    return env.home / f"saved.{process.pid}"


def build_id_of(path):
    """Return the id that readelf prints."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    return notes.split("Build ID: ")[1].split()[0]


def mapped_libraries(path):
    """Return {path: id} of the libraries that the dynamic linker loads."""
    text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    paths = [os.path.realpath(word) for word in text.split() if word.startswith("/")]
    return {path: build_id_of(path) for path in paths}


def check_core(env, core, path):
    expected = {str(path): ID_TWO, **mapped_libraries(path)}
    items, found = get(env, "--core", core, "elf", "--offline")
    assert {item["path"]: item["id"] for item in items.values()} == expected, (items, expected)
    assert found["items"][0]["id"] == ID_TWO, "the program comes first"
    assert found["added"] + found["here"] == found["needed"], found
    assert states(get(env, "--core", core, "--offline", status=None)[0])[ID_TWO, "debuginfo"] == "here"


def case_core_of_gdb_names_its_builds(env):
    need(shutil.which("gcore"), "needs gcore")
    path = program(env)
    check_core(env, gcore(env, path), path)


def case_core_adds_and_packs_installed_debug_files(env):
    need(shutil.which("gcore"), "needs gcore")
    path = program(env)
    (env.home / ".debug").mkdir()
    debug = env.home / ".debug" / "victim.debug"
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True, timeout=TIMEOUT)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path], check=True, timeout=TIMEOUT)
    core = gcore(env, path)
    items, _ = get(env, "--core", core, "debuginfo", "--offline", status=None)
    assert items[ID_TWO, "debuginfo"]["state"] == "here", items
    items, _ = get(env, "--core", core, "--offline", status=None)
    assert items[ID_TWO, "elf"]["state"] == "added", items
    assert pathlib.Path(items[ID_TWO, "debuginfo"]["file"]).read_bytes() == debug.read_bytes(), items
    rows = env.rows("archive", "--core", core, "-o", env.home / "core.tar", status=None)
    packed, = (row for row in rows if row["id"] == ID_TWO)
    assert packed["kinds"] == ["elf", "debuginfo"] and packed["path"] == str(path), packed


def kernel_core(env, *command, dumped="0x33"):
    """Let the kernel write a core of @command with the kinds of memory of the bits @dumped: core(5)."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    need(not pattern.startswith(("|", "/")) and "%" not in pattern, f"cores go to '{pattern}'")
    where = env.home / f"died-{dumped}"
    where.mkdir()

    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        pathlib.Path("/proc/self/coredump_filter").write_text(dumped)

    done = subprocess.run([*command, "now"], cwd=where, check=False, timeout=TIMEOUT, preexec_fn=prepare)
    assert done.returncode == -signal.SIGSEGV, done
    cores = [*where.iterdir(), *(command[1].glob("core*") if command[0] == "chroot" else [])]
    need(cores, "the kernel wrote none")
    return cores[0]


def case_core_of_the_kernel_names_its_builds(env):
    path = program(env)
    core = kernel_core(env, path)
    check_core(env, core, path)
    # replaced on disk: the core still has the id of the build
    build(env.home, "victim", ID_FAR)
    shutil.rmtree(env.store)
    env.store.mkdir()
    items, _ = get(env, "--core", core, "elf", "--offline", status=REFUSED)
    assert items[ID_TWO, "elf"]["state"] == "absent" and (ID_FAR, "elf") not in items, items


def case_core_with_distant_note_identifies_the_program(env):
    """The note is in a segment far from the file header, as patchelf(1) and large notes leave it."""
    path = program(env, "-Wl,--section-start=.note.gnu.build-id=0x500000")
    check_core(env, kernel_core(env, path, dumped="0x37"), path)


def case_core_without_the_note_names_the_program(env):
    """The core has the headers without the note: the program is reported, and the status is not success."""
    path = program(env, "-Wl,--section-start=.note.gnu.build-id=0x500000")
    core = kernel_core(env, path)
    _, found = get(env, "--core", core, "elf", "--offline", status=REFUSED)
    assert found["paths"] == [str(path)] and found["added"] == found["needed"] > 0, found
    done = env.on_store("get", "--core", core, "elf", "--offline", status=REFUSED)
    assert done.stderr == f"bidctl: warning: '{path}': the core file has no build-id of it\n", done.stderr
    assert done.stdout.endswith(", unidentified 1\n"), done.stdout


def case_core_of_library_in_archive_names_the_archive(env):
    """It is mapped twice and named once."""
    path, archive = zipped_library(env)
    core = kernel_core(env, path)
    _, found = get(env, "--core", core, "elf", "--offline", status=REFUSED)
    assert found["paths"] == [str(archive)], found


def case_core_packed_is_read(env):
    """As systemd-coredump stores it, and from a pipe, compressed or not."""
    path = program(env)
    core = kernel_core(env, path)
    for packer, suffix in (("zstd", ".zst"), ("lz4", ".lz4"), ("xz", ".xz"), ("cat", "")):
        if not shutil.which(packer):
            continue
        text = subprocess.run([packer, *(["-c"] if suffix else []), core], capture_output=True, check=True, timeout=TIMEOUT).stdout
        packed = env.home / f"packed{suffix}"
        packed.write_bytes(text)
        check_core(env, packed, path)
        with packed.open("rb") as stream:
            done = subprocess.run([env.bidctl, "-s", env.store, "get", "--core=-", "elf", "--offline"], env=env.environment,
                                  input=stream.read(), capture_output=True, timeout=TIMEOUT, check=False)
        assert done.returncode == DONE and b"needed 3, here 3" in done.stderr, (packer, done)
        packed.write_bytes(text[:len(text) // 2])
        done = env.on_store("get", "--core", packed, "elf", "--offline", status=None)
        assert not suffix or (done.returncode == REFUSED and "damaged or cut short" in done.stderr), (packer, done)
    assert not list(env.home.glob("bid*")), "a copy stayed"


def case_core_of_container_takes_the_files_of_a_process_in_it(env):
    """The paths of the core are relative to the root of the process."""
    need(os.geteuid() == 0, "needs root, for chroot(2)")
    inside = env.home / "inside"
    inside.mkdir()
    program(env, "-static").rename(inside / "victim")
    chroot = ["chroot", inside, "/victim"]
    core = kernel_core(env, *chroot)
    assert get(env, "--core", core, "elf", "--offline", status=REFUSED)[1]["absent"] == 1
    with running(*chroot) as process:
        try:
            items, found = get(env, "--core", core, "--pid", process.pid, "elf", "--offline")
        finally:
            process.kill()
    assert found["added"] == found["needed"] == 1 and items[ID_TWO, "elf"]["path"] == "/victim", found
    env.one_error("get", "--core", core, "--pid", process.pid, status=REFUSED, has="no such process")


def case_damaged_core_is_read_or_refused(env):
    """No damage makes bidctl crash."""
    env.one_error("get", "--core", env.one, status=REFUSED, has="not a core file")
    env.one_error("get", "--core", env.text, status=REFUSED, has="not a core file")
    env.one_error("get", "--core", env.home / "none", status=REFUSED, has="no such file")
    need(shutil.which("gcore"), "needs gcore")
    whole = gcore(env, program(env)).read_bytes()
    core = env.home / "damaged"
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    for number in range(60):
        data = bytearray(whole)
        if number % 2:
            del data[dice.randrange(len(data)):]
        else:
            for _ in range(dice.choice((1, 8, 64))):
                data[dice.randrange(min(len(data), 16384))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        core.write_bytes(data)
        done = subprocess.run([env.bidctl, "-s", env.store, "get", "--core", core, "elf", "--offline"], env=env.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
        assert done.returncode in (DONE, REFUSED), (seed, number, done)


def case_padded_short_id_is_requested_unpadded(env):
    """perf pads short ids; servers know them unpadded."""
    recording = Recording(env.home).lists("/gone/short", ID_SHORT, USER).write()
    with server(env) as url:
        root = env.home / "served" / ID_SHORT
        root.mkdir()
        shutil.copy(env.short, root / "executable")
        row, = env.rows("get", "--perf-data", recording, f"--url={url}", "elf")
    assert row["state"] == "fetched", row


def case_interrupt_keeps_finished_downloads(env):
    """Ctrl-C ends the run, finished downloads are kept, and the next run downloads the rest."""
    serve(env, (env.far, ID_FAR))
    size = (env.home / "served" / ID_FAR / "executable").stat().st_size
    with server(env) as url:
        urllib_control(url, f"behaviour=stall:{size // 2}&id={ID_NOT_STORED}")
        command = [env.bidctl, "--json", "-s", env.store, "get", f"--url={url}", "-", "elf"]
        with subprocess.Popen(command, env=env.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            process.stdin.write(f"{ID_FAR}\n{ID_NOT_STORED}\n")
            process.stdin.close()
            process.stdin = None
            deadline = time.monotonic() + TIMEOUT
            while request_count(url) < 2 or not any(name.endswith("/elf") for name in env.files()):
                assert time.monotonic() < deadline and process.poll() is None, process.communicate()
                time.sleep(0.02)
            time.sleep(1)  # after its file is stored, bidctl still has to notice
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=TIMEOUT)
        found = read_json(out)["totals"]
        assert process.returncode == 128 + signal.SIGINT and errors == "", (process.returncode, errors)
        assert found["fetched"] == 1 and found["interrupted"] == 1, found
        urllib_control(url, f"id={ID_NOT_STORED}")
        _, found = get(env, "-", "elf", f"--url={url}", lines=f"{ID_FAR}\n{ID_NOT_STORED}\n")
        assert found["here"] == found["fetched"] == 1, found


def urllib_control(url, query):
    subprocess.run(["curl", "-sf", "-X", "POST", f"{url}/control?{query}"], check=True, timeout=TIMEOUT)


def case_downloads_draw_progress(env):
    recording = Recording(env.home).lists("/gone", ID_NOT_STORED).write()
    size = env.stripped.stat().st_size
    with server(env, f"slow:{size}") as url:
        status, text = env.on_terminal("get", "-s", env.store, f"--url={url}", "--perf-data", recording, columns=70)
    assert status == DONE and "needed 2" in text, text
    assert "of 2, 2 under way" in text and "\r\033[K" in text, text


def case_process_names_its_builds(env):
    path = program(env)
    libraries = mapped_libraries(path)
    with running(path) as process:
        path.unlink()
        try:
            items, found = get(env, "--pid", process.pid, "elf", "--offline")
        finally:
            process.kill()
    assert items[ID_TWO, "elf"]["state"] == "added" and found["items"][0]["id"] == ID_TWO, "it was removed, and runs still"
    assert set(libraries.values()) <= {item["id"] for item in items.values()}, items
    env.one_error("get", "--pid", process.pid, status=REFUSED, has=f"no such process: process '{process.pid}'")
    env.one_error("get", "--pid", "1x", status=USAGE, has="'1x'")


def case_pid_of_library_in_archive_names_the_archive(env):
    """And the mapped files without a build-id."""
    path, archive = zipped_library(env)
    with running(path) as process:
        try:
            _, found = get(env, "--pid", process.pid, "elf", "--offline", status=REFUSED)
        finally:
            process.kill()
    assert found["paths"] == [str(archive)] and found["added"] == found["needed"] > 0, found
    plain = program(env, "-Wl,--build-id=none")
    with running(plain) as process:
        try:
            _, found = get(env, "--pid", process.pid, "elf", "--offline", status=REFUSED)
            done = env.on_store("add", "--running", status=None)
        finally:
            process.kill()
    assert found["paths"] == [str(plain)], found
    assert "no build-id" in done.stdout, done


def case_running_library_in_archive_is_refused(env):
    path, archive = zipped_library(env)
    with running(path) as process:
        try:
            done = env.on_store("add", "--running", status=REFUSED)
        finally:
            process.kill()
    assert f"inside an archive, where bidctl reads no build-id: '{archive}'" in done.stderr, done


if __name__ == "__main__":
    main(globals(), Env, tools=("cc", "objcopy", "readelf", "ldd"), own_programs=True,
         fetching=[case_list_downloads_missing_files, case_list_finds_debuginfo_in_a_downloaded_program,
                   case_list_reports_outage_and_absence_apart, case_list_refuses_changed_bytes,
                   case_dwz_file_is_downloaded_with_debuginfo, case_dwz_of_strings_is_debuginfo_fetched_or_added,
                   case_recording_downloads_missing_files, case_most_sampled_build_is_requested_first,
                   case_padded_short_id_is_requested_unpadded, case_interrupt_keeps_finished_downloads,
                   case_downloads_draw_progress])
