// SPDX-License-Identifier: LGPL-2.1-or-later
#include "negative.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "request.h"

/* How long the first, second, … "no" stands, in seconds. */
static const unsigned steps[] = { 10 * 60, 30 * 60, 2 * 60 * 60, 24 * 60 * 60 };

#define N_STEPS	    (sizeof(steps) / sizeof(*steps))
#define MIN_BUCKETS 256

/* Stays after its time is over, until it is pushed out: how often the "no" was repeated is told by it alone. */
struct entry {
	struct bid_request request;
	int64_t until;
	unsigned step;
	bool standing;			/* in standing[step] */
	struct entry *next;		/* in its bucket */
	TAILQ_ENTRY(entry) use;
	TAILQ_ENTRY(entry) expiry;
};

TAILQ_HEAD(entries, entry);

struct bid_negative {
	bid_clock_fn clock;
	void *user;
	uint64_t seed;
	size_t max;

	pthread_mutex_t lock;		/* guards everything below */
	struct entry **buckets;
	size_t n_buckets;		/* a power of two */
	size_t n_entries;
	size_t n_standing;
	struct entries use;		/* all, the least recently wanted first */
	struct entries standing[N_STEPS]; /* all of one step last equally long: the first of a list is the first to end */
};

int64_t bid_clock_boottime(void *user)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

int bid_negative_new(size_t max, bid_clock_fn clock, void *user, struct bid_negative **ret_negative)
{
	bid_auto_free struct bid_negative *negative = calloc(1, sizeof(*negative));

	if (!negative)
		return -ENOMEM;
	negative->buckets = calloc(MIN_BUCKETS, sizeof(*negative->buckets));
	if (!negative->buckets)
		return -ENOMEM;
	negative->n_buckets = MIN_BUCKETS;
	negative->max = max;
	negative->clock = clock;
	negative->user = user;
	/* early in the boot there may be no randomness yet; waiting for it would be worse than a guessable table */
	if (getrandom(&negative->seed, sizeof(negative->seed), GRND_NONBLOCK) != sizeof(negative->seed))
		negative->seed = (uint64_t)bid_clock_boottime(NULL);
	TAILQ_INIT(&negative->use);
	for (size_t step = 0; step < N_STEPS; step++)
		TAILQ_INIT(&negative->standing[step]);
	pthread_mutex_init(&negative->lock, NULL);

	*ret_negative = bid_steal(negative);
	return 0;
}

void bid_negative_free(struct bid_negative *negative)
{
	struct entry *entry;

	if (!negative)
		return;
	while ((entry = TAILQ_FIRST(&negative->use))) {
		TAILQ_REMOVE(&negative->use, entry, use);
		bid_request_release(&entry->request);
		free(entry);
	}
	pthread_mutex_destroy(&negative->lock);
	free(negative->buckets);
	free(negative);
}

/* Where the pointer to the entry of @request is, or would be. */
static struct entry **find(struct bid_negative *negative, const struct bid_request *request)
{
	struct entry **at = &negative->buckets[bid_request_hash(request, negative->seed) & (negative->n_buckets - 1)];

	while (*at && !bid_request_equal(&(*at)->request, request))
		at = &(*at)->next;
	return at;
}

static void stop_standing(struct bid_negative *negative, struct entry *entry)
{
	if (!entry->standing)
		return;
	TAILQ_REMOVE(&negative->standing[entry->step], entry, expiry);
	entry->standing = false;
	negative->n_standing--;
}

static void expire(struct bid_negative *negative, int64_t now)
{
	for (size_t step = 0; step < N_STEPS; step++) {
		struct entry *entry;

		while ((entry = TAILQ_FIRST(&negative->standing[step])) && entry->until <= now)
			stop_standing(negative, entry);
	}
}

static void drop(struct bid_negative *negative, struct entry **at)
{
	struct entry *entry = *at;

	stop_standing(negative, entry);
	*at = entry->next;
	TAILQ_REMOVE(&negative->use, entry, use);
	negative->n_entries--;
	bid_request_release(&entry->request);
	free(entry);
}

static void touch(struct bid_negative *negative, struct entry *entry)
{
	TAILQ_REMOVE(&negative->use, entry, use);
	TAILQ_INSERT_TAIL(&negative->use, entry, use);
}

/* Growing is for speed only: without the memory the chains become longer. */
static void grow(struct bid_negative *negative)
{
	size_t n_buckets = negative->n_buckets * 2;
	struct entry **buckets = calloc(n_buckets, sizeof(*buckets));
	struct entry *entry;

	if (!buckets)
		return;
	free(negative->buckets);
	negative->buckets = buckets;
	negative->n_buckets = n_buckets;
	for (entry = TAILQ_FIRST(&negative->use); entry; entry = TAILQ_NEXT(entry, use)) {
		struct entry **at = &buckets[bid_request_hash(&entry->request, negative->seed) & (n_buckets - 1)];

		entry->next = *at;
		*at = entry;
	}
}

static struct entry *insert(struct bid_negative *negative, const struct bid_request *request)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct entry **at;

	if (!entry)
		return NULL;
	if (negative->n_entries >= negative->max && negative->n_entries > 0)
		drop(negative, find(negative, &TAILQ_FIRST(&negative->use)->request));
	if (negative->n_entries >= negative->n_buckets)
		grow(negative);

	entry->request = bid_request_keep(request);
	at = find(negative, request);
	entry->next = *at;
	*at = entry;
	TAILQ_INSERT_TAIL(&negative->use, entry, use);
	negative->n_entries++;
	return entry;
}

int bid_negative_add(struct bid_negative *negative, const struct bid_request *request)
{
	int64_t now = negative->clock(negative->user);
	struct entry *entry;

	pthread_mutex_lock(&negative->lock);
	expire(negative, now);
	entry = *find(negative, request);
	if (!entry) {
		entry = insert(negative, request);
	} else {
		touch(negative, entry);
		if (!entry->standing && entry->step < N_STEPS - 1)
			entry->step++;
		stop_standing(negative, entry);
	}
	if (entry) {
		entry->until = now + steps[entry->step];
		entry->standing = true;
		TAILQ_INSERT_TAIL(&negative->standing[entry->step], entry, expiry);
		negative->n_standing++;
	}
	pthread_mutex_unlock(&negative->lock);
	return entry ? 0 : -ENOMEM;
}

unsigned bid_negative_ttl(struct bid_negative *negative, const struct bid_request *request)
{
	int64_t now = negative->clock(negative->user);
	struct entry *entry;
	unsigned ttl = 0;

	pthread_mutex_lock(&negative->lock);
	expire(negative, now);
	entry = *find(negative, request);
	if (entry) {
		touch(negative, entry);
		if (entry->standing)
			ttl = (unsigned)(entry->until - now);
	}
	pthread_mutex_unlock(&negative->lock);
	return ttl;
}

void bid_negative_forget(struct bid_negative *negative, const struct bid_request *request)
{
	struct entry **at;

	pthread_mutex_lock(&negative->lock);
	at = find(negative, request);
	if (*at)
		drop(negative, at);
	pthread_mutex_unlock(&negative->lock);
}

size_t bid_negative_count(struct bid_negative *negative)
{
	int64_t now = negative->clock(negative->user);
	size_t count;

	pthread_mutex_lock(&negative->lock);
	expire(negative, now);
	count = negative->n_standing;
	pthread_mutex_unlock(&negative->lock);
	return count;
}
