// SPDX-License-Identifier: LGPL-2.1-or-later
#include "leaving.h"

#include <stdlib.h>
#include <string.h>

void bid_leaving_init(struct bid_leaving *leaving)
{
	*leaving = (struct bid_leaving){ 0 };
	pthread_mutex_init(&leaving->lock, NULL);
}

static void forget(struct bid_leaving_dir *dir)
{
	free(dir->path);
	dir->path = NULL;
}

void bid_leaving_release(struct bid_leaving *leaving)
{
	for (unsigned i = 0; i < BID_LEAVING_MAX; i++)
		forget(&leaving->dirs[i]);
	pthread_mutex_destroy(&leaving->lock);
}

void bid_leaving_begin(struct bid_leaving *leaving, const char *path, int64_t now_ms)
{
	struct bid_leaving_dir *dir;

	pthread_mutex_lock(&leaving->lock);
	dir = &leaving->dirs[leaving->next++ % BID_LEAVING_MAX];
	forget(dir);
	dir->path = strdup(path);
	dir->until_ms = now_ms + BID_LEAVING_MS;
	pthread_mutex_unlock(&leaving->lock);
}

void bid_leaving_end(struct bid_leaving *leaving, const char *path)
{
	pthread_mutex_lock(&leaving->lock);
	for (unsigned i = 0; i < BID_LEAVING_MAX; i++)
		if (leaving->dirs[i].path && strcmp(leaving->dirs[i].path, path) == 0)
			forget(&leaving->dirs[i]);
	pthread_mutex_unlock(&leaving->lock);
}

static bool is_at_or_above(const char *path, const char *below)
{
	size_t len = strlen(path);

	return strncmp(path, below, len) == 0 && (below[len] == '\0' || below[len] == '/');
}

bool bid_leaving_has(struct bid_leaving *leaving, const char *path, int64_t now_ms)
{
	bool has = false;

	pthread_mutex_lock(&leaving->lock);
	for (unsigned i = 0; i < BID_LEAVING_MAX && !has; i++) {
		const struct bid_leaving_dir *dir = &leaving->dirs[i];

		has = dir->path && now_ms < dir->until_ms && is_at_or_above(path, dir->path);
	}
	pthread_mutex_unlock(&leaving->lock);
	return has;
}

void bid_leaving_removed(struct bid_leaving *leaving, uint64_t number)
{
	pthread_mutex_lock(&leaving->lock);
	leaving->removed[leaving->n_removed++ % BID_REMOVED_MAX] = number;
	pthread_mutex_unlock(&leaving->lock);
}

uint64_t bid_leaving_generation(struct bid_leaving *leaving, uint64_t number)
{
	uint64_t generation = 0;

	pthread_mutex_lock(&leaving->lock);
	for (uint64_t i = leaving->n_removed; i > 0 && leaving->n_removed - i < BID_REMOVED_MAX && generation == 0; i--)
		if (leaving->removed[(i - 1) % BID_REMOVED_MAX] == number)
			generation = i;
	pthread_mutex_unlock(&leaving->lock);
	return generation;
}
