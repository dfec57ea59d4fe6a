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
	char where[PATH_MAX]; /* as bid_store_where(), or "" */
};

/* Read the build stat of @id in @store and its lower stores. May miss a file that perf creates meanwhile. May block on disk. */
void bid_build_stat_of(struct bid_store *store, const struct bid_id *id, struct bid_build_stat *ret_stat);

#endif
