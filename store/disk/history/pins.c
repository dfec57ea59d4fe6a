// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/history/pins.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "disk/history/journal.h"
#include "disk/layout.h"

#define MAX_PINS    200000
#define FIRST_SLOTS 256

/* A record of the journal; the later one of a key counts. */
struct line {
	uint64_t key[2];
	uint64_t digest[2];
	uint32_t time; /* seconds since the epoch, for people */
} __attribute__((packed));

/* All of them are held in memory, and what was appended is read: a build of a debugger's fetches thousands of sources. */
struct bid_pins {
	pthread_mutex_t lock; /* protects all below */
	struct bid_journal journal;
	struct line *lines; /* one for each key; owned */
	size_t n, room;
	uint32_t *slots; /* by key, a line's index and one, or 0; as many as a power of two, at least twice the lines; owned */
	size_t n_slots;
	bool incomplete; /* for want of memory */
};

/* Where the line with the key of @line is, or would be. */
static uint32_t *find_slot(const struct bid_pins *pins, const struct line *line)
{
	size_t at = line->key[0] & (pins->n_slots - 1);

	while (pins->slots[at] && memcmp(&pins->lines[pins->slots[at] - 1], line, sizeof(line->key)) != 0)
		at = (at + 1) & (pins->n_slots - 1);
	return &pins->slots[at];
}

/* Make the slots anew, for @n_slots. */
static int index_lines(struct bid_pins *pins, size_t n_slots)
{
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(pins->slots);
	pins->slots = slots;
	pins->n_slots = n_slots;
	for (size_t i = 0; i < pins->n; i++)
		*find_slot(pins, &pins->lines[i]) = (uint32_t)i + 1;
	return 0;
}

static void take(void *user, const void *payload)
{
	struct bid_pins *pins = user;
	struct line line;
	uint32_t *slot;

	memcpy(&line, payload, sizeof(line));
	if (2 * (pins->n + 1) > pins->n_slots && index_lines(pins, pins->n_slots ? 2 * pins->n_slots : FIRST_SLOTS) < 0) {
		pins->incomplete = true;
		return;
	}
	slot = find_slot(pins, &line);
	if (*slot) {
		pins->lines[*slot - 1] = line;
	} else if (bid_array_grow(pins->lines, pins->n, pins->room) == 0) {
		pins->lines[pins->n++] = line;
		*slot = (uint32_t)pins->n;
	} else {
		pins->incomplete = true;
	}
}

static void restart(void *user)
{
	struct bid_pins *pins = user;

	pins->n = 0;
	pins->incomplete = false;
	if (pins->slots)
		memset(pins->slots, 0, pins->n_slots * sizeof(*pins->slots));
}

/* The oldest half goes. */
static int each(void *user, bid_journal_emit_fn emit, void *emitter)
{
	struct bid_pins *pins = user;
	size_t i = pins->n >= MAX_PINS ? pins->n - MAX_PINS / 2 : 0;
	int r = pins->incomplete ? -ENOMEM : 0;

	for (; r == 0 && i < pins->n; i++)
		r = emit(emitter, &pins->lines[i]);
	return r;
}

static size_t count(void *user)
{
	return MAX_PINS / 2;
}

static const struct bid_journal_ops ops = {
	.path = BID_LAYOUT_PINS,
	.magic = { 'b', 'i', 'd', 'p', 'i', 'n', 's', '\0' },
	.payload = sizeof(struct line),
	.take = take,
	.restart = restart,
	.each = each,
	.count = count,
};

int bid_pins_new(struct bid_store *store, struct bid_pins **ret_pins)
{
	struct bid_pins *pins = calloc(1, sizeof(*pins));

	if (!pins)
		return -ENOMEM;
	pthread_mutex_init(&pins->lock, NULL);
	bid_journal_init(&pins->journal, store, &ops, pins);
	*ret_pins = pins;
	return 0;
}

void bid_pins_free(struct bid_pins *pins)
{
	if (!pins)
		return;
	bid_journal_release(&pins->journal);
	pthread_mutex_destroy(&pins->lock);
	free(pins->lines);
	free(pins->slots);
	free(pins);
}

static XXH128_hash_t key_of(const struct bid_pins *pins, const struct bid_request *request)
{
	uint8_t what[2 + BID_ID_MAX] = { (uint8_t)request->kind, request->id.len };
	const char *detail = bid_detail_text(request->detail);
	uint64_t seed = pins->journal.seed;

	if (request->detail)
		seed = XXH3_64bits_withSeed(detail, strlen(detail), seed);
	memcpy(what + 2, request->id.bytes, request->id.len);
	return XXH3_128bits_withSeed(what, sizeof(what), seed);
}

/* Catch up, and find the digest that is pinned. Under the lock. */
static int look_up(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t *ret_digest)
{
	const struct line *line;
	XXH128_hash_t key;
	uint32_t slot;
	int r;

	if (pins->incomplete)
		bid_journal_restart(&pins->journal);
	r = bid_journal_catch_up(&pins->journal);
	if (r == 0 && pins->incomplete)
		r = -ENOMEM;
	if (r < 0)
		return r;
	key = key_of(pins, request);
	slot = pins->n_slots ? *find_slot(pins, &(struct line){ .key = { key.high64, key.low64 } }) : 0;
	if (!slot)
		return -ENOENT;
	line = &pins->lines[slot - 1];
	*ret_digest = (XXH128_hash_t){ .high64 = line->digest[0], .low64 = line->digest[1] };
	return 0;
}

int bid_pin_get(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t *ret_digest)
{
	int r;

	pthread_mutex_lock(&pins->lock);
	r = look_up(pins, request, ret_digest);
	pthread_mutex_unlock(&pins->lock);
	return r;
}

int bid_pin_set(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t digest)
{
	XXH128_hash_t key, known;
	int r;

	pthread_mutex_lock(&pins->lock);
	r = look_up(pins, request, &known);
	if (r == -ENOENT || (r == 0 && !XXH128_isEqual(known, digest))) {
		key = key_of(pins, request);
		r = bid_journal_append(&pins->journal, &(struct line){ .key = { key.high64, key.low64 },
								       .digest = { digest.high64, digest.low64 },
								       .time = (uint32_t)time(NULL) });
	}
	pthread_mutex_unlock(&pins->lock);
	return r;
}
