#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the benchmarks as a test: check_run.py BUILD_DIRECTORY [PART]

Run all parts, or one, so small that their figures mean nothing, and with --gentle: no cache is dropped and nothing is downloaded.
Fail if a part ends with an error, or if the tables and plots are incomplete; no time makes this test fail.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("curl", "debuginfod-find", "fusermount3", "losetup", "mkfs.ext4", "nginx", "perf", "unshare")
# rows that have figures on every machine
ROWS = {f"P{row}" for row in (1, 2, 3, 5, 6, 7, *range(9, 23), 25, 26)}
PLOTS = ("bytes", "files", "ids", "ids-listing", "ids-memory", "ids-start", "miss-sizes", "misses")


def why_not():
    """Return the reason to skip, or None."""
    if os.geteuid() != 0:
        return "it mounts images: needs root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse"
    if lacking := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"not installed: {', '.join(lacking)}"
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode:
        return "no loop device to be had"
    return None


def check(left, plots):
    """Check that tables and plots are complete."""
    measured = {line["row"] for line in left["lines"] if "value" in line}
    assert measured >= ROWS, f"not measured: {ROWS - measured}"
    for plot in PLOTS:
        assert all(len(points) >= 2 for points in left["curves"][plot].values()), f"{plot}: {left['curves'][plot]}"
    targets = left["texts"]["targets"]
    assert "row  metric" in targets and "missed:" in targets and re.search(r"\d+ of \d+ targets are met", targets), targets
    if plots:
        assert {plot.stem for plot in plots.iterdir()} >= set(PLOTS), list(plots.iterdir())


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if why := why_not():
        print(f"SKIP: {why}")
        return 77
    with tempfile.TemporaryDirectory(prefix="check-run.", dir="/var/tmp") as top:
        top = pathlib.Path(top)
        plots = None
        more = ["--only", sys.argv[2]] if len(sys.argv) > 2 else []
        if not more and shutil.which("gnuplot"):
            plots = top / "plots"
            more = ["--plots", plots]
        home = top / "home"
        home.mkdir()
        command = [sys.executable, HERE / "run", "--quick", "--gentle", "--build", sys.argv[1], "--json", top / "left", *more]
        environment = {**os.environ, "TMPDIR": str(top), "HOME": str(home)}
        status = subprocess.run([*map(str, command)], env=environment, check=False).returncode
        left = json.loads((top / "left").read_text(encoding="utf-8")) if status == 0 else None
        if left and len(sys.argv) > 2:
            assert any("value" in line for line in left["lines"]), "nothing was measured"
        elif left:
            check(left, plots)
    return status


if __name__ == "__main__":
    sys.exit(main())
