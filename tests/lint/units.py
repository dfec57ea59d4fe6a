#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the commands of systemd units with --help: units.py PROGRAM... -- UNIT...

A unit must also start without its environment file, which the man page names, and systemd-analyze, if installed, must accept the
unit. A unit for users is called NAME.user.service here.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from lint import ROOT, finish, skip


def helped(program):
    return subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout


def is_offered(option, text):
    """Return whether the --help @text has an option "--store", a mount option "-o url", a command or an operand."""
    return bool(re.search(rf"^ .*{re.escape(option)}(?![\w-])", text, re.MULTILINE))


def options_in(words):
    """Return the options and commands of a command line, without their values."""
    found, words = [], list(words)
    while words:
        word = words.pop(0)
        if word == "-o":
            found += [f"-o {option.split('=')[0]}" for option in words.pop(0).split(",")]
        elif re.match(r"-|[a-z]+$", word):
            found.append(word.split("=")[0])
    return found


def started(unit, programs):
    """Yield the wrong options in the commands of @unit."""
    lines = re.findall(r"^ExecStart=(\S+)(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    ours = [(programs[pathlib.Path(path).name], words.split()) for path, words in lines if pathlib.Path(path).name in programs]
    if not ours:
        return [f"{unit.name}: starts none of {', '.join(programs)}"]
    return [f"{unit.name}: '{option}' is not in '{program} --help'" for program, words in ours
            for option in options_in(words) if not is_offered(option, helped(program))]


def environment(unit):
    """Yield the environment files that @unit requires, or that mount.bidfs(8) does not name."""
    page = (ROOT / "docs/mount.bidfs.8").read_text(encoding="utf-8")
    files = re.findall(r"^EnvironmentFile=(-?)(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{unit.name}: does not start without '{path}'" for optional, path in files if not optional] + \
        [f"{unit.name}: '{path}' is not in mount.bidfs(8)" for _, path in files if f"\n.Pa {path}" not in page]


def verified(unit, programs, place):
    """Yield the complaints of systemd-analyze about @unit. Programs must exist for it, though they are not installed."""
    name = unit.name.replace(".user.", ".")
    copy = place / name
    copy.write_text(re.sub(r"^(ExecStart=)\S*/(\S+)", lambda found: found[1] + programs.get(found[2], found[2]),
                           unit.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "--user" if name != unit.name else "--system", "verify", "--man=no", copy],
                          env={**os.environ, "XDG_RUNTIME_DIR": str(place)}, stderr=subprocess.PIPE, text=True)
    lines = done.stderr.splitlines()
    # complaints about other units are ignored, and warnings about ours
    complaints = [line for line in lines if name in line] or (lines[-1:] if done.returncode != 0 else [])
    return [f"{unit.name}: {line}" for line in complaints]


split = sys.argv.index("--")
programs = {pathlib.Path(program).name: str(pathlib.Path(program).resolve()) for program in sys.argv[1:split]}
units = [pathlib.Path(unit) for unit in sys.argv[split + 1:]]
problems = [problem for unit in units for problem in started(unit, programs) + environment(unit)]
if shutil.which("systemd-analyze"):
    with tempfile.TemporaryDirectory() as top:
        for unit in units:
            place = pathlib.Path(top, unit.name)
            place.mkdir()
            problems += verified(unit, programs, place)
elif not problems:
    skip(f"only the options of {len(units)} units were looked at; not installed: systemd-analyze")
finish(problems, f"{len(units)} units")
