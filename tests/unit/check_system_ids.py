#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the build-ids of libbid with those of readelf -n, file and perf, over each ELF file below a directory.

usage: check_system_ids.py IDENTIFY DIRECTORY...

IDENTIFY is the program of identify_tool.c. Its two results, from the bounded reader and from libelf, must equal readelf's for each
file. They must equal the result of file(1), if there is one, and that of perf for one in PERFS_SHARE files. Exit status: 0 if they
do, 1 if not, 77 without readelf.
"""

import os
import re
import shutil
import stat
import subprocess
import sys

FILES_A_CALL = 400
PERFS_SHARE = 20  # a process for each file
BUILD_ID = re.compile(rb"Build ID: ([0-9a-f]+)")


def elf_files(roots):
    """Yield each regular file with the ELF magic, each inode once."""
    seen = set()
    for root in roots:
        for directory, _, names in os.walk(os.fsencode(root)):
            for name in names:
                path = os.path.join(directory, name)
                try:
                    st = os.lstat(path)
                    if not stat.S_ISREG(st.st_mode) or (st.st_dev, st.st_ino) in seen:
                        continue
                    seen.add((st.st_dev, st.st_ino))
                    with open(path, "rb", buffering=0) as file:
                        if file.read(4) == b"\x7fELF":
                            yield path
                except (FileNotFoundError, PermissionError):
                    continue


def ids_of_libbid(identify, paths):
    process = subprocess.run([identify], input=b"".join(path + b"\0" for path in paths), stdout=subprocess.PIPE, check=True)
    answers = {}
    for record in process.stdout.split(b"\0")[:-1]:
        path, first, second = record.rsplit(b"\t", 2)
        answers[path] = (first, second)
    return answers


def ids_of_readelf(paths):
    """Return {path: id}; with several files readelf prints a name before each."""
    answers = {}
    for begin in range(0, len(paths), FILES_A_CALL):
        batch = paths[begin:begin + FILES_A_CALL]
        # a status other than 0 is for one bad file, and the others are printed
        process = subprocess.run(
            ["readelf", "-n", "-W", *batch, "/dev/null"], env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        for part in re.split(rb"^File: ", process.stdout, flags=re.MULTILINE)[1:]:
            path, _, text = part.partition(b"\n")
            found = BUILD_ID.search(text)
            answers[path] = found.group(1) if found else b"-"
    return answers


def ids_of_file(paths):
    """Return {path: id} of the files in which file(1) finds an id; it does not read all notes of a large file."""
    text = subprocess.run(["file", "--brief", "--raw", "--no-buffer", "--files-from", "-"], input=b"\n".join(paths) + b"\n",
                          stdout=subprocess.PIPE, check=True).stdout
    lines = text.splitlines()
    assert len(lines) == len(paths)
    found = ((path, re.search(rb"BuildID\[[^]]*\]=([0-9a-f]+)", line)) for path, line in zip(paths, lines))
    return {path: match.group(1) for path, match in found if match}


def ids_of_perf(paths):
    """Return {path: id} of a part of the files."""
    answers = {}
    for path in paths[::PERFS_SHARE]:
        output = subprocess.run(["perf", "buildid-list", "-i", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False).stdout.strip()
        if re.fullmatch(rb"[0-9a-f]+", output):
            answers[path] = output
    return answers


def compare(tool, answers, theirs, least):
    """Return the number of differences from readelf; at least @least of the ids must have been found."""
    different = [path for path, answer in answers.items() if answer != theirs[path]]
    for path in different:
        print("'%s' is %s to %s, %s to readelf" % tuple(map(os.fsdecode, (path, answers[path], tool, theirs[path]))))
    print("%s finds %d, %d of them others than readelf" % (tool, len(answers), len(different)))
    return len(different) + (len(answers) < least)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not shutil.which("readelf"):
        print("skipped: no readelf to compare with")
        return 77

    paths = sorted(elf_files(sys.argv[2:]))
    ours, theirs = ids_of_libbid(sys.argv[1], paths), ids_of_readelf(paths)
    different = 0
    for path in paths:
        first, second = ours.get(path, (b"unanswered", b"unanswered"))
        third = theirs.get(path, b"unanswered")
        if not first == second == third or first == b"unanswered":
            different += 1
            print("'%s' is %s to libbid, %s to libelf, %s to readelf" % tuple(os.fsdecode(s) for s in (path, first, second, third)))
    if shutil.which("file"):
        different += compare("file", ids_of_file(paths), theirs, len(paths) // 2)
    else:
        print("not compared with file, which is not there")
    if shutil.which("perf"):
        different += compare("perf", ids_of_perf(paths), theirs, len(paths) // PERFS_SHARE // 2)
    else:
        print("not compared with perf, which is not there")
    without = sum(1 for answer in theirs.values() if answer == b"-")
    print(
        "%d ELF files, %d with a build-id, %d different ids, %d without one, %d read differently" %
        (len(paths), len(paths) - without, len(set(theirs.values()) - {b"-"}), without, different))
    if len(paths) == without:
        print("nothing was compared: no file has a build-id")
        return 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
