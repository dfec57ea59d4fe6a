/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits on untrusted files. A size that a file names is a claim: memory is taken for it piece by piece, as the bytes are read, and
 * never above these. The numbers are far beyond what real files have; docs/ARCHITECTURE.md, "Limits", has them in a table. How many
 * blocks a file has on disk limits nothing here: sshfs says 0, and so does ZFS of a file just written.
 */
#ifndef BID_BASE_LIMITS_H
#define BID_BASE_LIMITS_H

/* Section headers to examine. Linked files have hundreds, those with a section for each function 66,000. */
#define BID_LIMIT_SECTIONS (1u << 17)

/* Names in a listing of the sections of a file. Each section can be read by its name. */
#define BID_LIMIT_LISTED_SECTIONS 4096u

/* Bytes of a table of names, of sections or of symbols. Distributions' kernels have 6 MiB. */
#define BID_LIMIT_NAMES (16u << 20)

/* Units of DWARF to search for a skeleton. A linked program has those of its start files first. */
#define BID_LIMIT_UNITS 16u

/* Symbols of a kernel. Distributions' have 250,000. */
#define BID_LIMIT_SYMBOLS (1u << 20)

/* Bytes of zeros in a row that end such a table: real ones have none, and a hole has nothing else. */
#define BID_LIMIT_ZEROS (256u << 10)

/* Bytes that are read of one ELF file for its headers, and as many for its notes: as many sections twice, and more. */
#define BID_LIMIT_HEADERS (20u << 20)

/* Bytes of a kernel's symbol table as text. Distributions' have 10 MiB. */
#define BID_LIMIT_KALLSYMS (64u << 20)

/* Bytes of one line of it; the kernel's have 600 at most. */
#define BID_LIMIT_LINE 4096u

/* Bytes that come out of a compressed file: as many, and more only by so much for each byte that went in. */
#define BID_LIMIT_UNPACKED	 (64u << 20)
#define BID_LIMIT_UNPACKED_RATIO 100u

/* Bytes of names that programs with open directories hold in a mount, all together. A listing of a few hundred names is free. */
#define BID_LIMIT_LISTINGS (256u << 20)

/* Bytes of artifacts that one store, where it cannot be written, holds in memory, all together. */
#define BID_LIMIT_MEMORY (512u << 20)

#endif
