/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lies under many ids, for those who list a store: unchecked, and without opening a single artifact. */
#ifndef BID_API_SUMMARY_H
#define BID_API_SUMMARY_H

#include <limits.h>
#include <time.h>

#include "api/store.h"

struct bid_summary {
	unsigned kinds; /* as bid_store_kinds() */
	uint64_t size; /* of the artifacts of these kinds together, in bytes; a second file of one kind does not count */
	struct timespec changed; /* when a name in the directory @where was last made or removed; 0 if there is no such directory */
	char where[PATH_MAX]; /* as bid_store_where(), or "" */
};

struct bid_summaries;

/*
 * Begin to look through @store and its lower ones, which are borrowed. One thread's; what others make meanwhile in a directory of
 * perf's own that was not there yet may be missed. Returns 0 or -ENOMEM.
 */
int bid_summaries_new(struct bid_store *store, struct bid_summaries **ret_summaries);

/* @summaries may be NULL. */
void bid_summaries_free(struct bid_summaries *summaries);

/* What there is of @id. It is cheapest for ids with the same first byte one after the other. May block on disk. */
void bid_summary_of(struct bid_summaries *summaries, const struct bid_id *id, struct bid_summary *ret_summary);

#endif
