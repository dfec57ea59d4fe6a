// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "disk/store.h"

enum {
	FRUITLESS_S = 10, /* pause between searches after an eviction that freed too little */
	ROOM_MIN = 64 << 20, /* bytes; one search makes room for more than one write */
};

int bid_space_new(struct bid_store *store, bid_space_evict_fn evict, struct bid_space **ret_space)
{
	struct bid_space *space = calloc(1, sizeof(*space));

	if (!space)
		return -ENOMEM;
	space->store = store;
	space->evict = evict;
	space->searched_s = -FRUITLESS_S;
	pthread_mutex_init(&space->lock, NULL);
	pthread_mutex_init(&space->drop_fd_lock, NULL);
	bid_cond_init(&space->kick);
	*ret_space = space;
	return 0;
}

void bid_space_free(struct bid_space *space)
{
	if (!space)
		return;
	if (space->running) {
		pthread_mutex_lock(&space->lock);
		space->stopping = true;
		pthread_cond_signal(&space->kick);
		pthread_mutex_unlock(&space->lock);
		pthread_join(space->thread, NULL);
	}
	pthread_cond_destroy(&space->kick);
	pthread_mutex_destroy(&space->drop_fd_lock);
	pthread_mutex_destroy(&space->lock);
	free(space);
}

void bid_store_on_drop_fd(struct bid_store *store, bid_drop_fd_fn drop_fd, void *user)
{
	struct bid_space *space = store->space;

	if (!space)
		return;
	pthread_mutex_lock(&space->drop_fd_lock);
	space->drop_fd = drop_fd;
	space->drop_fd_user = user;
	pthread_mutex_unlock(&space->drop_fd_lock);
}

int bid_space_drop_fd(struct bid_space *space, const struct stat *st)
{
	int fd = -1;

	if (!space)
		return -1;
	pthread_mutex_lock(&space->drop_fd_lock);
	if (space->drop_fd)
		fd = space->drop_fd(space->drop_fd_user, st);
	pthread_mutex_unlock(&space->drop_fd_lock);
	return fd;
}

uint64_t bid_space_missing(struct bid_space *space, uint64_t needed)
{
	struct statvfs disk;
	uint64_t free_now;

	if (bid_store_statfs(space->store, &disk) < 0 || disk.f_blocks == 0)
		return 0;
	free_now = (uint64_t)disk.f_bavail * disk.f_frsize;
	return needed > free_now ? needed - free_now : 0;
}

static void note_evicted(void *user, const struct bid_eviction *eviction)
{
	bid_info("evicted: '%s', %llu bytes", eviction->path, (unsigned long long)eviction->size);
}

int bid_space_evict(struct bid_space *space, const struct bid_evict_config *config, uint64_t at_least, bool slack,
		    struct bid_evict_stats *ret_stats)
{
	struct bid_evict_config logged = *config;
	int r;

	logged.evicted = config->dry_run ? NULL : note_evicted;
	r = space->evict(space->store, &logged, at_least, slack, ret_stats);
	if (r < 0)
		bid_warning("%s: cannot evict from '%s'", strerror(-r), bid_store_path(space->store));
	return r;
}

void bid_space_published(struct bid_space *space, uint64_t bytes)
{
	if (!space)
		return;
	pthread_mutex_lock(&space->lock);
	space->pending += bytes;
	space->evictable += bytes;
	space->kicked = true;
	pthread_cond_signal(&space->kick);
	pthread_mutex_unlock(&space->lock);
}

/* Is it worth searching for @bytes to evict? */
static bool may_search(struct bid_space *space, uint64_t bytes)
{
	bool may;

	pthread_mutex_lock(&space->lock);
	may = space->evictable >= bytes || bid_clock_ms() / 1000 - space->searched_s >= FRUITLESS_S;
	pthread_mutex_unlock(&space->lock);
	return may;
}

static void note_search(struct bid_space *space, const struct bid_evict_stats *stats)
{
	pthread_mutex_lock(&space->lock);
	space->evictable = stats->size - stats->evicted_size - stats->in_use_size;
	space->searched_s = bid_clock_ms() / 1000;
	pthread_mutex_unlock(&space->lock);
}

bool bid_space_make_room(struct bid_space *space, uint64_t bytes, bool all_or_nothing)
{
	struct bid_evict_config config = { .dry_run = all_or_nothing };
	struct bid_evict_stats stats = { 0 };
	uint64_t most = bytes > ROOM_MIN ? bytes : ROOM_MIN;
	int r;

	if (!space || !may_search(space, 1))
		return false;
	config.limits.min_free = space->limits.min_free + bytes;
	r = bid_space_evict(space, &config, all_or_nothing ? 0 : most, false, &stats);
	if (config.dry_run && r == 0 && stats.free + stats.evicted_size >= config.limits.min_free) {
		config.dry_run = false;
		r = bid_space_evict(space, &config, ROOM_MIN, false, &stats);
	}
	if (config.dry_run)
		stats.evicted = stats.evicted_size = 0;
	if (r == 0 && stats.evicted > 0)
		bid_warning("no space left for '%s': evicted %llu artifacts, %llu bytes", bid_store_path(space->store),
			    (unsigned long long)stats.evicted, (unsigned long long)stats.evicted_size);
	note_search(space, &stats);
	return stats.evicted > 0;
}

int bid_space_check(struct bid_space *space, uint64_t bytes, uint64_t *ret_left)
{
	uint64_t lacks = space ? bid_space_missing(space, space->limits.min_free + bytes) : 0;

	if (lacks == 0)
		return 0;
	*ret_left = bytes > lacks ? bytes - lacks : 0;
	return may_search(space, lacks) ? -EAGAIN : -ENOSPC;
}
