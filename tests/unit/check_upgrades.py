#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upgrade and remove packages with real package managers in a private root, and find the replaced builds in the store.

usage: BID_BUILD_ROOT=DIR check_upgrades.py BIDCTL [CASE...]

Exit status: 0 if all cases pass, 1 if one fails, 77 without a compiler. Cases of package managers that are not installed are
skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess

import cases
from add_helpers import IDS, call, stored
from bidctl_env import DONE, ID_ONE, TIMEOUT, Env, build
from cases import need

CONTRIB = pathlib.Path(os.environ["BID_BUILD_ROOT"]) / "contrib"


class Root:
    """A system with a store and without packages."""

    def __init__(self, env):
        self.top = env.home / "root"
        self.admin = self.top / "var" / "lib" / "dpkg"
        for directory in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/apt/lists/partial",
                          "var/log/apt", "var/cache/apt/archives/partial", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                          "etc/apt/sources.list.d"):
            (self.top / directory).mkdir(parents=True)
        (self.admin / "status").touch()
        self.env = env
        self.environment = env.environment | {"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
                                              "BIDFS_STORE": str(env.store)}
        # as installed, except for the path of bidctl
        self.hook = env.home / "keep-replaced"
        text = (CONTRIB / "keep-replaced").read_text()
        self.hook.write_text(re.sub(r"/\S*/bidctl$", str(env.bidctl), text, flags=re.MULTILINE))
        assert str(env.bidctl) in self.hook.read_text(), text
        self.hook.chmod(0o755)
        # a configuration of dpkg with our settings alone
        self.dpkg_config = env.home / "dpkg.cfg.d"
        self.dpkg_config.mkdir()
        (self.dpkg_config / "bidfs-keep-dpkg").write_text(self.config("bidfs-keep-dpkg"))

    def config(self, name):
        """Return the installed file, with the path of the hook changed."""
        text = (CONTRIB / name).read_text()
        assert "/keep-replaced" in text, text
        return re.sub(r"[^\s\":=]*/keep-replaced", str(self.hook), text)

    def run_dpkg(self, *arguments, **environment):
        """Run dpkg with the hook in its /etc."""
        script = 'mount --bind "$1" /etc/dpkg/dpkg.cfg.d; shift; exec dpkg "$@"'
        done = call("unshare", "-m", "sh", "-euc", script, "sh", self.dpkg_config, f"--root={self.top}", "--force-not-root",
                    "--log=/dev/null", *arguments, env=self.environment | environment)
        need("unshare failed" not in done.stderr, "needs a mount namespace")
        return done

    def dpkg(self, *arguments, **environment):
        return self.done(self.run_dpkg(*arguments, **environment))

    def done(self, done):
        assert done.returncode == DONE and "bidctl" not in done.stderr, done
        return done

    def missing(self, *ids):
        return {build_id for build_id in ids if not (self.env.store / ".build-id" / build_id[:2] / build_id[2:]).is_symlink()}


def package(env, name, version, build_id, arch=None):
    """Make a .deb of a program, a text and a link; with @arch, one of several architectures."""
    tree = env.home / f"{name}-{version}-{arch}"
    place = tree / "usr" / (f"lib/{arch}" if arch else "bin")
    (tree / "DEBIAN").mkdir(parents=True)
    place.mkdir(parents=True)
    shutil.copy(build(env.home, f"{name}{version}", build_id), place / name)
    (place / f"{name}-alias").symlink_to(name)
    (place / f"{name}-text").write_text(version)
    (tree / "DEBIAN" / "control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: {arch or architecture()}\n"
                                             f"Multi-Arch: {'same' if arch and arch != 'all' else 'no'}\n"
                                             "Maintainer: nobody <nobody@localhost>\nDescription: a test\n")
    path = env.home / f"{name}_{version}_{arch}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, path], check=True, timeout=TIMEOUT,
                   stdout=subprocess.DEVNULL)
    return path


def architecture():
    return call("dpkg", "--print-architecture").stdout.strip()


def need_dpkg():
    need(shutil.which("dpkg") and shutil.which("dpkg-deb"), "no dpkg")
    need(os.geteuid() == 0, "needs root, as dpkg does")


def case_dpkg_upgrade_and_removal_are_kept(env):
    """dpkg alone: an upgrade of one package among others, and a removal."""
    need_dpkg()
    root = Root(env)
    one, two, other = (package(env, *what) for what in (("tool", "1", IDS[0]), ("tool", "2", IDS[1]), ("other", "1", IDS[2])))
    root.dpkg("--install", one, other)
    assert root.missing(*IDS[:3]) == set(IDS[:3]), "what is installed for the first time replaces nothing"
    root.dpkg("--install", two)
    assert root.missing(*IDS[:3]) == {IDS[1], IDS[2]}
    installed = root.top / "usr" / "bin" / "tool"
    kept = stored(env, IDS[0])
    assert kept == env.store / str(installed)[1:] / IDS[0], kept
    assert (kept / "elf").read_bytes() == (env.home / "tool1").read_bytes() != installed.read_bytes()
    root.dpkg("--remove", "tool")
    assert not installed.exists() and root.missing(*IDS[:3]) == {IDS[2]}
    assert not any(env.store.rglob("*-alias")), "a link was followed"


def case_dpkg_options_are_not_packages(env):
    """dpkg's own name and values of options are no package names; a directory is searched if dpkg does so."""
    need_dpkg()
    root = Root(env)
    dpkg, one, two = (package(env, *what) for what in (("dpkg", "1", IDS[0]), ("tool", "1", IDS[1]), ("tool", "2", IDS[2])))
    root.dpkg("--install", dpkg, one)
    debs = env.home / "debs"
    debs.mkdir()
    shutil.copy(dpkg, debs)
    root.dpkg("--admindir", root.admin, "--instdir", root.top, "--status-logger", "cat >/dev/null", "--unpack", two)
    assert root.missing(*IDS[:3]) == {IDS[0], IDS[2]}
    root.dpkg("--root", root.top, "--configure", "tool")
    root.dpkg("--root", root.top, "--purge", "tool")
    assert root.missing(*IDS[:3]) == {IDS[0]}


def case_packages_of_two_architectures_are_kept(env):
    """A library of two architectures, from a directory of archives; and a package that changes its architecture."""
    need_dpkg()
    root, own = Root(env), architecture()
    foreign = "i386" if own != "i386" else "amd64"
    root.dpkg("--add-architecture", foreign)
    for version in "12":
        debs = env.home / f"debs{version}"
        (debs / "below").mkdir(parents=True)
        for number, (name, arch) in enumerate((("lib", own), ("lib", foreign), ("tool", "all" if version == "1" else own))):
            shutil.move(package(env, name, version, IDS[3 * int(version) + number], arch), debs / "below")
    root.dpkg("--install", "--recursive", env.home / "debs1")
    assert root.missing(*IDS[3:9]) == set(IDS[3:9])
    root.dpkg("-iR", env.home / "debs2")
    assert root.missing(*IDS[3:9]) == set(IDS[6:9])
    root.dpkg("--remove", f"lib:{foreign}")
    assert root.missing(*IDS[3:9]) == {IDS[6], IDS[8]}


def case_missing_store_does_not_stop_an_upgrade(env):
    """Without a store, or with an unwritable one, the upgrade works as always."""
    need_dpkg()
    root = Root(env)
    one, two = (package(env, "tool", version, IDS[number]) for number, version in enumerate("12"))
    root.dpkg("--install", one, BIDFS_STORE=str(env.home / "none"))
    done = root.dpkg("--install", two, BIDFS_STORE=str(env.home / "none"))
    assert done.stderr == "" and not (env.home / "none").exists(), done
    broken = env.home / "broken"
    broken.mkdir()
    (broken / ".bidfs").write_text("in the way")
    done = root.run_dpkg("--install", one, BIDFS_STORE=str(broken))
    assert done.returncode == DONE and (root.top / "usr" / "bin" / "tool").read_bytes() == (env.home / "tool1").read_bytes(), done
    # without bidctl the hook is silent; a removal of bidfs may leave the hook's configuration behind
    root.hook.write_text(root.hook.read_text().replace(str(env.bidctl), str(env.home / "no-bidctl")))
    assert root.dpkg("--install", two).stderr == ""
    root.hook.unlink()
    assert root.dpkg("--install", two).stderr == ""


def case_apt_hook_keeps_builds(env):
    """apt tells its hook about the packages."""
    need_dpkg()
    need(shutil.which("apt-get"), "no apt-get")
    root = Root(env)
    (root.top / "etc" / "apt" / "apt.conf.d" / "90bidfs-keep").write_text(root.config("90bidfs-keep"))
    (root.top / "etc" / "apt" / "sources.list").touch()
    config = env.home / "apt.conf"
    config.write_text(f'Dir "{root.top}";\nDir::State::status "{root.admin}/status";\nDir::Bin::dpkg "/usr/bin/dpkg";\n'
                      f'Dir::Bin::Methods "/usr/lib/apt/methods";\nDPkg::Options {{ "--root={root.top}"; "--log=/dev/null"; }};\n'
                      'APT::Sandbox::User "root";\nDir::Log::Terminal "";\nDPkg::Use-Pty "false";\n'
                      # with another root apt asks dpkg for the architectures
                      f'APT::Architecture "{architecture()}";\n')
    environment = root.environment | {"APT_CONFIG": str(config), "DPKG_ROOT": str(root.top), "DPKG_ADMINDIR": str(root.admin)}

    def apt(*arguments):
        done = call("apt-get", "-y", "-q", *arguments, env=environment)
        return root.done(done) if root.hook.exists() else done

    one, two, other = (package(env, *what) for what in (("tool", "1", IDS[0]), ("tool", "2", IDS[1]), ("other", "1", IDS[2])))
    apt("install", one, other)
    assert root.missing(*IDS[:3]) == set(IDS[:3])
    done = apt("install", two)
    assert root.missing(*IDS[:3]) == {IDS[1], IDS[2]}, done
    assert (stored(env, IDS[0]) / "elf").read_bytes() == (env.home / "tool1").read_bytes()
    apt("remove", "other")
    assert root.missing(*IDS[:3]) == {IDS[1]}
    # bidfs was removed, and its hook's configuration stayed
    root.hook.unlink()
    done = apt("remove", "tool")
    assert done.returncode == DONE and not (root.top / "usr" / "bin" / "tool").exists(), done


def case_list_of_paths_is_kept(env):
    """A list of paths, as rpm's triggers get it."""
    listed = f"{env.one}\n{env.text}\n{env.home}\n{env.home}/none\n{env.no_id}\n"
    root = Root(env)
    done = subprocess.run([root.hook, "files"], input=listed, text=True, capture_output=True, timeout=TIMEOUT, check=False,
                          env=root.environment)
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "", ""), done
    assert [row["id"] for row in env.rows("list")] == [ID_ONE]
    done = subprocess.run([root.hook], capture_output=True, timeout=TIMEOUT, check=False, env=root.environment)
    assert done.returncode == 2 and b"usage" in done.stderr, done


def case_rpm_trigger_keeps_builds(env):
    """rpm with the trigger's package installed."""
    need(shutil.which("rpmbuild") and shutil.which("rpm"), "no rpm and rpmbuild")
    need(os.geteuid() == 0, "needs root, for chroot(2)")
    root = Root(env)
    place = env.home / "place"
    spec = (pathlib.Path(os.environ["BID_SOURCE_ROOT"]) / "contrib/bidfs.spec").read_text()
    prefixes, command = spec.split("%transfiletriggerun keep -- ")[1].splitlines()[:2]
    assert "/usr" in prefixes.split() and command == "%{_libexecdir}/bidfs/keep-replaced files", spec
    # a private database and prefix, as a private root would lack a shell for the trigger
    keep = rpm_package(env, "bidfs-keep", f"Name: bidfs-keep\nVersion: 1\nRelease: 1\nSummary: the trigger\nLicense: none\n"
                       f"%description\nThe trigger.\n%files\n%transfiletriggerun -- {place}\n{root.hook} files\n")
    programs = [build(env.home, f"tool{version}", IDS[number]) for number, version in enumerate("12")]
    one, two = (rpm_package(env, f"tool-{version}", f"Name: tool\nVersion: {version}\nRelease: 1\nSummary: a test\n"
                            f"License: none\n%description\nA test.\n%install\nmkdir -p %{{buildroot}}{place}\ncp "
                            f"{programs[number]} %{{buildroot}}{place}/tool\n%files\n{place}/tool\n")
                for number, version in enumerate("12"))

    def rpm(*arguments):
        # a plugin of rpm hides /tmp, which has the test's directory
        return root.done(call("rpm", "--noplugins", "--dbpath", env.home / "rpmdb", "--nodeps", *arguments, env=root.environment))

    rpm("--install", keep, one)
    assert root.missing(*IDS[:2]) == set(IDS[:2])
    rpm("--upgrade", two)
    assert (place / "tool").read_bytes() == programs[1].read_bytes() and root.missing(*IDS[:2]) == {IDS[1]}
    assert (stored(env, IDS[0]) / "elf").read_bytes() == programs[0].read_bytes()
    rpm("--erase", "tool")
    assert root.missing(*IDS[:2]) == set()


def rpm_package(env, name, text):
    spec, top = env.home / f"{name}.spec", env.home / f"rpmbuild-{name}"
    spec.write_text(text)
    options = {"_topdir": top, "debug_package": "%{nil}", "__os_install_post": "%{nil}", "_build_id_links": "none"}
    defined = [word for name, value in options.items() for word in ("--define", f"{name} {value}")]
    done = call("rpmbuild", "-bb", *defined, spec, env=env.environment)
    assert done.returncode == DONE, done
    found, = top.rglob("*.rpm")
    return found


if __name__ == "__main__":
    cases.main(globals(), Env)
