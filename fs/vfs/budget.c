// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/budget.h"

void bid_budget_init(struct bid_budget *budget, unsigned rate, uid_t owner)
{
	*budget = (struct bid_budget){ .rate = rate, .owner = owner };
	pthread_mutex_init(&budget->lock, NULL);
}

void bid_budget_release(struct bid_budget *budget)
{
	pthread_mutex_destroy(&budget->lock);
}

static int64_t full(const struct bid_budget *budget)
{
	return (int64_t)budget->rate * BID_BUDGET_BURST * 1000;
}

/* The bucket of @uid; that of another, if need be. Under the lock. */
static struct bid_bucket *find(struct bid_budget *budget, uid_t uid, int64_t now_ms)
{
	struct bid_bucket *oldest = &budget->buckets[0];

	for (unsigned i = 0; i < BID_BUDGET_USERS; i++) {
		struct bid_bucket *bucket = &budget->buckets[i];

		if (bucket->used && bucket->uid == uid)
			return bucket;
		if (oldest->used && (!bucket->used || bucket->filled_ms < oldest->filled_ms))
			oldest = bucket;
	}
	*oldest = (struct bid_bucket){ .uid = uid, .used = true, .tokens_ms = full(budget), .filled_ms = now_ms };
	return oldest;
}

bool bid_budget_take(struct bid_budget *budget, uid_t uid, int64_t now_ms)
{
	struct bid_bucket *bucket;
	int64_t missing;
	bool taken;

	if (budget->rate == 0 || uid == 0 || uid == budget->owner)
		return true;
	pthread_mutex_lock(&budget->lock);
	bucket = find(budget, uid, now_ms);
	missing = full(budget) - bucket->tokens_ms;
	/* a rate of one token a second is one thousandth a millisecond */
	if (now_ms - bucket->filled_ms >= missing / budget->rate)
		bucket->tokens_ms = full(budget);
	else
		bucket->tokens_ms += (now_ms - bucket->filled_ms) * budget->rate;
	bucket->filled_ms = now_ms;
	taken = bucket->tokens_ms >= 1000;
	if (taken)
		bucket->tokens_ms -= 1000;
	else
		budget->refused++;
	pthread_mutex_unlock(&budget->lock);
	return taken;
}

uint64_t bid_budget_refused(const struct bid_budget *budget)
{
	return budget->refused;
}
