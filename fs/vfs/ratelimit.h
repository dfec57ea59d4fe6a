/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many misses a user may cause. Whoever may look names up in the mount makes its owner's machine ask servers for ids of his
 * choice; so each user has a bucket of tokens, one is taken for each artifact that a source is asked for, and it fills at a steady
 * rate. What is here, or known to be absent, costs none. Any number of threads may use one.
 */
#ifndef BID_FS_RATELIMIT_H
#define BID_FS_RATELIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BID_RATELIMIT_USERS 64 /* that are told apart; of more, the one that has asked for nothing for longest is forgotten */
#define BID_RATELIMIT_BURST 4 /* seconds of the rate that a bucket holds */

struct bid_token_bucket {
	uid_t uid;
	bool used;
	int64_t tokens_ms; /* a thousandth of a token each */
	int64_t filled_ms; /* when it was last filled */
};

struct bid_ratelimit {
	unsigned rate; /* tokens a second; 0 is no limit */
	uid_t owner; /* who has no limit, as root has none */
	pthread_mutex_t lock; /* guards everything below */
	struct bid_token_bucket buckets[BID_RATELIMIT_USERS];
	_Atomic uint64_t refused; /* not under the lock */
};

void bid_ratelimit_init(struct bid_ratelimit *ratelimit, unsigned rate, uid_t owner);

void bid_ratelimit_release(struct bid_ratelimit *ratelimit);

/* Take a token of @uid at @now_ms, on a clock that does not go back. False if there is none. */
bool bid_ratelimit_take(struct bid_ratelimit *ratelimit, uid_t uid, int64_t now_ms);

/* How often there was none. */
uint64_t bid_ratelimit_refused(const struct bid_ratelimit *ratelimit);

#endif
