# SPDX-License-Identifier: LGPL-2.1-or-later
"""The units, in a container with systemd."""
import json
import re

import pytest

import tools

STORE, POINT = "/var/lib/bidfs", "/run/bidfs"


def is_mounted(container):
    return container.run("findmnt", "--noheadings", "--types", "fuse.bidfs", POINT, status=None).returncode == 0


def stored(container):
    """Return {path: id} of the store."""
    rows = [line.split("\t") for line in container.run("bidctl", f"--store={STORE}", "list").stdout.splitlines()]
    return {row[-1]: row[0] for row in rows}


def is_served(container, path):
    """Return whether the mount serves the content of this path under its id."""
    served = f"{POINT}/buildid/{stored(container)[path]}/elf"
    return container.run("cmp", path, served, status=None).returncode == 0


@pytest.mark.limit(120)
def test_unit_mounts_and_restarts(container):
    container.run("systemctl", "start", "bidfs")
    assert is_mounted(container)
    container.run("bidctl", f"--store={STORE}", "add", "/usr/bin/true")
    assert is_served(container, "/usr/bin/true")
    # as another user than root
    container.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls", f"{POINT}/buildid")

    pid = container.property("bidfs", "MainPID")
    container.run("kill", "-KILL", pid)
    tools.wait_until(lambda: container.property("bidfs", "MainPID") not in (pid, "0"), "another daemon")
    tools.wait_until(lambda: container.property("bidfs", "ActiveState") == "active", "a mount")
    assert is_served(container, "/usr/bin/true")

    container.run("systemctl", "stop", "bidfs")
    tools.wait_until(lambda: not is_mounted(container), "the end of the mount")
    assert container.property("bidfs", "Result") == "success", container.journal("bidfs")
    tools.wait_until(lambda: container.run("pgrep", "-x", "mount.bidfs", status=None).returncode == 1, "the end of the daemon")


@pytest.mark.limit(120)
def test_unit_reads_its_environment_file(container):
    """TEAM.md: the unit has an environment file, and a mount of fstab(5) gets one by a drop-in."""
    def reason():
        """Return the reason why the file could not be downloaded."""
        container.run("cat", f"{POINT}/buildid/{'00' * 20}/debuginfo", status=1)
        failure = json.loads(container.run("cat", f"{POINT}/.bidfs/status").stdout)["failures"][0]
        assert failure["server"] == "https://debuginfod.invalid"
        return failure["text"]

    page = (tools.ROOT / "docs/TEAM.md").read_text()
    drop_in, defaults = re.search(r"^(mkdir -p \S+/run-bidfs.mount.d\n.*?EnvironmentFile=-(\S+)\\n.*?)^```", page,
                                  re.MULTILINE | re.DOTALL).groups()
    write = 'mkdir -p "$(dirname "$1")"; printf %s "$2" >>"$1"'
    container.run("sh", "-euc", write, "sh", defaults,
                  "DEBUGINFOD_URLS=https://debuginfod.invalid\nhttps_proxy=http://127.0.0.1:9\n")
    container.run("systemctl", "start", "bidfs")
    assert "could not connect to 127.0.0.1:9" in reason()
    container.run("systemctl", "stop", "bidfs")

    container.run("sh", "-euc", write, "sh", "/etc/fstab", f"{STORE} {POINT} bidfs allow_other 0 0\n")
    container.run("sh", "-euc", drop_in)
    container.run("systemctl", "start", "run-bidfs.mount")
    assert is_mounted(container) and "could not connect to 127.0.0.1:9" in reason()
    container.run("systemctl", "stop", "run-bidfs.mount")


@pytest.mark.limit(120)
def test_watch_unit_adds_running_programs(container):
    container.run("systemctl", "start", "bidfs-watch")
    assert "/usr/lib/systemd/systemd" in stored(container), container.journal("bidfs-watch")
    container.run("cp", "/usr/bin/true", "/usr/local/bin/started-later")
    container.run("/usr/local/bin/started-later")
    tools.wait_until(lambda: "/usr/local/bin/started-later" in stored(container), "the started program")
    # a file that not everybody can reach belongs to its adder
    hidden = "/var/tmp/home/hidden"
    container.run("install", "-d", "-m", "700", "-o", "65534", "-g", "65534", "/var/tmp/home")
    container.run("sh", "-c", f"cp /usr/bin/false {hidden} && chown 65534:65534 {hidden}")
    container.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", hidden, status=1)
    tools.wait_until(lambda: hidden in stored(container), "the program in a home")
    copy = f"{STORE}{hidden}/{stored(container)[hidden]}/elf"
    assert container.run("stat", "-c", "%a %u", copy).stdout == "400 0\n"
    container.run("systemctl", "stop", "bidfs-watch")
    assert container.property("bidfs-watch", "Result") == "success", container.journal("bidfs-watch")


@pytest.mark.limit(120)
def test_timers_start_gc_and_verify(container):
    container.run("mkdir", STORE)
    container.run("bidctl", f"--store={STORE}", "add", "/usr/bin/true")
    for name in ("bidfs-gc", "bidfs-verify"):
        container.run("systemctl", "enable", "--now", f"{name}.timer")
        assert container.property(f"{name}.timer", "NextElapseUSecRealtime")
        container.run("systemctl", "start", name, status=None)
        assert container.property(name, "Result") == "success", container.journal(name)
    assert "found 0" in container.journal("bidfs-verify")


PROGRAM = r"""
#include <signal.h>
#include <stdlib.h>

__attribute__((noinline)) int answer(int what, const char *cell)
{
	volatile unsigned sum = 0;

	if (what == 2)
		return raise(SIGSTOP);
	if (what == 3)
		return cell[8];
	for (unsigned i = 0; i < 300000000; i++)
		sum += i;
	return sum == 1;
}

int main(int argc, char **argv)
{
	return answer(argc, malloc(8));
}
"""
# a stripped program, and a tree with its debug information, as a server has it
BUILD = r"""
mkdir -p /srv/work && cd /srv/work && printf %s "$1" >program.c && cc -g -Wl,--build-id -o program program.c
id=$(readelf -n program | sed -n 's/.*Build ID: //p')
mkdir -p /srv/tree/buildid/$id && objcopy --only-keep-debug program /srv/tree/buildid/$id/debuginfo && strip program
"""
PACKAGE = r"""
cd "$(mktemp -d)" && mkdir -p p/DEBIAN p/usr/lib/debug/.build-id/00
printf 'Package: some-dbgsym\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: files\n' >p/DEBIAN/control
cc -g -Wl,--build-id=0x0011223344556677 -o p/usr/lib/debug/.build-id/00/11223344556677.debug /srv/work/program.c
dpkg-deb --root-owner-group --build p p.deb && dpkg --install p.deb
"""
# commands that print the line, or the name, of a function of that program, each in a new directory
TOOLS = {
    "gdb": (r"gdb -batch -nx -ex 'info line answer' /srv/work/program", "program.c"),
    "lldb": (r"lldb -b -x -o 'breakpoint set -n answer' /srv/work/program", "program.c:"),
    "objdump": (r"objdump -d -l /srv/work/program", "program.c:"),
    "eu-addr2line": (r"cd /srv/work; eu-addr2line -f -e program $(readelf -h program | sed -n 's/.*Entry.* //p')", "_start"),
    "eu-stack": (r"/srv/work/program stop & until grep -q '^State:.T' /proc/$!/status; do sleep 0.02; done; eu-stack -p $!; "
                 r"kill -9 $!", "answer"),
    "valgrind": (r"valgrind /srv/work/program an error 2>&1", "answer (program.c:"),
    "perf": (r"perf record -q -e cpu-clock -o data /srv/work/program; perf report -q -i data --stdio --sort sym", "answer"),
}


@pytest.mark.limit(180)
def test_setup_configures_tools_until_undo(container, record_property):
    def shown(name):
        """Return a tool's output for the program, without settings by the test."""
        return container.run("sh", "-c", f"cd $(mktemp -d); export HOME=$PWD; {TOOLS[name][0]}", status=None).stdout

    def files():
        return container.run("find", "/etc", "/usr", "/run/bidfs", "/run/bidfs.lower", "-newer", "/srv/work/program.c",
                             "-not", "-type", "d", status=None).stdout

    names = [name for name in TOOLS if container.run("which", name, status=None).returncode == 0]
    record_property("not installed", " ".join(sorted(set(TOOLS) - set(names))))
    container.run("sh", "-euc", BUILD, "sh", PROGRAM)
    container.run("mkdir", "-p", "/usr/lib/debug/of-a-package")
    for name in names:
        assert TOOLS[name][1] not in shown(name), name
    listed, before = container.run("ls", "/usr/lib/debug").stdout, files()
    container.run("bidctl", "setup", "system", "--url=file:///srv/tree")
    for name in names:
        assert TOOLS[name][1] in shown(name), (name, shown(name), container.journal("bidfs"))
    assert container.run("ls", "/usr/lib/debug").stdout == listed
    container.run("touch", "/usr/lib/debug/.build-id/x", status=1)
    # packages install there, and the view shows their files, too
    container.run("sh", "-euc", PACKAGE)
    container.run("test", "-e", "/usr/lib/debug/.build-id/00/11223344556677.debug")
    for name in names:
        assert TOOLS[name][1] in shown(name), name
    container.run("dpkg", "--purge", "some-dbgsym")
    container.run("bidctl", "setup", "system", "--undo")
    for name in names:
        assert TOOLS[name][1] not in shown(name), name
    assert files() == before and not is_mounted(container)


@pytest.mark.limit(120)
def test_undo_removes_the_directories_that_setup_caused(container):
    """A machine without debug information of packages has no /usr/lib/debug."""
    container.run("rm", "-r", "/usr/lib/debug")
    container.run("systemctl", "start", "bidfs")
    container.run("bidctl", "setup", "system", "--url=file:///srv")
    container.run("ls", "/usr/lib/debug/.build-id")
    container.run("bidctl", "setup", "system", "--undo")
    container.run("test", "!", "-e", "/usr/lib/debug")
