// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The links checked by the pass through the names, so that the next pass skips them. Sorted hashes, because a store may have a
 * million. By chance, once in billions of stores, two ids collide; the next pass then misses one link.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "disk/verify/verify.h"

struct bid_verify_seen {
	uint64_t *linked; /* ids, hashed; owned */
	size_t n_linked, linked_room;
};

/* Hash with a seed: an attacker can construct ids with equal plain hashes, and the check would skip one. */
static uint64_t hash_id(const struct bid_verify *verify, const struct bid_id *filed)
{
	return XXH3_64bits_withSeed(filed->bytes, filed->len, verify->shared->seed);
}

static struct bid_verify_seen *own_seen(struct bid_verify *verify)
{
	if (!verify->seen)
		verify->seen = calloc(1, sizeof(*verify->seen));
	return verify->seen;
}

int bid_verify_linked(struct bid_verify *verify, const struct bid_id *filed)
{
	struct bid_verify_seen *seen = own_seen(verify);

	if (!seen || bid_array_grow(seen->linked, seen->n_linked, seen->linked_room) < 0)
		return -ENOMEM;
	seen->linked[seen->n_linked++] = hash_id(verify, filed);
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

bool bid_verify_is_linked(const struct bid_verify *verify, const struct bid_id *filed)
{
	const struct bid_verify_seen *seen = verify->shared->seen;
	uint64_t wanted = hash_id(verify, filed);

	return seen && seen->n_linked > 0 && bsearch(&wanted, seen->linked, seen->n_linked, sizeof(wanted), by_hash);
}

static int merge_seen(struct bid_verify_seen *all, const struct bid_verify_seen *seen)
{
	if (bid_array_reserve(all->linked, all->n_linked, seen->n_linked, all->linked_room) < 0)
		return -ENOMEM;
	if (seen->n_linked > 0)
		memcpy(all->linked + all->n_linked, seen->linked, seen->n_linked * sizeof(*seen->linked));
	all->n_linked += seen->n_linked;
	return 0;
}

int bid_verify_seen_gather(struct bid_verify *members, unsigned n)
{
	struct bid_verify_seen *all = own_seen(&members[0]);

	if (!all)
		return -ENOMEM;
	for (unsigned i = 1; i < n; i++) {
		int r = members[i].seen ? merge_seen(all, members[i].seen) : 0;

		if (r < 0)
			return r;
		bid_verify_seen_free(members[i].seen);
		members[i].seen = NULL;
	}
	if (all->n_linked > 0)
		qsort(all->linked, all->n_linked, sizeof(*all->linked), by_hash);
	members[0].shared->seen = all;
	members[0].seen = NULL;
	return 0;
}

void bid_verify_seen_free(struct bid_verify_seen *seen)
{
	if (!seen)
		return;
	free(seen->linked);
	free(seen);
}
