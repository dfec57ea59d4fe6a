/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Details: a request with a detail selects one of many artifacts of its kind. bid_detail_source() and bid_detail_section() of
 * <bid/artifact.h> parse a name from outside once, at the edge. A detail is therefore safe as a path below a directory and,
 * encoded, in a URL.
 */
#ifndef BID_API_DETAIL_H
#define BID_API_DETAIL_H

#include <stdbool.h>

#include <bid/artifact.h>

#define BID_DETAIL_MAX	 3840 /* bytes; leaves room for the directory in a store */
#define BID_DETAIL_DEPTH 64 /* components; bounds recursion */

/* Take another reference to @detail, which may be NULL. Returns @detail. */
const struct bid_detail *bid_detail_ref(const struct bid_detail *detail);

/* "/usr/src/a.c", ".debug_line"; "" for NULL. Lives as long as @detail. */
const char *bid_detail_text(const struct bid_detail *detail);

bool bid_detail_equal(const struct bid_detail *a, const struct bid_detail *b);

#endif
