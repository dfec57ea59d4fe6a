/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A rate limit of cache misses: a token bucket for each user. Without it, a user of the mount makes the machine of its owner ask
 * servers for any number of ids. A cache miss that goes to a server takes a token; a cache hit and a negative cache entry take
 * none.
 *
 *	bid_ratelimit_init()
 *	bid_ratelimit_take()	for each cache miss
 *	bid_ratelimit_release()
 *
 * Locking: the limit has one lock. Any thread may call.
 */
#ifndef BID_FS_RATELIMIT_H
#define BID_FS_RATELIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BID_RATELIMIT_USERS 64 /* users at a time; the one without a cache miss for longest is forgotten */
#define BID_RATELIMIT_BURST 4 /* seconds of the rate in a full bucket */

struct bid_token_bucket {
	uid_t uid;
	bool used;
	int64_t tokens_ms; /* thousandths of a token */
	int64_t filled_ms; /* time of the last refill */
};

struct bid_ratelimit {
	unsigned rate; /* tokens a second; 0 for no limit */
	uid_t owner; /* has no limit, as root */
	pthread_mutex_t lock; /* guards all below */
	struct bid_token_bucket buckets[BID_RATELIMIT_USERS];
	_Atomic uint64_t refused; /* refusals; atomic, without the lock */
};

void bid_ratelimit_init(struct bid_ratelimit *ratelimit, unsigned rate, uid_t owner);

void bid_ratelimit_release(struct bid_ratelimit *ratelimit);

/* Take a token of @uid at @now_ms, of a monotonic clock. False if there is none. */
bool bid_ratelimit_take(struct bid_ratelimit *ratelimit, uid_t uid, int64_t now_ms);

#endif
