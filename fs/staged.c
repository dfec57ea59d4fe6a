// SPDX-License-Identifier: LGPL-2.1-or-later
#include "staged.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/id.h>

enum { MOMENT_S = 2 };

struct entry {
	struct bid_staged staged; /* first: an entry is what the callers have */
	unsigned users; /* the list is one; as all below protected by the lock */
	bool listed;
	unsigned writers; /* what is open for writing, as far as we are told */
	pid_t writer; /* who opened the last of these */
	time_t used; /* CLOCK_MONOTONIC, seconds */
	struct entry *next;
};

struct bid_staging {
	pthread_mutex_t lock;
	uint32_t last; /* serial */
	struct bid_id latest; /* of what was begun last */
	time_t begun; /* that; as used */
	struct entry *first; /* perf writes one after the other: there are few */
};

int bid_staging_new(struct bid_staging **ret_staging)
{
	struct bid_staging *staging = calloc(1, sizeof(*staging));

	if (!staging)
		return -ENOMEM;
	pthread_mutex_init(&staging->lock, NULL);
	*ret_staging = staging;
	return 0;
}

static void entry_free(struct entry *entry)
{
	bid_stage_free(entry->staged.stage);
	free(entry->staged.dir);
	free(entry->staged.name);
	free(entry);
}

void bid_staging_free(struct bid_staging *staging)
{
	struct entry *next;

	if (!staging)
		return;
	for (struct entry *entry = staging->first; entry; entry = next) {
		next = entry->next;
		entry_free(entry);
	}
	pthread_mutex_destroy(&staging->lock);
	free(staging);
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec;
}

/* With the lock held. */
static struct entry *find(struct bid_staging *staging, uint32_t serial, const char *dir, const char *name)
{
	struct entry *entry = staging->first;

	while (entry && (dir ? strcmp(entry->staged.name, name) != 0 || strcmp(entry->staged.dir, dir) != 0
			     : entry->staged.serial != serial))
		entry = entry->next;
	if (entry)
		entry->used = now();
	return entry;
}

/* With the lock held: take @at off the list. The list's use of it goes to the caller. */
static struct entry *unlist(struct entry **at)
{
	struct entry *entry = *at;

	*at = entry->next;
	entry->listed = false;
	return entry;
}

static void put(struct bid_staging *staging, struct entry *entry)
{
	unsigned users;

	pthread_mutex_lock(&staging->lock);
	users = --entry->users;
	pthread_mutex_unlock(&staging->lock);
	if (users == 0)
		entry_free(entry);
}

int bid_staging_begin(struct bid_staging *staging, struct bid_store *store, const struct bid_id *id, const char *dir,
		      const char *name, struct bid_staged **ret_staged)
{
	struct entry *entry;
	int r;

	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->staged.id = *id;
	entry->staged.dir = strdup(dir);
	entry->staged.name = strdup(name);
	entry->used = now();
	entry->users = 2; /* the list, and the caller */
	entry->listed = true;
	r = entry->staged.dir && entry->staged.name ? bid_stage_new(store, &entry->staged.stage) : -ENOMEM;
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	pthread_mutex_lock(&staging->lock);
	if (find(staging, 0, dir, name)) {
		r = -EEXIST;
	} else {
		entry->staged.serial = ++staging->last;
		entry->next = staging->first;
		staging->first = entry;
		staging->latest = *id;
		staging->begun = entry->used;
	}
	pthread_mutex_unlock(&staging->lock);
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	*ret_staged = &entry->staged;
	return 0;
}

bool bid_staging_is_latest(struct bid_staging *staging, const struct bid_id *id)
{
	bool is;

	pthread_mutex_lock(&staging->lock);
	is = bid_id_equal(&staging->latest, id) && now() - staging->begun <= MOMENT_S;
	pthread_mutex_unlock(&staging->lock);
	return is;
}

static struct bid_staged *get(struct bid_staging *staging, uint32_t serial, const char *dir, const char *name)
{
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = find(staging, serial, dir, name);
	if (entry)
		entry->users++;
	pthread_mutex_unlock(&staging->lock);
	return entry ? &entry->staged : NULL;
}

struct bid_staged *bid_staging_get(struct bid_staging *staging, uint32_t serial)
{
	return get(staging, serial, NULL, NULL);
}

struct bid_staged *bid_staging_find(struct bid_staging *staging, const char *dir, const char *name)
{
	return get(staging, 0, dir, name);
}

struct bid_staged *bid_staging_next(struct bid_staging *staging, uint32_t serial)
{
	struct entry *next = NULL;

	pthread_mutex_lock(&staging->lock);
	for (struct entry *entry = staging->first; entry; entry = entry->next)
		if (entry->staged.serial > serial && (!next || entry->staged.serial < next->staged.serial))
			next = entry;
	if (next)
		next->users++;
	pthread_mutex_unlock(&staging->lock);
	return next ? &next->staged : NULL;
}

struct bid_staged *bid_staging_idle(struct bid_staging *staging, unsigned seconds, bool unopened)
{
	time_t since = now() - (time_t)seconds;
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = staging->first;
	while (entry && (entry->used > since || (unopened && entry->writers > 0)))
		entry = entry->next;
	if (entry)
		entry->users++;
	pthread_mutex_unlock(&staging->lock);
	return entry ? &entry->staged : NULL;
}

void bid_staging_opened(struct bid_staging *staging, uint32_t serial, pid_t who)
{
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = find(staging, serial, NULL, NULL);
	if (entry) {
		entry->writers++;
		entry->writer = who;
	}
	pthread_mutex_unlock(&staging->lock);
}

bool bid_staging_is_writer(struct bid_staging *staging, uint32_t serial, pid_t who)
{
	struct entry *entry;
	bool is;

	pthread_mutex_lock(&staging->lock);
	entry = find(staging, serial, NULL, NULL);
	is = entry && entry->writers == 1 && entry->writer == who;
	pthread_mutex_unlock(&staging->lock);
	return is;
}

bool bid_staging_closed(struct bid_staging *staging, uint32_t serial)
{
	struct entry *entry;
	bool last;

	pthread_mutex_lock(&staging->lock);
	entry = find(staging, serial, NULL, NULL);
	last = entry && (entry->writers == 0 || --entry->writers == 0);
	pthread_mutex_unlock(&staging->lock);
	return last;
}

void bid_staging_drop(struct bid_staging *staging, struct bid_staged *staged)
{
	struct entry *entry = (struct entry *)staged;
	bool listed;

	pthread_mutex_lock(&staging->lock);
	listed = entry->listed;
	for (struct entry **at = &staging->first; listed && *at; at = &(*at)->next)
		if (*at == entry) {
			unlist(at);
			break;
		}
	pthread_mutex_unlock(&staging->lock);
	if (listed)
		put(staging, entry);
}

void bid_staging_drop_in(struct bid_staging *staging, const char *dir, bool unopened)
{
	struct entry *gone;

	do {
		struct entry **at = &staging->first;

		pthread_mutex_lock(&staging->lock);
		while (*at && (strcmp((*at)->staged.dir, dir) != 0 || (unopened && (*at)->writers > 0)))
			at = &(*at)->next;
		gone = *at ? unlist(at) : NULL;
		pthread_mutex_unlock(&staging->lock);
		if (gone)
			put(staging, gone);
	} while (gone);
}

void bid_staged_put(struct bid_staging *staging, struct bid_staged *staged)
{
	if (staged)
		put(staging, (struct entry *)staged);
}
