// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/negative.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/piece.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/request.h"

#define ENTRIES_MAX 100000

struct bid_negative_entry {
	struct bid_negative_entry *next; /* in its bucket */
	TAILQ_ENTRY(bid_negative_entry) link;
	struct bid_request request; /* kept */
	enum bid_outcome reason;
	int64_t until_ms;
	char source[];
};

static int64_t limit_ms(enum bid_outcome reason)
{
	return reason == BID_OUTCOME_TOO_LARGE ? 10 * 60 * 1000 : 90 * 1000;
}

int bid_negative_init(struct bid_negative *negative, struct bid_store *store)
{
	TAILQ_INIT(&negative->entries);
	pthread_mutex_init(&negative->lock, NULL);
	if (getrandom(&negative->seed, sizeof(negative->seed), 0) < 0)
		negative->seed = (uint64_t)bid_clock_ms();
	return bid_absences_new(store, NULL, NULL, &negative->absences);
}

/* Returns the slot of the entry, present or not. Under the lock. */
static struct bid_negative_entry **find_slot(struct bid_negative *negative, const struct bid_request *request, const char *source)
{
	struct bid_negative_entry **at = &negative->buckets[bid_request_hash(request, negative->seed) % BID_NEGATIVE_BUCKETS];

	while (*at && (!bid_request_equal(&(*at)->request, request) || strcmp((*at)->source, source) != 0))
		at = &(*at)->next;
	return at;
}

/* Under the lock. */
static void drop_entry(struct bid_negative *negative, struct bid_negative_entry **at)
{
	struct bid_negative_entry *entry = *at;

	if (!entry)
		return;
	*at = entry->next;
	TAILQ_REMOVE(&negative->entries, entry, link);
	negative->n--;
	bid_request_release(&entry->request);
	free(entry);
}

static void drop_oldest(struct bid_negative *negative)
{
	struct bid_negative_entry *oldest = TAILQ_FIRST(&negative->entries);

	drop_entry(negative, find_slot(negative, &oldest->request, oldest->source));
}

void bid_negative_release(struct bid_negative *negative)
{
	while (!TAILQ_EMPTY(&negative->entries))
		drop_oldest(negative);
	bid_absences_free(negative->absences);
	pthread_mutex_destroy(&negative->lock);
}

/* Under the lock. */
static void add_entry(struct bid_negative *negative, const struct bid_request *request, const char *source, enum bid_outcome reason)
{
	size_t size = strlen(source) + 1;
	struct bid_negative_entry *entry = malloc(sizeof(*entry) + size), **at;

	if (!entry) {
		bid_warning("out of memory: a reason against a source is not remembered");
		return;
	}
	if (negative->n >= ENTRIES_MAX)
		drop_oldest(negative);
	at = find_slot(negative, request, source);
	*entry = (struct bid_negative_entry){
		.next = *at,
		.request = bid_request_keep(request),
		.reason = reason,
		.until_ms = bid_clock_ms() + limit_ms(reason),
	};
	memcpy(entry->source, source, size);
	*at = entry;
	TAILQ_INSERT_TAIL(&negative->entries, entry, link);
	negative->n++;
}

void bid_negative_add(struct bid_negative *negative, const struct bid_request *request, const char *source, enum bid_outcome reason)
{
	/* in memory if the store cannot be written */
	bool written = reason == BID_OUTCOME_ABSENT && bid_absences_add(negative->absences, request, source) == 0;

	pthread_mutex_lock(&negative->lock);
	drop_entry(negative, find_slot(negative, request, source));
	if (!written)
		add_entry(negative, request, source, reason);
	pthread_mutex_unlock(&negative->lock);
}

/* bid_negative_lookup() of @request itself. */
static enum bid_outcome lookup(struct bid_negative *negative, const struct bid_request *request, const char *source,
			       unsigned *ret_ttl)
{
	unsigned ttl = *source ? bid_absences_ttl(negative->absences, request, source) : 0;
	enum bid_outcome reason = ttl > 0 ? BID_OUTCOME_ABSENT : BID_OUTCOME_NONE;
	const struct bid_negative_entry *entry;
	int64_t left;

	if (reason == BID_OUTCOME_NONE) {
		pthread_mutex_lock(&negative->lock);
		entry = *find_slot(negative, request, source);
		left = entry ? entry->until_ms - bid_clock_ms() : 0;
		if (left > 0) {
			reason = entry->reason;
			ttl = (unsigned)((left + 999) / 1000);
		}
		pthread_mutex_unlock(&negative->lock);
	}
	*ret_ttl = ttl;
	return reason;
}

enum bid_outcome bid_negative_lookup(struct bid_negative *negative, const struct bid_request *request, const char *source,
				     unsigned *ret_ttl)
{
	enum bid_outcome reason = lookup(negative, request, source, ret_ttl);
	struct bid_request whole = { .id = request->id };
	unsigned shortest = UINT_MAX, ttl;

	if (reason != BID_OUTCOME_NONE || !*source || !bid_kind_has_detail(request->kind))
		return reason;
	for (size_t i = 0; (whole.kind = bid_section_whole(i)) != BID_KIND_NONE; i++) {
		if (lookup(negative, &whole, source, &ttl) != BID_OUTCOME_ABSENT)
			return BID_OUTCOME_NONE;
		shortest = ttl < shortest ? ttl : shortest;
	}
	*ret_ttl = shortest;
	return BID_OUTCOME_ABSENT;
}

void bid_negative_forget(struct bid_negative *negative, const struct bid_request *request, const char *source)
{
	pthread_mutex_lock(&negative->lock);
	drop_entry(negative, find_slot(negative, request, source));
	pthread_mutex_unlock(&negative->lock);
	if (*source)
		bid_absences_forget(negative->absences, request, source);
}

size_t bid_negative_count(struct bid_negative *negative)
{
	int64_t now = bid_clock_ms();
	const struct bid_negative_entry *entry;
	size_t n = bid_absences_count(negative->absences);

	pthread_mutex_lock(&negative->lock);
	for (entry = TAILQ_FIRST(&negative->entries); entry; entry = TAILQ_NEXT(entry, link))
		n += (entry->reason == BID_OUTCOME_TOO_LARGE || entry->reason == BID_OUTCOME_ABSENT) && entry->until_ms > now;
	pthread_mutex_unlock(&negative->lock);
	return n;
}
