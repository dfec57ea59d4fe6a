// SPDX-License-Identifier: LGPL-2.1-or-later
#include "leaving.h"

#include <stdlib.h>
#include <string.h>

void bid_leaving_init(struct bid_leaving *leaving)
{
	*leaving = (struct bid_leaving){ 0 };
	pthread_mutex_init(&leaving->lock, NULL);
}

static void forget(struct bid_leaving_build *build)
{
	free(build->path);
	*build = (struct bid_leaving_build){ 0 };
}

void bid_leaving_release(struct bid_leaving *leaving)
{
	for (unsigned i = 0; i < BID_LEAVING_MAX; i++)
		forget(&leaving->builds[i]);
	pthread_mutex_destroy(&leaving->lock);
}

/* Under the lock. */
static struct bid_leaving_build *find(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	for (unsigned i = 0; i < BID_LEAVING_MAX; i++)
		if (now_ms < leaving->builds[i].until_ms && bid_id_equal(&leaving->builds[i].id, id))
			return &leaving->builds[i];
	return NULL;
}

/* One of those at @path, or with @above below it. Under the lock. */
static struct bid_leaving_build *find_path(struct bid_leaving *leaving, const char *path, bool above, int64_t now_ms)
{
	size_t len = strlen(path);

	for (unsigned i = 0; i < BID_LEAVING_MAX; i++) {
		struct bid_leaving_build *build = &leaving->builds[i];

		if (build->path && now_ms < build->until_ms && strncmp(path, build->path, len) == 0 &&
		    (build->path[len] == '\0' || (above && build->path[len] == '/')))
			return build;
	}
	return NULL;
}

void bid_leaving_begin(struct bid_leaving *leaving, const struct bid_id *id, const char *path, int64_t now_ms)
{
	struct bid_leaving_build *build;

	pthread_mutex_lock(&leaving->lock);
	build = find(leaving, id, now_ms);
	if (!build)
		build = &leaving->builds[leaving->next++ % BID_LEAVING_MAX];
	forget(build);
	build->id = *id;
	build->path = path ? strdup(path) : NULL;
	build->until_ms = now_ms + BID_LEAVING_MS;
	pthread_mutex_unlock(&leaving->lock);
}

bool bid_leaving_cancel(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	struct bid_leaving_build *build;

	pthread_mutex_lock(&leaving->lock);
	build = find(leaving, id, now_ms);
	if (build)
		forget(build);
	pthread_mutex_unlock(&leaving->lock);
	return build;
}

bool bid_leaving_end(struct bid_leaving *leaving, const char *path, int64_t now_ms, struct bid_id *ret_id)
{
	struct bid_leaving_build *build;

	pthread_mutex_lock(&leaving->lock);
	build = find_path(leaving, path, false, now_ms);
	if (build) {
		*ret_id = build->id;
		forget(build);
	}
	pthread_mutex_unlock(&leaving->lock);
	return build;
}

bool bid_leaving_hides(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	bool hides;

	pthread_mutex_lock(&leaving->lock);
	hides = find(leaving, id, now_ms);
	pthread_mutex_unlock(&leaving->lock);
	return hides;
}

static bool has(struct bid_leaving *leaving, const char *path, bool above, int64_t now_ms)
{
	bool has;

	pthread_mutex_lock(&leaving->lock);
	has = find_path(leaving, path, above, now_ms);
	pthread_mutex_unlock(&leaving->lock);
	return has;
}

bool bid_leaving_empties(struct bid_leaving *leaving, const char *path, int64_t now_ms)
{
	return has(leaving, path, false, now_ms);
}

bool bid_leaving_has(struct bid_leaving *leaving, const char *path, int64_t now_ms)
{
	return has(leaving, path, true, now_ms);
}

/* Under the lock. */
static struct bid_leaving_probes *find_probes(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	for (unsigned i = 0; i < BID_LEAVING_MAX; i++)
		if (now_ms < leaving->bare[i].until_ms && bid_id_equal(&leaving->bare[i].id, id))
			return &leaving->bare[i];
	return NULL;
}

void bid_leaving_probes(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	struct bid_leaving_probes *probes;

	pthread_mutex_lock(&leaving->lock);
	probes = find_probes(leaving, id, now_ms);
	if (!probes)
		probes = &leaving->bare[leaving->next_bare++ % BID_LEAVING_MAX];
	*probes = (struct bid_leaving_probes){ .id = *id, .until_ms = now_ms + BID_LEAVING_MS };
	pthread_mutex_unlock(&leaving->lock);
}

bool bid_leaving_probes_cancel(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	struct bid_leaving_probes *probes;

	pthread_mutex_lock(&leaving->lock);
	probes = find_probes(leaving, id, now_ms);
	if (probes)
		probes->until_ms = 0;
	pthread_mutex_unlock(&leaving->lock);
	return probes;
}

bool bid_leaving_hides_probes(struct bid_leaving *leaving, const struct bid_id *id, int64_t now_ms)
{
	bool hides;

	pthread_mutex_lock(&leaving->lock);
	hides = find_probes(leaving, id, now_ms);
	pthread_mutex_unlock(&leaving->lock);
	return hides;
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
