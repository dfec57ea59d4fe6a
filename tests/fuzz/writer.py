# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write hand-made inputs to a directory of the corpus, or compare them with it."""
import pathlib
import sys


def run(wanted, limit, usage):
    """
    Write the files @wanted (name: bytes), or compare them with --check. A file is smaller than @limit bytes, as it is committed.
    """
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(usage)
    directory = pathlib.Path(arguments[0])
    too_large = [name for name, data in wanted.items() if len(data) >= limit]
    if too_large:
        sys.exit(f"{limit} bytes or more: {' '.join(too_large)}")
    if "--check" not in sys.argv:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in wanted.items():
            (directory / name).write_bytes(data)
        return 0
    # regressions of found bugs lie in the same directory
    there = {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.startswith("regression-")}
    wrong = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if wrong:
        print(f"not as written by {sys.argv[0]}: {' '.join(wrong)}")
    return 1 if wrong else 0
