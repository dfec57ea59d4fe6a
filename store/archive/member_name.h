/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of members of an archive, and the form of their bytes. */
#ifndef BID_ARCHIVE_MEMBER_NAME_H
#define BID_ARCHIVE_MEMBER_NAME_H

#include <limits.h>

#include "api/artifact.h"

/* "usr/bin/ls/15df…/elf" is the ELF file of the build 15df… at the original path "/usr/bin/ls". */
struct bid_member_name {
	struct bid_id id;
	enum bid_kind kind;
	char path[PATH_MAX]; /* "/usr/bin/ls", "[vdso]"; "" without a path */
};

/* Parse @name. Returns false for a name outside the layout, or with components that lead elsewhere. */
bool bid_member_parse(const char *name, struct bid_member_name *ret_name);

/* Is @name that of a link of perf's, ".build-id/xx/rest"? */
bool bid_member_is_link(const char *name);

/* Do the @len bytes at @data have the form of @kind, a kind without an id of its own: BID_KIND_KALLSYMS or BID_KIND_PROBES? */
bool bid_member_has_form(enum bid_kind kind, const char *data, size_t len);

/* Is @name the archive of builds that `perf archive --all` packs beside the recording, "perf.symbols.tar.bz2"? */
bool bid_member_is_symbols(const char *name);

#endif
