// SPDX-License-Identifier: LGPL-2.1-or-later
/* The negative cache, on disk and in memory, with all negative TTLs. */
#include "api/negative.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include "api/artifact.h"
#include "api/source_section.h"
#include "disk/fact.h"
#include "disk/layout.h"
#include "disk/record.h"

/* TTL of the first, second, … "absent" of a server for an artifact, in seconds */
static const int64_t absent_ttls[] = { 90, 10 * 60, 30 * 60, 2 * 60 * 60, 24 * 60 * 60 };

#define N_TTLS	      (sizeof(absent_ttls) / sizeof(*absent_ttls))
#define TOO_LARGE_TTL (10 * 60)
#define OTHER_TTL     90

struct entry {
	enum bid_outcome reason; /* BID_OUTCOME_NONE for no entry */
	unsigned step; /* number of negative responses; from 1 on */
	int64_t until; /* seconds since the epoch */
};

/* an entry in memory */
struct slot {
	struct bid_artifact artifact; /* kept */
	const char *server;
	struct entry entry;
};

struct bid_negative {
	struct bid_store *store; /* borrowed */
	uint64_t seed;
	pthread_mutex_t lock; /* guards the slots */
	struct slot *slots; /* by hash; owned; NULL before the first entry in memory */
};

int bid_negative_new(struct bid_store *store, struct bid_negative **ret_negative)
{
	struct bid_negative *negative = calloc(1, sizeof(*negative));

	if (!negative)
		return -ENOMEM;
	negative->store = store;
	if (getrandom(&negative->seed, sizeof(negative->seed), 0) < 0)
		negative->seed = (uint64_t)time(NULL);
	pthread_mutex_init(&negative->lock, NULL);
	*ret_negative = negative;
	return 0;
}

static void clear_slot(struct slot *slot)
{
	bid_artifact_release(&slot->artifact);
	*slot = (struct slot){ 0 };
}

void bid_negative_free(struct bid_negative *negative)
{
	if (!negative)
		return;
	for (size_t i = 0; negative->slots && i < BID_NEGATIVE_ENTRIES; i++)
		clear_slot(&negative->slots[i]);
	free(negative->slots);
	pthread_mutex_destroy(&negative->lock);
	free(negative);
}

static int64_t ttl_of(const struct entry *entry)
{
	switch (entry->reason) {
	case BID_OUTCOME_NONE:
		return 0;
	case BID_OUTCOME_ABSENT:
		return absent_ttls[entry->step - 1];
	case BID_OUTCOME_TOO_LARGE:
		return TOO_LARGE_TTL;
	default:
		return OTHER_TTL;
	}
}

static struct entry make_entry(enum bid_outcome reason, unsigned step, int64_t now)
{
	struct entry entry = { .reason = reason, .step = step };

	entry.until = now + ttl_of(&entry);
	return entry;
}

/* Returns the seconds left of @entry. A clock set back must not extend the TTL. */
static unsigned seconds_left(const struct entry *entry, int64_t now)
{
	return entry->until > now && entry->until <= now + ttl_of(entry) ? (unsigned)(entry->until - now) : 0;
}

static const char *name_of(const char *server, char buf[static BID_FACT_MORE_MAX])
{
	snprintf(buf, BID_FACT_MORE_MAX, "%016llx", (unsigned long long)XXH3_64bits(server, strlen(server)));
	return buf;
}

static struct entry parse_fact(const char *text)
{
	struct entry entry = { .reason = BID_OUTCOME_ABSENT };
	char end;

	if (sscanf(text, "%" SCNd64 " %u%c", &entry.until, &entry.step, &end) != 2 || entry.step == 0 || entry.step > N_TTLS)
		return (struct entry){ 0 };
	return entry;
}

static struct entry read_fact(const struct bid_negative *negative, const struct bid_artifact *artifact, const char *server)
{
	char text[BID_FACT_MAX], more[BID_FACT_MORE_MAX];

	if (!*server || bid_fact_read(negative->store, BID_LAYOUT_ABSENT, artifact, name_of(server, more), text) < 0)
		return (struct entry){ 0 };
	return parse_fact(text);
}

/* Returns 0, -EROFS without a writable store, or the error of the write. */
static int write_fact(const struct bid_negative *negative, const struct bid_artifact *artifact, const char *server, int64_t now)
{
	struct entry entry = read_fact(negative, artifact, server);
	char text[BID_FACT_MAX], more[BID_FACT_MORE_MAX];

	/* frequent requests must not lengthen the TTL */
	if (seconds_left(&entry, now) == 0 && entry.step < N_TTLS)
		entry.step++;
	entry = make_entry(BID_OUTCOME_ABSENT, entry.step, now);
	snprintf(text, sizeof(text), "%" PRId64 " %u", entry.until, entry.step);
	return bid_fact_write(negative->store, BID_LAYOUT_ABSENT, artifact, name_of(server, more), text);
}

/* Returns the slot for @artifact and @server, which may have the entry of others; NULL without slots. Under the lock. */
static struct slot *slot_of(const struct bid_negative *negative, const struct bid_artifact *artifact, const char *server)
{
	uint64_t hash = bid_artifact_hash(artifact, negative->seed);

	for (; *server; server++)
		hash = hash * 31 + (unsigned char)*server;
	return negative->slots ? &negative->slots[hash % BID_NEGATIVE_ENTRIES] : NULL;
}

static bool is_of(const struct slot *slot, const struct bid_artifact *artifact, const char *server)
{
	return slot && slot->entry.reason != BID_OUTCOME_NONE && bid_artifact_equal(&slot->artifact, artifact) &&
	       strcmp(slot->server, server) == 0;
}

static void forget_in_memory(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server)
{
	struct slot *slot;

	pthread_mutex_lock(&negative->lock);
	slot = slot_of(negative, artifact, server);
	if (is_of(slot, artifact, server))
		clear_slot(slot);
	pthread_mutex_unlock(&negative->lock);
}

void bid_negative_add(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server,
		      enum bid_outcome reason)
{
	int64_t now = time(NULL);
	struct slot *slot;

	if (reason == BID_OUTCOME_ABSENT && write_fact(negative, artifact, server, now) == 0) {
		forget_in_memory(negative, artifact, server);
		return;
	}
	pthread_mutex_lock(&negative->lock);
	if (!negative->slots)
		negative->slots = calloc(BID_NEGATIVE_ENTRIES, sizeof(*negative->slots));
	slot = slot_of(negative, artifact, server);
	/* without memory the next request goes to the server again */
	if (slot) {
		clear_slot(slot);
		*slot = (struct slot){ bid_artifact_copy(artifact), server, make_entry(reason, 1, now) };
	}
	pthread_mutex_unlock(&negative->lock);
}

/* bid_negative_lookup() of @artifact itself. */
static enum bid_outcome lookup_entry(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server,
				     unsigned *ret_ttl)
{
	int64_t now = time(NULL);
	struct entry entry = read_fact(negative, artifact, server);
	const struct slot *slot;

	if (seconds_left(&entry, now) == 0) {
		pthread_mutex_lock(&negative->lock);
		slot = slot_of(negative, artifact, server);
		entry = is_of(slot, artifact, server) ? slot->entry : (struct entry){ 0 };
		pthread_mutex_unlock(&negative->lock);
	}
	*ret_ttl = seconds_left(&entry, now);
	return *ret_ttl > 0 ? entry.reason : BID_OUTCOME_NONE;
}

enum bid_outcome bid_negative_lookup(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server,
				     unsigned *ret_ttl)
{
	enum bid_outcome reason = lookup_entry(negative, artifact, server, ret_ttl);
	struct bid_artifact whole = { .id = artifact->id };
	unsigned shortest = UINT_MAX, ttl;

	if (reason != BID_OUTCOME_NONE || !*server || !bid_kind_has_subpath(artifact->kind))
		return reason;
	for (size_t i = 0; (whole.kind = bid_section_whole_file(i)) != BID_KIND_NONE; i++) {
		if (lookup_entry(negative, &whole, server, &ttl) != BID_OUTCOME_ABSENT)
			return BID_OUTCOME_NONE;
		shortest = ttl < shortest ? ttl : shortest;
	}
	*ret_ttl = shortest;
	return BID_OUTCOME_ABSENT;
}

void bid_negative_forget(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server)
{
	char more[BID_FACT_MORE_MAX];

	forget_in_memory(negative, artifact, server);
	if (*server)
		bid_fact_remove(negative->store, BID_LAYOUT_ABSENT, artifact, name_of(server, more));
}

struct counting {
	int64_t now;
	size_t n;
};

static void count_entry(void *user, const char *first, const char *name, const char *text)
{
	struct counting *counting = user;
	struct entry entry = parse_fact(text);

	counting->n += seconds_left(&entry, counting->now) > 0;
}

size_t bid_negative_count(struct bid_negative *negative)
{
	struct counting counting = { .now = time(NULL) };

	bid_fact_each(negative->store, BID_LAYOUT_ABSENT, count_entry, &counting);
	pthread_mutex_lock(&negative->lock);
	for (size_t i = 0; negative->slots && i < BID_NEGATIVE_ENTRIES; i++) {
		const struct entry *entry = &negative->slots[i].entry;

		counting.n += (entry->reason == BID_OUTCOME_TOO_LARGE || entry->reason == BID_OUTCOME_ABSENT) &&
			      seconds_left(entry, counting.now) > 0;
	}
	pthread_mutex_unlock(&negative->lock);
	return counting.n;
}

struct each_entry {
	bid_negative_fn fn;
	void *user;
};

/* bid_fact_fn: behind the name of a record follows the server. */
static void take_entry(void *user, const char *first, const char *name, const char *text)
{
	const struct each_entry *each = user;
	const char *server = strrchr(name, '.');
	struct entry entry = parse_fact(text);
	struct bid_artifact artifact;
	char record[NAME_MAX + 1];

	if (!server || entry.reason == BID_OUTCOME_NONE)
		return;
	snprintf(record, sizeof(record), "%.*s", (int)(server - name), name);
	if (bid_record_parse_name(first, record, &artifact))
		each->fn(each->user, &artifact, entry.until - ttl_of(&entry));
}

int bid_negative_each(struct bid_store *store, bid_negative_fn fn, void *user)
{
	return bid_fact_each(store, BID_LAYOUT_ABSENT, take_entry, &(struct each_entry){ .fn = fn, .user = user });
}
