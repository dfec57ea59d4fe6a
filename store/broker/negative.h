/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The negative cache: for which reason a source is not to be asked for something, and for how long. The reason is the outcome that
 * the source came to:
 *
 *   absent		it does not have it: for as long as "api/absence.h" says, also in other programs that use the store; 90 s in
 *			this program alone, if the store cannot be written
 *   unsupported	it cannot be asked that; 90 s, in this program alone, because it may be over with an update
 *   refused		it will not say; likewise
 *   rejected		it sends something else; likewise
 *   too large		each source has it above the limit, or not at all: 10 minutes, and then a try may find it smaller
 *
 * Locking: has its own locks; all functions may block on disk for a moment.
 */
#ifndef BID_BROKER_NEGATIVE_H
#define BID_BROKER_NEGATIVE_H

#include <stdint.h>
#include <sys/queue.h>

#include <pthread.h>

#include "api/absence.h"
#include "api/source.h"

#define BID_NEGATIVE_ALL "" /* in place of a source: all of them */

#define BID_NEGATIVE_BUCKETS 4096

struct bid_negative_entry;

struct bid_negative {
	struct bid_absences *absences; /* what is absent */
	pthread_mutex_t lock; /* guards everything below */
	uint64_t seed;
	struct bid_negative_entry *buckets[BID_NEGATIVE_BUCKETS];
	TAILQ_HEAD(bid_negative_entries, bid_negative_entry) entries; /* the one that was added last is the last */
	size_t n;
};

/* Returns 0 or -ENOMEM, after which bid_negative_release() is due, too. */
int bid_negative_init(struct bid_negative *negative, struct bid_store *store);

void bid_negative_release(struct bid_negative *negative);

/* Remember @reason, one of those above or BID_OUTCOME_FOUND, which says that other bytes than the first ones may come. */
void bid_negative_add(struct bid_negative *negative, const struct bid_request *request, const char *source,
		      enum bid_outcome reason);

/*
 * Why is @source not to be asked for @request? BID_OUTCOME_NONE if it is; @ret_ttl is the seconds that are left. A source that has
 * neither the debuginfo nor the ELF file of a build has no source file and no section of it either.
 */
enum bid_outcome bid_negative_lookup(struct bid_negative *negative, const struct bid_request *request, const char *source,
				     unsigned *ret_ttl);

/* Forget what is remembered of @request and @source, whatever the reason. */
void bid_negative_forget(struct bid_negative *negative, const struct bid_request *request, const char *source);

/* How many stand that say that something cannot be had: absent, and too large. */
size_t bid_negative_count(struct bid_negative *negative);

#endif
