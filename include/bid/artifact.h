/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be asked of a build-id. */
#ifndef BID_ARTIFACT_H
#define BID_ARTIFACT_H

#include <stdbool.h>

#include <bid/detail.h>
#include <bid/id.h>

enum bid_kind {
	BID_KIND_NONE = 0, /* so that a zeroed request is caught */
	BID_KIND_ELF, /* the program, shared object, kernel or module, as a plain ELF file */
	BID_KIND_DEBUGINFO, /* the file that carries the DWARF; may be the same file as BID_KIND_ELF */
	BID_KIND_KALLSYMS, /* a kernel's symbol table, in the format of /proc/kallsyms */
	BID_KIND_PROBES, /* cached probe definitions (perf, util/probe-file.c) */
	BID_KIND_VDSO, /* the vDSO's image, an ELF file */
	BID_KIND_COUNT, /* of the kinds above: a build has one artifact of each */

	/* a build has many of these; a detail tells which */
	BID_KIND_SOURCE = BID_KIND_COUNT, /* a source file, by its path */
	BID_KIND_SECTION, /* the bytes of one section of the debuginfo or the ELF file, by its name */
	BID_KIND_END
};

/* One artifact of one build. A request borrows its detail; bid_request_keep() makes one that does not. */
struct bid_request {
	struct bid_id id;
	enum bid_kind kind;
	const struct bid_detail *detail; /* of a kind that bid_kind_has_detail(), else NULL */
};

/* Has it an id and a known kind, and a detail if and only if the kind needs one? */
bool bid_request_valid(const struct bid_request *request);

/* A copy that holds a reference to the detail, to be given back with bid_request_release(). */
struct bid_request bid_request_keep(const struct bid_request *request);

void bid_request_release(struct bid_request *request);

/* "elf", "debuginfo", "kallsyms", "probes", "vdso", "source", "section"; "none" for anything else. Static. */
const char *bid_kind_name(enum bid_kind kind);

/* The kind without detail of that name, or BID_KIND_NONE. debuginfod's "executable" is BID_KIND_ELF. */
enum bid_kind bid_kind_parse(const char *name);

/* The name of the artifact's file in perf's store: as bid_kind_name(), but "debug". Static. */
const char *bid_kind_store_name(enum bid_kind kind);

/* Is this a kind that a source may have, or only the local store? */
bool bid_kind_fetchable(enum bid_kind kind);

/* Is the artifact an ELF file, which carries its id and is checked against it? */
bool bid_kind_is_elf(enum bid_kind kind);

/* Does a request for this kind need a detail? */
bool bid_kind_has_detail(enum bid_kind kind);

#endif
