#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl verify --against, which compares a store with digests of others.

usage: check_against.py BIDCTL
"""
import hashlib
import pathlib
import shutil
import subprocess

import cases
from bidctl_env import DONE, ID_FAR, ID_ONE, ID_TWO, REFUSED, TIMEOUT, ERROR, Env

CONTROL = "Package: {name}\nStatus: install ok installed\nMaintainer: none\nArchitecture: all\nVersion: 1\nDescription: none\n\n"


def sum_of(path, algorithm="sha256"):
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


def elf_of(path, build_id):
    return f"{str(path)[1:]}/{build_id}/elf"


def against(env, which, status=DONE, **environment):
    """Return the sorted lines of verify -v --against, and its summary."""
    done = env.on_store("verify", "-v", f"--against={which}", status=status, **environment)
    return sorted(done.stdout.removesuffix(done.summary).splitlines()), done.summary


def dpkg_database(env, **packages):
    """
    Make a database of dpkg with these packages and their md5sums. Return the environment for it, with an rpm without database.
    """
    (env.home / "rpmdb").mkdir(exist_ok=True)
    (env.home / ".rpmmacros").write_text(f"%_dbpath {env.home}/rpmdb\n")
    admin = env.home / "dpkg"
    (admin / "info").mkdir(parents=True)
    (admin / "info" / "format").write_text("1\n")
    removed = CONTROL.format(name="a-removed").replace("install ok installed", "deinstall ok config-files")
    (admin / "status").write_text(removed + "".join(CONTROL.format(name=name) for name in packages))
    for name, text in packages.items():
        (admin / "info" / f"{name}.list").write_text("")
        if text is not None:
            (admin / "info" / f"{name}.md5sums").write_text(text)
    return {"DPKG_ADMINDIR": str(admin)}


def case_list_with_a_right_a_wrong_and_a_missing_entry(env):
    env.on_store("add", env.one, env.two, env.far)
    sums = env.one.parent / "SHA256SUMS"
    sums.write_text(f"# of a release\n{sum_of(env.one).upper()}  ./one\n{sum_of(env.one, 'sha256')[::-1]} *two\n")
    before = env.files()
    lines, summary = against(env, sums, status=REFUSED)
    assert lines == [f"altered\t{elf_of(env.two, ID_TWO)}\thas another digest in '{sums}'",
                     f"unlisted\t{elf_of(env.far, ID_FAR)}\t-",
                     f"vouched\t{elf_of(env.one, ID_ONE)}\t'{sums}'"], lines
    assert "found 1, vouched 1, unlisted 1," in summary, summary
    assert env.on_store("verify", f"--against={sums}", ID_FAR).stdout.count("\n") == 1, "without -v only a summary"
    result = env.json("verify", f"--against={sums}", status=REFUSED)
    assert {row["id"]: (row["finding"], row["state"], row["reason"]) for row in result["result"]} == {
        ID_TWO: ("altered", "left", f"has another digest in '{sums}'"), ID_ONE: (None, "vouched", f"'{sums}'"),
        ID_FAR: (None, "unlisted", None)}, result
    assert (result["totals"]["vouched"], result["totals"]["unlisted"]) == (1, 1), result
    assert env.files() == before and not (env.store / ".bidfs" / "quarantine").exists(), "a check that changed the store"


def case_digest_decides_before_the_path(env):
    """The store has an old version under the path of another file."""
    env.on_store("add", env.one)
    sums = env.home / "SHA256SUMS"
    sums.write_text(f"{sum_of(env.two)}  {env.one}\n{sum_of(env.one)}  /elsewhere\n")
    assert against(env, sums)[0][0].startswith("vouched\t")


def case_name_with_escapes_is_compared(env):
    odd = env.home / "a\\b\nc"
    shutil.copy(env.two, odd)
    env.on_store("add", odd)
    sums = env.home / "SHA256SUMS"
    printed = subprocess.run(["sha256sum", odd], check=True, capture_output=True, timeout=TIMEOUT, text=True).stdout
    assert printed.startswith("\\"), printed
    sums.write_text(printed)
    assert against(env, sums)[0][0].startswith("vouched\t")
    sums.write_text(printed[0] + 64 * "0" + printed[65:])
    assert against(env, sums, status=REFUSED)[0][0].startswith("altered\t")


def case_debug_file_is_not_compared_with_its_program(env):
    debug = env.home / "one.debug"
    stripped = env.home / "bin" / "one"
    stripped.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", env.one, debug], check=True, timeout=TIMEOUT)
    subprocess.run(["strip", "-o", stripped, env.one], check=True, timeout=TIMEOUT)
    env.on_store("add", stripped)
    place = env.store / str(stripped)[1:] / ID_ONE
    shutil.copy(debug, place / "debug")
    sums = env.home / "SHA256SUMS"
    sums.write_text(f"{sum_of(stripped)}  bin/one\n")
    lines, _ = against(env, sums)
    assert [line.partition("\t")[0] for line in lines] == ["unlisted", "vouched"], lines


def case_malformed_list_is_refused(env):
    env.on_store("add", env.one)
    sums = env.home / "SHA256SUMS"
    env.one_error("verify", f"--against={sums}", status=REFUSED, has="no such file")
    for text, message in (("", "no digest in"), ("# nothing\n", "no digest in"),
                          (f"{sum_of(env.one)}  one\n{sum_of(env.one, 'md5')}  one\n", "line 2 of"),
                          (f"{sum_of(env.one)}\n", "line 1 of")):
        sums.write_text(text)
        env.one_error("verify", f"--against={sums}", status=ERROR, has=message)


def case_packages_of_dpkg_are_compared(env):
    cases.need(shutil.which("dpkg-query"), "needs dpkg")
    env.on_store("add", env.one, env.two, env.far)
    empty = dpkg_database(env)
    done = env.on_store("verify", "--against=packages", status=ERROR, **empty)
    assert "no digest in 'packages'" in done.stderr, done.stderr
    assert not any((env.home / "rpmdb").iterdir()), "rpm has made a database"
    shutil.rmtree(env.home / "dpkg")
    database = dpkg_database(env, nothing=None, right=f"{sum_of(env.one, 'md5')}  elsewhere/one\n",
                             wrong=f"{sum_of(env.one, 'md5')[::-1]}  {str(env.two)[1:]}\n")
    lines, summary = against(env, "packages", status=REFUSED, **database)
    assert lines == [f"altered\t{elf_of(env.two, ID_TWO)}\thas another digest in package wrong",
                     f"unlisted\t{elf_of(env.far, ID_FAR)}\t-",
                     f"vouched\t{elf_of(env.one, ID_ONE)}\tpackage right"], lines
    assert "found 1, vouched 1, unlisted 1," in summary, summary


def case_packages_of_rpm_are_compared(env):
    cases.need(shutil.which("rpmbuild"), "needs rpm")
    database = env.home / "rpmdb"
    admin = dpkg_database(env)
    (env.home / ".rpmmacros").write_text(f"%_dbpath {database}\n%_topdir {env.home}/rpm\n%_rpmdir {env.home}/rpm\n"
                                         "%__os_install_post %{nil}\n%debug_package %{nil}\n%_build_id_links none\n")
    spec = env.home / "right.spec"
    spec.write_text("Name: right\nVersion: 1\nRelease: 1\nSummary: none\nLicense: none\nAutoReqProv: no\n%description\n"
                    f"%install\ninstall -D {env.one} %{{buildroot}}{env.one}\n"
                    f"install -D {env.one} %{{buildroot}}{env.two}\n"
                    f"%files\n{env.one}\n{env.two}\n")
    for command in (["rpmbuild", "-bb", "--quiet", spec], ["rpm", "--initdb"]):
        subprocess.run(command, check=True, env=env.environment, capture_output=True, timeout=TIMEOUT)
    package = next((env.home / "rpm").rglob("right-1-1*.rpm"))
    subprocess.run(["rpm", "-i", "--justdb", "--nodeps", "--ignoreos", "--ignorearch", package], check=True,
                   env=env.environment, capture_output=True, timeout=TIMEOUT)
    env.on_store("add", env.one, env.two, env.far)
    lines, _ = against(env, "packages", status=REFUSED, **admin)
    name = package.name.removesuffix(".rpm")
    assert lines == [f"altered\t{elf_of(env.two, ID_TWO)}\thas another digest in package {name}",
                     f"unlisted\t{elf_of(env.far, ID_FAR)}\t-",
                     f"vouched\t{elf_of(env.one, ID_ONE)}\tpackage {name}"], lines


def case_packages_of_this_machine_are_compared(env):
    true = pathlib.Path("/usr/bin/true")
    shown = subprocess.run(["sh", "-c", "dpkg-query --control-show coreutils md5sums"], capture_output=True, timeout=TIMEOUT,
                           text=True, check=False).stdout
    cases.need(true.is_file() and f"{sum_of(true, 'md5')}  " in shown, "needs /usr/bin/true of dpkg's coreutils")
    env.on_store("add", true)
    lines, _ = against(env, "packages")
    assert any(line.startswith("vouched\tusr/bin/true/") and line.endswith("/elf\tpackage coreutils") for line in lines), lines
    assert not (env.home / ".rpmdb").exists(), "rpm has made a database"
    stored = next(env.store.glob("usr/bin/true/*/elf"))
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.unlink()
    stored.write_bytes(content)
    lines, _ = against(env, "packages", status=REFUSED)
    assert any(line.startswith("altered\tusr/bin/true/") and line.endswith("package coreutils") for line in lines), lines


if __name__ == "__main__":
    cases.main(globals(), Env, tools=["cc", "strip", "objcopy", "sha256sum"])
