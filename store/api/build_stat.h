/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build stats: the stored artifacts of many ids, unchecked and without opening one, for listings. */
#ifndef BID_API_BUILD_STAT_H
#define BID_API_BUILD_STAT_H

#include <limits.h>
#include <time.h>

#include "api/store.h"

struct bid_build_stat {
	unsigned kinds; /* as bid_store_kinds() */
	uint64_t size; /* bytes of the artifacts of these kinds; a second file of one kind does not count */
	struct timespec changed; /* modification time of the directory @where; 0 without one */
	char where[PATH_MAX]; /* as bid_store_perf_link(), or "" */
};

struct bid_build_stats;

/*
 * Make a reader of build stats of @store and its lower stores, which are borrowed. Multithreading: one thread. The reader may miss
 * files in a directory that perf creates meanwhile. Returns 0 or -ENOMEM.
 */
int bid_build_stats_new(struct bid_store *store, struct bid_build_stats **ret_stats);

/* @stats may be NULL. */
void bid_build_stats_free(struct bid_build_stats *stats);

/* Read the build stat of @id; ids with one first byte are cheapest in a row. May block on disk. */
void bid_build_stat_of(struct bid_build_stats *stats, const struct bid_id *id, struct bid_build_stat *ret_stat);

#endif
