#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl add --perf-data on hand-made recordings, which have contents that installed perfs do not write.

usage: check_add_perf_data.py BIDCTL [--no-fetch]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import cases
from add_helpers import in_namespace, module_tree, readelf_id, stored
from bidctl_env import DONE, ID_FAR, ID_ONE, ID_SHORT, ID_TWO, REFUSED, TIMEOUT, USAGE, Env, build

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
from make_perfdata import ATTR, BUILD_ID, GUEST, KERNEL, SIZED, USER, Perf  # noqa: E402

ID_GONE = "9876543210987654321098765432109876543210"
ID_LONG = bytes(range(0x40, 0x60)).hex()


def identify(hexadecimal):
    return bytes.fromhex(hexadecimal)


class Recording:
    """A perf.data with a list of sampled builds."""

    def __init__(self, directory, name="perf.data", big=False):
        self.path = directory / name
        self.perf, self.entries, self.mappings = Perf(big), b"", b""

    def lists(self, path, build_id, misc=USER | SIZED):
        self.entries += self.perf.build_id(os.fsencode(path), identify(build_id), misc)
        return self

    def maps(self, path, build_id=None):
        self.mappings += self.perf.mmap2(os.fsencode(path), identify(build_id) if build_id else None)
        return self

    def write(self):
        data = self.perf.sample() + self.mappings
        self.path.write_bytes(self.perf.file(data, self.entries or None))
        return self.path


def read(env, recording, *arguments, status=DONE, **environment):
    """Read the recording; return {path: build} and the whole JSON."""
    value = env.json("add", "--perf-data", recording.write(), *arguments, status=status, **environment)
    found, builds = value["totals"], value["result"]
    assert found["named"] == len(builds) == sum(
        found[state] for state in ("added", "known", "running", "replaced", "missing", "refused", "unidentified",
                                    "guessed")), found
    return {build["path"]: build for build in builds}, found


def case_wrong_usage_is_refused(env):
    recording = Recording(env.home).write()
    for arguments, has in (
            (["add", "--perf-data"], "missing"),
            (["add", "--perf-data", recording, env.one], str(env.one)),
            (["add", "--perf-data", recording, "--running"], "--running"),
            (["add", "--perf-data", recording, "--perf-data", recording], "given twice"),
            (["add", "--perf-data", recording, "--fetch"], "'--fetch'"),
            (["list", "--perf-data", recording], "'--perf-data'"),
            (["get", "--fetch", ID_ONE], "'--fetch'"),
    ):
        done = env.on_store(*arguments, status=USAGE)
        assert done.stderr.count("\n") == 1 and has in done.stderr, done.stderr
        assert done.stdout == ""
    assert env.files() == []
    text = env.run("add", "--help").stdout
    assert "--perf-data=FILE" in text, text


def case_other_file_is_no_recording(env):
    env.one_error("add", "--perf-data", env.one, status=REFUSED, has=f"not a recording of perf: '{env.one}'")
    env.one_error("add", "--perf-data", env.home, status=REFUSED, has="not a recording of perf")
    env.one_error("add", "--perf-data", env.home / "none", status=REFUSED, has="no such file")
    default = env.home / ".debug"
    env.run("add", "--perf-data", env.one, status=REFUSED)
    assert not default.exists(), "a store was made for nothing"


def case_recorded_builds_are_added(env):
    recording = Recording(env.home).lists(env.one, ID_ONE).lists(env.short, ID_SHORT).lists(env.far, ID_FAR)
    env.on_store("add", env.far)
    done = env.on_store("add", "--perf-data", recording.write())
    rows = sorted(line.split("\t") for line in done.stdout.splitlines()[:-1])
    assert rows == sorted([[ID_ONE, "added", str(env.one), "-"], [ID_SHORT, "added", str(env.short), "-"],
                           [ID_FAR, "known", str(env.far), "-"]]), rows
    assert done.stdout.splitlines()[-1] == ("named 3, added 2, known 1, running 0, replaced 0, missing 0, refused 0, "
                                            "unidentified 0, guessed 0"), done.stdout
    assert done.stderr == ""
    for path, build_id in ((env.one, ID_ONE), (env.short, ID_SHORT)):
        assert (env.store / str(path)[1:] / build_id / "elf").read_bytes() == path.read_bytes()
        assert os.readlink(env.store / ".build-id" / build_id[:2] / build_id[2:]) == f"../..{path}/{build_id}"
    _, again = read(env, recording)
    assert (again["added"], again["known"]) == (0, 3), again
    _, other = read(env, Recording(env.home, big=True).maps(env.two, ID_TWO))
    assert other["added"] == 1, other


def case_module_without_path_is_found_by_name(env):
    """perf has no path of a module with an unknown compression; it is found among the modules."""
    modules = env.home / "modules"
    packed = module_tree(env, modules / "6.1.0" / "kernel")
    shutil.copytree(modules / "6.1.0", modules / "5.0")
    for path in packed:
        (modules / "5.0" / "kernel" / path.name).write_bytes(b"of another build")
    for release in modules.iterdir():
        (release / "modules.dep").write_text("".join(f"kernel/{path.name}:\n" for path in packed))
    recording = Recording(env.home)
    for path, (build_id, _) in packed.items():
        recording.lists(f"[{path.name.partition('.')[0]}]", build_id, KERNEL | SIZED)
    recording.lists("[plain]", ID_GONE, KERNEL | SIZED)
    # a machine without modules may lack the directory
    script = '''mkdir -p /lib/modules; mount --bind "$1" /lib/modules; shift; r=0; "$@" || r=$?
        umount /lib/modules; rmdir /lib/modules 2>/dev/null || :; exit "$r"'''
    done = in_namespace(script, modules, env.bidctl, "-s", env.store, "add", "--perf-data", recording.write(), env=env)
    rows = {line.split("\t")[0]: line.split("\t")[1] for line in done.stdout.splitlines()[:-1]}
    assert done.returncode == REFUSED and rows == {ID_GONE: "missing"} | {ident: "added" for ident, _ in packed.values()}, done
    for build_id, built in packed.values():
        assert (stored(env, build_id) / "elf").read_bytes() == built.read_bytes()


def case_recorded_names_are_escaped_on_a_terminal(env):
    recording = Recording(env.home).lists(env.one, ID_ONE).lists(env.two, ID_GONE)
    status, text = env.on_terminal("--store", env.store, "add", "--perf-data", recording.write())
    heading, *rows, summary = re.sub(r"\033\[[0-9;]*m", "", text.replace("\r", "")).splitlines()
    assert status == REFUSED and heading.split() == ["ID", "STATE", "PATH", "REASON"] and len(rows) == 2, text
    assert all(row.index("/") == heading.index("PATH") for row in rows) and summary.startswith("named 2, "), text


def case_cut_and_padded_ids_are_found(env):
    """perf cut a long id, and padded short ones with zeros or with old memory."""
    long = build(env.home, "long", ID_LONG)
    padded, garbage = (pathlib.Path(shutil.copy(env.short, env.home / name)) for name in ("padded", "garbage"))
    recording = Recording(env.home).lists(long, ID_LONG[:40]).lists(padded, ID_SHORT, USER)
    recording.lists(garbage, ID_SHORT + "0123456789ab0123456789ab", USER)
    builds, _ = read(env, recording)
    # one object under several names; the first one in the alphabet is added
    assert [builds[str(path)]["state"] for path in (long, garbage, padded)] == ["added", "added", "known"], builds
    assert builds[str(long)]["id"] == ID_LONG[:40] and builds[str(padded)]["id"] == ID_SHORT + "0" * 24, builds
    # the recording has the size of the id, so bytes behind it are no padding
    builds, _ = read(env, Recording(env.home).lists(garbage, ID_SHORT + "0123456789ab0123456789ab"), status=REFUSED)
    assert builds[str(garbage)]["state"] == "replaced", builds


def case_replaced_program_is_not_added(env):
    recording = Recording(env.home).lists(env.two, ID_GONE).lists(env.text, ID_FAR).lists(env.no_id, ID_ONE)
    written = recording.write()
    before, after = 1500000000, 1700000000
    os.utime(written, (1600000000, 1600000000))
    os.utime(env.two, (after, after))
    os.utime(env.text, (before, before))
    done = env.on_store("add", "--perf-data", written, status=REFUSED)
    lines = {line.split("\t")[2]: line.split("\t") for line in done.stdout.splitlines()[:-1]}
    build_id, state, _, detail = lines[str(env.two)]
    assert (build_id, state) == (ID_GONE, "replaced"), lines
    date = time.strftime("%F %T", time.localtime(after))
    assert detail == f"build {ID_TWO} is there, last changed {date}, after the recording", detail
    assert lines[str(env.text)][3].startswith("a file without a build-id is there, last changed ")
    assert lines[str(env.text)][3].endswith(", before the recording"), lines
    assert env.files() == [], "another build was added"

    found = env.json("add", "--perf-data", written, status=REFUSED)
    builds = {build["path"]: build for build in found["result"]}
    assert found["totals"]["time"] == 1600000000, found
    assert (builds[str(env.two)]["found_id"], builds[str(env.two)]["mtime"]) == (ID_TWO, after), builds
    assert builds[str(env.no_id)]["found_id"] is None, builds
    # stored builds are not missing
    kept = build(env.home, "kept", ID_GONE)
    env.on_store("add", kept)
    builds, _ = read(env, recording, status=REFUSED)
    assert builds[str(env.two)]["state"] == "known", builds


def case_missing_builds_are_listed(env):
    """The list has missing builds, and no entries that only look like builds."""
    fifo = env.home / "fifo"
    os.mkfifo(fifo)
    loop = env.home / "loop"
    loop.symlink_to(loop)
    recording = Recording(env.home).lists(env.home / "none", ID_GONE).lists(fifo, ID_ONE).lists("/dev/zero", ID_TWO)
    recording.lists(loop, ID_FAR).lists(env.one, ID_ONE, GUEST | SIZED).lists("relative", ID_ONE)
    recording.lists("[module]", ID_FAR, KERNEL | SIZED)
    recording.lists(f"{env.one}/below", ID_ONE).lists("/" + "x" * 5000, ID_ONE).lists(env.home, ID_ONE)
    builds, found = read(env, recording, status=REFUSED)
    assert found["missing"] == 10 and env.files() == [], found
    assert builds[str(env.one)]["mode"] == "guest" and builds["[module]"]["mode"] == "kernel", builds
    # an unlinked file may exist again, and a file may have such a name
    deleted = pathlib.Path(shutil.copy(env.two, env.home / "odd (deleted)"))
    builds, _ = read(env, Recording(env.home).lists(f"{env.one} (deleted)", ID_ONE).lists(deleted, ID_TWO))
    assert [builds[path]["state"] for path in (f"{env.one} (deleted)", str(deleted))] == ["added", "added"], builds


def case_recorded_names_stay_text(env):
    """Names from a recording are never interpreted."""
    strange = env.home / "new\nline\ttab\033[31m"
    shutil.copy(env.one, strange)
    recording = Recording(env.home).lists(strange, ID_ONE).lists(b"/latin\xe9", ID_GONE)
    done = env.on_store("add", "--perf-data", recording.write(), status=REFUSED)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 3 and [len(row) for row in rows] == [4, 4, 1], rows
    assert {row[2].rsplit("/", 1)[1] for row in rows[:2]} == {r"new\x0aline\x09tab\x1b[31m", "latin\udce9"}, rows
    builds, _ = read(env, recording, status=REFUSED)
    assert set(builds) == {str(strange), "/latin\ufffd"}, builds


def case_unreadable_files_are_refused(env):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise AssertionError("setpriv is needed to be somebody else")
    secret = pathlib.Path(shutil.copy(env.one, env.home / "secret"))
    secret.chmod(0)
    recording = Recording(env.home).lists(secret, ID_ONE).write()
    for path in (env.home, env.home.parent, env.home.parent.parent):
        path.chmod(0o755)
    env.store.chmod(0o777)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run([*other, env.bidctl, "--store", env.store, "add", "--perf-data", recording], env=env.environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == REFUSED and f"{ID_ONE}\trefused\t{secret}\tPermission denied\n" in done.stdout, done


def case_compressed_module_is_identified_by_content(env):
    module = env.home / "module.ko"
    shutil.copy(env.one, module)
    subprocess.run(["xz", "-k", module], check=True, timeout=TIMEOUT)
    builds, _ = read(env, Recording(env.home).lists(f"{module}.xz", ID_ONE, KERNEL | SIZED))
    assert builds[f"{module}.xz"]["state"] == "added", builds
    stored = pathlib.Path(env.on_store("get", ID_ONE, "elf").stdout.rstrip("\n"))
    assert stored.read_bytes() == env.one.read_bytes()
    builds, _ = read(env, Recording(env.home).lists(f"{module}.xz", ID_FAR, KERNEL | SIZED), status=REFUSED)
    assert (builds[f"{module}.xz"]["state"], builds[f"{module}.xz"]["found_id"]) == ("replaced", ID_ONE), builds


def vdso_image():
    """Return the vDSO of this process, or None."""
    line = re.search(r"^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$", pathlib.Path("/proc/self/maps").read_text(), re.M)
    if not line:
        return None
    begin, end = (int(number, 16) for number in line.groups())
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(begin)
        return memory.read(end - begin)


def case_running_kernel_and_vdso_are_added(env):
    """The running kernel is added with its vDSO; another kernel is missing, and a stored one is known."""
    notes = pathlib.Path("/sys/kernel/notes")
    found = re.search(rb"\x04\0\0\0(.)\0\0\0\x03\0\0\0GNU\0", notes.read_bytes(), re.S) if notes.exists() else None
    kernel = notes.read_bytes()[found.end():found.end() + found[1][0]].hex()[:40] if found else None
    if kernel:
        builds, _ = read(env, Recording(env.home).lists("[kernel.kallsyms]", kernel, KERNEL | SIZED))
        build = builds["[kernel.kallsyms]"]
        assert build["state"] == "added" or build["state"] == "running" and "kptr_restrict" in build["reason"], builds
        assert build["state"] == "running" or env.on_store("get", "--offline", kernel, "kallsyms")
    image = vdso_image()
    if image:
        (env.home / "vdso").write_bytes(image)
        vdso = readelf_id(env.home / "vdso")
        for state in ("added", "known"):
            builds, _ = read(env, Recording(env.home).lists("[vdso]", vdso))
            assert builds["[vdso]"]["state"] == state, builds
        assert pathlib.Path(env.on_store("get", "--offline", vdso, "vdso").stdout.rstrip("\n")).read_bytes() == image
    recording = Recording(env.home).lists("[kernel.kallsyms]", ID_GONE, KERNEL | SIZED).lists("[vdso]", ID_ONE)
    builds, _ = read(env, recording, status=REFUSED)
    assert {build["state"] for build in builds.values()} == {"missing"}, builds
    stored = env.store / "[kernel.kallsyms]" / ID_GONE
    stored.mkdir(parents=True)
    (stored / "kallsyms").write_text("ffffffff81000000 T _text\n")
    (env.store / ".build-id" / ID_GONE[:2]).mkdir(parents=True)
    (env.store / ".build-id" / ID_GONE[:2] / ID_GONE[2:]).symlink_to(f"../../[kernel.kallsyms]/{ID_GONE}")
    builds, _ = read(env, recording, status=REFUSED)
    assert [builds[name]["state"] for name in ("[kernel.kallsyms]", "[vdso]")] == ["known", "missing"], builds


def case_names_without_id_are_reported(env):
    """An error, unless the recording has a list of sampled builds."""
    done = env.on_store("add", "--perf-data", Recording(env.home).maps(env.one).maps("[vdso]").write(), status=REFUSED)
    assert f"-\tunidentified\t{env.one}\t-\n" in done.stdout and env.files() == [], done
    assert done.stderr.startswith("bidctl: warning: no build-id for 1 paths"), done.stderr
    env.on_store("add", "--perf-data", Recording(env.home).maps("[vdso]").write())

    listed = Recording(env.home).maps(env.one).maps(env.two).lists(env.two, ID_TWO)
    done = env.on_store("add", "--perf-data", listed.write())
    assert done.stderr == "" and str(env.one) not in done.stdout and "unidentified 1, guessed 0\n" in done.stdout, done
    assert f"-\tunidentified\t{env.one}\t-\n" in env.on_store("-v", "add", "--perf-data", listed.write()).stdout
    builds, _ = read(env, listed)
    assert builds[str(env.one)] == {"id": None, "path": str(env.one), "state": "unidentified", "reason": None, "mode": "user",
                                    "found_id": None, "mtime": None}, builds


def case_archive_without_the_vdso_names_it(env):
    """Stores often lack the vDSO: the rest is packed, with success."""
    env.on_store("add", env.two)
    recording, target = Recording(env.home).lists("[vdso]", ID_GONE).lists(env.two, ID_TWO), env.home / "a.tar"
    done = env.on_store("archive", "-o", target, "--perf-data", recording.write())
    assert done.summary.startswith("packed 1, missing 1, "), done.stdout
    assert done.stderr == f"bidctl: warning: not in the store: '{ID_GONE}' of '[vdso]'\n", done.stderr
    rows = env.rows("archive", "-o", target, "--perf-data", recording.path)
    assert {row["path"]: row["reason"] for row in rows} == {"[vdso]": "not in the store", str(env.two): None}, rows
    # another absent build is an error, and an empty archive is not written
    for other in (Recording(env.home).lists("[ext4]", ID_GONE, KERNEL | SIZED).lists(env.two, ID_TWO),
                  Recording(env.home).lists("[vdso]", ID_GONE)):
        env.on_store("archive", "-o", target, "--perf-data", other.write(), status=REFUSED)


def case_missing_reports_names_without_id(env):
    """`missing` reports that its list is incomplete."""
    path = Recording(env.home).maps(env.no_id).maps(env.text).write()
    done = env.on_store("missing", "--perf-data", path, status=REFUSED)
    assert "no build-id for 2 paths" in done.stderr and done.stdout == "", done


def case_file_without_id_is_kept_as_a_guess(env):
    """A file without a build-id is stored under a content key, apart from perf and the mount, and shown as a guess."""
    recording = Recording(env.home).maps(env.no_id).maps(env.text).lists(env.two, ID_TWO)
    path = recording.write()
    done = env.on_store("add", "--perf-data", path)
    line, = [line for line in done.stdout.splitlines() if str(env.no_id) in line]
    assert line.startswith(f"-\tguessed\t{env.no_id}\ta guess"), line
    assert re.search("warning: bidctl keeps 1 files without a build-id .* guess", done.stderr), done.stderr
    key = line.split()[-1]
    st = env.no_id.stat()
    assert re.fullmatch(rf"{st.st_size}-{int(st.st_mtime)}-[0-9a-f]{{32}}", key), key
    kept = env.store / ".bidfs" / "content-key" / str(env.no_id)[1:] / key
    assert kept.read_bytes() == env.no_id.read_bytes() and not kept.samefile(env.no_id)
    assert not any("no_id" in name for name in env.files()), "perf would find it"
    # once, until the file changes
    env.on_store("add", "--perf-data", path)
    listed = env.on_store("list", "--content-keys").stdout
    assert listed == f"{key}\t{st.st_size}\t{env.no_id}\n", listed
    as_json, = env.rows("list", "--content-keys")
    assert env.store / as_json["stored"] == kept and as_json["content_key"] == key, as_json
    assert "a guess" in env.on_store("show", env.no_id).stdout
    env.one_error("show", env.text, status=REFUSED, has=str(env.text))
    assert key not in env.on_store("list").stdout and [row["id"] for row in env.rows("list")] == [ID_TWO]
    env.on_store("verify", "--deep")
    damaged = damage(kept)
    assert "content key" in env.on_store("verify", "--deep", status=REFUSED).stdout  # corrupt the stored file
    # a damaged file is quarantined, and stored again with the next recording that names it
    env.on_store("verify", "--deep", "--repair", status=REFUSED)
    quarantined, = (env.store / ".bidfs" / "quarantine").iterdir()
    assert quarantined.name.startswith(f"{key}.content-key.") and quarantined.read_bytes() == damaged, quarantined
    assert not (env.store / ".bidfs" / "content-key").exists() and env.on_store("list", "--content-keys").stdout == ""
    env.on_store("verify", "--deep")
    env.on_store("add", "--perf-data", path)
    assert kept.read_bytes() == env.no_id.read_bytes() and env.on_store("list", "--content-keys").stdout == listed
    # a file that changed after the recording is another one
    shutil.rmtree(env.store / ".bidfs" / "content-key")
    os.utime(path, (1500000000, 1500000000))
    builds, found = read_as_it_is(env, path)
    assert (builds[str(env.no_id)]["state"], found["guessed"]) == ("unidentified", 0), builds
    # a recording without a list of sampled builds gets a partial result
    read(env, Recording(env.home).maps(env.no_id), status=REFUSED)


def damage(kept):
    kept.chmod(0o644)
    kept.write_bytes(b"\0" + kept.read_bytes()[1:])
    return kept.read_bytes()


def case_changed_program_without_id_is_warned_about(env):
    """Only if it is in the recording's list of sampled builds."""
    perf, path = Perf(), env.home / "perf.data"
    head = perf.attr(1 | 2)  # PERF_SAMPLE_IP, PERF_SAMPLE_TID
    for program in (env.no_id, env.one):
        places = (perf.at(os.fsencode(program), 7, 0x400000, 0x1000) + perf.at(os.fsencode(env.text), 7, 0x500000, 0x1000)
                  + perf.sampled(USER, 7, 0x400000, 3))
        table = perf.build_id(os.fsencode(env.two), identify(ID_TWO), USER | SIZED, kind=BUILD_ID)
        path.write_bytes(perf.pipe(perf.record(ATTR, 0, head) + places + table))
        os.utime(path, (1500000000, 1500000000))
        done = env.on_store("add", "--perf-data", path, status=REFUSED)
        assert done.stderr.startswith(f"bidctl: warning: '{program}': no build-id recorded, and"), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        line, = [line for line in done.stdout.splitlines() if str(program) in line]
        assert line.startswith(f"-\tunidentified\t{program}\t") and line.endswith(", after the recording"), line
        assert str(env.text) not in done.stdout, done.stdout
    # a file that is shorter than its mapping is another one, whatever its time
    for mapped, status in ((1 << 16, DONE), (1 << 20, REFUSED)):
        places = perf.at(os.fsencode(env.no_id), 7, 0x400000, mapped) + perf.sampled(USER, 7, 0x400000, 3)
        path.write_bytes(perf.pipe(perf.record(ATTR, 0, head) + places + table))
        done = env.on_store("add", "--perf-data", path, status=status)
        assert ("shorter than its recorded mapping" in done.stdout) == (status == REFUSED) != ("\tguessed\t" in done.stdout), done


def case_guess_is_removed_by_key_path_or_file(env):
    """By content key, path and file, intact or damaged, beside builds of the same path."""
    recording = Recording(env.home).maps(env.no_id).maps(env.text).lists(env.two, ID_TWO).write()

    def keep():
        env.on_store("add", "--perf-data", recording)
        listed, = env.rows("list", "--content-keys")
        return listed

    for operand in (lambda kept: kept["content_key"], lambda kept: f"--path={kept['path']}", lambda kept: kept["path"]):
        for harm in (False, True):
            kept = keep()
            if harm:
                damage(env.store / kept["stored"])
            done = env.on_store("--verbose", "remove", operand(kept)).stdout.splitlines()
            named = operand(kept).removeprefix("--path=")
            assert done[0] == f"{kept['content_key']}\tremoved\t{named}", done
            assert done[1].startswith("builds 1, paths removed 1, "), done
            assert not (env.store / ".bidfs" / "content-key").exists() and env.on_store("list", "--content-keys").stdout == ""
    kept = keep()
    removed = {row["operand"]: row for row in env.rows("remove", kept["content_key"], ID_TWO)}
    assert removed[kept["content_key"]] == {"operand": kept["content_key"], "id": None, "content_key": kept["content_key"],
                                            "path": kept["path"], "state": "removed", "paths_removed": 1, "paths_left": 0,
                                            "size": kept["size"], "reason": None}, removed
    assert removed[ID_TWO]["paths_removed"] == 1 and env.files() == [], removed
    env.one_error("remove", kept["content_key"], status=REFUSED, has="no such content key in the store")
    env.one_error("remove", kept["path"], status=REFUSED, has=kept["path"])
    env.on_store("verify", "--deep")


def read_as_it_is(env, path):
    found = env.json("add", "--perf-data", path)
    return {build["path"]: build for build in found["result"]}, found["totals"]


def case_truncated_recording_is_used_and_reported(env):
    """The intact part is used, and the truncation is reported."""
    recording = Recording(env.home).maps(env.one, ID_ONE).lists(env.two, ID_TWO)
    path = recording.write()
    whole = path.read_bytes()
    path.write_bytes(whole[:-60])
    done = env.on_store("add", "--perf-data", path, status=REFUSED)
    assert f"{ID_ONE}\tadded" in done.stdout, done
    assert done.stderr == f"bidctl: warning: cut off, so some builds are unknown: '{path}'\n", done.stderr
    path.write_bytes(whole[:48] + bytes(8) + whole[56:])
    done = env.on_store("add", "--perf-data", path, status=REFUSED)
    assert "before perf wrote the list" in done.stderr and "damaged in 1 places" in done.stderr, done.stderr
    path.write_bytes(whole.replace(identify(ID_ONE), bytes(20)).replace(b"\x14\0\0\0" + bytes(20), b"\xff\0\0\0" + bytes(20)))
    done = env.on_store("add", "--perf-data", path, status=REFUSED)
    assert "damaged in 1 places, at 152 first, by a build-id of more than 20 bytes" in done.stderr, done.stderr


def case_recording_is_read_from_standard_input(env):
    with open(Recording(env.home).lists(env.one, ID_ONE).write(), "rb") as opened:
        done = subprocess.run([env.bidctl, "--store", env.store, "add", "--perf-data", "-"], stdin=opened,
                              env=env.environment, stdout=subprocess.PIPE, check=True, text=True, timeout=TIMEOUT)
    assert f"{ID_ONE}\tadded\t{env.one}" in done.stdout, done


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "objcopy", "xz"], own_programs=True)
