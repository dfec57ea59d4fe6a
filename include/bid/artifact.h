/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be asked of a build-id. */
#ifndef BID_ARTIFACT_H
#define BID_ARTIFACT_H

#include <stdbool.h>

#include <bid/id.h>

enum bid_kind {
	BID_KIND_NONE = 0, /* so that a zeroed request is caught */
	BID_KIND_ELF, /* the program, shared object, kernel or module, as a plain ELF file */
	BID_KIND_DEBUGINFO, /* the file that carries the DWARF; may be the same file as BID_KIND_ELF */
	BID_KIND_KALLSYMS, /* a kernel's symbol table, in the format of /proc/kallsyms */
	BID_KIND_PROBES, /* cached probe definitions (perf, util/probe-file.c) */
	BID_KIND_VDSO, /* the vDSO's image, an ELF file */
	BID_KIND_COUNT
};

/* One artifact of one build. */
struct bid_request {
	struct bid_id id;
	enum bid_kind kind;
};

/* "elf", "debuginfo", "kallsyms", "probes", "vdso"; "none" for anything else. Static. */
const char *bid_kind_name(enum bid_kind kind);

/* The kind of that name, or BID_KIND_NONE. debuginfod's "executable" is BID_KIND_ELF. */
enum bid_kind bid_kind_parse(const char *name);

/* The name of the artifact's file in perf's store: as bid_kind_name(), but "debug". Static. */
const char *bid_kind_store_name(enum bid_kind kind);

/* Is this a kind that a source may have, or only the local store? */
bool bid_kind_fetchable(enum bid_kind kind);

/* Is the artifact an ELF file, which carries its id and is checked against it? */
bool bid_kind_is_elf(enum bid_kind kind);

#endif
