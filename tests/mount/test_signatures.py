# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers with ima:enforcing: a file is accepted only with a valid IMA signature. evmctl(1) makes the signatures."""
import errno
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import namespace
import programs
import tools
from fetching import await_waiters, read, reader
from perf_cache import write_as_perf

KINDS = {"rsa": ["rsa:2048"], "ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]}
SECTION = ".text"


class Signer:
    """A key, and its certificate in a directory for DEBUGINFOD_IMA_CERT_PATH."""

    def __init__(self, workdir, kind="rsa", form="DER", days=2):
        self.workdir, self.key, self.certificates = workdir, workdir / "key.pem", workdir / "certificates"
        self.certificates.mkdir(parents=True)
        self.certificate = self.certificates / f"signer.{form.lower()}"
        tools.run("openssl", "req", "-new", "-newkey", *KINDS[kind], "-nodes", "-batch", "-subj", "/CN=signer", "-keyout", self.key,
                  "-out", workdir / "request.pem")
        tools.run("openssl", "x509", "-req", "-in", workdir / "request.pem", "-signkey", self.key, "-days", days, "-outform", form,
                  "-out", self.certificate)
        self.env = {"DEBUGINFOD_IMA_CERT_PATH": f"/nonexistent:{self.certificates}"}

    def sign(self, path, algorithm="sha256"):
        """Return the signature of a file in hex."""
        copy = self.workdir / "to-sign"
        shutil.copy(path, copy)
        tools.run("evmctl", "ima_sign", "--sigfile", "--hashalgo", algorithm, "--key", self.key, copy)
        return pathlib.Path(f"{copy}.sig").read_bytes().hex()


@pytest.fixture
def signer(workdir):
    return Signer(workdir / "signer")


@pytest.fixture
def program(workdir):
    return programs.small(workdir / "app")


def code_of(program):
    """Return the offset of the program's code in its file."""
    match = re.search(r" \.text +PROGBITS +\w+ (\w+)", tools.run("readelf", "-SW", program.path).stdout)
    return int(match[1], 16)


@pytest.fixture
def get(store, env):
    """Return a function that runs bidctl get with only the given environment."""
    def run(program, urls, *arguments, status=0, more=None, kind=("elf",)):
        return tools.run(tools.BIDCTL, "--store", store, "get", *arguments, program.id, *kind, status=status,
                         env={**env, "DEBUGINFOD_URLS": urls, **(more or {})})

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_code_is_refused_and_healed_in_the_same_open(mount, mode, faults, workdir, program, store, kind):
    signer = Signer(workdir / "signer", kind, "PEM")
    signature = signer.sign(program.path)
    bad, good = faults(f"ima:{signature}:{code_of(program)}", root=workdir / "bad"), \
        faults(f"ima:{signature}", root=workdir / "good")
    for server in (bad, good):
        server.serve(program)
    mnt = mount(f"url=ima:enforcing {bad.url}", f"url=ima:enforcing {good.url}", env_more=signer.env)
    mnt.permit(bad.url)
    path = mnt.artifact(program.id)
    assert read(path) == program.read()
    assert bad.count(program.id) == 1 and good.count(program.id) == 1
    assert "is not that of these bytes" in mnt.log()
    wanted = f"key {signature[6:14]} of '{signer.certificate}'"
    assert os.getxattr(path, "user.bidfs.signer") == wanted.encode() and "user.bidfs.signer" in os.listxattr(path)
    assert json.loads(mnt.artifact(program.id, "info").read_text())["artifacts"]["elf"]["signer"] == wanted
    found = [(source["ima"], source.get("signer")) for source in mnt.status()["servers"]]
    assert found == [("enforcing", None), ("enforcing", wanted)]
    assert f"signed by {wanted}" in tools.run(tools.BIDCTL, "--store", store, "status").stdout
    # a response of a server without the tag does not affect the sources of the tagged one
    assert mnt.counter("fetched") == 1 and mnt.counter("rejected") == 1


def test_flipped_code_is_served_without_the_tag(get, faults, program, signer):
    """A build-id is a claim of the file itself."""
    server = faults(f"ima:{signer.sign(program.path)}:{code_of(program)}")
    server.serve(program)
    path = pathlib.Path(get(program, server.url, more=signer.env).stdout.rstrip("\n"))
    assert path.read_bytes() != program.read()


def test_valid_signatures_are_accepted(get, faults, workdir, program, env, store):
    keys = {"rsa": Signer(workdir / "rsa"), "ec": Signer(workdir / "ec", "ec"), "expired": Signer(workdir / "expired", days=0)}
    only_key = Signer(workdir / "only-key")
    only_key.certificate.unlink()
    tools.run("openssl", "pkey", "-in", only_key.key, "-pubout", "-out", only_key.certificates / "key.pem")
    server = faults()
    for number, (name, signer, algorithm) in enumerate([*((name, signer, "sha256") for name, signer in keys.items()),
                                                         ("only the key", only_key, "sha256"), ("sha1", keys["rsa"], "sha1"),
                                                         ("sha512", keys["ec"], "sha512")]):
        forged = programs.forge(program, f"{number:02x}" * 20, workdir / f"app-{number}")
        signature = signer.sign(forged.path, algorithm)
        server.serve(forged)
        server.behave(f"ima:{signature}", ident=forged.id)
        done = get(forged, f"ima:enforcing {server.url}", "-v", more=signer.env)
        assert f"signed by  key {signature[6:14]} of '{signer.certificates}/" in done.stderr, (name, done.stderr)
        # a signature has no date, and so libdebuginfod uses the key of an expired certificate
        assert ("has expired: bidfs uses it" in done.stderr) == (name == "expired"), done.stderr
        shown = tools.run(tools.BIDCTL, "--store", store, "show", forged.id, env=env).stdout
        assert f"key {signature[6:14]} of '" in shown, shown


def test_encrypted_key_asks_for_no_password(workdir, program, env, store, signer):
    tools.run("openssl", "pkey", "-in", signer.key, "-aes256", "-passout", "pass:secret", "-out", signer.certificates / "key.pem")
    ours, theirs = os.openpty()
    done = subprocess.run(["setsid", "--ctty", "--wait", tools.BIDCTL, "--store", store, "get", program.id], stdin=theirs,
                          env={**env, **signer.env, "DEBUGINFOD_URLS": "ima:enforcing http://127.0.0.1:1"}, capture_output=True,
                          text=True, check=False)
    os.close(ours)
    os.close(theirs)
    assert f"no certificate: bidfs ignores '{signer.certificates}/key.pem'" in done.stderr, done


@pytest.mark.parametrize("bad", ["wrong key", "other file", "truncated", "trailing", "altered", "version", "none",
                                 "no certificate"])
def test_invalid_signatures_are_refused(get, faults, workdir, program, store, signer, bad):
    signature = signer.sign(program.path)
    other = programs.small(workdir / "other", 2)
    sent, reason = {
        "wrong key": (Signer(workdir / "wrong").sign(program.path), "of which there is no certificate"),
        "other file": (signer.sign(other.path), "is not that of these bytes"),
        "truncated": (signature[:-2], "truncated"),
        "trailing": (signature + "00", "truncated"),
        "altered": (signature[:-2] + f"{int(signature[-2:], 16) ^ 1:02x}", "is not that of these bytes"),
        "version": ("0301" + signature[4:], "unknown form"),
        "none": (None, "no signature"),
        "no certificate": (signature, "of which there is no certificate"),
    }[bad]
    if bad == "no certificate":
        signer.certificate.write_text("no certificate\n")
    server = faults(*[f"ima:{sent}"] if sent else [])
    server.serve(program)
    done = get(program, f"ima:enforcing {server.url}", status=1, more=signer.env)
    assert "rejected" in done.stderr and reason in done.stderr, done.stderr
    assert not list(store.glob("*/*/elf"))
    (rejected,) = (store / ".bidfs/quarantine").iterdir()
    assert rejected.read_bytes() == program.read()


def test_policy_applies_to_later_urls(get, faults, workdir, program, signer):
    """As in libdebuginfod 0.192: an unknown policy changes nothing, and the first of two equal URLs counts."""
    server = faults()
    server.serve(program)
    for urls, status in {
        f"ima:enforcing {server.url}": 1,
        f"ima:enforcing ima:permissive {server.url}": 1,
        f"ima:enforcing http://127.0.0.1:1 {server.url}": 3,
        f"ima:enforcing {server.url} ima:ignore {server.url}": 1,
        f"{server.url} ima:enforcing {server.url}": 0,
    }.items():
        done = get(program, urls, "--refresh", status=status, more=signer.env)
        assert ("not a policy" in done.stderr) == ("permissive" in urls), done.stderr


def test_options_take_the_policy(get, faults, program, signer):
    server = faults()
    server.serve(program)
    get(program, server.url, f"--url=ima:enforcing {server.url}", status=1, more=signer.env)
    done = get(program, "", f"--url=ima:permissive {server.url}", status=2, more=signer.env)
    assert "not a server's URL" in done.stderr
    get(program, "", f"--url=ima:ignore {server.url}", more=signer.env)


def test_files_name_the_certificates(faults, workdir, program, store, env, signer, needs_root):
    """The files of /etc/debuginfod, which login shells of Fedora read, count only if the environment names no directory."""
    if not pathlib.Path("/etc/debuginfod").is_dir():
        pytest.skip("there is no /etc/debuginfod to put files into")
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    (workdir / "etc").mkdir()
    (workdir / "etc/site.certpath").write_text(f"{signer.certificates}\n")
    get = f"mount --bind '{workdir}/etc' /etc/debuginfod; '{tools.BIDCTL}' --store '{store}' get {program.id} elf"
    env = {**env, "DEBUGINFOD_URLS": f"ima:enforcing {server.url}"}
    namespace.isolated(get, {**env, "DEBUGINFOD_IMA_CERT_PATH": str(workdir)}, status=1)
    namespace.isolated(f"{get} --refresh", env)


def test_section_is_cut_from_a_verified_file(mount, faults, program, signer):
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    (server.root / program.id / "section").mkdir()
    (server.root / program.id / "section" / SECTION).write_bytes(b"wrong")
    mnt = mount(f"url=ima:enforcing {server.url}", env_more=signer.env)
    start = code_of(program)
    section = read(mnt.artifact(program.id, f"section/{SECTION}"))
    assert section == program.read()[start:start + len(section)]
    assert server.count(program.id, f"section/{SECTION}") == 0 and server.count() > 0


def test_source_needs_a_signature_of_its_own(get, faults, program, workdir, signer):
    (text := workdir / "app.c").write_text("int main;\n")
    server = faults()
    (server.root / program.id / "source").mkdir(parents=True)
    (server.root / program.id / "source/app.c").write_bytes(text.read_bytes())
    source = ("source", "/app.c")
    done = get(program, f"ima:enforcing {server.url}", status=1, more=signer.env, kind=source)
    assert "no signature" in done.stderr
    server.behave(f"ima:{signer.sign(text)}")
    get(program, f"ima:enforcing {server.url}", "--refresh", more=signer.env, kind=source)


def test_directory_with_the_tag_is_ignored(get, workdir, program, signer):
    done = get(program, f"ima:enforcing file://{workdir}", status=1, more=signer.env)
    assert "a directory has no signatures: bidfs ignores the server" in done.stderr


def test_bidctl_takes_the_tag_of_the_mount(mount, faults, program, env, store, signer):
    """bidctl downloads sources by itself, from the servers of the mount."""
    server = faults()
    (server.root / program.id / "source").mkdir(parents=True)
    (server.root / program.id / "source/app.c").write_text("int main;\n")
    mount(f"url=ima:enforcing {server.url}", env_more=signer.env)
    done = tools.run(tools.BIDCTL, "--store", store, "get", program.id, "source", "/app.c", env={**env, **signer.env}, status=1)
    assert "no signature" in done.stderr, done.stderr
    text = tools.run(tools.BIDCTL, "--store", store, "status", env=env).stdout
    assert re.search(rf"{server.url}\s+up.*ima:enforcing", text), text


@pytest.fixture
def altered(get, faults, workdir, program):
    """Store a download with altered code and one of its sections, both without a signature."""
    server = faults(f"flip:{code_of(program)}", root=workdir / "altered")
    server.serve(program)
    path = pathlib.Path(get(program, server.url).stdout.rstrip("\n"))
    get(program, "", kind=("section", SECTION))
    assert path.read_bytes() != program.read()
    return server, path


def test_signed_download_replaces_an_unsigned_one(mount, mode, faults, altered, program, store, signer):
    plain, path = altered
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    mnt = mount(f"url={plain.url}", f"url={server.url}", "require=signed", env_more=signer.env)
    mnt.permit(plain.url)
    start = code_of(program)
    assert read(mnt.artifact(program.id)) == program.read() == path.read_bytes()
    section = read(mnt.artifact(program.id, f"section/{SECTION}"))
    assert section == program.read()[start:start + len(section)]
    assert not [file for file in (store / ".bidfs/section").rglob("*") if file.is_file()]
    assert json.loads(mnt.artifact(program.id, "info").read_text())["artifacts"]["elf"]["signer"]


def test_unsigned_download_counts_as_absent_and_stays(mount, altered, program, workdir, signer):
    plain, path = altered
    before = path.stat()
    mnt = mount("require=signed")
    for name in ("elf", "debuginfo", f"section/{SECTION}"):
        assert read(mnt.artifact(program.id, name)) == errno.ENOENT, name
    assert "elf" not in [entry.name for entry in (mnt / "buildid" / program.id).iterdir()]
    mnt.unmount()
    mnt = mount(f"url={plain.url}", "require=signed", at=workdir / "asked", env_more=signer.env)
    mnt.permit(plain.url)
    assert read(mnt.artifact(program.id)) == errno.ENOENT and "no signature" in mnt.log()
    mnt.unmount()
    assert path.stat().st_ino == before.st_ino
    assert read(mount(at=workdir / "any").artifact(program.id)) == path.read_bytes()


def test_pinned_download_stays_unsigned(mount, faults, altered, program, env, store, signer):
    tools.run(tools.BIDCTL, "--store", store, "pin", program.id, env=env)
    mnt = mount("require=signed")
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    info = json.loads(mnt.artifact(program.id, "info").read_text())
    mnt.unmount()
    assert "pinned" in tools.run(tools.BIDCTL, "--store", store, "show", program.id, env=env).stdout, info
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    assert read(mount("require=signed", f"url={server.url}", env_more=signer.env).artifact(program.id)) == program.read()


def test_libdebuginfod_cache_counts_as_unsigned(mount, get, program, env):
    """Both the mount and bidctl search it without being told."""
    cached = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"]) / program.id / "executable"
    cached.parent.mkdir(parents=True)
    shutil.copy(program.path, cached)
    mnt = mount("offline")
    assert read(mnt.artifact(program.id)) == program.read()
    mnt.unmount()
    get(program, "")
    get(program, "", "--require=signed", status=1)
    mnt = mount("offline", "require=signed")
    assert read(mnt.artifact(program.id)) == errno.ENOENT and not os.listdir(mnt / "buildid")


def test_lower_store_with_an_unsigned_download_is_skipped(mount, altered, program, store, workdir):
    (workdir / "upper").mkdir()
    mnt = mount(f"lower={store}", "offline", "require=signed", on=workdir / "upper")
    for name in ("elf", "debuginfo", f"section/{SECTION}", "unstripped"):
        assert read(mnt.artifact(program.id, name)) == errno.ENOENT, name
    assert read(mnt / "[debuginfod]" / program.id / "elf") == errno.ENOENT


@pytest.mark.parametrize("how", ["add", "scan", "mount", "unarchive"])
def test_added_file_replaces_an_altered_download(mount, altered, program, env, store, workdir, how):
    def bidctl(*arguments, at=store, status=0):
        tools.run(tools.BIDCTL, "--store", at, *arguments, env=env, status=status)

    if how == "mount":
        mnt = mount("offline")
        write_as_perf(mnt / str(program.path)[1:] / program.id, program.read())
        mnt.unmount()
    elif how == "unarchive":
        (workdir / "other").mkdir()
        bidctl("add", program.path, at=workdir / "other")
        bidctl("archive", "-o", workdir / "packed.tar", program.id, at=workdir / "other")
        # the download came first, and its digest says so
        bidctl("unarchive", workdir / "packed.tar", status=1)
    else:
        bidctl("add", program.path if how == "add" else program.path.parent)
    mnt = mount("offline", "require=signed")
    assert read(mnt.artifact(program.id)) == (errno.ENOENT if how == "unarchive" else program.read())


def test_signed_download_replaces_an_unsigned_one_with_a_path(mount, get, faults, workdir, signer):
    kernel = programs.kernel(workdir / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    plain = faults(f"flip:{code_of(kernel)}", root=workdir / "plain")
    plain.serve(kernel)
    get(kernel, plain.url)
    mnt = mount("offline")
    write_as_perf(mnt / "[kernel.kallsyms]" / kernel.id, b"ffffffff81000000 T _text\n", "kallsyms")
    mnt.unmount()
    server = faults(f"ima:{signer.sign(kernel.path)}", root=workdir / "signed")
    server.serve(kernel)
    mnt = mount(f"url={server.url}", "require=signed", env_more=signer.env)
    for path in (mnt.artifact(kernel.id), mnt / "[kernel.kallsyms]" / kernel.id / "elf"):
        assert read(path) == kernel.read(), path


@pytest.mark.parametrize("damaged", ["file", "record", "repaired record"])
def test_damaged_unsigned_download_stays_unsigned(mount, faults, altered, program, env, store, signer, damaged):
    _, path = altered
    (record,) = (store / ".bidfs/record").glob("*/*.elf")
    if damaged == "file":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    else:
        record.write_text(record.read_text().replace("fetched", "fetches"))
    if damaged == "repaired record":
        tools.run(tools.BIDCTL, "--store", store, "verify", "--repair", env=env, status=1)
    mnt = mount("offline", "require=signed")
    assert read(mnt.artifact(program.id)) == errno.ENOENT
    mnt.unmount()
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    mnt = mount(f"url={server.url}", "require=signed", env_more=signer.env)
    assert read(mnt.artifact(program.id)) == program.read()


@pytest.mark.parametrize("damaged", ["file", "record"])
def test_damaged_unsigned_download_with_a_path_stays_and_is_refused(mount, get, faults, workdir, store, signer, damaged):
    """Its bytes may be those of a user, who put the file there without bidfs."""
    kernel = programs.kernel(workdir / "vmlinux", "foreign", 0xffffffff81000000, 0x200000)
    server = faults(f"ima:{signer.sign(kernel.path)}")
    server.serve(kernel)
    get(kernel, server.url)
    mnt = mount("offline")
    write_as_perf(mnt / "[kernel.kallsyms]" / kernel.id, b"ffffffff81000000 T _text\n", "kallsyms")
    mnt.unmount()
    path = store / "[kernel.kallsyms]" / kernel.id / "elf"
    (record,) = (store / ".bidfs/record").glob("*/*.elf")
    if damaged == "file":
        path.write_bytes(kernel.read()[:-1] + b"?")
    else:
        record.write_text(record.read_text().replace("fetched", "fetches"))
    before = path.read_bytes()
    mnt = mount(f"url={server.url}", "require=signed", env_more=signer.env)
    mnt.permit("without a signature")
    assert read(mnt.artifact(kernel.id)) == errno.ENOENT
    assert path.read_bytes() == before and "other bytes of this build without a signature" in mnt.log()


def test_unsigned_download_of_another_process_is_not_served(mount, faults, program, workdir, signer):
    """Processes with the same servers wait for each other's downloads."""
    server = faults("hold*1", f"ima:{signer.sign(program.path)}")
    server.serve(program)
    lenient = mount(f"url={server.url}", "wait=60")
    strict = mount(f"url={server.url}", "require=signed", "wait=60", env_more=signer.env)
    first = reader(lenient.artifact(program.id))
    server.wait_active()
    second = reader(strict.artifact(program.id))
    await_waiters(strict, 1)
    server.release()
    for process in (first, second):
        assert process.wait() == 0
        process.communicate()
    assert os.getxattr(strict.artifact(program.id), "user.bidfs.signer") and server.count(program.id) == 2


def test_unstripped_file_is_made_of_signed_files(mount, faults, workdir, signer):
    program = programs.split(programs.small(workdir / "app"), workdir / "app.debug")
    altered = bytearray(program.read())
    altered[code_of(program)] ^= 1
    plain = faults(root=workdir / "plain")
    plain.serve(program)
    (plain.root / program.id / "executable").write_bytes(altered)
    signed = []
    for kind, file in (("executable", program.path), ("debuginfo", program.debug)):
        signed.append(faults(f"ima:{signer.sign(file)}", root=workdir / kind))
        signed[-1].serve(program, kind)
    mnt = mount(f"url={plain.url}")
    wrong = read(mnt.artifact(program.id, "unstripped"))
    assert wrong[code_of(program)] == altered[code_of(program)]
    mnt.unmount()
    mnt = mount("require=signed")
    assert read(mnt.artifact(program.id, "unstripped")) == errno.ENOENT
    mnt.unmount()
    mnt = mount(*(f"url={server.url}" for server in signed), "require=signed", env_more=signer.env)
    right = read(mnt.artifact(program.id, "unstripped"))
    assert right[code_of(program)] == program.read()[code_of(program)] != wrong[code_of(program)] and len(right) == len(wrong)


def test_added_file_is_served(mount, program, env, store):
    tools.run(tools.BIDCTL, "--store", store, "add", program.path, env=env)
    mnt = mount("require=signed")
    assert read(mnt.artifact(program.id)) == program.read()
    assert read(mnt.artifact(program.id, f"section/{SECTION}")) in program.read()


def test_get_requires_a_signature(get, faults, altered, program, store, signer):
    plain, _ = altered
    server = faults(f"ima:{signer.sign(program.path)}")
    server.serve(program)
    get(program, plain.url, "--require=signed", status=1, more=signer.env)
    get(program, "", "--require=signed", status=1, more=signer.env)
    done = get(program, server.url, "--require=signed", more=signer.env)
    assert pathlib.Path(done.stdout.rstrip("\n")).read_bytes() == program.read()
    get(program, "", "--require=signed", more=signer.env)
    assert "one of any, signed" in get(program, "", "--require=sealed", status=2).stderr


def test_get_requires_a_mount_that_requires_signatures(get, mount, altered, program, workdir, store):
    added = programs.small(workdir / "added", 2)
    tools.run(tools.BIDCTL, "--store", store, "add", added.path)
    mnt = mount(at=store)
    assert "mount it with '-o require=signed'" in get(program, "", "--require=signed", status=1).stderr
    mnt.unmount()
    mnt = mount("require=signed", at=store)
    assert mnt.status()["require"] == "signed"
    get(program, "", "--require=signed", status=1)
    get(added, "", "--require=signed")


def test_signature_results_match_libdebuginfod(get, faults, workdir, program, signer, env):
    library = tools.run("sh", "-c", "ldconfig -p | sed -n 's/.*libdebuginfod.so.1.*=> //p' | head -n 1").stdout.strip()
    if not library or b"IMA verification policy" not in pathlib.Path(library).read_bytes():
        pytest.skip("libdebuginfod here checks no signatures: it is built without IMA")
    signature = signer.sign(program.path)
    old, ec = Signer(workdir / "old", days=0), Signer(workdir / "ec", "ec", "PEM")
    other = programs.small(workdir / "other", 2)
    for name, behaviour, certificates, accepted in (
            ("valid", f"ima:{signature}", signer, True),
            ("ec", f"ima:{ec.sign(program.path)}", ec, True),
            ("sha1", f"ima:{signer.sign(program.path, 'sha1')}", signer, True),
            ("expired certificate", f"ima:{old.sign(program.path)}", old, True),
            ("flipped code", f"ima:{signature}:{code_of(program)}", signer, False),
            ("other file", f"ima:{signer.sign(other.path)}", signer, False),
            ("truncated", f"ima:{signature[:-2]}", signer, False),
            ("trailing", f"ima:{signature}00", signer, False),
            ("version", f"ima:0301{signature[4:]}", signer, False),
            ("none", "ok", signer, False),
            ("wrong key", f"ima:{signature}", old, False)):
        server = faults(behaviour, root=workdir / "served")
        server.serve(program)
        urls, store = f"ima:enforcing {server.url}", workdir / f"store-{server.port}"
        store.mkdir()
        theirs = tools.run("debuginfod-find", "executable", program.id, status=None, env={
            **env, **certificates.env, "DEBUGINFOD_URLS": urls, "DEBUGINFOD_CACHE_PATH": str(workdir / f"cache-{server.port}")})
        ours = get(program, urls, f"--store={store}", status=None, more=certificates.env)
        assert (theirs.returncode == 0, ours.returncode) == (accepted, 0 if accepted else 1), (name, theirs.stderr, ours.stderr)
