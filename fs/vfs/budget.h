/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many misses a user may cause. Whoever may look names up in the mount makes its owner's machine ask servers for ids of his
 * choice; so each user has a bucket of tokens, one is taken for each artifact that a source is asked for, and it fills at a steady
 * rate. What is here, or known to be absent, costs none. Any number of threads may use one.
 */
#ifndef BID_FS_BUDGET_H
#define BID_FS_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BID_BUDGET_USERS 64 /* that are told apart; of more, the one that has asked for nothing for longest is forgotten */
#define BID_BUDGET_BURST 4 /* seconds of the rate that a bucket holds */

struct bid_bucket {
	uid_t uid;
	bool used;
	int64_t tokens_ms; /* a thousandth of a token each */
	int64_t filled_ms; /* when it was last filled */
};

struct bid_budget {
	unsigned rate; /* tokens a second; 0 is no limit */
	uid_t owner; /* who has no limit, as root has none */
	pthread_mutex_t lock; /* guards everything below */
	struct bid_bucket buckets[BID_BUDGET_USERS];
	_Atomic uint64_t refused; /* not under the lock */
};

void bid_budget_init(struct bid_budget *budget, unsigned rate, uid_t owner);

void bid_budget_release(struct bid_budget *budget);

/* Take a token of @uid at @now_ms, on a clock that does not go back. False if there is none. */
bool bid_budget_take(struct bid_budget *budget, uid_t uid, int64_t now_ms);

/* How often there was none. */
uint64_t bid_budget_refused(const struct bid_budget *budget);

#endif
