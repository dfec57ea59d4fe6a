/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the name of a member says, and what its bytes must look like. */
#ifndef BID_ARCHIVE_MEMBER_H
#define BID_ARCHIVE_MEMBER_H

#include <limits.h>

#include "api/artifact.h"

/* "usr/bin/ls/15df…/elf" is the ELF file of the build 15df… at the original path "/usr/bin/ls". */
struct bid_member_name {
	struct bid_id id;
	enum bid_kind kind;
	char path[PATH_MAX]; /* "/usr/bin/ls", "[vdso]"; "" if it has none */
};

/* Is @path nothing but names with one slash between two: no way up, back, or to the root? */
bool bid_member_is_plain(const char *path);

/* Take @name apart. False if it is not of the layout, or could lead anywhere else. */
bool bid_member_parse(const char *name, struct bid_member_name *ret_name);

/* Is @name that of a link of perf's, ".build-id/xx/rest"? */
bool bid_member_parse_link(const char *name, struct bid_id *ret_id);

/* Is @name with the text @target a link as perf makes them: ".build-id/xx/rest" to "../../<path>/<id>"? */
bool bid_member_is_link(const char *name, const char *target);

/*
 * Have the @len bytes at @data the form of an artifact of @kind, which is one that does not carry its id: BID_KIND_KALLSYMS or
 * BID_KIND_PROBES?
 */
bool bid_member_has_form(enum bid_kind kind, const char *data, size_t len);

/* Is it the archive of builds that `perf archive --all` packs beside the recording: "perf.symbols.tar.bz2"? */
bool bid_member_is_symbols(const char *name);

#endif
