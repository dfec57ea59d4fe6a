#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let bidctl probe apply set uprobes in the running kernel.

usage: check_probe_apply.py BIDCTL [CASE...]
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import cases
from bidctl_env import DONE, ID_NOT_STORED, REFUSED, TIMEOUT, USAGE, read_json
from check_add import without_leaks
from check_probe import Probed, note
from check_probes import compiled

TRACING = "/sys/kernel/tracing"
# mount tracefs in a new mount namespace, as it may be absent outside
PRIVATE = f'[ -e {TRACING}/trace ] || mount -t tracefs tracefs {TRACING} || exit 99; exec "$@"'


class Uprobes:
    """An event group of the running kernel, removed at the end."""

    def __init__(self, env):
        cases.need(os.geteuid() == 0, "only root may set uprobes")
        self.env, self.instance = env, f"{TRACING}/instances/{env.group}"
        cases.need(self.shell(f"test -w {TRACING}/uprobe_events", status=None) == "0", "no uprobes in this kernel, or no tracefs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shell(f"rmdir {self.instance}", status=None)
        for event in {line.split(":", 1)[1].split()[0] for line in self.listed()}:
            self.shell(f"echo -:{event} >>{TRACING}/uprobe_events")

    def shell(self, command, status=0):
        """Return the output, or with @status None the exit status."""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", PRIVATE, "sh", "sh", "-c", command], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL if status is None else None, env=without_leaks(self.env), text=True,
                              check=False, timeout=TIMEOUT)
        assert status in (None, done.returncode), f"{command}: {done.returncode}"
        return str(done.returncode) if status is None else done.stdout

    def listed(self):
        return [line for line in self.shell(f"cat {TRACING}/uprobe_events").splitlines() if f":{self.env.group}/" in line]

    def run(self, *command):
        return subprocess.run(["unshare", "--mount", "sh", "-c", PRIVATE, "sh", *map(str, command)], env=self.env.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT)

    def bidctl(self, *arguments, status=DONE):
        done = self.run(self.env.bidctl, "--store", self.env.store, *arguments)
        assert done.returncode == status, (arguments, done)
        return done

    def hits(self, event):
        """Return the hits of an event in one run of the program."""
        self.shell(f"mkdir {self.instance} && echo 1 >{self.instance}/events/{self.env.group}/{event}/enable && "
                   f"{self.env.program} || echo 0 >{self.instance}/events/{self.env.group}/{event}/enable", status=None)
        self.shell(f"echo 0 >{self.instance}/events/{self.env.group}/{event}/enable; rmdir {self.instance}")
        profile = self.shell(f"cat {TRACING}/uprobe_profile")
        return next(int(line.split()[-1]) for line in profile.splitlines() if line.split()[-2] == event
                    and f"{self.env.program}" in line)


def case_apply_sets_probes_in_the_kernel(env):
    """A run of the program counts."""
    env.on_store("probe", "add", env.id, env.define("one"))
    with Uprobes(env) as kernel:
        event = f"{env.group}/one"
        assert kernel.bidctl("probe", "apply", "--dry-run", env.id, "one").stdout == f"{event}\twould be set\n"
        assert kernel.listed() == []
        assert kernel.bidctl("probe", "apply", env.id, f"{env.group}:*").stdout == f"{event}\n"
        assert len(kernel.listed()) == 1 and kernel.hits("one") == 1
        done = kernel.bidctl("probe", "apply", env.id, "one", status=REFUSED)
        assert f"-:{event}" in done.stderr, done.stderr
        assert len(kernel.listed()) == 1


def case_failed_apply_sets_no_probe(env):
    env.on_store("probe", "add", env.id, env.define("good"), env.define("bad") + " x=%nothing")
    with Uprobes(env) as kernel:
        done = kernel.bidctl("probe", "apply", env.program, f"{env.group}:*", status=REFUSED)
        assert "%nothing" in done.stderr and kernel.listed() == [], done.stderr
        made, = read_json(kernel.bidctl("--json", "probe", "apply", env.program, "good").stdout)["result"]
        assert (made["id"], made["event"]) == (env.id, f"{env.group}/good"), made


def rebuilt(env):
    """Replace the program by another build; return its id."""
    env.program.unlink()
    shutil.copy(env.two, env.program)
    return re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", env.program], stdout=subprocess.PIPE, text=True,
                                                        check=True).stdout)[1]


def case_apply_refuses_another_build(env):
    """The message names both builds."""
    env.on_store("probe", "add", env.id, env.define("one"))
    with Uprobes(env) as kernel:
        other = rebuilt(env)
        # the path has no file of this build
        for operand in (env.id, env.program):
            done = kernel.bidctl("probe", "apply", operand, "one", status=REFUSED)
            assert other in done.stderr and env.id in done.stderr and done.stderr.count("\n") == 1, done.stderr
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", env.program], check=True)
        done = kernel.bidctl("probe", "apply", env.id, "one", status=REFUSED)
        assert "no build-id" in done.stderr and env.id in done.stderr and kernel.listed() == [], done.stderr


def case_existing_events_stay(env):
    """An existing event is neither extended nor removed."""
    one, two, bad = env.define("one"), env.define("two"), env.define("xbad") + " x=%nothing"
    env.on_store("probe", "add", env.id, two, one, bad)
    with Uprobes(env) as kernel:
        for theirs in (one, env.define("one", 1)):
            kernel.shell(f"echo {shlex.quote(theirs)} >>{TRACING}/uprobe_events")
            before = kernel.listed()
            for wanted in (["one"], [f"{env.group}:*"]):
                done = kernel.bidctl("probe", "apply", env.id, *wanted, status=REFUSED)
                assert "has this event already" in done.stderr and f"perf probe --del {env.group}:one" in done.stderr, done.stderr
                assert done.stderr.count("\n") == 1 and kernel.listed() == before, done.stderr
            kernel.__exit__()


def program(env, build_id):
    env.program.unlink()
    compiled(env, env.program.name, [], "-g", f"-Wl,--build-id=0x{build_id}")


def case_apply_accepts_id_aliases(env):
    short, sha1 = "1122334455667788", "1122334455667788aabbccddeeff001122334455"
    longer = sha1 + "66" * 12
    zeros = short + "0" * 24
    for wanted, found, status in ((short, sha1, REFUSED), (sha1, short, REFUSED), (sha1, longer, DONE), (longer, sha1, REFUSED),
                                  (short, zeros, REFUSED), (zeros, short, DONE), (short, short, DONE)):
        with Uprobes(env) as kernel:
            program(env, wanted)
            env.on_store("add", env.program)
            env.on_store("probe", "add", wanted, env.define("one"))
            program(env, found)
            kernel.bidctl("probe", "apply", wanted, f"{env.group}:one", status=status)
            assert len(kernel.listed()) == (status == DONE), (wanted, found)
            env.on_store("remove", wanted)


class Modules:
    """
    A fake machine with a running kernel and loaded modules, described by notes in a directory; its lists of events are plain files.
    """

    def __init__(self, env):
        cases.need(os.geteuid() == 0 and os.path.isdir(TRACING) and os.path.isdir("/sys/module"), "only root may mount over /sys")
        self.env, self.tracing, self.module = env, env.home / "tracing", env.home / "module"
        (self.tracing / "events").mkdir(parents=True)
        self.module.mkdir()
        self.list = self.tracing / "kprobe_events"
        self.forget()

    def forget(self):
        for name in ("trace", "kprobe_events"):
            (self.tracing / name).write_text("")

    def load(self, name, build_id):
        notes = self.module / name / "notes"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / ".note.gnu.build-id").write_bytes(note(build_id))

    def run(self, *command, status=DONE):
        """Run apply; return its output and the set events."""
        over = f'mount --bind {self.tracing} {TRACING} && mount --bind {self.module} /sys/module || exit 99; exec "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", over, "sh", *map(str, command)], env=self.env.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT)
        assert done.returncode == status, (command, done)
        listed = self.list.read_text()
        self.forget()
        return done, listed

    def apply(self, build, *arguments, status=DONE):
        """Run apply; return its output."""
        command = [self.env.bidctl, "--store", self.env.store, "probe", "apply", build, f"{self.env.group}:*", *arguments]
        done, listed = self.run(*command, status=status)
        assert bool(listed) == (status == DONE), listed
        return done.stderr


def case_module_build_is_checked(env):
    """The loaded module's build counts, and not the kernel's; another build is named."""
    machine = Modules(env)
    env.on_store("probe", "add", env.id, f"p:{env.group}/in worker:work+0x1b", f"r:{env.group}/out worker:work")
    other = ID_NOT_STORED
    # no module is loaded
    output = machine.apply(env.id, status=REFUSED)
    assert "/sys/module/worker/" in output and env.id in output and output.count("\n") == 1, output
    machine.load("worker", env.id)
    assert machine.apply(env.id) == ""
    machine.load("worker", other)
    machine.load("worker2", env.id)
    output = machine.apply(env.id, status=REFUSED)
    assert other in output and env.id in output and output.count("\n") == 1, output
    env.one_error("probe", "add", env.id, "p:a/b ../worker:work", status=USAGE, has="not a definition")


def case_module_under_the_kernels_id_is_refused(env):
    """A definition under the kernel's id does not say which build of the module it means."""
    machine = Modules(env)
    kernel = pathlib.Path("/sys/kernel/notes").read_bytes()
    kernel = kernel[kernel.index(b"GNU\0") + 4:][:20].hex()
    place = env.store / "[kernel.kallsyms]" / kernel
    link = env.store / ".build-id" / kernel[:2] / kernel[2:]
    for directory in (place, link.parent):
        directory.mkdir(parents=True, exist_ok=True)
    (place / "kallsyms").write_text("ffffffff81000000 T _text\n")
    link.symlink_to(f"../../[kernel.kallsyms]/{kernel}")
    env.on_store("probe", "add", "kernel", f"p:{env.group}/in worker:work+0x1b", f"p:{env.group}/of _text")
    machine.load("worker", env.id)
    output = machine.apply("kernel", status=REFUSED)
    assert "/sys/module/worker/" in output and kernel in output and output.count("\n") == 1, output
    # probes of the kernel itself work
    env.on_store("probe", "remove", "kernel", "in")
    assert machine.apply("kernel") == ""


def case_refusal_of_the_kernel_is_explained(env):
    """The message explains why the kernel refused a definition."""
    env.on_store("probe", "add", env.id, env.define("one"))
    spaced = env.home / "with blank"
    spaced.mkdir()
    blank = pathlib.Path(shutil.copy(env.program, spaced / "program"))
    with Uprobes(env) as kernel:
        done = kernel.bidctl("probe", "apply", blank, "one", status=REFUSED)
        assert "blank" in done.stderr and str(blank) in done.stderr and done.stderr.count("\n") == 1, done.stderr
        cases.need(shutil.which("strace"), "no strace")
        for call, error, has in (("write", "ENOENT", "no such file"), ("openat", "ENOENT", "this kernel has no"),
                                 ("write", "EEXIST", "another event of that name")):
            trace = env.home / "trace"
            done = kernel.shell(f"strace -qq -o {trace} -e trace={call} -P {TRACING}/uprobe_events -e inject={call}:error={error} "
                                f"{env.bidctl} --store {env.store} probe apply {env.id} one 2>&1 || :")
            assert has in done and done.count("\n") == 1, done


if __name__ == "__main__":
    cases.main(globals(), Probed, tools=("cc", "readelf"))
