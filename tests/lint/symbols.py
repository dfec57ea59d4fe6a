#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check the undefined symbols of each archive, layer by layer, and of each object: symbols.py --cc CC... --archive FILE...

Includes can lie (a hand-written declaration, a foreign header); undefined symbols cannot. No files call each other in a circle.
"""
import argparse
import graphlib
import pathlib
import re
import subprocess

from lint import CONTRACTS, declared_functions, finish

# archive: the foreign symbols that it may need besides the C library
FOREIGN = {
    "libbid-base.a": None,
    "libbid-store.a": None,
    "libbid-disk.a": r"XXH\w+|json(p)?_\w+",
    "libbid-archive.a": r"archive_\w+",
    "libbid-elf.a": r"archive_\w+|g?elf(32|64)?_\w+|crc32_(z|combine(64)?)|uncompress2?",
    "libbid-signature.a": r"(EVP|X509|BIO|PEM|ASN1|d2i|OPENSSL|CRYPTO|ERR|OSSL)_\w+",
    "libbid-fetch.a": r"curl_\w+",
    "libbid-perfdata.a": r"ZSTD_\w+",
    "libbid-names.a": r"XXH\w+",
}
# symbols that the compiler adds
INSTRUMENTS = re.compile(r"__(asan|ubsan|tsan|lsan|msan|sanitizer|sanitizer_cov|gcov)_\w+|llvm_\w+|_GLOBAL_OFFSET_TABLE_")


def nm(path, *options):
    """Return {symbol: type} of an archive or library."""
    output = subprocess.run(["nm", "--portability", *options, path], check=True, capture_output=True, text=True).stdout
    lines = (line.split() for line in output.splitlines() if not line.endswith(":"))
    return {words[0].partition("@")[0]: words[1] for words in lines if len(words) >= 2}


def objects_of(archive):
    """Yield each object of the archive: its name, the functions that it defines, the symbols that it needs."""
    output = subprocess.run(["nm", "--portability", archive], check=True, capture_output=True, text=True).stdout
    for name, symbols in re.findall(r"\[(\S+)\]:\n((?:\S+ \w.*\n)*)", output):
        of = [line.split()[:2] for line in symbols.splitlines()]
        yield name, {symbol for symbol, kind in of if kind == "T"}, {symbol for symbol, kind in of if kind == "U"}


def circle(archives):
    """Return the names of files that call each other in a circle, or nothing."""
    objects = [each for path in archives for each in objects_of(path)]
    homes = {symbol: name for name, defined, _ in objects for symbol in defined}
    calls = {name: {homes[symbol] for symbol in needed & homes.keys()} for name, _, needed in objects}
    assert sum(map(len, calls.values())) > len(objects), "nm lists objects or symbols in another form"
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def c_library(cc):
    symbols = {}
    for name in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libgcc_s.so.1"):
        path = subprocess.run(cc + [f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        if pathlib.Path(path).is_absolute():
            symbols.update(nm(path, "--dynamic", "--defined-only"))
    return symbols


def check(archive, needed, homes, plain, public):
    foreign = FOREIGN[archive]
    for symbol in sorted(needed):
        if symbol.startswith("bid_"):
            home = homes.get(symbol)
            if symbol not in public and home not in (archive, "libbid-base.a"):
                yield f"{archive}: {symbol}: private to '{home or 'nobody'}'"
            elif archive == "libbid-base.a" and home != archive:
                yield f"{archive}: {symbol}: the base stands on nothing of ours"
        elif symbol not in plain and not INSTRUMENTS.fullmatch(symbol) and not (foreign and re.fullmatch(foreign, symbol)):
            yield f"{archive}: {symbol}: neither of the C library nor of a library that belongs here"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", nargs="+", required=True)
    parser.add_argument("--archive", type=pathlib.Path, action="append", required=True)
    args = parser.parse_args()

    plain, public = c_library(args.cc), declared_functions(CONTRACTS)
    undefined = {path.name: nm(path, "--undefined-only") for path in args.archive}
    homes = {symbol: path.name for path in args.archive for symbol in nm(path, "--defined-only", "--extern-only")}
    problems = [f"{name}: no rule for this archive" for name in undefined if name not in FOREIGN]
    problems += [f"{name}: needs nothing at all: not the archive it should be" for name, needed in undefined.items() if not needed]
    if "printf" not in plain:
        problems.append("the C library was not found, so its symbols are unknown")
    for name, needed in undefined.items():
        if name in FOREIGN:
            problems += check(name, needed, homes, plain, public)
    if names := circle(args.archive):
        problems.append(f"these files call each other in a circle: {', '.join(names)}")
    finish(problems, f"{sum(map(len, undefined.values()))} symbols of {len(undefined)} archives")


main()
