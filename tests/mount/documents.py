# SPDX-License-Identifier: LGPL-2.1-or-later
"""
The command blocks of README.md and docs/TOOLS.md, run as written.

A block in the language "console" is a session: "$ " and "# " (as root) begin a command, "> " continues it, each other line is its
output. A command without output must succeed. Each line of a block in the language "sh" is a command that must succeed. A comment
before a block, "<!-- not run: REASON -->", skips the block. In output, a percentage, an address, an offset or a build-id matches
any other one. The width of blanks and discriminators do not count. "..." matches any text, and in a line of its own any lines.
"""
import contextlib
import dataclasses
import pathlib
import re
import shutil
import tempfile

import namespace
import programs
import servers
import tools

SERVER = "https://debuginfod.debian.net"
SOURCES = "/usr/src/crunch"
FENCE = re.compile(r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
VARIES = {
    r"\d+\.\d+%": r"\d+\.\d+%",
    r"\d+\.\d\d\b": r"\d+\.\d\d",
    "0x[0-9a-f]+": "0x[0-9a-f]+",
    r"\b[0-9a-f]{16}\b": "[0-9a-f]{16}",
    r"\b[0-9a-f]{40}\b": "[0-9a-f]{40}",
    r"\+\d+": r"\+\d+",
    r"\.\.\.": ".*",
    r"\s+": r"\s+",
}
BUILTINS = {"cd", "echo", "export"}
OURS = {"bidctl", "mount.bidfs"}


@dataclasses.dataclass
class Block:
    language: str
    text: str
    reason: str | None


@dataclasses.dataclass
class Step:
    command: str
    expected: list


def sections(page):
    """Return {heading: text} of a page. A command of root, which begins with one "#", is no heading."""
    parts = re.split(r"^## (.+)$", (tools.ROOT / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def blocks(text):
    return [Block(match["language"], match["text"], match["reason"]) for match in FENCE.finditer(text)]


def steps(text):
    """Return the commands of all blocks that are run, each with the output below it."""
    found = []
    for block in blocks(text):
        assert block.language in ("console", "sh"), f"a block in the language {block.language!r}"
        if block.reason:
            continue
        for line in block.text.splitlines():
            if block.language == "sh":
                found += [Step(line, [])]
            elif line.startswith(("$ ", "# ")):
                found.append(Step(line[2:], []))
            elif line.startswith("> "):
                found[-1].command += "\n" + line[2:]
            else:
                found[-1].expected.append(line)
    return found


def missing_program(wanted):
    """Return the first program of these commands that is not installed."""
    for step in wanted:
        for part in re.split(r"\||;|&&", re.sub(r"\$\(([^)]*)\)", r"; \1", step.command)):
            words = [word for word in part.split() if not re.match(r"\w+=|#", word)]
            if words and "/" not in words[0] and words[0] not in BUILTINS | OURS and not shutil.which(words[0]):
                return words[0]
    return None


def pattern_of(line):
    """Return a regular expression for an expected line."""
    parts = re.split(f"({'|'.join(VARIES)})", line.strip())
    return r"\s*" + "".join(next((stands for pattern, stands in VARIES.items() if re.fullmatch(pattern, part)), re.escape(part))
                            for part in parts) + r"\s*"


def is_as_expected(output, expected):
    output = re.sub(r" \(discriminator \d+\)", "", output)
    lines = "\n".join(line for line in output.splitlines() if line.strip())
    wanted = "\n".join(r"(?:.*\n)*?.*" if line == "..." else pattern_of(line) for line in expected if line.strip())
    return re.fullmatch(wanted, lines) is not None


def kernel_build(place):
    """Make the files of a kernel's build directory that stap needs to resolve probes of programs."""
    (place / "include/config").mkdir(parents=True)
    (place / "include/config/kernel.release").write_text("6.12\n")
    (place / ".config").write_text("CONFIG_UPROBES=y\nCONFIG_ARCH_SUPPORTS_UPROBES=y\nCONFIG_TRACEPOINTS=y\n")
    (place / "Module.symvers").touch()
    return place


class Stage:
    """A stripped program, a later build, and the only server with the debug information and source of the program."""

    def __init__(self, workdir):
        self.workdir = workdir
        self.source = workdir / "src"
        self.kernel = kernel_build(workdir / "kernel")
        shelf = workdir / "shelf"
        shelf.mkdir()
        self.source.mkdir()
        shutil.copy(programs.SOURCES / "crunch.c", self.source)
        program = programs.Program(self.build(shelf / "crunch"))
        self.crunch = programs.split(program, shelf / "crunch.debug")
        self.later = self.build(workdir / "later", "-O1")
        tools.run("strip", self.later)
        self.server = servers.Debuginfod([shelf, self.source], workdir, tools.environment(workdir))
        self.server.await_scan()

    def build(self, output, *flags):
        tools.run("gcc", "-g", "-O2", *flags, "-o", output, "crunch.c", cwd=self.source)
        return output

    def named(self, text):
        """Replace the names of a page with those of this stage."""
        return text.replace(SERVER, self.server.url).replace(SOURCES, str(self.source))

    def run(self, workdir, text, is_mounted=True, is_installed=False):
        """
        Run the commands of a text and return their status and output. The working directory has the program, and the home directory
        is new. Without `is_mounted`, mount.bidfs only prints the mount point. With `is_installed`, the debug information is in
        /usr/lib/debug, as packages install it.
        """
        names, work, home = workdir / "bin", workdir / "work", workdir / "home"
        for directory in (names, work, home):
            directory.mkdir()
        if is_mounted:
            (names / "mount.bidfs").symlink_to(tools.MOUNT_BIDFS)
        else:
            (names / "mount.bidfs").write_text('#!/bin/sh\neval "echo \\${$#}"\n')
            (names / "mount.bidfs").chmod(0o755)
        (names / "bidctl").symlink_to(tools.BIDCTL)
        shutil.copy(self.crunch.path, work / "crunch")
        shutil.copy(self.later, work / "crunch-2.0")
        wanted = steps(self.named(text))
        script = workdir / "script"
        script.write_text("exec 2>&1\n" + "".join(f"{step.command}\nprintf '\\n\\036%d\\n' $?\n" for step in wanted))
        env = tools.environment(home)
        # hide the home, the debug information and the source of this machine from the tools
        hidden = "".join(f"mount -t tmpfs none '{path}'; " for path in (self.source, self.workdir / "shelf", "/mnt", "/var/lib"))
        if is_installed:
            debug = f"/usr/lib/debug/.build-id/{self.crunch.id[:2]}"
            shutil.copy(self.crunch.debug, workdir / "debug")
            hidden += f"mount -t tmpfs none /usr/lib/debug; mkdir -p {debug}; " \
                      f"cp '{workdir}/debug' {debug}/{self.crunch.id[2:]}.debug; "
        env["PATH"] = f"{names}:{env['PATH']}"
        env["XDG_CONFIG_HOME"] = f"{home}/.config"
        env["SYSTEMTAP_RELEASE"] = str(self.kernel)
        done = namespace.isolated(f"{hidden}cd '{work}'; exec bash '{script}'", env, status=None).stdout
        output = re.findall(r"(.*?)\n\036(\d+)\n", done, re.DOTALL)
        assert len(output) == len(wanted), done
        return [(step, int(status), text) for step, (text, status) in zip(wanted, output)]


def check(results):
    """Compare the output of each command with the page."""
    transcript = "".join(f"$ {step.command}\n{text}" for step, _, text in results)
    for step, status, text in results:
        if step.expected:
            expected = "\n".join(step.expected)
            assert is_as_expected(text, step.expected), f"{step.command}\n{text}\nexpected:\n{expected}\n\n{transcript}"
        else:
            assert status == 0, f"{step.command}: exit status {status}\n{text}\n\n{transcript}"


@contextlib.contextmanager
def running():
    """Run a stage and its server in a new directory."""
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="bm-page-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, workdir)
        stage = Stage(workdir)
        stack.callback(stage.server.stop)
        yield stage
