/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ids that are watched: found by the id, and ordered by their last use. Not for several threads at once. */
#ifndef BID_DISK_WATCH_WATCHED_H
#define BID_DISK_WATCH_WATCHED_H

#include <bid/store.h>

#include <time.h>

#include "disk/watch/paths.h"

struct bid_watched {
	struct bid_id id;
	uint64_t since; /* the moment it was watched from */
	time_t used; /* CLOCK_MONOTONIC */
	void *note; /* the caller's */
	char *where; /* perf's link leads to this build; owned, NULL if not known */
	struct bid_hold *holds; /* owned */
	struct bid_watched *next; /* in its bucket */
	struct bid_watched *older, *newer; /* by last use */
};

enum { BID_WATCHED_BUCKETS = 4096 }; /* a power of two */

struct bid_watched_ids {
	unsigned n;
	struct bid_watched *buckets[BID_WATCHED_BUCKETS];
	struct bid_watched ends; /* of the list by last use: .newer is the oldest, .older the newest */
};

void bid_watched_init(struct bid_watched_ids *ids);

/* NULL if it is not there. */
struct bid_watched *bid_watched_find(struct bid_watched_ids *ids, const struct bid_id *id);

/* NULL if there is none. */
struct bid_watched *bid_watched_oldest(struct bid_watched_ids *ids);

/* Has it not been used for @seconds? */
bool bid_watched_is_unused(const struct bid_watched *watched, time_t seconds);

/* Enter @watched, the caller's, whose id is not there yet, as the newest. */
void bid_watched_enter(struct bid_watched_ids *ids, struct bid_watched *watched);

/* It is the newest now. */
void bid_watched_use(struct bid_watched_ids *ids, struct bid_watched *watched);

void bid_watched_take_out(struct bid_watched_ids *ids, struct bid_watched *watched);

/*
 * Hold all names in @store that decide what is found for the id of @watched, and learn where perf's link leads. If there @must be a
 * link of just its name, -ENOENT without; else as bid_paths_hold().
 */
int bid_watched_hold_names(struct bid_watched *watched, struct bid_store *store, struct bid_paths *paths, bool must);

/* Is the file with the attributes @st that of @kind in @place, a path in @store? */
bool bid_place_has(struct bid_store *store, const char *place, enum bid_kind kind, const struct stat *st);

/* Is it one that is filed under @id? */
bool bid_is_filed(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const struct stat *st);

#endif
