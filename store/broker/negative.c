// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/negative.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/piece.h"
#include "base/clock.h"
#include "broker/request.h"

struct bid_negative_entry {
	struct bid_request request; /* kept */
	const char *source;
	enum bid_outcome reason; /* BID_OUTCOME_NONE for a free entry */
	int64_t until_ms;
};

static int64_t limit_ms(enum bid_outcome reason)
{
	return reason == BID_OUTCOME_TOO_LARGE ? 10 * 60 * 1000 : 90 * 1000;
}

int bid_negative_init(struct bid_negative *negative, struct bid_store *store)
{
	pthread_mutex_init(&negative->lock, NULL);
	if (getrandom(&negative->seed, sizeof(negative->seed), 0) < 0)
		negative->seed = (uint64_t)bid_clock_ms();
	negative->entries = calloc(BID_NEGATIVE_ENTRIES, sizeof(*negative->entries));
	return negative->entries ? bid_absences_new(store, NULL, NULL, &negative->absences) : -ENOMEM;
}

/* Returns the entry for @request and @source, which may be that of others. */
static struct bid_negative_entry *entry_of(struct bid_negative *negative, const struct bid_request *request, const char *source)
{
	uint64_t hash = bid_request_hash(request, negative->seed);

	for (; *source; source++)
		hash = hash * 31 + (unsigned char)*source;
	return &negative->entries[hash % BID_NEGATIVE_ENTRIES];
}

static bool is_of(const struct bid_negative_entry *entry, const struct bid_request *request, const char *source)
{
	return entry->reason != BID_OUTCOME_NONE && bid_request_equal(&entry->request, request) &&
	       strcmp(entry->source, source) == 0;
}

static void clear_entry(struct bid_negative_entry *entry)
{
	bid_request_release(&entry->request);
	*entry = (struct bid_negative_entry){ 0 };
}

void bid_negative_release(struct bid_negative *negative)
{
	for (size_t i = 0; negative->entries && i < BID_NEGATIVE_ENTRIES; i++)
		clear_entry(&negative->entries[i]);
	free(negative->entries);
	bid_absences_free(negative->absences);
	pthread_mutex_destroy(&negative->lock);
}

void bid_negative_add(struct bid_negative *negative, const struct bid_request *request, const char *source, enum bid_outcome reason)
{
	/* in memory if the store cannot be written */
	bool written = reason == BID_OUTCOME_ABSENT && bid_absences_add(negative->absences, request, source) == 0;
	struct bid_negative_entry *entry;

	pthread_mutex_lock(&negative->lock);
	entry = entry_of(negative, request, source);
	if (!written) {
		clear_entry(entry);
		*entry = (struct bid_negative_entry){ bid_request_keep(request), source, reason,
						      bid_clock_ms() + limit_ms(reason) };
	} else if (is_of(entry, request, source)) {
		clear_entry(entry);
	}
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
		entry = entry_of(negative, request, source);
		left = is_of(entry, request, source) ? entry->until_ms - bid_clock_ms() : 0;
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
	struct bid_negative_entry *entry;

	pthread_mutex_lock(&negative->lock);
	entry = entry_of(negative, request, source);
	if (is_of(entry, request, source))
		clear_entry(entry);
	pthread_mutex_unlock(&negative->lock);
	if (*source)
		bid_absences_forget(negative->absences, request, source);
}

size_t bid_negative_count(struct bid_negative *negative)
{
	size_t n = bid_absences_count(negative->absences);
	int64_t now = bid_clock_ms();

	pthread_mutex_lock(&negative->lock);
	for (size_t i = 0; i < BID_NEGATIVE_ENTRIES; i++) {
		const struct bid_negative_entry *entry = &negative->entries[i];

		n += (entry->reason == BID_OUTCOME_TOO_LARGE || entry->reason == BID_OUTCOME_ABSENT) && entry->until_ms > now;
	}
	pthread_mutex_unlock(&negative->lock);
	return n;
}
