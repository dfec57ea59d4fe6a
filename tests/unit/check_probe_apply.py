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
from bidctl_scene import DONE, ID_NOT_STORED, REFUSED, TIMEOUT, USAGE, read_json
from check_add import without_leaks
from check_probe import Probed, note
from check_probes import compiled

TRACING = "/sys/kernel/tracing"
# mount tracefs in a new mount namespace, as it may be absent outside
PRIVATE = f'[ -e {TRACING}/trace ] || mount -t tracefs tracefs {TRACING} || exit 99; exec "$@"'


class Uprobes:
    """An event group of the running kernel, removed at the end."""

    def __init__(self, scene):
        cases.need(os.geteuid() == 0, "only root may set uprobes")
        self.scene, self.instance = scene, f"{TRACING}/instances/{scene.group}"
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
                              stderr=subprocess.DEVNULL if status is None else None, env=without_leaks(self.scene), text=True,
                              check=False, timeout=TIMEOUT)
        assert status in (None, done.returncode), f"{command}: {done.returncode}"
        return str(done.returncode) if status is None else done.stdout

    def listed(self):
        return [line for line in self.shell(f"cat {TRACING}/uprobe_events").splitlines() if f":{self.scene.group}/" in line]

    def run(self, *command):
        return subprocess.run(["unshare", "--mount", "sh", "-c", PRIVATE, "sh", *map(str, command)], env=self.scene.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT)

    def bidctl(self, *arguments, status=DONE):
        done = self.run(self.scene.bidctl, "--store", self.scene.store, *arguments)
        assert done.returncode == status, (arguments, done)
        return done

    def hits(self, event):
        """Return the hits of an event in one run of the program."""
        self.shell(f"mkdir {self.instance} && echo 1 >{self.instance}/events/{self.scene.group}/{event}/enable && "
                   f"{self.scene.program} || echo 0 >{self.instance}/events/{self.scene.group}/{event}/enable", status=None)
        self.shell(f"echo 0 >{self.instance}/events/{self.scene.group}/{event}/enable; rmdir {self.instance}")
        profile = self.shell(f"cat {TRACING}/uprobe_profile")
        return next(int(line.split()[-1]) for line in profile.splitlines() if line.split()[-2] == event
                    and f"{self.scene.program}" in line)


def case_apply_sets_probes_in_the_kernel(scene):
    """A run of the program counts."""
    scene.on_store("probe", "add", scene.id, scene.define("one"))
    with Uprobes(scene) as kernel:
        event = f"{scene.group}/one"
        assert kernel.bidctl("probe", "apply", scene.id, f"{scene.group}:*").stdout == f"{event}\n"
        assert len(kernel.listed()) == 1 and kernel.hits("one") == 1
        done = kernel.bidctl("probe", "apply", scene.id, "one", status=REFUSED)
        assert f"-:{event}" in done.stderr, done.stderr
        assert len(kernel.listed()) == 1


def case_failed_apply_sets_no_probe(scene):
    scene.on_store("probe", "add", scene.id, scene.define("good"), scene.define("bad") + " x=%nothing")
    with Uprobes(scene) as kernel:
        done = kernel.bidctl("probe", "apply", scene.program, f"{scene.group}:*", status=REFUSED)
        assert "%nothing" in done.stderr and kernel.listed() == [], done.stderr
        made, = read_json(kernel.bidctl("--json", "probe", "apply", scene.program, "good").stdout)["result"]
        assert (made["id"], made["event"]) == (scene.id, f"{scene.group}/good"), made


def rebuilt(scene):
    """Replace the program by another build; return its id."""
    scene.program.unlink()
    shutil.copy(scene.two, scene.program)
    return re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", scene.program], stdout=subprocess.PIPE, text=True,
                                                        check=True).stdout)[1]


def case_apply_refuses_another_build(scene):
    """The message names both builds."""
    scene.on_store("probe", "add", scene.id, scene.define("one"))
    with Uprobes(scene) as kernel:
        other = rebuilt(scene)
        # the path has no file of this build
        for operand in (scene.id, scene.program):
            done = kernel.bidctl("probe", "apply", operand, "one", status=REFUSED)
            assert other in done.stderr and scene.id in done.stderr and done.stderr.count("\n") == 1, done.stderr
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", scene.program], check=True)
        done = kernel.bidctl("probe", "apply", scene.id, "one", status=REFUSED)
        assert "no build-id" in done.stderr and scene.id in done.stderr and kernel.listed() == [], done.stderr


def case_existing_events_stay(scene):
    """An existing event is neither extended nor removed."""
    one, two, bad = scene.define("one"), scene.define("two"), scene.define("xbad") + " x=%nothing"
    scene.on_store("probe", "add", scene.id, two, one, bad)
    with Uprobes(scene) as kernel:
        for theirs, has in ((one, "set already"), (scene.define("one", 1), "an event of that name already")):
            kernel.shell(f"echo {shlex.quote(theirs)} >>{TRACING}/uprobe_events")
            before = kernel.listed()
            for wanted in (["one"], [f"{scene.group}:*"]):
                done = kernel.bidctl("probe", "apply", scene.id, *wanted, status=REFUSED)
                assert has in done.stderr and f"perf probe --del {scene.group}:one" in done.stderr, done.stderr
                assert done.stderr.count("\n") == 1 and kernel.listed() == before, done.stderr
            kernel.__exit__()


def case_points_added_by_others_stay(scene):
    """Another process extends the new event before a failed apply removes it."""
    cases.need(shutil.which("strace"), "no strace")
    scene.on_store("probe", "add", scene.id, scene.define("one"), scene.define("xbad") + " x=%nothing")
    with Uprobes(scene) as kernel:
        join = scene.home / "join"
        other = scene.define("one", 1)
        # bidctl is stopped before its second definition
        join.write_text(f"strace -qq -o {scene.home}/trace -e trace=write -P {TRACING}/uprobe_events "
                        f"-e inject=write:delay_enter=1500000:when=2 {scene.bidctl} --store {scene.store} probe apply {scene.id} "
                        f"'{scene.group}:*' & for i in $(seq 100); do grep -q {scene.group}/one {TRACING}/uprobe_events && "
                        f"break; sleep .05; done\n"
                        f"echo '{other}' >>{TRACING}/uprobe_events; wait $!")
        assert kernel.shell(f"sh {join}", status=None) == str(REFUSED)
        left, = kernel.listed()
        assert int(left.rsplit(":", 1)[1], 16) == scene.place + 1, left


def program(scene, build_id):
    scene.program.unlink()
    compiled(scene, scene.program.name, [], "-g", f"-Wl,--build-id=0x{build_id}")


def case_apply_accepts_id_aliases(scene):
    short, sha1 = "1122334455667788", "1122334455667788aabbccddeeff001122334455"
    longer = sha1 + "66" * 12
    zeros = short + "0" * 24
    for asked, found, status in ((short, sha1, REFUSED), (sha1, short, REFUSED), (sha1, longer, DONE), (longer, sha1, REFUSED),
                                 (short, zeros, REFUSED), (zeros, short, DONE), (short, short, DONE)):
        with Uprobes(scene) as kernel:
            program(scene, asked)
            scene.on_store("add", scene.program)
            scene.on_store("probe", "add", asked, scene.define("one"))
            program(scene, found)
            kernel.bidctl("probe", "apply", asked, f"{scene.group}:one", status=status)
            assert len(kernel.listed()) == (status == DONE), (asked, found)
            scene.on_store("remove", asked)


class Modules:
    """
    A fake machine with a running kernel and loaded modules, described by notes in a directory; its lists of events are plain files.
    """

    def __init__(self, scene):
        cases.need(os.geteuid() == 0 and os.path.isdir(TRACING) and os.path.isdir("/sys/module"), "only root may mount over /sys")
        self.scene, self.tracing, self.module = scene, scene.home / "tracing", scene.home / "module"
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
        done = subprocess.run(["unshare", "--mount", "sh", "-c", over, "sh", *map(str, command)], env=self.scene.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT)
        assert done.returncode == status, (command, done)
        listed = self.list.read_text()
        self.forget()
        return done, listed

    def apply(self, build, *arguments, status=DONE):
        """Run apply; return its output."""
        command = [self.scene.bidctl, "--store", self.scene.store, "probe", "apply", build, f"{self.scene.group}:*", *arguments]
        done, listed = self.run(*command, status=status)
        assert bool(listed) == (status == DONE), listed
        return done.stderr


def case_module_build_is_checked(scene):
    """The loaded module's build counts, and not the kernel's; another build is named."""
    machine = Modules(scene)
    scene.on_store("probe", "add", scene.id, f"p:{scene.group}/in worker:work+0x1b", f"r:{scene.group}/out worker:work")
    other = ID_NOT_STORED
    # no module is loaded
    said = machine.apply(scene.id, status=REFUSED)
    assert "/sys/module/worker/" in said and scene.id in said and said.count("\n") == 1, said
    machine.load("worker", scene.id)
    assert machine.apply(scene.id) == ""
    machine.load("worker", other)
    machine.load("worker2", scene.id)
    said = machine.apply(scene.id, status=REFUSED)
    assert other in said and scene.id in said and said.count("\n") == 1, said
    scene.one_error("probe", "add", scene.id, "p:a/b ../worker:work", status=USAGE, has="not a definition")


def case_module_under_the_kernels_id_is_refused(scene):
    """A definition under the kernel's id does not say which build of the module it means."""
    machine = Modules(scene)
    kernel = pathlib.Path("/sys/kernel/notes").read_bytes()
    kernel = kernel[kernel.index(b"GNU\0") + 4:][:20].hex()
    place = scene.store / "[kernel.kallsyms]" / kernel
    link = scene.store / ".build-id" / kernel[:2] / kernel[2:]
    for directory in (place, link.parent):
        directory.mkdir(parents=True, exist_ok=True)
    (place / "kallsyms").write_text("ffffffff81000000 T _text\n")
    link.symlink_to(f"../../[kernel.kallsyms]/{kernel}")
    scene.on_store("probe", "add", "kernel", f"p:{scene.group}/in worker:work+0x1b", f"p:{scene.group}/of _text")
    machine.load("worker", scene.id)
    said = machine.apply("kernel", status=REFUSED)
    assert "/sys/module/worker/" in said and kernel in said and said.count("\n") == 1, said
    # probes of the kernel itself work
    scene.on_store("probe", "remove", "kernel", "in")
    assert machine.apply("kernel") == ""


def case_refusal_of_the_kernel_is_explained(scene):
    """The message explains why the kernel refused a definition."""
    scene.on_store("probe", "add", scene.id, scene.define("one"))
    spaced = scene.home / "with blank"
    spaced.mkdir()
    blank = pathlib.Path(shutil.copy(scene.program, spaced / "program"))
    with Uprobes(scene) as kernel:
        done = kernel.bidctl("probe", "apply", blank, "one", status=REFUSED)
        assert "blank" in done.stderr and str(blank) in done.stderr and done.stderr.count("\n") == 1, done.stderr
        cases.need(shutil.which("strace"), "no strace")
        for call, error, has in (("write", "ENOENT", "no such file"), ("openat", "ENOENT", "this kernel has no"),
                                 ("write", "EEXIST", "an event of that name already")):
            trace = scene.home / "trace"
            done = kernel.shell(f"strace -qq -o {trace} -e trace={call} -P {TRACING}/uprobe_events -e inject={call}:error={error} "
                                f"{scene.bidctl} --store {scene.store} probe apply {scene.id} one 2>&1 || :")
            assert has in done and done.count("\n") == 1, done


if __name__ == "__main__":
    cases.main(globals(), Probed, tools=("cc", "readelf"))
