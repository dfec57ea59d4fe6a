// SPDX-License-Identifier: LGPL-2.1-or-later
/* The gc thread: it keeps a store within its limits, spares artifacts in use, and lets facts expire by their age alone. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "api/artifact.h"
#include "api/evict.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "disk/derived.h"
#include "disk/fact.h"
#include "disk/layout.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/scan/scan_cache.h"
#include "disk/space.h"
#include "disk/store.h"

enum {
	FIRST_MAX = 200000, /* first-seen digests of downloads, approximately */
	ABSENT_MAX = 100000, /* negative cache entries, approximately */
	HOUR_S = 3600,
	RETRY_S = 5, /* an open file may be closed after this time */
	REST = 20, /* the pause is at least this many times as long as the last collection */
};

static int64_t now_s(void)
{
	return bid_clock_ms() / 1000;
}

/* Does the store exceed its limits, without a look at its files? */
static bool is_over(struct bid_space *space, uint64_t used)
{
	const struct bid_limits *limits = &space->limits;

	return (limits->cache_size > 0 && used > limits->cache_size) ||
	       (limits->min_free > 0 && bid_space_missing(space, limits->min_free) > 0);
}

/*
 * Evict. Returns the remaining bytes of downloads, and the seconds until the next eviction: sooner if open files were in the way.
 */
static uint64_t evict_above_limits(struct bid_space *space, uint64_t used, int64_t *ret_pause_s)
{
	struct bid_evict_config config = { .limits = space->limits };
	struct bid_evict_stats stats;
	int64_t begun_s = now_s();

	*ret_pause_s = HOUR_S;
	if (config.limits.cache_size == 0 && config.limits.min_free == 0)
		return 0;
	if (bid_space_evict(space, &config, 0, true, &stats) < 0)
		return used;
	used = stats.size - stats.evicted_size;
	if (stats.in_use > 0 && is_over(space, used))
		*ret_pause_s = RETRY_S + (now_s() - begun_s) * REST;
	return used;
}

int bid_store_forget(struct bid_store *store, int64_t before, bool dry_run, struct bid_forgotten *ret_left,
		     struct bid_forgotten *ret_gone)
{
	struct bid_forgotten left = { 0 }, gone = { 0 };
	int r;

	if (!dry_run && !bid_store_writable(store))
		return -EROFS;
	r = bid_quarantine_expire(store, before, dry_run, &left.quarantined, &gone.quarantined);
	if (r == 0)
		r = bid_scan_caches_forget(store, before, dry_run, &left.scans, &gone.scans);
	if (r == 0 && !dry_run)
		r = bid_fact_trim(store, BID_LAYOUT_FIRST, FIRST_MAX, INT64_MIN);
	if (r == 0 && !dry_run)
		r = bid_fact_trim(store, BID_LAYOUT_ABSENT, ABSENT_MAX, before);
	if (r < 0)
		return r;
	*ret_left = left;
	*ret_gone = gone;
	return 0;
}

static void forget_old(struct bid_space *space)
{
	struct bid_forgotten left, gone;
	int r = bid_store_forget(space->store, (int64_t)time(NULL) - BID_FORGET_S, false, &left, &gone);

	if (r < 0)
		bid_warning("%s: cannot remove old files from '%s'", strerror(-r), bid_store_path(space->store));
}

static void *run_gc_thread(void *user)
{
	struct bid_space *space = user;
	int64_t pause_s, look_s;
	bool kicked;
	uint64_t used = evict_above_limits(space, 0, &pause_s);

	forget_old(space);
	look_s = now_s() + pause_s;
	pthread_mutex_lock(&space->lock);
	while (!space->stopping) {
		struct timespec until = { .tv_sec = look_s };

		if (!space->kicked)
			pthread_cond_timedwait(&space->kick, &space->lock, &until);
		if (space->stopping)
			break;
		kicked = space->kicked;
		used += space->pending;
		space->pending = 0;
		space->kicked = false;
		pthread_mutex_unlock(&space->lock);
		/* every hour, or after a pause: other processes fetch, evict and remove, too */
		if (now_s() >= look_s || (kicked && is_over(space, used))) {
			if (now_s() >= look_s)
				forget_old(space);
			used = evict_above_limits(space, used, &pause_s);
			look_s = now_s() + pause_s;
		}
		pthread_mutex_lock(&space->lock);
	}
	pthread_mutex_unlock(&space->lock);
	return NULL;
}

int bid_store_keep_limits(struct bid_store *store, const struct bid_limits *limits)
{
	struct bid_space *space = store->space;
	int r;

	if (!space)
		return -EROFS;
	space->limits = *limits;
	r = bid_thread_start(&space->thread, "bid-gc", run_gc_thread, space);
	space->running = r == 0;
	return r;
}

static void note_use(struct bid_space *space, const struct bid_artifact *artifact)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_artifact stored = { .kind = artifact->kind, .subpath = artifact->subpath };
	uint64_t hash = bid_artifact_hash(artifact, 0);
	struct bid_use *use = &space->uses[hash >> 32 & (BID_SPACE_USES - 1)];
	int64_t now = now_s();
	time_t before = time(NULL) - HOUR_S;
	bool noted, recorded = false;

	pthread_mutex_lock(&space->lock);
	noted = use->hash == hash && now - use->noted_s < HOUR_S;
	if (!noted)
		*use = (struct bid_use){ .hash = hash, .noted_s = now };
	pthread_mutex_unlock(&space->lock);
	if (noted)
		return;
	while (bid_alias_next(&alias, &artifact->id, &stored.id)) {
		bid_derived_used(space->store, &stored, before);
		recorded = recorded || bid_record_used(space->store, &stored, before) != -ENOENT;
	}
}

void bid_store_used(struct bid_store *store, const struct bid_artifact *artifact)
{
	struct bid_space *space = store->space;

	if (space)
		note_use(space, artifact);
}
