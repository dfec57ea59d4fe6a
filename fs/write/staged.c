// SPDX-License-Identifier: LGPL-2.1-or-later
#include "write/staged.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <bid/id.h>

struct entry {
	struct bid_staged staged; /* first: callers have a pointer to it */
	unsigned users; /* the name is one; the lock protects this and all below */
	bool named;
	unsigned writers; /* handles that are open for writing */
	pid_t writer; /* thread that opened the last of these */
	time_t used; /* CLOCK_MONOTONIC, seconds */
	TAILQ_ENTRY(entry) link;
};

struct bid_staging {
	pthread_mutex_t lock;
	uint32_t last; /* serial */
	TAILQ_HEAD(, entry) entries; /* the latest first; few, as perf writes one after the other */
};

static struct entry *entry_of(struct bid_staged *staged)
{
	return (struct entry *)staged;
}

int bid_staging_new(struct bid_staging **ret_staging)
{
	struct bid_staging *staging = calloc(1, sizeof(*staging));

	if (!staging)
		return -ENOMEM;
	pthread_mutex_init(&staging->lock, NULL);
	TAILQ_INIT(&staging->entries);
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
	struct entry *entry;

	if (!staging)
		return;
	while ((entry = TAILQ_FIRST(&staging->entries))) {
		TAILQ_REMOVE(&staging->entries, entry, link);
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

/* Find by name, with the lock held. */
static struct entry *find(struct bid_staging *staging, const char *dir, const char *name)
{
	struct entry *entry;

	TAILQ_FOREACH(entry, &staging->entries, link)
	if (entry->named && strcmp(entry->staged.name, name) == 0 && strcmp(entry->staged.dir, dir) == 0)
		return entry;
	return NULL;
}

/* Add a user, with the lock held. @entry may be NULL. */
static struct bid_staged *use(struct entry *entry)
{
	if (!entry)
		return NULL;
	entry->users++;
	entry->used = now();
	return &entry->staged;
}

int bid_staging_begin(struct bid_staging *staging, struct bid_store *store, const struct bid_id *id, const char *dir,
		      const char *name, struct bid_staged **ret_staged)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int r;

	if (!entry)
		return -ENOMEM;
	entry->staged.id = *id;
	entry->staged.dir = strdup(dir);
	entry->staged.name = strdup(name);
	entry->used = now();
	entry->named = true;
	entry->users = 2; /* the name, and the caller */
	r = entry->staged.dir && entry->staged.name ? bid_stage_new(store, &entry->staged.stage) : -ENOMEM;
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	pthread_mutex_lock(&staging->lock);
	if (find(staging, dir, name)) {
		r = -EEXIST;
	} else {
		entry->staged.serial = ++staging->last;
		TAILQ_INSERT_HEAD(&staging->entries, entry, link);
	}
	pthread_mutex_unlock(&staging->lock);
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	*ret_staged = &entry->staged;
	return 0;
}

struct bid_staged *bid_staging_get(struct bid_staging *staging, uint32_t serial)
{
	struct bid_staged *staged;
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	TAILQ_FOREACH(entry, &staging->entries, link)
	if (entry->staged.serial == serial)
		break;
	staged = use(entry);
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

struct bid_staged *bid_staging_find(struct bid_staging *staging, const char *dir, const char *name)
{
	struct bid_staged *staged;

	pthread_mutex_lock(&staging->lock);
	staged = use(find(staging, dir, name));
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

const char *bid_staging_dir(const struct bid_node *dir, char buf[static BID_STAGING_DIR])
{
	if (dir->type != BID_NODE_LINKS_FAN)
		return bid_node_path(dir);
	snprintf(buf, BID_STAGING_DIR, ".build-id/%02x", dir->fan);
	return buf;
}

static struct bid_staged *first(struct bid_staging *staging, time_t until, bool written)
{
	struct bid_staged *staged;
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	TAILQ_FOREACH(entry, &staging->entries, link)
	if (entry->named && entry->used <= until && (written || entry->writers == 0))
		break;
	staged = use(entry);
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

struct bid_staged *bid_staging_idle(struct bid_staging *staging, unsigned seconds)
{
	return first(staging, now() - (time_t)seconds, false);
}

struct bid_staged *bid_staging_first(struct bid_staging *staging)
{
	return first(staging, now(), true);
}

struct bid_staged *bid_staged_ref(struct bid_staging *staging, struct bid_staged *staged)
{
	pthread_mutex_lock(&staging->lock);
	use(entry_of(staged));
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

void bid_staged_open(struct bid_staging *staging, struct bid_staged *staged, pid_t tid)
{
	pthread_mutex_lock(&staging->lock);
	entry_of(staged)->writers++;
	entry_of(staged)->writer = tid;
	pthread_mutex_unlock(&staging->lock);
}

bool bid_staged_close(struct bid_staging *staging, struct bid_staged *staged)
{
	bool last;

	pthread_mutex_lock(&staging->lock);
	last = --entry_of(staged)->writers == 0;
	pthread_mutex_unlock(&staging->lock);
	return last;
}

bool bid_staged_is_writer(struct bid_staging *staging, struct bid_staged *staged, pid_t tid)
{
	bool is;

	pthread_mutex_lock(&staging->lock);
	is = entry_of(staged)->writers == 1 && entry_of(staged)->writer == tid;
	pthread_mutex_unlock(&staging->lock);
	return is;
}

bool bid_staged_has_name(struct bid_staging *staging, struct bid_staged *staged)
{
	bool named;

	pthread_mutex_lock(&staging->lock);
	named = entry_of(staged)->named;
	pthread_mutex_unlock(&staging->lock);
	return named;
}

void bid_staged_put(struct bid_staging *staging, struct bid_staged *staged)
{
	struct entry *entry = staged ? entry_of(staged) : NULL;
	bool gone;

	if (!entry)
		return;
	pthread_mutex_lock(&staging->lock);
	gone = --entry->users == 0;
	if (gone)
		TAILQ_REMOVE(&staging->entries, entry, link);
	pthread_mutex_unlock(&staging->lock);
	if (gone)
		entry_free(entry);
}

void bid_staged_unname(struct bid_staging *staging, struct bid_staged *staged)
{
	bool named;

	pthread_mutex_lock(&staging->lock);
	named = entry_of(staged)->named;
	entry_of(staged)->named = false;
	pthread_mutex_unlock(&staging->lock);
	if (named)
		bid_staged_put(staging, staged);
}

int bid_staging_each_in(struct bid_staging *staging, const char *dir, int (*fn)(void *user, const struct bid_staged *staged),
			void *user)
{
	struct entry *entry;
	int r = 0;

	pthread_mutex_lock(&staging->lock);
	TAILQ_FOREACH(entry, &staging->entries, link)
	if (r == 0 && entry->named && strcmp(entry->staged.dir, dir) == 0)
		r = fn(user, &entry->staged);
	pthread_mutex_unlock(&staging->lock);
	return r;
}

static int is_written(void *user, const struct bid_staged *staged)
{
	const bool *written = user;

	return !*written || ((const struct entry *)staged)->writers > 0;
}

bool bid_staging_has_in(struct bid_staging *staging, const char *dir, bool written)
{
	return bid_staging_each_in(staging, dir, is_written, &written) != 0;
}

void bid_staging_unname_in(struct bid_staging *staging, const char *dir)
{
	struct bid_staged *staged;
	struct entry *entry;

	do {
		pthread_mutex_lock(&staging->lock);
		TAILQ_FOREACH(entry, &staging->entries, link)
		if (entry->named && strcmp(entry->staged.dir, dir) == 0)
			break;
		staged = use(entry);
		pthread_mutex_unlock(&staging->lock);
		if (staged)
			bid_staged_unname(staging, staged);
		bid_staged_put(staging, staged);
	} while (staged);
}
