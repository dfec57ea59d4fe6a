# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the cases of a program that tests bidctl, each in a new environment, and count them.

usage: check_SOMETHING.py BIDCTL [--no-fetch] [CASE...]
"""
import argparse
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77


class Skip(Exception):
    """The reason why a case cannot run here."""


def need(condition, reason):
    if not condition:
        raise Skip(reason)


def choose(functions, arguments, fetching, without_fetch):
    """Return the cases of @functions that the command line selects and this build of bidctl supports."""
    other = fetching if arguments.no_fetch else without_fetch
    cases = [function for name, function in functions.items() if name.startswith("case_") and function not in other]
    return [case for case in cases if not arguments.case or case.__name__ in arguments.case]


def run_one(case, make_env):
    """Run a case; return whether it passed or was skipped."""
    begun = time.monotonic()
    try:
        case(make_env())
        print(f"ok {case.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
    except Skip as reason:
        print(f"skipped {case.__name__}: {reason}", flush=True)
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
        print(f"FAILED {case.__name__}, line {error.__traceback__.tb_next.tb_lineno}: {error!r}", flush=True)
        return False
    return True


def main(functions, env, tools=("cc", "objcopy"), fetching=(), without_fetch=(), own_programs=False):
    """
    Run all functions whose names begin with case_. @env(bidctl, built, directory) makes the environment of a case. All cases share
    the programs compiled into @built, unless they change them (@own_programs). Cases of @fetching need a bidctl that can fetch, and
    those of @without_fetch one that cannot. End the program.
    """
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[-1])
    parser.add_argument("bidctl")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--no-fetch", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    lacking = [tool for tool in tools if not shutil.which(tool)]
    if lacking:
        print(f"skipped: needs {lacking[0]}")
        sys.exit(SKIPPED)
    cases = choose(functions, arguments, fetching, without_fetch)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bidctl.", dir=os.environ.get("BID_TEST_DIRECTORY")) as top:
        for case in cases:
            directory = pathlib.Path(os.path.realpath(top)) / case.__name__
            built = directory / "built" if own_programs else directory.parent / "built"
            directory.mkdir()
            built.mkdir(exist_ok=True)
            failed += not run_one(case, functools.partial(env, os.path.realpath(arguments.bidctl), built, directory))
    print(f"{len(cases) - failed} of {len(cases)} cases passed")
    sys.exit(1 if failed or not cases else 0)
