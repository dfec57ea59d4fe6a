#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Record with the installed perf in each form that it can write, and feed mutants to the reader under the sanitizers.

usage: check_recordings.py FUZZ_PERFDATA [--mutants=N] [--seed=N]

Make N mutants of each form (200; 100,000 with BIDFS_FULL=1) from the printed seed. A mutant that kills the reader is printed, as
the next run records other data. Exit status: 0 if the reader survives all, 1 if not, 77 without perf, a compiler, or the right to
record.
"""
import argparse
import base64
import gzip
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "unit"))
from check_perf_data import FORMS, ID, NEEDED, SKIP, Env  # noqa: E402
from make_perfdata import directory  # noqa: E402

RUN_MS = 3  # few samples, so that the reader parses most bytes of a recording
INPUT_MAX, MEMBERS_MAX = 1 << 20, 8  # limits of fuzz_perfdata.c


def as_input(recording):
    """Return the input for fuzz_perfdata.c, which has a form of its own for a directory."""
    if recording.is_file():
        return recording.read_bytes()
    parts = sorted(recording.glob("data.*"), key=lambda part: -part.stat().st_size)
    return directory(*(part.read_bytes() for part in (recording / "data", *parts[:MEMBERS_MAX - 1])))


def record(env):
    """Return {form: input} for each form that this perf can write."""
    recordings = {form: env.record(form) for form in FORMS}
    return {form: as_input(recording) for form, recording in recordings.items() if recording}


def survives(program, inputs, arguments, scratch, timeout):
    """Run all forms in one process, which can then splice pieces of them. Return whether the reader survives."""
    mutant = scratch / "mutant"
    done = subprocess.run([program, *arguments, "-o", mutant, *inputs], env={**os.environ, "TMPDIR": str(scratch)},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, timeout=timeout)
    if done.returncode == 0:
        print(done.stdout, end="")
        return True
    print(f"FAILED with {done.returncode}:\n{done.stdout}")
    if mutant.exists():
        print(f"the input, by base64 -d | gunzip:\n{base64.b64encode(gzip.compress(mutant.read_bytes())).decode()}")
    return False


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2].removeprefix("usage: "))
    parser.add_argument("program")
    parser.add_argument("--mutants", type=int, default=100000 if os.environ.get("BIDFS_FULL") else 200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    for tool in ("perf", "cc"):
        if not shutil.which(tool):
            print(f"skipped: needs {tool}")
            return SKIP
    with tempfile.TemporaryDirectory(prefix="recordings.") as top:
        env = Env(None, pathlib.Path(os.path.realpath(top)))
        env.build(ID, RUN_MS)
        recordings = record(env)
        if "default" not in recordings:
            print("skipped: perf may not record here")
            return SKIP
        assert NEEDED <= recordings.keys(), "perf cannot write what every perf can"
        inputs = []
        for form, data in recordings.items():
            assert len(data) <= INPUT_MAX, f"{form}: {len(data)} bytes are more than the reader is given"
            print(f"{form}: {len(data)} bytes")
            inputs.append(env.top / f"{form}.input")
            inputs[-1].write_bytes(data)
        print(f"seed {arguments.seed}, {arguments.mutants} mutants of each of {len(inputs)} forms", flush=True)
        passed = survives(os.path.realpath(arguments.program), inputs, ["-m", str(arguments.mutants), "-s", str(arguments.seed)],
                          env.top, 60 + len(inputs) * arguments.mutants / 100)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
