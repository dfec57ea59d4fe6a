/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Details: which of the many artifacts of one kind is meant. Names come from outside; here they are parsed, once, so that a
 * detail is safe as a path below a directory and, encoded, in a URL.
 *
 * A detail is immutable and counted; it may be used by any thread.
 */
#ifndef BID_DETAIL_H
#define BID_DETAIL_H

#include <stdbool.h>
#include <stddef.h>

struct bid_detail;

#define BID_DETAIL_MAX	 3840 /* bytes; leaves room in a path for where it lies in a store */
#define BID_DETAIL_DEPTH 64 /* components, so that walks may recurse */

/*
 * A source file's path as DWARF has it: absolute, up to BID_DETAIL_MAX bytes with components of up to 255, no control characters.
 * It is held as debuginfod makes it canonical (debuginfod(8), "WEBAPI"): without empty components, "." and "..", of which at most
 * BID_DETAIL_DEPTH may be left. The caller gives @ret_detail back with bid_detail_unref(). Returns 0, -EINVAL for anything else (a
 * directory's "/a/" too), or -ENOMEM.
 */
int bid_detail_source(const char *path, struct bid_detail **ret_detail);

/* A section's name: 1 to 255 bytes, no slash, no control characters, neither "." nor "..". As bid_detail_source(). */
int bid_detail_section(const char *name, struct bid_detail **ret_detail);

/* Another reference to @detail, which may be NULL. Returns @detail. */
const struct bid_detail *bid_detail_ref(const struct bid_detail *detail);

/* Give one back. @detail may be NULL. */
void bid_detail_unref(const struct bid_detail *detail);

/* "/usr/src/a.c", ".debug_line"; "" for NULL. Lives as long as @detail. */
const char *bid_detail_text(const struct bid_detail *detail);

bool bid_detail_equal(const struct bid_detail *a, const struct bid_detail *b);

#endif
