// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/history/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "disk/history/journal.h"
#include "disk/layout.h"

#define MAX_PINS 200000

/* A record of the journal; the later one of a key counts. */
struct line {
	uint64_t key[2];
	uint64_t digest[2];
	uint32_t time; /* seconds since the epoch, for people */
} __attribute__((packed));

/* A fetch takes milliseconds at least: the file is read as a whole, once for each, rather than held in memory. */
struct bid_pins {
	struct bid_journal journal;
	struct line *lines; /* owned */
	size_t n, room;
};

static void take(void *user, const void *payload)
{
	struct bid_pins *pins = user;

	if (bid_array_grow(pins->lines, pins->n, pins->room) < 0)
		return;
	memcpy(&pins->lines[pins->n++], payload, sizeof(*pins->lines));
}

static void restart(void *user)
{
	struct bid_pins *pins = user;

	pins->n = 0;
}

/* The oldest half goes. */
static int each(void *user, bid_journal_emit_fn emit, void *emitter)
{
	struct bid_pins *pins = user;
	size_t i = pins->n >= MAX_PINS ? pins->n - MAX_PINS / 2 : 0;
	int r = 0;

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

int bid_pins_open(struct bid_store *store, struct bid_pins **ret_pins)
{
	struct bid_pins *pins = calloc(1, sizeof(*pins));

	if (!pins)
		return -ENOMEM;
	bid_journal_init(&pins->journal, store, &ops, pins);
	bid_journal_catch_up(&pins->journal);
	*ret_pins = pins;
	return 0;
}

void bid_pins_close(struct bid_pins *pins)
{
	if (!pins)
		return;
	bid_journal_release(&pins->journal);
	free(pins->lines);
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

int bid_pin_get(const struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t *ret_digest)
{
	XXH128_hash_t key = key_of(pins, request);

	for (size_t i = pins->n; i-- > 0;) {
		const struct line *line = &pins->lines[i];

		if (line->key[0] != key.high64 || line->key[1] != key.low64)
			continue;
		*ret_digest = (XXH128_hash_t){ .high64 = line->digest[0], .low64 = line->digest[1] };
		return 0;
	}
	return -ENOENT;
}

int bid_pin_set(struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t digest)
{
	XXH128_hash_t key, known;
	struct line line;

	bid_journal_catch_up(&pins->journal);
	if (bid_pin_get(pins, request, &known) == 0 && XXH128_isEqual(known, digest))
		return 0;
	key = key_of(pins, request);
	line = (struct line){
		.key = { key.high64, key.low64 },
		.digest = { digest.high64, digest.low64 },
		.time = (uint32_t)time(NULL),
	};
	return bid_journal_append(&pins->journal, &line);
}
