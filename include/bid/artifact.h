/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The artifacts of a build: its files, by kind. */
#ifndef BID_ARTIFACT_H
#define BID_ARTIFACT_H

#include <bid/id.h>

enum bid_kind {
	BID_KIND_NONE = 0, /* makes a zeroed artifact invalid */
	BID_KIND_ELF, /* the program, shared object, kernel or module, as a plain ELF file */
	BID_KIND_DEBUGINFO, /* the file that carries the DWARF; may be the same file as BID_KIND_ELF */
	BID_KIND_KALLSYMS, /* a kernel's symbol table, in the format of /proc/kallsyms */
	BID_KIND_PROBES, /* cached probe definitions (perf, util/probe-file.c) */
	BID_KIND_VDSO, /* the vDSO's image, an ELF file */
	BID_KIND_COUNT, /* the kinds above: a build has one artifact of each */

	BID_KIND_UNSTRIPPED = BID_KIND_COUNT, /* ELF file and debuginfo put together; derived, never a file of perf's layout */

	/* a build has many of these; a subpath tells which */
	BID_KIND_SOURCE, /* a source file, by its path */
	BID_KIND_SECTION, /* the bytes of one section of the debuginfo or the ELF file, by its name */
	BID_KIND_END
};

/* A path of a source file or a name of a section, parsed. Immutable and counted; any thread may use it. */
struct bid_subpath;

/* The name of one artifact of one build. Borrows its subpath. */
struct bid_artifact {
	struct bid_id id;
	enum bid_kind kind;
	const struct bid_subpath *subpath; /* for BID_KIND_SOURCE and BID_KIND_SECTION, else NULL */
};

/* "elf", "debuginfo", "kallsyms", "probes", "vdso", "unstripped", "source", "section"; "none" for anything else. Static. */
const char *bid_kind_name(enum bid_kind kind);

/* Find the kind without subpath of that name, or BID_KIND_NONE. debuginfod's "executable" is BID_KIND_ELF. */
enum bid_kind bid_kind_parse(const char *name);

/*
 * Parse the path of a source file as DWARF has it: absolute, up to 3840 bytes with components of up to 255, no control characters.
 * The subpath holds it as debuginfod makes it canonical (debuginfod(8), "WEBAPI"): without empty components, "." and "..", and with
 * at most 64 components. The caller gives @ret_subpath back with bid_subpath_unref(). Returns 0, -EINVAL for anything else (a
 * directory's "/a/" too), or -ENOMEM.
 */
int bid_subpath_source(const char *path, struct bid_subpath **ret_subpath);

/* Parse a section's name: 1 to 255 bytes, no slash, no control characters, neither "." nor "..". As bid_subpath_source(). */
int bid_subpath_section(const char *name, struct bid_subpath **ret_subpath);

/* Give a reference back. @subpath may be NULL. */
void bid_subpath_unref(const struct bid_subpath *subpath);

#endif
