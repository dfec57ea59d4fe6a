#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that each foreign library has one user, and that layers include only lower ones (docs/ARCHITECTURE.md). Headers of ours are
followed, so that no file reaches a library through somebody else's header.
"""
import re

from lint import CONTRACTS, ROOT, files, finish, name_of, without_comments

# C library, compiler and kernel; anything else must be one of the libraries below
PLAIN = re.compile(r"""(assert|byteswap|ctype|dirent|dlfcn|elf|endian|err|errno|fcntl|fnmatch|fts|ftw|getopt|glob|grp
    |inttypes|libgen|limits|link|locale|malloc|math|mntent|netdb|paths|poll|pthread|pwd|regex|sched|search|semaphore|setjmp
    |signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdio_ext|stdlib|string|strings|syslog|termios
    |threads|time|uchar|ucontext|unistd|wchar|(arpa|asm|linux|net|netinet|sys)/\w+)\.h""", re.X)

LIBRARIES = {
    "fuse": re.compile(r"fuse.*"),
    "curl": re.compile(r"curl/.*"),
    "elf": re.compile(r"(libelf|gelf|nlist|dwarf|libdw|libdwfl|elfutils/.*)\.h"),
    "archive": re.compile(r"archive(_entry)?\.h"),
    "xxhash": re.compile(r"xxhash\.h"),
    "seccomp": re.compile(r"seccomp\.h"),
    "openssl": re.compile(r"openssl/.*"),
    "zlib": re.compile(r"zlib\.h"),
    "zstd": re.compile(r"zstd(_errors)?\.h"),
    "jansson": re.compile(r"jansson.*\.h"),
    "cmocka": re.compile(r"cmocka.*\.h"),
}

# The first rule that matches a file applies: the foreign libraries it may use, and the folders of our headers that it may include.
RULES = [
    (r"include/bid/.*", "", ["include/bid"]),
    (r"store/api/.*", "", CONTRACTS),
    (r"store/base/json\.h", "jansson", ["store/base"]),
    (r"store/base/.*", "", ["store/base"]),
    (r"store/elf/.*", "archive elf zlib", [*CONTRACTS, "store/base", "store/elf"]),
    (r"store/signature/.*", "openssl", [*CONTRACTS, "store/base", "store/signature"]),
    (r"store/disk/.*", "xxhash jansson", [*CONTRACTS, "store/base", "store/disk"]),
    (r"store/archive/.*", "archive", [*CONTRACTS, "store/base", "store/archive"]),
    (r"store/perfdata/.*", "zstd", [*CONTRACTS, "store/base", "store/perfdata"]),
    (r"store/fetch/.*", "curl", [*CONTRACTS, "store/base", "store/fetch"]),
    (r"store/broker/.*", "", [*CONTRACTS, "store/base", "store/broker"]),
    (r"store/ctl/.*", "jansson", [*CONTRACTS, "store/base", "store", "store/ctl"]),
    (r"store/[^/]*", "", [*CONTRACTS, "store/base", "store"]),
    (r"fs/vfs/inode\.c", "xxhash", [*CONTRACTS, "store/base", "fs/vfs", "fs/write"]),
    (r"fs/vfs/.*|fs/write/tmpfile\.[ch]", "", [*CONTRACTS, "store/base", "fs/vfs", "fs/write"]),
    (r"fs/sandbox/syscalls\.c", "seccomp", [*CONTRACTS, "store/base", "fs/sandbox"]),
    (r"fs/sandbox/.*", "", [*CONTRACTS, "store/base", "fs", "fs/vfs", "fs/write", "fs/sandbox"]),
    (r"fs/fuse/.*", "fuse", [*CONTRACTS, "store/base", "fs", "fs/vfs", "fs/write", "fs/sandbox", "fs/fuse"]),
    (r"fs/status\.c", "jansson", [*CONTRACTS, "store/base", "fs", "fs/vfs", "fs/write", "fs/sandbox"]),
    (r"fs/main\.c", "", [*CONTRACTS, "store/base", "fs", "fs/vfs", "fs/write", "fs/fuse"]),
    (r"fs/.*", "", [*CONTRACTS, "store/base", "fs", "fs/vfs", "fs/write"]),
    (r"tests/(unit|fuzz|bench|power|hostile|clock)/.*", "cmocka elf archive xxhash jansson zstd",
     [*CONTRACTS, "store", "store/base", "store/elf", "store/disk", "store/perfdata", "store/fetch", "store/broker", "store/ctl",
      "fs", "fs/vfs", "fs/write", "tests", "tests/clock"]),
    (r"tests/by_libelf\.[ch]", "elf", [*CONTRACTS, "store/base", "store/elf", "tests"]),
    (r"tests/.*|contrib/.*", "", CONTRACTS),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes(path):
    text = without_comments(path.read_text())
    return [(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in INCLUDE.finditer(text)]


def resolve(path, bracket, header):
    """Return the included file of ours, or None. Search as the compiler does: beside the file, then -I."""
    places = [path.parent] if bracket == '"' else []
    for place in places + [ROOT / "include", ROOT / "store", ROOT / "fs"]:
        if (place / header).is_file():
            return (place / header).resolve()
    return None


def reached(path, seen):
    """Yield each system header that @path includes, itself or through our headers: (header, includer)."""
    seen.add(path)
    for _, bracket, header in includes(path):
        ours = resolve(path, bracket, header)
        if ours is None:
            yield header, path
        elif ours not in seen:
            yield from reached(ours, seen)


def library_of(header):
    return next((name for name, pattern in LIBRARIES.items() if pattern.fullmatch(header)), None)


def is_below(path, home):
    """Return whether a rule covers @path. A rule names folders without subfolders, except for store/disk and tests."""
    return path.parent == ROOT / home or (home in ("store/disk", "tests") and ROOT / home in path.parents)


def check(path):
    name = name_of(path)
    rule = next((rule for rule in RULES if re.fullmatch(rule[0], name)), None)
    if rule is None:
        yield f"{name}: no rule says what may be included here"
        return
    allowed, homes = rule[1].split(), rule[2]
    for line, bracket, header in includes(path):
        ours = resolve(path, bracket, header)
        where = f"{name}:{line}: <{header}>"
        if ours is None and not PLAIN.fullmatch(header) and not library_of(header):
            yield f"{where}: neither of the C library, nor ours, nor of a library that we use"
        elif ours is not None and not any(is_below(ours, home) for home in homes):
            yield f"{where}: '{name_of(ours)}' is private to another folder"
        elif ours is not None and (bracket == "<") != (ours.parent == ROOT / "include/bid"):
            yield f"{where}: public headers are included with <>, private ones with quotes"
    for header, through in reached(path, set()):
        library = library_of(header)
        if library and library not in allowed:
            by = "" if through == path else f", by way of '{name_of(through)}'"
            yield f"{name}: <{header}>: {library} has no place here{by}"


sources = files(".c", ".h")
finish([problem for path in sources for problem in check(path)], f"{len(sources)} files")
