// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/scan/settle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/trouble.h"

enum {
	PREPARED_FEW = 64, /* prepared files, each with a descriptor; the queue may hold as many again */
	PREPARED_MANY = 512, /* the same, where so many may be open */
	FILES_MANY = 8 * PREPARED_MANY,
	UNSYNCED_MAX = 8000, /* published, and not on disk yet */
	QUEUE_MAX = 4096,
	TICK_MS = 100,
};

struct list {
	struct bid_settling *first, **end; /* end NULL is empty */
	unsigned n;
};

struct bid_settle {
	struct bid_store *store;
	const struct bid_settle_ops *ops;
	void *user;
	unsigned prepared_max;
	struct list unsynced; /* used only by the calling thread; files to report after the next sync */
	struct list prepared; /* used only by the calling thread; files to publish after the next sync */
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t changed; /* something came, or a worker ended */
	pthread_cond_t room;
	struct list queue;
	unsigned n_prepared; /* in the queue */
	unsigned workers; /* running workers */
};

struct bid_settling *bid_settling_new(const char *dir_path, const char *name)
{
	size_t dir_len = strlen(dir_path), name_len = strlen(name);
	struct bid_settling *settling = calloc(1, sizeof(*settling) + dir_len + name_len + 2);

	if (!settling)
		return NULL;
	memcpy(settling->path, dir_path, dir_len);
	if (name_len > 0)
		settling->path[dir_len++] = '/';
	memcpy(settling->path + dir_len, name, name_len + 1);
	return settling;
}

void bid_settling_free(struct bid_settling *settling)
{
	if (settling->ingest) {
		bid_ingest_release(settling->ingest);
		free(settling->ingest);
	}
	free(settling);
}

static void append_settling(struct list *list, struct bid_settling *settling)
{
	settling->next = NULL;
	*(list->end ? list->end : &list->first) = settling;
	list->end = &settling->next;
	list->n++;
}

static struct bid_settling *shift_settling(struct list *list)
{
	struct bid_settling *settling = list->first;

	if (!settling)
		return NULL;
	list->first = settling->next;
	if (!list->first)
		list->end = NULL;
	list->n--;
	return settling;
}

static void drop_list(struct list *list)
{
	struct bid_settling *settling;

	while ((settling = shift_settling(list)))
		bid_settling_free(settling);
}

int bid_settle_new(struct bid_store *store, unsigned workers, const struct bid_settle_ops *ops, void *user,
		   struct bid_settle **ret_settle)
{
	struct bid_settle *settle = calloc(1, sizeof(*settle));
	pthread_condattr_t monotonic;
	struct rlimit limit;

	if (!settle)
		return -ENOMEM;
	settle->store = store;
	settle->ops = ops;
	settle->user = user;
	settle->workers = workers;
	settle->prepared_max = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= FILES_MANY ? PREPARED_MANY : PREPARED_FEW;
	pthread_mutex_init(&settle->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&settle->changed, &monotonic);
	pthread_cond_init(&settle->room, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret_settle = settle;
	return 0;
}

void bid_settle_free(struct bid_settle *settle)
{
	if (!settle)
		return;
	drop_list(&settle->queue);
	drop_list(&settle->unsynced);
	drop_list(&settle->prepared);
	pthread_cond_destroy(&settle->changed);
	pthread_cond_destroy(&settle->room);
	pthread_mutex_destroy(&settle->lock);
	free(settle);
}

void bid_settle_push(struct bid_settle *settle, struct bid_settling *settling)
{
	pthread_mutex_lock(&settle->lock);
	while (settle->queue.n >= QUEUE_MAX || (settling->ingest && settle->n_prepared >= settle->prepared_max))
		pthread_cond_wait(&settle->room, &settle->lock);
	append_settling(&settle->queue, settling);
	if (settling->ingest)
		settle->n_prepared++;
	/* other files wait for the next tick: waking a thread for each costs more than the file */
	if (settle->n_prepared >= settle->prepared_max || settle->queue.n >= QUEUE_MAX / 2)
		pthread_cond_signal(&settle->changed);
	pthread_mutex_unlock(&settle->lock);
}

void bid_settle_worker_ends(struct bid_settle *settle)
{
	pthread_mutex_lock(&settle->lock);
	settle->workers--;
	pthread_cond_signal(&settle->changed);
	pthread_mutex_unlock(&settle->lock);
}

/* Wait for work, at most a tick. Returns false after the last work of the ended workers. */
static bool take_work(struct bid_settle *settle, struct list *ret_list)
{
	struct timespec until;
	bool more;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;

	pthread_mutex_lock(&settle->lock);
	while (settle->workers > 0 && settle->n_prepared < settle->prepared_max && settle->queue.n < QUEUE_MAX / 2 &&
	       pthread_cond_timedwait(&settle->changed, &settle->lock, &until) == 0)
		;
	*ret_list = settle->queue;
	settle->queue = (struct list){ 0 };
	settle->n_prepared = 0;
	more = settle->workers > 0;
	pthread_cond_broadcast(&settle->room);
	pthread_mutex_unlock(&settle->lock);
	return more;
}

static int report_settled(struct bid_settle *settle, struct bid_settling *settling)
{
	int r = settle->ops->settled(settle->user, settling);

	bid_settling_free(settling);
	return r;
}

/* Would the file survive a power cut? */
static bool is_settled(const struct bid_settling *settling)
{
	return settling->error != 0 || (settling->added.known && !settling->is_fresh);
}

/* Sort new files into the lists. Known and refused files are finished. */
static int sort_in(struct bid_settle *settle, struct list *list)
{
	struct bid_settling *settling;
	int r = 0;

	while (r == 0 && (settling = shift_settling(list))) {
		if (settling->ingest)
			append_settling(&settle->prepared, settling);
		else if (is_settled(settling))
			r = report_settled(settle, settling);
		else
			append_settling(&settle->unsynced, settling);
	}
	return r;
}

/* Commit a batch with one syncfs(2): published files are finished, and prepared files can be published. */
static int commit_batch(struct bid_settle *settle)
{
	struct bid_settling *settling;
	int r;

	r = bid_store_sync(settle->store);
	while (r == 0 && (settling = shift_settling(&settle->unsynced)))
		r = report_settled(settle, settling);
	while (r == 0 && (settling = shift_settling(&settle->prepared))) {
		settling->error = bid_ingest_finish(settle->store, settling->ingest, BID_DURABLE_LATER);
		settling->added = settling->ingest->added;
		settling->is_fresh = settling->ingest->is_fresh;
		bid_ingest_release(settling->ingest);
		free(settling->ingest);
		settling->ingest = NULL;
		if (bid_is_trouble(settling->error)) {
			r = settling->error;
			bid_settling_free(settling);
		} else if (is_settled(settling)) {
			r = report_settled(settle, settling);
		} else {
			append_settling(&settle->unsynced, settling);
		}
	}
	return r;
}

int bid_settle_run(struct bid_settle *settle, void (*failed)(void *user, int error), void *user)
{
	bool more = true;
	int r = 0;

	while (more) {
		struct list list;
		int now;

		more = take_work(settle, &list);
		if (r != 0) {
			drop_list(&list);
			continue;
		}
		now = sort_in(settle, &list);
		if (now == 0 && (settle->prepared.n >= settle->prepared_max || settle->unsynced.n >= UNSYNCED_MAX))
			now = commit_batch(settle);
		settle->ops->tick(settle->user);
		if (now != 0) {
			drop_list(&list);
			r = now;
			failed(user, r);
		}
	}
	while (r == 0 && (settle->prepared.n > 0 || settle->unsynced.n > 0))
		r = commit_batch(settle);
	return r;
}
