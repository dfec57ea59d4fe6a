# SPDX-License-Identifier: LGPL-2.1-or-later
"""The unmodified tools of docs/TOOLS.md: with the setting of the page they print what it shows, and without it they do not."""
import importlib.util

import pytest

import documents
from test_perf import why_no_recording

SECTIONS = documents.sections("docs/TOOLS.md")
MOUNT = SECTIONS["The mount"]
NO_SERVER = """
```sh
mkdir -p ~/.debug ~/bid
M=$(mount.bidfs -o offline ~/.debug ~/bid)
A=0x$(nm /usr/lib/debug/.build-id/*/*.debug | awk '/ mix$/ { print $1 }')
```
"""
TOOLS = [name for name, text in SECTIONS.items() if name != "The mount" and documents.steps(text)]


@pytest.fixture(scope="module")
def stage():
    with documents.running() as made:
        yield made


def text_of(tool):
    """Return the section, after a command that mounts."""
    wanted = documents.steps(SECTIONS[tool])
    if program := documents.missing_program(wanted):
        pytest.skip(f"needs {program}")
    if tool == "pyelftools" and not importlib.util.find_spec("elftools"):
        pytest.skip("needs pyelftools")
    if any(step.command.startswith("perf record") for step in wanted) and (reason := why_no_recording()):
        pytest.skip(reason)
    has_mount = any("mount.bidfs" in step.command for step in wanted)
    return SECTIONS[tool] if has_mount else MOUNT + SECTIONS[tool]


@pytest.mark.parametrize("tool", TOOLS)
def test_setting_resolves_symbols(needs_root, stage, workdir, tool):
    documents.check(stage.run(workdir, text_of(tool)))


@pytest.mark.parametrize("tool", TOOLS)
def test_missing_mount_gives_no_symbols(needs_root, stage, workdir, tool):
    results = stage.run(workdir, text_of(tool), is_mounted=False)
    assert [step for step, _, text in results if step.expected and not documents.is_as_expected(text, step.expected)]


@pytest.mark.parametrize("tool", ["gdb", "elfutils"])
def test_setting_keeps_installed_debug_information_visible(needs_root, stage, workdir, tool):
    text = text_of(tool).removeprefix(MOUNT)
    first = documents.FENCE.search(text)[0]
    documents.check(stage.run(workdir, NO_SERVER + first, is_installed=True))
