#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the completions of a shell with --help: completions.py SHELL BIDCTL [MOUNT.BIDFS]

Run the shell with the files of contrib/completions and complete commands, the long options of each, and some values.
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

from lint import ROOT, finish, skip

FOLDER = ROOT / "contrib" / "completions"
PROMPT = b"<go>"


def help_of(*command):
    return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout


def values_in(text):
    """Split "VERB OBJECT: id, time (newest first) or size (default: id)" into values."""
    return set(re.split(r", | or ", re.sub(r" \([^)]*\)|^[^:]*: ", "", text).strip()))


def of_bidctl(program):
    """Return the expected words for each line: {line: words}."""
    text = help_of(program)
    found = {"bidctl ": set(re.findall(r"^  ([a-z]+) ", text, re.M))}
    for command in found["bidctl "]:
        helped = help_of(program, command)
        found[f"bidctl {command} --"] = set(re.findall(r"^  (?:-., |    )(--[a-z-]+)", helped, re.M))
        for option in ("link", "by", "require", "color"):
            named = re.search(rf"^      --{option}=\S+ +(.*)", helped, re.M)
            if named:
                found[f"bidctl {command} --{option}="] = found[f"bidctl {command} --{option} "] = values_in(named[1])
        # words in quotes are offered beside directories, of which there are none; zsh completes a single word and lists nothing
        for option, named in re.findall(r"^      (--[a-z-]+)=(?:DIR|LIST) +(.*)", helped, re.M):
            words = set(re.findall("'([a-z]+)'", named))
            if len(words) > 1:
                found[f"bidctl {command} {option}="] = found[f"bidctl {command} {option} "] = words
        verbs = re.match(r"Usage: \S+ \S+ \[OPTION\.\.\.\] \[?([a-z]+(?:\|[a-z]+)+)", helped)
        # zsh completes the common "o" of "on" and "off" first
        if verbs and command != "offline":
            found[f"bidctl {command} "] = set(re.findall("[a-z]+", verbs[1]))
    kinds = re.search(r"KIND is ([^;]*);", help_of(program, "get"))
    for option in ("kind", "missing"):
        found[f"bidctl list --{option}="] = found[f"bidctl list --{option} "] = values_in(kinds[1].replace(" (the default)", ""))
    return found


def of_mount(program):
    text, found = help_of(program), {}
    found["mount.bidfs --"] = set(re.findall(r"^  -., (--[a-z-]+)", text, re.M))
    found["mount.bidfs -o "] = {name for names in re.findall(r"^  -o ([a-z_]+(?:, [a-z_]+)?)", text, re.M)
                                for name in names.split(", ")}
    for option, values in re.findall(r"^  -o ([a-z_]+)=([a-z]+(?:\|[a-z]+)+)", text, re.M):
        found[f"mount.bidfs -o {option}="] = set(values.split("|"))
    return found


def of_directories(home):
    """Return the expected directories of links=; fish completes none."""
    for name in ("one", "two"):
        pathlib.Path(home, name).mkdir()
    return {f"mount.bidfs -o links={home}/": {"one", "two"}}


def ask_bash(lines):
    for line in lines:
        # bash makes "=" a word
        words = line.replace("=", " = ").split() + [""] * line.endswith(" ")
        function = "_" + words[0].replace(".", "_")
        script = f'. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function} 2>/dev/null; printf "%s\\n"'
        script += ' "${COMPREPLY[@]}"'
        yield subprocess.run(["bash", "--norc", "-c", script, "bash", FOLDER / f"{words[0]}.bash", *words], check=True,
                             capture_output=True, text=True).stdout.splitlines()


def ask_fish(lines):
    sources = "; ".join(f"source {file}" for file in FOLDER.glob("*.fish"))
    for line in lines:
        done = subprocess.run(["fish", "--no-config", "-c", f"{sources}; complete -C $argv[1]", line], check=True,
                              capture_output=True, text=True)
        yield [item.split("\t")[0] for item in done.stdout.splitlines()] + done.stderr.splitlines()


class Terminal:
    """An interactive zsh: without a terminal zsh completes nothing."""

    def __init__(self, functions):
        self.master, slave = pty.openpty()
        self.out = b""
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 500, 250, 0, 0))
        self.shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                      env={**os.environ, "TERM": "dumb"})
        os.close(slave)
        self.run(f"unsetopt zle_bracketed_paste; unset zle_bracketed_paste; setopt no_beep no_prompt_sp; LISTMAX=0; "
                 f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -D -u; PS1='<''go>'")

    def read_until(self, end):
        while end not in self.out:
            self.out += os.read(self.master, 65536)
        before, _, self.out = self.out.partition(end)
        return before.decode()

    def run(self, line):
        os.write(self.master, line.encode() + b"\n")
        self.read_until(PROMPT)

    def complete(self, line):
        """Return the lines below the cursor."""
        os.write(self.master, line.encode() + b"\t\x15echo do''ne\n")
        shown = self.read_until(b"done\r\n").splitlines()
        self.read_until(PROMPT)
        return [text for text in shown[1:] if text.strip() and not text.startswith(PROMPT.decode()) and "do''ne" not in text]

    def close(self):
        os.write(self.master, b"exit\n")
        self.shell.wait()
        os.close(self.master)


def ask_zsh(lines):
    with tempfile.TemporaryDirectory() as functions:
        for file in FOLDER.glob("*.zsh"):
            pathlib.Path(functions, f"_{file.stem}").symlink_to(file)
        with contextlib.closing(Terminal(functions)) as terminal:
            for line in lines:
                # "NAME -- DESCRIPTION"
                yield [name for text in terminal.complete(line) for name in re.split(r"\s--\s", text)[0].split()]


def names_in(line, offered):
    """Return the words without prefixes and suffixes, which differ between shells."""
    if line.endswith("/"):
        return {pathlib.Path(item).name for item in offered}
    begin = line.split(" ")[-1] if "=" in line else ""
    names = {item.strip().removeprefix(begin).removesuffix("=") for item in offered} - {""}
    # only long options are complete in --help
    return {name for name in names if name.startswith("--")} if line.endswith("--") else names


shell, programs = sys.argv[1], sys.argv[2:]
if not shutil.which(shell):
    skip(f"no {shell} here")
expected = of_bidctl(programs[0])
if shell != "zsh":
    # bash and fish must skip an option before the command; zsh offers options behind the command alone
    expected["bidctl --kind elf quarantine "] = expected["bidctl quarantine "]
if len(programs) > 1:
    expected |= of_mount(programs[1])
os.environ["PATH"] = ":".join([*(str(pathlib.Path(program).resolve().parent) for program in programs), os.environ["PATH"]])
problems = []
with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as empty:
    # fish writes into its home
    os.environ["HOME"] = home
    os.chdir(empty)
    if len(programs) > 1 and shell != "fish":
        expected |= of_directories(home)
    answers = list({"bash": ask_bash, "fish": ask_fish, "zsh": ask_zsh}[shell](expected))
for typed, answer in zip(expected, answers):
    named, offers = expected[typed], names_in(typed, answer)
    problems += [f"'{typed}': '{name}' is in --help, and {shell} does not offer it" for name in sorted(named - offers)]
    problems += [f"'{typed}': '{name}' is offered by {shell}, and not in --help" for name in sorted(offers - named)]
    if not named:
        problems.append(f"'{typed}': nothing was found in --help: the comparison itself is broken")
finish(problems, f"{len(expected)} lines")
