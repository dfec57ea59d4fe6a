# SPDX-License-Identifier: LGPL-2.1-or-later
"""The units, in a machine that systemd has started."""
import json
import re

import pytest

import tools

STORE, POINT = "/var/lib/bidfs", "/run/bidfs"


def is_mounted(machine):
    return machine.run("findmnt", "--noheadings", "--types", "fuse.bidfs", POINT, status=None).returncode == 0


def stored(machine):
    """The ids in the store, by path."""
    rows = [line.split("\t") for line in machine.run("bidctl", f"--store={STORE}", "list").stdout.splitlines()]
    return {row[-1]: row[0] for row in rows}


def is_served(machine, path):
    """Is it what is read under its id?"""
    served = f"{POINT}/buildid/{stored(machine)[path]}/elf"
    return machine.run("cmp", path, served, status=None).returncode == 0


@pytest.mark.limit(120)
def test_mounts_and_mounts_again(machine):
    machine.run("systemctl", "start", "bidfs")
    assert is_mounted(machine)
    machine.run("bidctl", f"--store={STORE}", "add", "/usr/bin/true")
    assert is_served(machine, "/usr/bin/true")
    # others than root look, too
    machine.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls", f"{POINT}/buildid")

    pid = machine.property("bidfs", "MainPID")
    machine.run("kill", "-KILL", pid)
    tools.wait_until(lambda: machine.property("bidfs", "MainPID") not in (pid, "0"), "another daemon", 40)
    tools.wait_until(lambda: machine.property("bidfs", "ActiveState") == "active", "a mount", 40)
    assert is_served(machine, "/usr/bin/true")

    machine.run("systemctl", "stop", "bidfs")
    tools.wait_until(lambda: not is_mounted(machine), "the end of the mount")
    assert machine.property("bidfs", "Result") == "success", machine.journal("bidfs")
    tools.wait_until(lambda: machine.run("pgrep", "-x", "mount.bidfs", status=None).returncode == 1, "the end of the daemon")


@pytest.mark.limit(120)
def test_the_environment(machine):
    """mount.bidfs(8): the unit reads it from a file, and what systemd mounts of fstab(5) with a file beside it."""
    def reason():
        """Why the file was not to be had."""
        machine.run("cat", f"{POINT}/buildid/{'00' * 20}/debuginfo", status=1)
        source, = json.loads(machine.run("cat", f"{POINT}/.bidfs/status").stdout)["sources"]
        assert source["name"] == "https://debuginfod.invalid"
        return source["last_trouble"]

    page = (tools.ROOT / "docs/mount.bidfs.8").read_text()
    path, text = re.search(r"^# cat (\S+)\n(\[Mount\]\n.*?)^#", page, re.MULTILINE | re.DOTALL).groups()
    defaults = re.search(r"^EnvironmentFile=-(.*)", text, re.MULTILINE)[1]
    write = 'mkdir -p "$(dirname "$1")"; printf %s "$2" >>"$1"'
    machine.run("sh", "-euc", write, "sh", defaults, "DEBUGINFOD_URLS=https://debuginfod.invalid\nhttps_proxy=http://127.0.0.1:9\n")
    machine.run("systemctl", "start", "bidfs")
    assert "the proxy 127.0.0.1:9" in reason()
    machine.run("systemctl", "stop", "bidfs")

    machine.run("sh", "-euc", write, "sh", path, text)
    machine.run("sh", "-euc", write, "sh", "/etc/fstab", f"{STORE} {POINT} bidfs allow_other 0 0\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "run-bidfs.mount")
    assert is_mounted(machine) and "the proxy 127.0.0.1:9" in reason()
    machine.run("systemctl", "stop", "run-bidfs.mount")


@pytest.mark.limit(120)
def test_keeps_what_runs(machine):
    machine.run("systemctl", "start", "bidfs-watch")
    assert "/usr/lib/systemd/systemd" in stored(machine), machine.journal("bidfs-watch")
    machine.run("cp", "/usr/bin/true", "/usr/local/bin/started-later")
    machine.run("/usr/local/bin/started-later")
    tools.wait_until(lambda: "/usr/local/bin/started-later" in stored(machine), "what was started", 40)
    # what not everybody gets to is its adder's
    hidden = "/var/tmp/home/hidden"
    machine.run("install", "-d", "-m", "700", "-o", "65534", "-g", "65534", "/var/tmp/home")
    machine.run("sh", "-c", f"cp /usr/bin/false {hidden} && chown 65534:65534 {hidden}")
    machine.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", hidden, status=1)
    tools.wait_until(lambda: hidden in stored(machine), "what was started in a home", 40)
    copy = f"{STORE}{hidden}/{stored(machine)[hidden]}/elf"
    assert machine.run("stat", "-c", "%a %u", copy).stdout == "400 0\n"
    machine.run("systemctl", "stop", "bidfs-watch")
    assert machine.property("bidfs-watch", "Result") == "success", machine.journal("bidfs-watch")


@pytest.mark.limit(120)
def test_timers_start_checks_of_the_store(machine):
    machine.run("mkdir", STORE)
    machine.run("bidctl", f"--store={STORE}", "add", "/usr/bin/true")
    for name in ("bidfs-gc", "bidfs-verify"):
        machine.run("systemctl", "enable", "--now", f"{name}.timer")
        assert machine.property(f"{name}.timer", "NextElapseUSecRealtime")
        machine.run("systemctl", "start", name, status=None)
        assert machine.property(name, "Result") == "success", machine.journal(name)
    assert "found 0" in machine.journal("bidfs-verify")
