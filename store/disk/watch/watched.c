// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/watch/watched.h"

#include <xxhash.h>

static struct bid_watched **bucket_of(struct bid_watched_ids *ids, const struct bid_id *id)
{
	return &ids->buckets[XXH3_64bits(id->bytes, id->len) & (BID_WATCHED_BUCKETS - 1)];
}

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return time.tv_sec;
}

static void unchain(struct bid_watched *watched)
{
	watched->older->newer = watched->newer;
	watched->newer->older = watched->older;
}

static void make_newest(struct bid_watched_ids *ids, struct bid_watched *watched)
{
	watched->older = ids->ends.older;
	watched->newer = &ids->ends;
	watched->older->newer = watched;
	ids->ends.older = watched;
	watched->used = now();
}

void bid_watched_init(struct bid_watched_ids *ids)
{
	*ids = (struct bid_watched_ids){ 0 };
	ids->ends.older = ids->ends.newer = &ids->ends;
}

struct bid_watched *bid_watched_find(struct bid_watched_ids *ids, const struct bid_id *id)
{
	struct bid_watched *watched = *bucket_of(ids, id);

	while (watched && !bid_id_equal(&watched->id, id))
		watched = watched->next;
	return watched;
}

struct bid_watched *bid_watched_oldest(struct bid_watched_ids *ids)
{
	return ids->ends.newer != &ids->ends ? ids->ends.newer : NULL;
}

bool bid_watched_is_unused(const struct bid_watched *watched, time_t seconds)
{
	return watched->used + seconds < now();
}

void bid_watched_enter(struct bid_watched_ids *ids, struct bid_watched *watched)
{
	struct bid_watched **bucket = bucket_of(ids, &watched->id);

	watched->next = *bucket;
	*bucket = watched;
	make_newest(ids, watched);
	ids->n++;
}

void bid_watched_use(struct bid_watched_ids *ids, struct bid_watched *watched)
{
	unchain(watched);
	make_newest(ids, watched);
}

void bid_watched_take_out(struct bid_watched_ids *ids, struct bid_watched *watched)
{
	struct bid_watched **at = bucket_of(ids, &watched->id);

	while (*at != watched)
		at = &(*at)->next;
	*at = watched->next;
	unchain(watched);
	ids->n--;
}
