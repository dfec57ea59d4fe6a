#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run bidctl setup on a directory that stands for a machine, and in a home, with a systemctl that logs its calls.

usage: check_setup.py BIDCTL [--no-fetch] [CASE...]
"""
import os

import cases
from bidctl_env import REFUSED, ERROR, USAGE, Env

DROP_IN = "bidfs.service.d/setup.conf"
SYSTEMCTL = '#!/bin/sh\necho "$*" >>"$HOME/../calls"\ncase "$*" in *is-enabled*) exit ${ENABLED:-1} ;; esac\nexit ${FAIL:-0}\n'


class Machine(Env):
    """A home, and a machine in a directory."""

    def __init__(self, bidctl, built, directory):
        super().__init__(bidctl, built, directory)
        self.top, self.calls = directory / "top", directory / "calls"
        (self.top / "etc").mkdir(parents=True)
        (self.top / "usr/lib").mkdir(parents=True)
        (directory / "bin").mkdir()
        program = directory / "bin/systemctl"
        program.write_text(SYSTEMCTL)
        program.chmod(0o755)
        self.environment |= {"PATH": f"{directory}/bin:{os.environ['PATH']}", "XDG_RUNTIME_DIR": "/run/user/7"}

    def called(self):
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return lines

    def setup(self, who, *arguments, **keywords):
        where = [f"--root={self.top}"] if who == "system" else []
        return self.run("setup", who, *where, *arguments, **keywords)

    def servers(self):
        text = (self.top / "etc/systemd/system" / DROP_IN).read_text()
        return text.partition("DEBUGINFOD_URLS=")[2].partition('"')[0]


def tree(top):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(top.rglob("*"))}


def case_undo_of_system_leaves_nothing_behind(env):
    (env.top / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True)
    (env.top / "usr/lib/debug").mkdir()
    (env.top / "usr/lib/debug/kept").touch()
    before = tree(env.top)
    done = env.setup("system", "--dry-run").stdout
    assert f"would be written\t{env.top}/etc/systemd/system/{DROP_IN}\n" in done and "bidfs-setup" in done, done
    assert all(line.startswith("would be ") for line in done.splitlines()), done
    assert tree(env.top) == before and not env.called()
    done = env.setup("system").stdout
    assert f"written\t{env.top}/etc/systemd/system/{DROP_IN}\n" in done, done
    assert env.called() == [f"--root={env.top} enable usr-lib-debug-.build\\x2did.automount"]
    assert "lower=/run/bidfs.lower/debug" in (env.top / "etc/systemd/system" / DROP_IN).read_text()
    hook = (env.top / "etc/dpkg/dpkg.cfg.d/bidfs-setup").read_text()
    assert "pre-invoke=systemctl stop 'usr-lib-debug-.build\\x2did.automount" in hook and "post-invoke=" in hook
    once = tree(env.top)
    done = env.setup("system", "--undo", "-n").stdout
    assert f"would be removed\t{env.top}/etc/systemd/system/{DROP_IN}\n" in done, done
    assert tree(env.top) == once and not env.called()
    env.setup("system")
    assert tree(env.top) == once
    env.called()
    done = env.setup("system", "--undo", "--json").stdout
    assert '"disabled"' in done, done
    assert env.called() == [f"--root={env.top} disable usr-lib-debug-.build\\x2did.automount"]
    assert tree(env.top) == before


def case_system_takes_the_servers_of_the_distribution(env):
    for text, url in (('ID=debian\n', "https://debuginfod.debian.net"),
                      ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', "https://debuginfod.ubuntu.com"),
                      ('ID_LIKE=debian\nID=ubuntu\n', "https://debuginfod.ubuntu.com"),
                      ('ID=ubuntu\nID_LIKE=debian\n', "https://debuginfod.ubuntu.com"),
                      ('ID="opensuse-leap"\n', "https://debuginfod.opensuse.org"),
                      ('ID=archaic\n', "https://debuginfod.elfutils.org"),
                      ('ID=', "https://debuginfod.elfutils.org")):
        (env.top / "etc/os-release").write_text(text)
        assert f"set up for\t{url}\n" in env.setup("system").stdout
        assert env.servers() == url
    env.setup("system", "--url=http://one/%41", "--url=http://two")
    assert env.servers() == "http://one/%%41 http://two"
    env.setup("system", "--url=ima:enforcing http://one", "--url=http://two", "--url=http://three")
    assert env.servers() == "ima:enforcing http://one ima:ignore http://two http://three"
    env.setup("system", DEBUGINFOD_URLS="http://three")
    assert env.servers() == "http://three"
    (env.top / "etc/debuginfod").mkdir()
    (env.top / "etc/debuginfod/own.urls").write_text("http://four\n")
    assert "set up for\tservers of /etc/debuginfod\n" in env.setup("system").stdout
    assert env.servers() == ""


def case_undo_of_user_leaves_nothing_behind(env):
    (env.home / ".gdbinit").write_text("set history save on")
    before = tree(env.home)
    for enabled in ("1", "0"):
        assert "would be changed" in env.setup("user", "-n", ENABLED=enabled).stdout and tree(env.home) == before
        env.setup("user", ENABLED=enabled)
        env.setup("user", ENABLED=enabled)
        gdb = (env.home / ".gdbinit").read_text().splitlines()
        assert gdb[0] == "set history save on", gdb
        assert gdb[-1] == "set debug-file-directory /run/user/7/bid/debug:/usr/lib/debug", gdb
        assert "target.debug-file-search-paths /run/user/7/bid/debug\n" in (env.home / ".lldbinit").read_text()
        assert env.called()[-2:] == ["--user enable bidfs.service", "--user restart bidfs.service"]
        with open(env.home / ".gdbinit", "a") as file:
            file.write("set pagination off\n")
        after = tree(env.home)
        env.called()
        done = env.setup("user", "--undo", "--dry-run").stdout
        assert done.count("would ") >= 3 and tree(env.home) == after and not env.called(), done
        env.setup("user", "--undo")
        assert ("--user disable bidfs.service" in env.called()) == (enabled == "1")
        assert (env.home / ".gdbinit").read_text() == "set history save on\nset pagination off\n"
        (env.home / ".gdbinit").write_text("set history save on")
        assert tree(env.home) == before


def case_gdb_reads_the_file_that_setup_changes(env):
    (env.home / ".config/gdb").mkdir(parents=True)
    (env.home / ".config/gdb/gdbinit").touch()
    env.setup("user")
    assert "bid/debug" in (env.home / ".config/gdb/gdbinit").read_text() and not (env.home / ".gdbinit").exists()
    other = env.home / "other/gdb/gdbinit"
    other.parent.mkdir(parents=True)
    other.write_text("set confirm off\n")
    env.setup("user", XDG_CONFIG_HOME=str(other.parent.parent))
    assert "bid/debug" in other.read_text() and not (env.home / ".gdbinit").exists()
    env.setup("user", "--undo", XDG_CONFIG_HOME=str(other.parent.parent))
    assert other.read_text() == "set confirm off\n"


def case_undo_takes_the_line_out_of_each_file_of_gdb(env):
    env.setup("user")
    (env.home / ".config/gdb").mkdir(parents=True)
    (env.home / ".config/gdb/gdbinit").write_text("set confirm off\n")
    env.setup("user", "--undo")
    assert not (env.home / ".gdbinit").exists() and (env.home / ".config/gdb/gdbinit").read_text() == "set confirm off\n"


def case_impossible_setup_is_refused(env):
    env.one_error("setup", "nobody", f"--root={env.top}", status=USAGE, has="'nobody'")
    env.one_error("setup", "user", f"--root={env.top}", status=USAGE, has="--root")
    env.one_error("setup", "system", f"--root={env.top}", "--undo", status=REFUSED, has="nothing to undo")
    env.one_error("setup", "system", f"--root={env.top}", "--url=http://x/\"", status=USAGE, has="quotes")
    assert "'bidctl setup system --undo' removes" in env.setup("system", status=ERROR, FAIL="4").stderr
    env.setup("system", "--undo")
    (env.top / "usr/lib/debug").mkdir()
    (env.top / "usr/lib/debug/.build-id").symlink_to("elsewhere")
    env.one_error("setup", "system", f"--root={env.top}", status=ERROR, has="cannot mount on")


def case_url_with_a_password_is_refused_before_a_change(env):
    env.setup("system", "--url=http://one")
    before = tree(env.top)
    for arguments, variable in ((["--url=http://me:secret@one"], ""), ([], "http://two http://me:secret@one")):
        done = env.setup("system", *arguments, status=USAGE, DEBUGINFOD_URLS=variable)
        assert "netrc" in done.stderr and "secret" not in done.stdout + done.stderr, done
        assert tree(env.top) == before
    env.setup("system", "--undo", DEBUGINFOD_URLS="http://me:secret@one")


def case_undo_keeps_the_empty_directory_of_a_package(env):
    (env.top / "usr/lib/debug/.build-id").mkdir(parents=True)
    env.setup("system")
    env.setup("system", "--undo")
    assert (env.top / "usr/lib/debug/.build-id").is_dir()


def case_missing_service_manager_changes_nothing(env):
    before = tree(env.home)
    done = env.setup("user", status=ERROR, FAIL="1")
    assert done.stderr.startswith("bidctl: error: 'systemctl' failed: see the line above") and tree(env.home) == before, done
    assert ("does not run systemd" in done.stderr) == (not os.path.exists("/run/systemd/system")), done


def case_wrong_url_is_refused(env):
    env.one_error("setup", "system", f"--root={env.top}", "--url=http://one two", status=USAGE, has="not a server's URL")
    assert list((env.top / "etc").iterdir()) == []


if __name__ == "__main__":
    cases.main(globals(), Machine, tools=["cc"], fetching=[case_wrong_url_is_refused])
