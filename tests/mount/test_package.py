# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages of debian/: built without root and without network, installed and removed in a container."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import tools
from container import Container, why_no_container

OWN = ("bidfs", "bidfs-keep", "libbid0", "libbid-dev")
# without network but lo, as in the usual builders of packages
OFFLINE = ("unshare", "--net", "sh", "-euc", 'ip link set lo up; exec "$@"', "sh")
BUILDER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
# Debian has no bug number for the package yet; its policy needs no init.d script, and Debian 13 knows no such tag
NO_HINTS = {"initial-upload-closes-no-bugs", "package-supports-alternative-init-but-no-init.d-script"}
# the distributor signs, names himself and his groups; Debian's linker and rpm decide about old hash tables and dependencies on
# libraries of the same build; the license text is that of its publisher; SUSE alone names libraries by their version; rpmlint
# takes ".8" of a page that Debian's rpm does not compress for ".gz"
NO_ERRORS = {"no-signature", "no-packager-tag", "no-group-tag", "missing-hash-section", "no-library-dependency-for",
             "incorrect-fsf-address", "spelling-error", "shlib-policy-name-error", "outside-libdir-files", "bad-manual-page-folder"}


@contextlib.contextmanager
def builder(*needed):
    """Return a copy of the sources that another user owns, and a function that runs a program there without network."""
    why = why_no_container() or next((f"needs {name}" for name in needed if not shutil.which(name)), None)
    if why:
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="bid-packages-") as name:
        yield prepare(pathlib.Path(name))


def prepare(top):
    top.chmod(0o755)
    shutil.copytree(tools.ROOT, top / "bidfs-0.1.0", symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "build", "build-*", "__pycache__"))
    compiled = pathlib.Path(os.environ.get("CCACHE_DIR", top)) / "packages"
    compiled.mkdir(exist_ok=True)
    tools.run("chown", "-R", "65534:65534", top, compiled)
    if tools.run(*BUILDER, "test", "-w", compiled, status=None).returncode != 0:
        compiled = top / "ccache"  # a cache in the home of root
    environment = {"PATH": os.environ["PATH"], "HOME": str(top), "CCACHE_DIR": str(compiled), "LC_ALL": "C.UTF-8",
                   "DEB_BUILD_OPTIONS": "nocheck"}

    def run(*argv, status=0):
        done = subprocess.run([*OFFLINE, *BUILDER, *map(str, argv)], cwd=top / "bidfs-0.1.0", env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert status in (None, done.returncode), done.stdout[-5000:]
        return done.stdout

    return top, run


@pytest.fixture(scope="module")
def packages():
    """Return the directory with the .deb and .changes files."""
    with builder("dpkg-buildpackage", "dh") as (top, run):
        # -d: the build needs no C++ compiler, which build-essential requires
        run("dpkg-buildpackage", "-d", "-us", "-uc", "-b")
        yield top


@pytest.fixture
def installed(workdir, packages):
    """Return a container with the packages installed."""
    made = Container(workdir, [next(packages.glob(f"{name}_*.deb")) for name in OWN])
    yield made
    made.end()


@pytest.mark.limit(600)
def test_lintian_finds_nothing(packages):
    if not shutil.which("lintian"):
        pytest.skip("needs lintian")
    changes, = packages.glob("*.changes")
    lines = tools.run(*BUILDER, "lintian", "--display-info", changes).stdout.splitlines()
    wrong = [line for line in lines if not line.startswith("N:") and line.split()[2] not in NO_HINTS]
    assert not wrong, wrong


@pytest.mark.limit(300)
@pytest.mark.parametrize("name", ["bidctl", "mount", "gdb", "perf", "user"])
def test_installed_package_passes_its_own_test(installed, name):
    script = (tools.ROOT / "debian/tests" / name).read_text()
    installed.run("sh", "-euc", 'export AUTOPKGTEST_TMP=$(mktemp -d); eval "$1"', "sh", script)


@pytest.mark.limit(300)
def test_purged_packages_leave_nothing(installed):
    container = installed
    container.run("systemctl", "enable", "--now", "bidfs", "bidfs-watch", "bidfs-gc.timer", "bidfs-verify.timer")
    assert container.run("findmnt", "-nt", "fuse.bidfs").stdout
    container.run("bidctl", "setup", "system")
    container.run("ls", "/usr/lib/debug/.build-id")
    container.run("dpkg", "--purge", *OWN)
    assert container.run("findmnt", "-nt", "fuse.bidfs", status=None).stdout == ""
    assert container.run("pgrep", "-x", "bidctl|mount.bidfs", status=None).stdout == ""
    assert container.run("systemctl", "list-units", "--no-legend", "*bidfs*").stdout == ""
    left = container.run("find", "/usr", "/etc", "/var/lib", "/run", "/mnt", "-xdev", "-name", "*bidfs*").stdout.split()
    assert left == []


# The same packages with a later version, and a change in one of their files. Root must own all files that dpkg unpacks and packs.
NEXT_VERSION = """
cd /packages
for file in *.deb; do
	dpkg-deb --raw-extract "$file" tree
	sed -i -E "s/^(Version: .*)/\\1+next/; s/(bidfs|libbid0) \\(= ([^)]*)\\)/\\1 (= \\2+next)/g" tree/DEBIAN/control
	dpkg-deb --root-owner-group --build tree "next-$file"
	rm -r tree
done
"""


@pytest.mark.limit(300)
def test_upgrade_leaves_mount_and_open_file_alone(installed):
    container = installed
    container.run("bidctl", "--store", "/var/lib/bidfs", "add", "/usr/bin/true")
    container.run("systemctl", "enable", "--now", "bidfs", "bidfs-watch")
    daemon = container.property("bidfs", "MainPID")
    container.run("sh", "-euxc", NEXT_VERSION)
    # one file, read before and after the upgrade
    container.run("sh", "-euc", 'exec 3<"$(echo /run/bidfs/by-path/usr/bin/true/*)"; dpkg --install /packages/next-*.deb; '
                  "cmp /proc/self/fd/3 /usr/bin/true")
    version = container.run("dpkg-query", "--show", "--showformat=${Version} ", *OWN).stdout.split()
    assert len(version) == len(OWN) and all(text.endswith("+next") for text in version)
    assert container.property("bidfs", "MainPID") == daemon != "0"
    assert container.run("systemctl", "is-enabled", "bidfs", "bidfs-watch").stdout.split() == ["enabled", "enabled"]
    container.run("systemctl", "restart", "bidfs")
    assert container.property("bidfs", "MainPID") != daemon
    container.run("sh", "-c", "cmp /run/bidfs/by-path/usr/bin/true/* /usr/bin/true")


@pytest.mark.limit(3600)
def test_package_build_runs_the_unit_tests():
    with builder("dh") as (_, run):
        output = run("env", f"DEB_BUILD_OPTIONS=parallel={os.cpu_count()}", "debian/rules", "build")
        ok, failed = (int(re.search(rf"^{word}: +(\d+)", output, re.MULTILINE)[1]) for word in ("Ok", "Fail"))
        assert ok > 0 and failed == 0, output[-5000:]


@pytest.mark.limit(900)
def test_rpm_packages_build():
    with builder("rpmbuild", "rpmlint") as (top, run):
        run("mkdir", "-p", top / "rpm/SOURCES")
        run("tar", "--create", "--xz", f"--file={top}/rpm/SOURCES/bidfs-0.1.0.tar.xz", f"--directory={top}", "bidfs-0.1.0")
        run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {top}/rpm", "contrib/bidfs.spec")
        found = sorted((top / "rpm/RPMS").rglob("*.rpm"))
        assert {"bidfs", "bidfs-keep", "libbid", "libbid-devel"} <= {path.name.rpartition("-0.1.0-")[0] for path in found}
        lines = run("rpmlint", *found, status=None).splitlines()
        wrong = [line for line in lines if ": E: " in line and line.split()[2] not in NO_ERRORS]
        assert lines and not wrong, wrong
