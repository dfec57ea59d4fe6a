/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Negative cache: reasons against requests to a source, and their TTL. A reason is an outcome of the source.
 *
 *   absent		TTL of "api/absence.h", in all programs; 90 s in this one if the store cannot be written
 *   unsupported	90 s in this program, because an update of the source may end it
 *   refused		likewise
 *   rejected		likewise
 *   too large		10 minutes, because a source may have a smaller file then
 *
 * Locking: own locks. All functions may block on the disk for a moment.
 */
#ifndef BID_BROKER_NEGATIVE_H
#define BID_BROKER_NEGATIVE_H

#include <pthread.h>
#include <stdint.h>

#include "api/absence.h"
#include "api/source.h"

#define BID_NEGATIVE_ALL "" /* in place of a source: all of them */

#define BID_NEGATIVE_ENTRIES 16384 /* in memory; a new entry may replace one with the same hash */

struct bid_negative_entry;

struct bid_negative {
	struct bid_absences *absences; /* absent artifacts */
	uint64_t seed;
	pthread_mutex_t lock; /* guards the entries */
	struct bid_negative_entry *entries; /* by hash; owned */
};

/* Returns 0 or -ENOMEM; bid_negative_release() is due in both cases. */
int bid_negative_init(struct bid_negative *negative, struct bid_store *store);

void bid_negative_release(struct bid_negative *negative);

/* Add @reason, one of those above, or BID_OUTCOME_FOUND for an artifact whose digest may change. Keeps @source. */
void bid_negative_add(struct bid_negative *negative, const struct bid_request *request, const char *source,
		      enum bid_outcome reason);

/*
 * Returns the reason against @request to @source, or BID_OUTCOME_NONE; @ret_ttl is its remaining TTL in seconds. A source without
 * debuginfo and ELF file of a build has no source file and no section of it.
 */
enum bid_outcome bid_negative_lookup(struct bid_negative *negative, const struct bid_request *request, const char *source,
				     unsigned *ret_ttl);

/* Drop the entries of @request and @source. */
void bid_negative_forget(struct bid_negative *negative, const struct bid_request *request, const char *source);

/* Returns the number of absent or too large artifacts. */
size_t bid_negative_count(struct bid_negative *negative);

#endif
