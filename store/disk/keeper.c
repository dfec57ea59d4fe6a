// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/thread.h"
#include "disk/evict.h"
#include "disk/layout.h"
#include "disk/made.h"
#include "disk/record.h"
#include "disk/store.h"

enum {
	USES = 4096, /* a power of two; 64 KiB, of which pages never used are never touched */
	HOUR_S = 3600,
	LET_GO_S = 60, /* so often what is kept for the next reader is given up, if nobody came */
	RETRY_S = 5, /* what was open may be closed by then */
	REST = 20, /* but not before this many times what the look took */
	FRUITLESS_S = 10, /* a disk on which not enough could be evicted is not searched again so soon */
	ROOM_MIN = 64 << 20, /* bytes; one search makes room for more than one write */
};

/* An artifact that was used; those that hash alike push each other out, which costs a system call or two. */
struct use {
	uint64_t hash;
	int64_t noted_s; /* the clock when its record was looked at last */
};

struct bid_keeper {
	struct bid_store *store; /* borrowed */
	pthread_mutex_t lock; /* protects all below; not held during I/O */
	pthread_cond_t kick;
	pthread_t thread;
	bool running; /* there is a thread; written before it starts and after it ended */
	bool stopping, kicked;
	struct bid_limits limits; /* written before the thread starts */
	uint64_t pending; /* bytes published since the thread looked */
	uint64_t evictable; /* bytes that could still be evicted after the last search for room, at this time */
	int64_t searched_s;
	struct use uses[USES];
	pthread_mutex_t let_go_lock; /* protects the two below, and is held while it is called */
	bid_let_go_fn let_go; /* may be NULL */
	void *let_go_user;
	_Atomic uint64_t promised; /* bytes that are to be written; has no need of the lock */
};

static int64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

int bid_keeper_new(struct bid_store *store, struct bid_keeper **ret_keeper)
{
	struct bid_keeper *keeper = calloc(1, sizeof(*keeper));
	pthread_condattr_t monotonic;

	if (!keeper)
		return -ENOMEM;
	keeper->store = store;
	keeper->searched_s = -FRUITLESS_S;
	pthread_mutex_init(&keeper->lock, NULL);
	pthread_mutex_init(&keeper->let_go_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper->kick, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret_keeper = keeper;
	return 0;
}

void bid_keeper_free(struct bid_keeper *keeper)
{
	if (!keeper)
		return;
	if (keeper->running) {
		pthread_mutex_lock(&keeper->lock);
		keeper->stopping = true;
		pthread_cond_signal(&keeper->kick);
		pthread_mutex_unlock(&keeper->lock);
		pthread_join(keeper->thread, NULL);
	}
	pthread_cond_destroy(&keeper->kick);
	pthread_mutex_destroy(&keeper->let_go_lock);
	pthread_mutex_destroy(&keeper->lock);
	free(keeper);
}

void bid_store_on_let_go(struct bid_store *store, bid_let_go_fn let_go, void *user)
{
	struct bid_keeper *keeper = bid_store_keeper(store);

	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->let_go_lock);
	keeper->let_go = let_go;
	keeper->let_go_user = user;
	pthread_mutex_unlock(&keeper->let_go_lock);
}

int bid_keeper_let_go(struct bid_keeper *keeper, const struct stat *st)
{
	int fd = -1;

	if (!keeper)
		return -1;
	pthread_mutex_lock(&keeper->let_go_lock);
	if (keeper->let_go)
		fd = keeper->let_go(keeper->let_go_user, st);
	pthread_mutex_unlock(&keeper->let_go_lock);
	return fd;
}

static void note_evicted(void *user, const struct bid_eviction *eviction)
{
	bid_info("evicted: '%s', %llu bytes", eviction->path, (unsigned long long)eviction->size);
}

/* How many bytes are missing until @needed are free? Of a disk that does not tell it is found out by writing. */
static uint64_t missing(struct bid_keeper *keeper, uint64_t needed)
{
	struct statvfs space;
	uint64_t free_now;

	if (bid_store_statfs(keeper->store, &space) < 0 || space.f_blocks == 0)
		return 0;
	free_now = (uint64_t)space.f_bavail * space.f_frsize;
	return needed > free_now ? needed - free_now : 0;
}

/* Are the limits broken, as far as can be told without looking through the store? */
static bool is_over(struct bid_keeper *keeper, uint64_t used)
{
	const struct bid_limits *limits = &keeper->limits;

	return (limits->cache_size > 0 && used > limits->cache_size) ||
	       (limits->min_free > 0 && missing(keeper, limits->min_free) > 0);
}

/*
 * Look through the store and evict. Returns what is left of what was fetched, and in how many seconds to look again: what is open
 * may be in the way now.
 */
static uint64_t tidy(struct bid_keeper *keeper, uint64_t used, int64_t *ret_pause_s)
{
	struct bid_evict_config config = { .limits = keeper->limits, .evicted = note_evicted };
	struct bid_evict_stats stats;
	int64_t begun_s = seconds();
	int r;

	*ret_pause_s = HOUR_S;
	if (config.limits.cache_size == 0 && config.limits.min_free == 0)
		return 0;
	r = bid_evict(keeper->store, &config, 0, true, &stats);
	if (r < 0) {
		bid_warning("%s: evicting from '%s'", strerror(-r), bid_store_path(keeper->store));
		return used;
	}
	used = stats.size - stats.evicted_size;
	if (stats.in_use > 0 && is_over(keeper, used))
		*ret_pause_s = RETRY_S + (seconds() - begun_s) * REST;
	return used;
}

static void forget_old(struct bid_keeper *keeper)
{
	struct bid_forgotten left, gone;
	int r = bid_store_forget(keeper->store, (int64_t)time(NULL) - BID_FORGET_S, false, &left, &gone);

	if (r < 0)
		bid_warning("%s: looking for what is old in '%s'", strerror(-r), bid_store_path(keeper->store));
}

static void *keep(void *user)
{
	struct bid_keeper *keeper = user;
	int64_t pause_s, look_s, let_go_s;
	bool kicked;
	uint64_t used = tidy(keeper, 0, &pause_s);

	forget_old(keeper);
	look_s = seconds() + pause_s;
	let_go_s = seconds() + LET_GO_S;
	pthread_mutex_lock(&keeper->lock);
	while (!keeper->stopping) {
		struct timespec until = { .tv_sec = look_s < let_go_s ? look_s : let_go_s };

		if (!keeper->kicked)
			pthread_cond_timedwait(&keeper->kick, &keeper->lock, &until);
		if (keeper->stopping)
			break;
		kicked = keeper->kicked;
		used += keeper->pending;
		keeper->pending = 0;
		keeper->kicked = false;
		pthread_mutex_unlock(&keeper->lock);
		/* others can evict it then */
		if (seconds() >= let_go_s) {
			bid_keeper_let_go(keeper, NULL);
			let_go_s = seconds() + LET_GO_S;
		}
		/* every hour, or after a pause, for what others have fetched, evicted and removed */
		if (seconds() >= look_s || (kicked && is_over(keeper, used))) {
			if (seconds() >= look_s)
				forget_old(keeper);
			used = tidy(keeper, used, &pause_s);
			look_s = seconds() + pause_s;
		}
		pthread_mutex_lock(&keeper->lock);
	}
	pthread_mutex_unlock(&keeper->lock);
	return NULL;
}

int bid_store_keep_limits(struct bid_store *store, const struct bid_limits *limits)
{
	struct bid_keeper *keeper = bid_store_keeper(store);
	int r;

	if (!keeper)
		return -EROFS;
	keeper->limits = *limits;
	r = bid_thread_start(&keeper->thread, "bid-evict", keep, keeper);
	keeper->running = r == 0;
	return r;
}

void bid_keeper_published(struct bid_keeper *keeper, uint64_t bytes)
{
	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->lock);
	keeper->pending += bytes;
	keeper->evictable += bytes;
	keeper->kicked = true;
	pthread_cond_signal(&keeper->kick);
	pthread_mutex_unlock(&keeper->lock);
}

/* Is a search worth while that is to free @bytes? */
static bool may_search(struct bid_keeper *keeper, uint64_t bytes)
{
	bool may;

	pthread_mutex_lock(&keeper->lock);
	may = keeper->evictable >= bytes || seconds() - keeper->searched_s >= FRUITLESS_S;
	pthread_mutex_unlock(&keeper->lock);
	return may;
}

static void note_search(struct bid_keeper *keeper, const struct bid_evict_stats *stats)
{
	pthread_mutex_lock(&keeper->lock);
	keeper->evictable = stats->size - stats->evicted_size - stats->in_use_size;
	keeper->searched_s = seconds();
	pthread_mutex_unlock(&keeper->lock);
}

bool bid_keeper_make_room(struct bid_keeper *keeper, uint64_t bytes)
{
	struct bid_evict_config config = { .evicted = note_evicted };
	struct bid_evict_stats stats = { 0 };
	int r;

	if (!keeper || !may_search(keeper, 1))
		return false;
	r = bid_evict(keeper->store, &config, bytes > ROOM_MIN ? bytes : ROOM_MIN, false, &stats);
	if (r == 0)
		bid_warning("no space left for '%s': evicted %llu artifacts, %llu bytes", bid_store_path(keeper->store),
			    (unsigned long long)stats.evicted, (unsigned long long)stats.evicted_size);
	note_search(keeper, &stats);
	return stats.evicted > 0;
}

/* Evict until @needed bytes are free; nothing if that cannot be, or a server that says too much would cost all that was fetched. */
static bool evict_for(struct bid_keeper *keeper, uint64_t needed)
{
	struct bid_evict_config config = { .limits = { .min_free = needed }, .dry_run = true };
	struct bid_evict_stats stats = { 0 };
	int r = bid_evict(keeper->store, &config, 0, false, &stats);
	bool enough = r == 0 && stats.free + stats.evicted_size >= needed;

	stats.evicted_size = 0;
	if (enough) {
		config.dry_run = false;
		config.evicted = note_evicted;
		r = bid_evict(keeper->store, &config, ROOM_MIN, false, &stats);
	}
	if (r < 0)
		bid_warning("%s: evicting from '%s'", strerror(-r), bid_store_path(keeper->store));
	note_search(keeper, &stats);
	return enough && r == 0;
}

/* How many of @bytes more is there no room for, beside all else that is to come or to stay free? */
static uint64_t lacking(struct bid_keeper *keeper, uint64_t bytes, uint64_t *ret_needed)
{
	*ret_needed = keeper->limits.min_free + atomic_load(&keeper->promised) + bytes;
	return missing(keeper, *ret_needed);
}

int bid_keeper_go_on(struct bid_keeper *keeper, uint64_t written, uint64_t bytes, bool evict)
{
	uint64_t needed, lacks;

	if (!keeper)
		return 0;
	if (keeper->limits.cache_size > 0 && written > keeper->limits.cache_size)
		return -ENOSPC;
	lacks = lacking(keeper, bytes, &needed);
	if (lacks == 0)
		return 0;
	if (!may_search(keeper, lacks))
		return -ENOSPC;
	if (!evict)
		return -EAGAIN;
	return evict_for(keeper, needed) ? 0 : -ENOSPC;
}

int bid_keeper_promise(struct bid_keeper *keeper, uint64_t bytes, bool evict, uint64_t *ret_left)
{
	uint64_t needed, lacks;

	if (!keeper)
		return 0;
	lacks = lacking(keeper, bytes, &needed);
	if (lacks > 0) {
		bool may = may_search(keeper, lacks);

		*ret_left = bytes > lacks ? bytes - lacks : 0;
		if (may && !evict)
			return -EAGAIN;
		if (!may || !evict_for(keeper, needed))
			return -ENOSPC;
	}
	/* two at once may be promised the same room: the second finds that out by writing, as does who said nothing */
	atomic_fetch_add(&keeper->promised, bytes);
	return 0;
}

void bid_keeper_settle(struct bid_keeper *keeper, uint64_t bytes)
{
	if (keeper)
		atomic_fetch_sub(&keeper->promised, bytes);
}

static uint64_t hash_of(const struct bid_request *request)
{
	uint64_t hash = (uint64_t)request->kind << 56 ^ request->id.len;

	for (unsigned i = 0; i < request->id.len; i++)
		hash = (hash ^ request->id.bytes[i]) * 0x100000001b3U;
	for (const char *at = bid_detail_text(request->detail); *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3U;
	return (hash ^ hash >> 29) * 0x9e3779b97f4a7c15U;
}

static void note_use(struct bid_keeper *keeper, const struct bid_request *request)
{
	struct bid_spelling spelling = { 0 };
	struct bid_request filed = { .kind = request->kind, .detail = request->detail };
	uint64_t hash = hash_of(request);
	struct use *use = &keeper->uses[hash >> 32 & (USES - 1)];
	int64_t now = seconds();
	time_t before = time(NULL) - HOUR_S;
	bool noted, recorded = false;

	pthread_mutex_lock(&keeper->lock);
	noted = use->hash == hash && now - use->noted_s < HOUR_S;
	if (!noted)
		*use = (struct use){ .hash = hash, .noted_s = now };
	pthread_mutex_unlock(&keeper->lock);
	if (noted)
		return;
	while (bid_spelling_next(&spelling, &request->id, &filed.id)) {
		bid_made_used(keeper->store, &filed, before);
		recorded = recorded || bid_record_used(keeper->store, &filed, before) != -ENOENT;
	}
}

void bid_store_used(struct bid_store *store, const struct bid_request *request)
{
	struct bid_keeper *keeper = bid_store_keeper(store);

	if (keeper)
		note_use(keeper, request);
}
