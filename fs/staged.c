// SPDX-License-Identifier: LGPL-2.1-or-later
#include "staged.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <bid/id.h>

enum { MOMENT_S = 2 };

struct entry {
	struct bid_staged staged; /* first: an entry is what the callers have */
	unsigned users; /* the list is one; as all below protected by the lock */
	bool gone; /* it is in no list */
	unsigned writers; /* what is open for writing, as far as we are told */
	pid_t writer; /* who opened the last of these */
	time_t used; /* CLOCK_MONOTONIC, seconds */
	TAILQ_ENTRY(entry) link; /* in the list of those with a name, or of those without */
};

TAILQ_HEAD(entries, entry);

struct bid_staging {
	pthread_mutex_t lock;
	uint32_t last; /* serial */
	struct bid_id latest; /* of what was begun last */
	time_t begun; /* that; as used */
	struct entries named; /* the latest first; perf writes one after the other: there are few */
	struct entries ended; /* the last used at the end */
	unsigned n_ended, max_ended;
};

int bid_staging_new(unsigned max_ended, struct bid_staging **ret_staging)
{
	struct bid_staging *staging = calloc(1, sizeof(*staging));

	if (!staging)
		return -ENOMEM;
	pthread_mutex_init(&staging->lock, NULL);
	TAILQ_INIT(&staging->named);
	TAILQ_INIT(&staging->ended);
	staging->max_ended = max_ended;
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

static void free_all(struct entries *entries)
{
	struct entry *entry;

	while ((entry = TAILQ_FIRST(entries))) {
		TAILQ_REMOVE(entries, entry, link);
		entry_free(entry);
	}
}

void bid_staging_free(struct bid_staging *staging)
{
	if (!staging)
		return;
	free_all(&staging->named);
	free_all(&staging->ended);
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
	struct entry *entry = TAILQ_FIRST(&staging->named);

	while (entry && (dir ? strcmp(entry->staged.name, name) != 0 || strcmp(entry->staged.dir, dir) != 0
			     : entry->staged.serial != serial))
		entry = TAILQ_NEXT(entry, link);
	if (entry)
		entry->used = now();
	return entry;
}

/* With the lock held. */
static struct entry *find_ended(struct bid_staging *staging, uint32_t serial)
{
	struct entry *entry = TAILQ_FIRST(&staging->ended);

	while (entry && entry->staged.serial != serial)
		entry = TAILQ_NEXT(entry, link);
	return entry;
}

/* With the lock held. @entry may be NULL. */
static struct bid_staged *use(struct entry *entry)
{
	if (!entry)
		return NULL;
	entry->users++;
	return &entry->staged;
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

int bid_staging_begin(struct bid_staging *staging, struct bid_store *store, const struct bid_id *id, uint64_t parent,
		      const char *dir, const char *name, struct bid_staged **ret_staged)
{
	struct entry *entry;
	int r;

	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->staged.id = *id;
	entry->staged.parent = parent;
	entry->staged.dir = strdup(dir);
	entry->staged.name = strdup(name);
	entry->used = now();
	entry->users = 2; /* the list, and the caller */
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
		TAILQ_INSERT_HEAD(&staging->named, entry, link);
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

struct bid_staged *bid_staging_get(struct bid_staging *staging, uint32_t serial)
{
	struct bid_staged *staged;
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = find(staging, serial, NULL, NULL);
	if (!entry && (entry = find_ended(staging, serial))) {
		TAILQ_REMOVE(&staging->ended, entry, link);
		TAILQ_INSERT_TAIL(&staging->ended, entry, link);
	}
	staged = use(entry);
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

struct bid_staged *bid_staging_find(struct bid_staging *staging, const char *dir, const char *name)
{
	struct bid_staged *staged;

	pthread_mutex_lock(&staging->lock);
	staged = use(find(staging, 0, dir, name));
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

struct bid_staged *bid_staging_next(struct bid_staging *staging, uint32_t serial)
{
	struct entry *next = NULL, *entry;
	struct bid_staged *staged;

	pthread_mutex_lock(&staging->lock);
	for (entry = TAILQ_FIRST(&staging->named); entry; entry = TAILQ_NEXT(entry, link))
		if (entry->staged.serial > serial && (!next || entry->staged.serial < next->staged.serial))
			next = entry;
	staged = use(next);
	pthread_mutex_unlock(&staging->lock);
	return staged;
}

struct bid_staged *bid_staging_idle(struct bid_staging *staging, unsigned seconds, bool unopened)
{
	time_t since = now() - (time_t)seconds;
	struct bid_staged *staged;
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = TAILQ_FIRST(&staging->named);
	while (entry && (entry->used > since || (unopened && entry->writers > 0)))
		entry = TAILQ_NEXT(entry, link);
	staged = use(entry);
	pthread_mutex_unlock(&staging->lock);
	return staged;
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

/* With the lock held. The list's use of @entry goes to the caller. */
static void unlist(struct bid_staging *staging, struct entry *entry)
{
	TAILQ_REMOVE(entry->staged.ended ? &staging->ended : &staging->named, entry, link);
	staging->n_ended -= entry->staged.ended;
	entry->staged.ended = true;
	entry->gone = true;
}

void bid_staging_end(struct bid_staging *staging, struct bid_staged *staged)
{
	struct entry *entry = (struct entry *)staged, *oldest = NULL;

	pthread_mutex_lock(&staging->lock);
	if (!staged->ended) {
		TAILQ_REMOVE(&staging->named, entry, link);
		TAILQ_INSERT_TAIL(&staging->ended, entry, link);
		staged->ended = true;
		if (++staging->n_ended > staging->max_ended) {
			oldest = TAILQ_FIRST(&staging->ended);
			unlist(staging, oldest);
		}
	}
	pthread_mutex_unlock(&staging->lock);
	if (oldest)
		put(staging, oldest);
}

void bid_staging_drop(struct bid_staging *staging, struct bid_staged *staged)
{
	struct entry *entry = (struct entry *)staged;
	bool listed;

	pthread_mutex_lock(&staging->lock);
	listed = !entry->gone;
	if (listed)
		unlist(staging, entry);
	pthread_mutex_unlock(&staging->lock);
	if (listed)
		put(staging, entry);
}

void bid_staging_drop_in(struct bid_staging *staging, const char *dir, bool unopened)
{
	struct entry *entry;

	do {
		pthread_mutex_lock(&staging->lock);
		entry = TAILQ_FIRST(&staging->named);
		while (entry && (strcmp(entry->staged.dir, dir) != 0 || (unopened && entry->writers > 0)))
			entry = TAILQ_NEXT(entry, link);
		if (entry)
			unlist(staging, entry);
		pthread_mutex_unlock(&staging->lock);
		if (entry)
			put(staging, entry);
	} while (entry);
}

void bid_staging_forget(struct bid_staging *staging, uint32_t serial)
{
	struct entry *entry;

	pthread_mutex_lock(&staging->lock);
	entry = find_ended(staging, serial);
	if (entry)
		unlist(staging, entry);
	pthread_mutex_unlock(&staging->lock);
	if (entry)
		put(staging, entry);
}

void bid_staged_put(struct bid_staging *staging, struct bid_staged *staged)
{
	if (staged)
		put(staging, (struct entry *)staged);
}
