# SPDX-License-Identifier: LGPL-2.1-or-later
"""Source files and sections, from a real debuginfod and from the store, for the tools that use them."""
import contextlib
import errno
import json
import os
import pathlib
import re
import struct

import pytest

import daemon
import fetching
import programs
import tools
import served_program


@pytest.fixture(scope="module")
def served():
    with served_program.running() as made:
        yield made


def request_count(served):
    return sum(served.server.metric(f'http_requests_total{{type="{kind}"}}') or 0
               for kind in ("source", "section", "debuginfo", "executable", "unknown"))


def test_source_is_downloaded_and_read(mount, mode, served):
    mnt = mount(f"url={served.server.url}", "wait=30")
    for name, text in served.texts.items():
        assert served.path(mnt, name).read_bytes() == text
    assert mnt.counter("fetched") == len(served_program.NAMES)
    # by any spelling that the kernel makes canonical
    assert (served.path(mnt, "lib") / ".." / "main.c").read_bytes() == served.texts["main.c"]
    names = sorted(os.path.basename(name) for name in served_program.NAMES if "/" in name)
    assert sorted(os.listdir(served.path(mnt, "lib"))) == names
    assert sorted(os.listdir(mnt.artifact(served.app.id, "source"))) == ["tmp"]
    again = mount("offline")
    for name, text in served.texts.items():
        path = served.path(again, name)
        assert path.is_file() and path.stat().st_size == len(text) and path.read_bytes() == text
    assert fetching.read(served.path(again, "lib/never.c")) == errno.ENOENT
    assert fetching.read(served.path(again, "nowhere/never.c")) == errno.ENOENT


def test_downloaded_sources_verify_and_evict(mount, mode, served, store, env):
    """verify accepts sources and sections, the size limit counts them, and they are evicted."""
    mnt = mount(f"url={served.server.url}", "wait=30")
    for name, text in served.texts.items():
        assert served.path(mnt, name).read_bytes() == text
    assert served.section(mnt, ".debug_str").read_bytes()
    mnt.unmount()
    bidctl = [tools.BIDCTL, "--store", store]
    tools.run(*bidctl, "verify", "--deep", env=env)
    result = fetching.evict_all(env, store, "--dry-run")
    assert result["evicted"] == len(served_program.NAMES) + 1, result
    fetching.evict_all(env, store)
    assert not (store / ".bidfs/source" / served.app.id[:2] / served.app.id[2:]).exists()
    assert not (store / ".bidfs/section" / served.app.id[:2] / served.app.id[2:]).exists()
    assert not list((store / ".bidfs/record").rglob("*.s*-*"))
    tools.run(*bidctl, "verify", "--deep", env=env)


def test_rotten_source_is_downloaded_again(mount, served, store, env):
    mnt = mount(f"url={served.server.url}", "wait=30")
    served.path(mnt, "main.c").read_bytes()
    served.section(mnt, ".debug_str").read_bytes()
    mnt.unmount()
    bidctl = [tools.BIDCTL, "--store", store]
    of = pathlib.Path(served.app.id[:2]) / served.app.id[2:]
    kept = [store / ".bidfs/source" / of / str(served.source / "main.c").lstrip("/"), store / ".bidfs/section" / of / ".debug_str"]
    before = [path.read_bytes() for path in kept]
    for path, text in zip(kept, before):
        path.chmod(0o644)
        path.write_bytes(bytes([text[0] ^ 1]) + text[1:])
    tools.run(*bidctl, "verify", env=env)
    assert tools.run(*bidctl, "verify", "--deep", env=env, status=None).returncode == 1
    repair = [*bidctl, "--json", "verify", "--deep", "--repair", f"--url={served.server.url}"]
    result = tools.run(*repair, env=env, status=None)
    assert result.returncode == 1, result.stderr
    result = json.loads(result.stdout)["totals"]
    assert result["findings"]["corrupt"] == 2 and result["left"] == 0 and result["fetched"] == 2
    assert [path.read_bytes() for path in kept] == before
    tools.run(*bidctl, "verify", "--deep", env=env)


def test_walk_requests_only_names_with_a_dot(mount, mode, faults, workdir):
    """One request to the server decides whether such a name is a file; otherwise it is a directory."""
    program, content = programs.small(workdir / "app"), b"int main;\n"
    server = faults()
    for path in ("src/llama.cpp/src/p.c", "src/llama.cpp/src/q.c", "lib-1.2/foo.rs/Makefile"):
        file = server.root / program.id / "source" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    mnt = mount(f"url={server.url}")
    top = mnt.artifact(program.id, "source")
    requests = []
    for path in ("src/llama.cpp/src/p.c", "src/llama.cpp/src/q.c", "lib-1.2/foo.rs/Makefile"):
        assert (top / path).read_bytes() == content, path
        requests.append(server.count())
    # requests for llama.cpp and p.c; then q.c; then lib-1.2, foo.rs and Makefile
    assert requests == [2, 3, 6]
    # FUSE does not tell which component is the last: a missing file is a directory for stat(2), and absent for read(2)
    assert (top / "src/none.c").is_dir() and fetching.read(top / "src/none.c") == errno.ENOENT
    assert server.count() == 7


def test_source_below_dotted_name_is_read_beside_a_dead_server(mount, mode, faults, workdir):
    program = programs.small(workdir / "app")
    server = faults()
    (server.root / program.id / "source/src/llama.cpp").mkdir(parents=True)
    (server.root / program.id / "source/src/llama.cpp/p.c").write_bytes(b"int p;\n")
    mnt = mount("url=http://127.0.0.1:1", f"url={server.url}")
    mnt.permit("127.0.0.1")
    assert (mnt.artifact(program.id, "source") / "src/llama.cpp/p.c").read_bytes() == b"int p;\n"


def test_walk_of_stored_sources_sends_no_request(mount, mode, served):
    mnt = mount(f"url={served.server.url}")
    before = request_count(served)
    top = mnt.artifact(served.app.id, "source")
    assert (top / "usr/src/glibc/xyz/c++").is_dir()
    assert os.listdir(top / "usr/src") == [] and os.listdir(top) == []
    os.stat(served.path(mnt, "lib"))
    with contextlib.suppress(NotADirectoryError):
        os.close(os.open(served.path(mnt, "lib"), os.O_RDONLY | os.O_DIRECTORY))
    assert request_count(served) == before and mnt.status()["servers"][0]["requests"] == 0
    # a read sends one request, for the path that it reads
    assert fetching.read(top / "usr/src/nothing") == errno.ENOENT
    assert fetching.read(top / "usr/src/nothing") == errno.ENOENT
    assert mnt.status()["servers"][0]["requests"] == 1
    assert served.path(mnt, "main.c").read_bytes() == served.texts["main.c"]
    assert mnt.status()["servers"][0]["requests"] == 2


def test_malformed_source_path_is_absent(mount, served):
    mnt = mount(f"url={served.server.url}")
    top = mnt.artifact(served.app.id, "source")
    for bad in ("a\nb.c", "\x7f.c", "/".join("a" * 65) + "/b.c"):
        assert fetching.read(top / bad) == errno.ENOENT
    for bad in ("a\tb", "\x01"):
        assert fetching.read(served.section(mnt, bad)) == errno.ENOENT
    assert mnt.status()["servers"][0]["requests"] == 0


def test_source_attributes_name_their_origin(mount, served):
    mnt = mount(f"url={served.server.url}", "wait=30")
    served.path(mnt, "main.c").read_bytes()
    info, = tools.rows(tools.run(tools.BIDCTL, "--store", mnt.store, "show", "--json", served.app.id, env=served.env))
    (path, what), = info["sources"].items()
    assert path == str(served.source / "main.c") and what["verified"] is False
    assert what["digest"].startswith("xxh3-128:") and what["server"] == served.server.url


def test_section_is_downloaded(mount, mode, served):
    mnt = mount(f"url={served.server.url}", "wait=30")
    for name in (".debug_line", ".debug_info"):
        assert served.section(mnt, name).read_bytes() == programs.sections(served.app.debug)[name]
    assert served.section(mnt, ".text").read_bytes() == programs.sections(served.app.path)[".text"]
    assert not any(path.endswith(("/elf", "/debug")) for path in fetching.contents(mnt.store)), "a whole file was fetched"
    # the stored files prove the absence
    assert fetching.read(served.section(mnt, ".none")) == errno.ENOENT
    count = mnt.status()["servers"][0]["requests"]
    assert fetching.read(served.section(mnt, ".none")) == errno.ENOENT
    assert mnt.status()["servers"][0]["requests"] == count


@pytest.mark.parametrize("answer", ["error:404*1", "error:403*1", "error:400*1", "html*1", "empty*1", "empty-chunked*1"])
def test_section_falls_back_to_the_whole_file(mount, faults, workdir, answer):
    """The only server with the file fails each request for the section."""
    program = programs.small(workdir / "app")
    server = faults(answer)
    server.serve(program)
    mnt = mount("url=http://127.0.0.1:1", f"url={server.url}", "wait=30")
    mnt.permit("127.0.0.1")
    path = mnt.artifact(program.id, "section") / ".debug_line"
    assert path.read_bytes() == programs.sections(program.path)[".debug_line"] != b""


def test_empty_source_is_kept_only_with_its_length(mount, mode, faults, workdir, store):
    """An empty source is stored only with Content-Length: 0, and may be replaced later."""
    program = programs.small(workdir / "app")
    server = faults("empty")
    server.serve(program)
    (server.root / program.id / "source/usr/src").mkdir(parents=True)
    for name, content in (("a.c", b"int a;\n"), ("empty.h", b"")):
        (server.root / program.id / "source/usr/src" / name).write_bytes(content)
    mnt = mount(f"url={server.url}")
    mnt.permit("no bytes, which may be incomplete")
    source = mnt.artifact(program.id, "source") / "usr/src"
    assert fetching.read(source / "a.c") == errno.ENOENT and not fetching.contents(store)
    server.behave()
    # the response is shared for a moment with simultaneous readers
    tools.wait_until(lambda: fetching.read(source / "a.c") == b"int a;\n", "the file")
    assert (source / "empty.h").read_bytes() == b""


def test_section_is_derived_from_stored_file(mount, mode, served, store):
    programs.into_store(store, served.app.id, "/usr/bin/app", served.app.path)
    programs.into_store(store, served.app.id, "/usr/bin/app", served.app.debug, "debug")
    mnt = mount("offline")
    here = {**programs.sections(served.app.path), **programs.sections(served.app.debug)}
    assert set(os.listdir(mnt.artifact(served.app.id, "section"))) == set(here) and ".debug_info" in here
    sizes = {name: served.section(mnt, name).stat().st_size for name in here}
    assert sizes == {name: len(content) for name, content in here.items()}
    assert not (store / ".bidfs/section").exists(), "cut out for somebody who only looked"
    assert {name: served.section(mnt, name).read_bytes() for name in here} == here
    assert {name: served.section(mnt, name).stat().st_size for name in here} == sizes
    assert fetching.read(served.section(mnt, ".bss")) == errno.ENOENT
    assert not fetching.leftovers(store)


def file_of_large_sections(path, ident, count, size):
    """Make an ELF file whose sections .s0, .s1, ... share `size` bytes of a hole."""
    note = struct.pack("<III", 4, len(ident) // 2, 3) + b"GNU\0" + bytes.fromhex(ident)
    names = b"\0.shstrtab\0.note.gnu.build-id\0" + b"".join(b".s%d\0" % number for number in range(count))
    at_names, hole = 120 + len(note), 1 << 20
    at_table = (at_names + len(names) + 7) & ~7

    def header(name, kind, offset, length):
        return struct.pack("<IIQQQQIIQQ", names.find(name), kind, 0, 0, offset, length, 0, 0, 1, 0)

    table = [header(b"", 0, 0, 0), header(b".shstrtab\0", 3, at_names, len(names)),
             header(b".note.gnu.build-id\0", 7, 120, len(note)),
             *(header(b".s%d\0" % number, 1, hole, size) for number in range(count))]
    with open(path, "wb") as file:
        file.write(b"\x7fELF\2\1\1" + bytes(9))
        file.write(struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, at_table, 0, 64, 56, 1, 64, len(table), 1))
        file.write(struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4) + note + names)
        file.seek(at_table)
        file.write(b"".join(table))
        file.truncate(hole + size)


def test_long_listing_of_sections_ends(mount, store):
    """A file of a stranger may have 131,072 sections; each is read by its name."""
    ident, count = "cd" * 20, 6000
    elf = programs.into_store(store, ident, "/usr/bin/many", b"")
    file_of_large_sections(elf, ident, count, 16)
    sections = mount("offline").artifact(ident, "section")
    assert len(os.listdir(sections)) == 4096
    assert (sections / f".s{count - 1}").read_bytes() == bytes(16)


def files_in_memory(mnt):
    return [target for target, _ in daemon.descriptors_of(mnt.pid) if target.startswith("/memfd:")]


def test_unused_sections_in_memory_are_freed(needs_root, mount, store, clock):
    """512 MiB at most, and none after a minute; in no_open mode the kernel does not report closes."""
    ident, size = "ab" * 20, 250 << 20
    elf = programs.into_store(store, ident, "/usr/bin/large", b"")
    file_of_large_sections(elf, ident, 4, size)
    tools.run("mount", "--bind", store, store)
    try:
        tools.run("mount", "-o", "remount,bind,ro", store)
        mnt = mount("ro", "offline", "passthrough=off", env_more=clock.env)
        for number in range(4):
            with open(mnt.artifact(ident, "section") / f".s{number}", "rb") as file:
                assert file.read(4096) == bytes(4096)
                assert os.fstat(file.fileno()).st_size == size
        assert files_in_memory(mnt)
        # a worker may not have put the last one back yet
        tools.wait_until(lambda: clock.advance(61) or not files_in_memory(mnt), "sections are freed")
        mnt.unmount()
    finally:
        tools.run("umount", store)


def test_derived_section_replaces_the_servers(mount, mode, served, store, faults):
    """A section from a server cannot be verified; a section cut out of a file with the id can."""
    server = faults()
    lie = server.root / served.app.id / "section/.debug_line"
    lie.parent.mkdir(parents=True)
    lie.write_bytes(b"a lie")
    mnt = mount(f"url={server.url}", "wait=30")
    assert served.section(mnt, ".debug_line").read_bytes() == b"a lie"
    mnt.unmount()
    programs.into_store(store, served.app.id, "/usr/bin/app", served.app.debug, "debug")
    again = mount("offline")
    assert served.section(again, ".debug_line").read_bytes() == programs.sections(served.app.debug)[".debug_line"]


def test_false_404_for_section_is_not_cached(mount, mode, served, faults):
    """elfutils 0.192 sends 404 for a section that it has just served; the 404 neither counts nor stays."""
    server = faults()
    server.serve(served.app)
    mnt = mount(f"url={server.url}", "wait=30")
    assert served.section(mnt, ".debug_line").read_bytes() == programs.sections(served.app.debug)[".debug_line"]
    assert server.count(served.app.id, "section/.debug_line") == 1 and server.count(served.app.id, "debuginfo") == 1
    assert served.section(mnt, ".text").read_bytes() == programs.sections(served.app.path)[".text"]
    assert server.count(served.app.id, "debuginfo") == 1 and server.count(served.app.id, "executable") == 1


def bidctl_get(served, store, *arguments, status=0):
    """Return standard output and standard error of bidctl get."""
    done = tools.run(tools.BIDCTL, "--store", store, "get", served.app.id, *arguments, env=served.env, status=status)
    return done.stdout, done.stderr


def row(text):
    """Return the row of get --json."""
    found, = json.loads(text)["result"]
    return found


def test_get_downloads_sources(served, store):
    for name, text in served.texts.items():
        out, errors = bidctl_get(served, store, "source", served.source / name, f"--url={served.server.url}")
        assert pathlib.Path(out.rstrip("\n")).read_bytes() == text and errors == "", errors
        assert bidctl_get(served, store, "source", f"//{served.source}/./{name}", "--offline") == (out, "")
    result = row(bidctl_get(served, store, "source", served.source / "main.c", "--json")[0])
    assert result == {"id": served.app.id, "kind": "source", "name": str(served.source / "main.c"), "state": "here",
                      "served_as": "source", "file": result["file"], "size": len(served.texts["main.c"]), "reason": None,
                      "servers": []}
    assert pathlib.Path(result["file"]).read_bytes() == served.texts["main.c"]
    assert not fetching.leftovers(store)


def test_get_downloads_sections(served, store):
    out, report = bidctl_get(served, store, "section", ".debug_line", f"--url={served.server.url}", "-v")
    assert pathlib.Path(out.rstrip("\n")).read_bytes() == programs.sections(served.app.debug)[".debug_line"]
    assert report.startswith(f"section .debug_line of {served.app.id}\n"), report
    assert f"{served.server.url}/buildid/{served.app.id}/section/.debug_line\n" in report, report
    assert "it carries no build-id" in report, report
    # cut out of a stored file with the id
    programs.into_store(store, served.app.id, "/usr/bin/app", served.app.path)
    out, report = bidctl_get(served, store, "section", ".text", "--offline", "-v")
    assert pathlib.Path(out.rstrip("\n")).read_bytes() == programs.sections(served.app.path)[".text"]
    assert "the store has it" in report, report
    result = row(bidctl_get(served, store, "section", ".text", "--offline", "--json")[0])
    size = len(programs.sections(served.app.path)[".text"])
    assert (result["kind"], result["name"], result["size"]) == ("section", ".text", size)


def test_get_derives_a_section_from_the_file(served, store, faults):
    """The server has the files, and no sections."""
    server = faults()
    server.serve(served.app)
    result = row(bidctl_get(served, store, "section", ".debug_line", f"--url={server.url}", "--json", "-v")[0])
    assert pathlib.Path(result["file"]).read_bytes() == programs.sections(served.app.debug)[".debug_line"]
    assert [answer["state"] for answer in result["servers"]] == ["absent", "found"], result
    assert result["servers"][1]["url"].endswith(f"/{served.app.id}/debuginfo"), result
    bidctl_get(served, store, "section", ".text", f"--url={server.url}")
    # with both files stored, a missing section is absent
    _, errors = bidctl_get(served, store, "section", ".none", f"--url={server.url}", status=1)
    assert "the files of the build in the store lack it: section '.none'" in errors, errors
    assert not server.count(served.app.id, "section/.none")


def test_get_reports_why_source_or_section_is_missing(served, store, faults):
    url = served.server.url
    _, errors = bidctl_get(served, store, "source", "/never.c", f"--url={url}", "--url=http://127.0.0.1:1", status=3)
    assert f"server '{url}'" in errors and "server 'http://127.0.0.1:1'" in errors, errors
    assert f"source '/never.c' of '{served.app.id}'" in errors, errors
    out, errors = bidctl_get(served, store, "section", ".none", f"--url={faults().url}", "--json", status=1)
    result = row(out)
    assert (result["kind"], result["name"]) == ("section", ".none"), result
    assert [answer["url"].rsplit("/", 1)[1] for answer in result["servers"]] == [".none", "debuginfo", "executable"], result
    assert [errors.count(f"/{name}'") for name in (".none", "debuginfo", "executable")] == [1, 1, 1], errors
    _, errors = bidctl_get(served, store, "source", "/never.c", "--offline", status=1)
    assert "'--offline' fetches none" in errors, errors
    for wrong in (["source"], ["section"], ["source", "relative.c"], ["source", "/directory/"], ["section", "a/b"],
                  ["section", ".."], ["source", "/a\nb"], ["elf", "/a"], ["source", "/a", "/b"]):
        _, errors = bidctl_get(served, store, *wrong, status=2)
        assert "Try" in errors or "help" in errors, errors
    done = tools.run(tools.BIDCTL, "--store", store, "get", "-", "source", "/a.c", env=served.env, status=2)
    assert "one build" in done.stderr, done.stderr


def clients(version):
    return tools.version(re.search(r"[\d.]+", tools.run("debuginfod-find", "--version").stdout)[0]) >= version


def test_debuginfod_clients_read_sources_and_sections(mount, mode, served, workdir):
    mnt = mount(f"url={served.server.url}", "wait=30")
    env = {**served.env, "DEBUGINFOD_URLS": f"file://{mnt}", "DEBUGINFOD_CACHE_PATH": str(workdir / "cache")}
    for name, text in served.texts.items():
        found = tools.run("debuginfod-find", "source", served.app.id, served.source / name, env=env).stdout.strip()
        assert pathlib.Path(found).read_bytes() == text
    odd = f"{served.source}/lib/../lib//./inner.h"
    found = tools.run("debuginfod-find", "source", served.app.id, odd, env=env).stdout.strip()
    assert pathlib.Path(found).read_bytes() == served.texts["lib/inner.h"]
    if not clients((0, 188)):
        pytest.skip("debuginfod-find before 0.188 has no sections")
    found = tools.run("debuginfod-find", "section", served.app.id, ".debug_line", env=env).stdout.strip()
    assert pathlib.Path(found).read_bytes() == programs.sections(served.app.debug)[".debug_line"]


def test_gdb_lists_source_from_mount(mount, mode, served, workdir, needs_root):
    """The sources are hidden from gdb, which can only read them through the mount."""
    mnt = mount(f"url={served.server.url}", "wait=30")
    assert "return work(argc)" not in served.listed("", workdir / "cache")
    text = served.listed(f"file://{mnt}", workdir / "cache")
    assert "return work(argc) == 0;" in text and "return inner(x) * other(x);" in text, text
