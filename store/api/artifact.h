/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests, kinds and details, beyond <bid/artifact.h>. */
#ifndef BID_API_ARTIFACT_H
#define BID_API_ARTIFACT_H

#include <stdbool.h>

#include <bid/artifact.h>

/* Has @request an id and a known kind, and a detail if and only if the kind needs one? */
bool bid_request_valid(const struct bid_request *request);

/* Copy @request with a reference to its detail. The caller gives the copy back with bid_request_release(). */
struct bid_request bid_request_keep(const struct bid_request *request);

void bid_request_release(struct bid_request *request);

/* The name of the artifact's file in perf's store: as bid_kind_name(), but "debug". Static. */
const char *bid_kind_store_name(enum bid_kind kind);

/* Can a source have artifacts of this kind, or only the local store? */
bool bid_kind_fetchable(enum bid_kind kind);

/* Is the artifact an ELF file? The store checks its id. */
bool bid_kind_is_elf(enum bid_kind kind);

/* Does a request for this kind need a detail? */
bool bid_kind_has_detail(enum bid_kind kind);

/*
 * Details: a request with a detail selects one of many artifacts of its kind. bid_detail_source() and bid_detail_section() of
 * <bid/artifact.h> parse a name from outside once, at the edge. A detail is therefore safe as a path below a directory and,
 * encoded, in a URL.
 */
#define BID_DETAIL_MAX	 3840 /* bytes; leaves room for the directory in a store */
#define BID_DETAIL_DEPTH 64 /* components; bounds recursion */

/* Take another reference to @detail, which may be NULL. Returns @detail. */
const struct bid_detail *bid_detail_ref(const struct bid_detail *detail);

/* "/usr/src/a.c", ".debug_line"; "" for NULL. Lives as long as @detail. */
const char *bid_detail_text(const struct bid_detail *detail);

bool bid_detail_equal(const struct bid_detail *a, const struct bid_detail *b);

#endif
