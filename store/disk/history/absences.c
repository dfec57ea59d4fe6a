// SPDX-License-Identifier: LGPL-2.1-or-later
#include <bid/absence.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/log.h"
#include "disk/history/absence_table.h"
#include "disk/history/journal.h"
#include "disk/layout.h"

/* How long the first, second, … "no" stands, in seconds. */
static const int64_t steps[] = { 90, 10 * 60, 30 * 60, 2 * 60 * 60, 24 * 60 * 60 };

#define N_STEPS (sizeof(steps) / sizeof(*steps))

/* A record of the journal; the later one of a key counts. */
struct line {
	uint8_t key[BID_ABSENCE_KEY];
	int64_t until;
	uint32_t step; /* 0 is forgotten */
} __attribute__((packed));

struct bid_absences {
	bid_clock_fn clock;
	void *user;
	pthread_mutex_t lock; /* guards everything below */
	struct bid_absence_table table;
	struct bid_journal journal;
};

static int64_t real_time(void *user)
{
	return time(NULL);
}

static void take(void *user, const void *payload)
{
	struct bid_absences *absences = user;
	struct bid_absence *entry;
	struct line line;

	memcpy(&line, payload, sizeof(line));
	if (line.step == 0 || line.step > N_STEPS) {
		bid_absence_table_drop(&absences->table, line.key);
		return;
	}
	entry = bid_absence_table_add(&absences->table, line.key);
	if (entry) {
		entry->until = line.until;
		entry->step = line.step;
	}
}

static void restart(void *user)
{
	struct bid_absences *absences = user;

	bid_absence_table_release(&absences->table);
}

static int each(void *user, bid_journal_emit_fn emit, void *emitter)
{
	struct bid_absences *absences = user;
	const struct bid_absence *entry = NULL;
	int r = 0;

	while (r == 0 && (entry = bid_absence_table_next(&absences->table, entry))) {
		struct line line = { .until = entry->until, .step = entry->step };

		memcpy(line.key, entry->key, sizeof(line.key));
		r = emit(emitter, &line);
	}
	return r;
}

static size_t count(void *user)
{
	struct bid_absences *absences = user;

	return absences->table.n;
}

static const struct bid_journal_ops ops = {
	.path = BID_LAYOUT_ABSENT,
	.magic = { 'b', 'i', 'd', 'a', 'b', 's', 'n', 't' },
	.payload = sizeof(struct line),
	.take = take,
	.restart = restart,
	.each = each,
	.count = count,
};

int bid_absences_new(struct bid_store *store, uint32_t max, bid_clock_fn clock, void *user, struct bid_absences **ret_absences)
{
	struct bid_absences *absences = calloc(1, sizeof(*absences));

	if (!absences)
		return -ENOMEM;
	absences->clock = clock ? clock : real_time;
	absences->user = user;
	pthread_mutex_init(&absences->lock, NULL);
	bid_absence_table_init(&absences->table, max);
	bid_journal_init(&absences->journal, store, &ops, absences);
	bid_journal_catch_up(&absences->journal);
	*ret_absences = absences;
	return 0;
}

void bid_absences_free(struct bid_absences *absences)
{
	if (!absences)
		return;
	bid_journal_release(&absences->journal);
	bid_absence_table_release(&absences->table);
	pthread_mutex_destroy(&absences->lock);
	free(absences);
}

/*
 * Whoever may look names up chooses the ids, so the keys are seeded: nobody can make the "no" to one id look like another's. Under
 * the lock, after catching up: the seed is the file's.
 */
static void make_key(const struct bid_absences *absences, const struct bid_request *request, const char *source,
		     uint8_t ret_key[static BID_ABSENCE_KEY])
{
	uint64_t seed = absences->journal.seed;
	const char *detail = request->detail ? bid_detail_text(request->detail) : "";
	struct {
		uint64_t source, detail;
		uint8_t kind, len, id[BID_ID_MAX];
	} what;
	XXH128_hash_t hash;

	memset(&what, 0, sizeof(what));
	what.source = XXH3_64bits_withSeed(source, strlen(source), seed);
	what.detail = XXH3_64bits_withSeed(detail, strlen(detail), seed);
	what.kind = (uint8_t)request->kind;
	what.len = request->id.len;
	memcpy(what.id, request->id.bytes, request->id.len);
	hash = XXH3_128bits_withSeed(&what, sizeof(what), seed);
	memcpy(ret_key, &hash, BID_ABSENCE_KEY);
}

/* For how long does it stand? A clock that was set back must not make it stand longer than it was said for. */
static unsigned left(const struct bid_absence *entry, int64_t now)
{
	int64_t seconds = entry->until - now;

	return seconds > 0 && seconds <= steps[entry->step - 1] ? (unsigned)seconds : 0;
}

/* Catch up, and find the entry. Under the lock. */
static struct bid_absence *look_up(struct bid_absences *absences, const struct bid_request *request, const char *source,
				   uint8_t ret_key[static BID_ABSENCE_KEY])
{
	bid_journal_catch_up(&absences->journal);
	make_key(absences, request, source, ret_key);
	return bid_absence_table_find(&absences->table, ret_key);
}

/* Write @line down; or do as if. Under the lock. */
static void put(struct bid_absences *absences, const struct line *line)
{
	int r = bid_journal_append(&absences->journal, line);

	if (r == 0)
		return;
	if (r != -EROFS)
		bid_debug("%s: what is absent is remembered in memory only", strerror(-r));
	take(absences, line);
}

int bid_absences_add(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	int64_t now = absences->clock(absences->user);
	struct bid_absence *entry;
	struct line line = { .step = 1 };
	int r;

	pthread_mutex_lock(&absences->lock);
	entry = look_up(absences, request, source, line.key);
	if (entry)
		line.step = left(entry, now) > 0 || entry->step == N_STEPS ? entry->step : entry->step + 1;
	line.until = now + steps[line.step - 1];
	put(absences, &line);
	/* another may have written the file anew at this moment, and is about to append this to it */
	if (!bid_absence_table_find(&absences->table, line.key))
		take(absences, &line);
	r = bid_absence_table_find(&absences->table, line.key) ? 0 : -ENOMEM;
	pthread_mutex_unlock(&absences->lock);
	return r;
}

unsigned bid_absences_ttl(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	int64_t now = absences->clock(absences->user);
	uint8_t key[BID_ABSENCE_KEY];
	struct bid_absence *entry;
	unsigned ttl;

	pthread_mutex_lock(&absences->lock);
	entry = look_up(absences, request, source, key);
	ttl = entry ? left(entry, now) : 0;
	pthread_mutex_unlock(&absences->lock);
	return ttl;
}

void bid_absences_forget(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	struct line line = { .step = 0 };

	pthread_mutex_lock(&absences->lock);
	if (look_up(absences, request, source, line.key))
		put(absences, &line);
	pthread_mutex_unlock(&absences->lock);
}

size_t bid_absences_count(struct bid_absences *absences)
{
	int64_t now = absences->clock(absences->user);
	const struct bid_absence *entry = NULL;
	size_t standing = 0;

	pthread_mutex_lock(&absences->lock);
	bid_journal_catch_up(&absences->journal);
	while ((entry = bid_absence_table_next(&absences->table, entry)))
		standing += left(entry, now) > 0;
	pthread_mutex_unlock(&absences->lock);
	return standing;
}
