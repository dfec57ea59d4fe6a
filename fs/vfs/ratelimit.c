// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/ratelimit.h"

void bid_ratelimit_init(struct bid_ratelimit *ratelimit, unsigned rate, uid_t owner)
{
	*ratelimit = (struct bid_ratelimit){ .rate = rate, .owner = owner };
	pthread_mutex_init(&ratelimit->lock, NULL);
}

void bid_ratelimit_release(struct bid_ratelimit *ratelimit)
{
	pthread_mutex_destroy(&ratelimit->lock);
}

static int64_t burst_ms(const struct bid_ratelimit *ratelimit)
{
	return (int64_t)ratelimit->rate * BID_RATELIMIT_BURST * 1000;
}

/* Find the bucket of @uid, or replace the one without use for longest. Locking: the lock. */
static struct bid_token_bucket *find_bucket(struct bid_ratelimit *ratelimit, uid_t uid, int64_t now_ms)
{
	struct bid_token_bucket *oldest = &ratelimit->buckets[0];

	for (unsigned i = 0; i < BID_RATELIMIT_USERS; i++) {
		struct bid_token_bucket *bucket = &ratelimit->buckets[i];

		if (bucket->used && bucket->uid == uid)
			return bucket;
		if (oldest->used && (!bucket->used || bucket->filled_ms < oldest->filled_ms))
			oldest = bucket;
	}
	*oldest = (struct bid_token_bucket){ .uid = uid, .used = true, .tokens_ms = burst_ms(ratelimit), .filled_ms = now_ms };
	return oldest;
}

bool bid_ratelimit_take(struct bid_ratelimit *ratelimit, uid_t uid, int64_t now_ms)
{
	struct bid_token_bucket *bucket;
	int64_t missing;
	bool taken;

	if (ratelimit->rate == 0 || uid == 0 || uid == ratelimit->owner)
		return true;
	pthread_mutex_lock(&ratelimit->lock);
	bucket = find_bucket(ratelimit, uid, now_ms);
	missing = burst_ms(ratelimit) - bucket->tokens_ms;
	/* one token a second is one thousandth a millisecond */
	if (now_ms - bucket->filled_ms >= missing / ratelimit->rate)
		bucket->tokens_ms = burst_ms(ratelimit);
	else
		bucket->tokens_ms += (now_ms - bucket->filled_ms) * ratelimit->rate;
	bucket->filled_ms = now_ms;
	taken = bucket->tokens_ms >= 1000;
	if (taken)
		bucket->tokens_ms -= 1000;
	else
		ratelimit->refused++;
	pthread_mutex_unlock(&ratelimit->lock);
	return taken;
}
