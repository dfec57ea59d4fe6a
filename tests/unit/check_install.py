#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that everything is installed beneath the prefix and runs from there. usage: BID_BUILD_ROOT=DIR check_install.py"""
import json
import os
import pathlib
import re
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ["BID_BUILD_ROOT"])


def option(name):
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    return next(one["value"] for one in options if one["name"] == name)


def main():
    prefix = pathlib.Path(option("prefix"))
    installed = json.loads((BUILD / "meson-info/intro-installed.json").read_text()).values()
    outside = [path for path in installed if not pathlib.Path(path).is_relative_to(prefix)]
    assert installed and not outside, f"not beneath '{prefix}': {outside}"
    with tempfile.TemporaryDirectory(prefix="bid-install-") as root:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True)
        there = pathlib.Path(root + str(prefix))
        bindir = there / option("bindir")
        for name in ("bidctl", "mount.bidfs"):
            subprocess.run([bindir / name, "--version"], check=True, stdout=subprocess.DEVNULL)
        for name in ("mount.bidfs", "mount.fuse.bidfs"):
            link = there / option("sbindir") / name
            assert root + os.readlink(link) == str(bindir / "mount.bidfs"), f"'{link}' leads to '{os.readlink(link)}'"
        # the pages that the README and the manual pages name
        pages = there / option("datadir") / "doc" / "bidfs"
        named = re.findall(r"\]\((docs/[A-Z]+\.md|docs/\w+\.svg)\)", (pages / "README.md").read_text())
        named += [f"docs/{name}" for page in (there / option("mandir")).glob("man?/*")
                  for name in re.findall(r"^\.Pa ([A-Z]+\.md)$", page.read_text(), re.M)]
        absent = [name for name in named if not (pages / name).exists() and name != "docs/ARCHITECTURE.md"]
        assert "docs/TOOLS.md" in named and "docs/SERVERS.md" in named and not absent, absent


if __name__ == "__main__":
    main()
