# SPDX-License-Identifier: LGPL-2.1-or-later
"""The steps of docs/TEAM.md, word for word, in a container with systemd."""
import re
import textwrap

import pytest

import exports
import tools

STORE = "/var/lib/bidfs"
TRUE = "/srv/releases/true"


def page():
    return (tools.ROOT / "docs/TEAM.md").read_text()


def steps():
    """Return the scripts by the number of their step."""
    server = page().split("## The server")[1]
    return {int(number): textwrap.dedent(script) for number, script in
            re.findall(r"^(\d)\. (?:(?!^\d\.).)*?^   ```sh\n(.*?)^   ```$", server, re.MULTILINE | re.DOTALL)}


def scripts_of_members():
    return re.findall(r"^```sh\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)


def test_team_page_commands_work():
    assert page().count("```sh") == len(steps()) + len(scripts_of_members()) == 4


def response(container, path):
    """Return status and size of nginx's response."""
    return container.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", f"http://localhost:8002/{path}",
                         status=None).stdout


def statuses(container, path, script):
    """Return all statuses of nginx during a script, and one after it."""
    ask = f"curl -s -o /dev/null -w '%{{http_code}}\\n' http://localhost:8002/{path}"
    return set(container.run("sh", "-euc", f"({script}) & while kill -0 $! 2>/dev/null; do {ask}; sleep 0.02; done; wait $!; {ask}")
               .stdout.split())


# until systemd has started another daemon
KILL = """
daemon() { systemctl show --property=MainPID --value bidfs; }
old=$(daemon)
kill -KILL "$old"
until new=$(daemon) && [ "$new" -ne 0 ] && [ "$new" -ne "$old" ]; do sleep 0.1; done
"""


@pytest.mark.limit(300)
def test_team_server_survives_restarts(container):
    container.run("install", "-D", "/usr/bin/true", TRUE)
    script = steps()
    # there is no network: no server responds
    container.run("sh", "-euxc", script[1].replace("https://debuginfod.debian.net", "http://127.0.0.1:1"))
    ident = container.run("bidctl", f"--store={STORE}", "list").stdout.split("\t")[0]
    size = container.run("stat", "-c", "%s", TRUE).stdout.strip()
    assert container.run("findmnt", "-no", "FSTYPE", "/run/bidfs").stdout == "fuse.bidfs\n"
    absent = f"buildid/{'00' * 20}/executable"

    container.run("systemctl", "start", "nginx")
    container.run("sh", "-euxc", script[2])
    tools.wait_until(lambda: response(container, f"buildid/{ident}/executable") == f"200 {size}", "a cache hit")
    assert response(container, absent).startswith("424")
    container.run("systemctl", "stop", "bidfs-fetch")
    assert response(container, f"buildid/{ident}/executable") == f"200 {size}" and response(container, absent).startswith("424")
    # as at the start of the machine
    container.run("umount", "/run/bidfs-here")
    container.run("systemctl", "daemon-reload")
    container.run("systemctl", "start", "run-bidfs\\x2dhere.mount", "bidfs-fetch")
    assert container.run("findmnt", "-no", "FSTYPE", "/run/bidfs-here").stdout == "fuse.bidfs\n"
    script_of_member, = scripts_of_members()
    container.run("sh", "-euxc", script_of_member)
    assert "/etc/default/bidfs" in container.run("systemctl", "show", "-p", "EnvironmentFiles", "run-bidfs.mount").stdout
    # without a mount no file is absent
    for failure in (KILL, "umount /run/bidfs", "systemctl restart bidfs", "systemctl stop bidfs"):
        assert statuses(container, absent, failure) == {"424"}, failure
    assert response(container, "metrics").startswith("424")
    container.run("systemctl", "start", "bidfs")
    # the error that TEAM.md names: EHOSTUNREACH
    assert "(113: " in container.journal("bidfs-fetch")

    if exports.why_no_nfs():
        pytest.skip(exports.why_no_nfs())
    installed = "/usr/local/share/doc/bidfs/nfs/ganesha.conf"
    config = exports.unprivileged(container.run("cat", installed).stdout)
    container.run("sh", "-c", f'printf %s "$1" >{installed}', "sh", config)
    container.run("systemctl", "start", "dbus", "rpcbind")
    container.run("sh", "-euxc", script[3])

    def is_exported():
        return all(container.run("sh", "-c", f"nfs-cat 'nfs://127.0.0.1/bid/buildid/{ident}/elf?version={version}' | cmp - {TRUE}",
                                 status=None).returncode == 0 for version in (3, 4))

    tools.wait_until(is_exported, "an export")
    # A daemon that outlives its export: Wants=nfs-ganesha.service, the obvious setting, would start nfs-ganesha again at once,
    # without RestartSec=, and soon too often for systemd's start limit.
    container.run("sh", "-euc", "printf '[Service]\nExecStopPost=sleep 1\n' >/etc/systemd/system/bidfs.service.d/late.conf; "
                  "systemctl daemon-reload")
    pid = container.property("bidfs", "MainPID")
    container.run("kill", "-KILL", pid)
    # nfs-ganesha ends before, within 90 s (DefaultTimeoutStopSec=)
    tools.wait_until(lambda: container.property("bidfs", "MainPID") not in (pid, "0"), "another daemon")
    tools.wait_until(is_exported, "an export of the other mount")
    assert "Scheduled restart job" in (log := container.journal("bidfs")) and "immediately" not in log, log
    container.run("systemctl", "restart", "bidfs")
    tools.wait_until(is_exported, "an export of a third one")
    assert response(container, f"buildid/{ident}/executable") == f"200 {size}"
    container.run("systemctl", "stop", "bidfs")
    assert container.property("bidfs", "Result") == "success", container.journal("bidfs")
    # the state is "failed" if nfs-ganesha aborts while it ends, as it sometimes does
    assert container.property("nfs-ganesha", "ActiveState") in ("inactive", "failed"), container.journal("nfs-ganesha")
