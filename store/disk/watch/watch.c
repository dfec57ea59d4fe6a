// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is watched of a store, and the thread that hears of changes. */
#include <bid/watch.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/watch/system.h"
#include "disk/watch/watched.h"

enum {
	EVENTS = 64 << 10, /* bytes that are read at a time */
	GATHER_MS = 2, /* what was only closed is heard of in heaps of this time */
	IN_USE_S = 3600,
};

struct bid_watch {
	struct bid_store *store; /* borrowed */
	bid_watch_fn fn;
	void *user;
	int end; /* an eventfd, readable when the thread is to end */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below; held while watches are set */
	struct bid_paths *paths; /* owned */
	uint64_t clock;
	unsigned max;
	int error; /* why the last one that could not be watched was not */
	struct bid_watched_ids ids;
};

static void entry_free(struct bid_watch *watch, struct bid_watched *entry)
{
	bid_paths_let_go(watch->paths, &entry->holds);
	free(entry->where);
	free(entry);
}

static void drop(struct bid_watch *watch, struct bid_watched *entry, bool changed)
{
	struct bid_id id = entry->id;
	void *note = entry->note;

	bid_watched_take_out(&watch->ids, entry);
	entry_free(watch, entry);
	watch->fn(watch->user, &id, changed, note);
}

static void drop_changed(void *user, void *holder)
{
	drop(user, holder, true);
}

static void drop_all(struct bid_watch *watch, bool changed)
{
	struct bid_watched *entry;

	while ((entry = bid_watched_oldest(&watch->ids)))
		drop(watch, entry, changed);
}

/*
 * perf opens the definitions of each build that it lists for writing, and mostly writes nothing. What is written through a mapping
 * makes no event but that of the end, and gives the file another time; but not a page that was written to before the watch was set,
 * and not to disk yet. perf writes by write(2).
 */
static bool is_only_closed(const struct bid_watch *watch, const struct inotify_event *event)
{
	const struct bid_stamp *stamp;
	const struct bid_watched *entry = bid_paths_closed(watch->paths, event, &stamp);
	char path[PATH_MAX + 16];
	struct stat st;

	if (!entry || !entry->where)
		return false;
	snprintf(path, sizeof(path), "%s/%s", entry->where, bid_kind_store_name(BID_KIND_PROBES));
	return bid_root_stat(bid_store_root(watch->store), path, &st) == 0 && bid_stamp_holds(stamp, &st);
}

/* Take in what the kernel has to tell: all that was done before this call. The lock is held. Was any of it a change? */
static bool hear(struct bid_watch *watch)
{
	_Alignas(struct inotify_event) char buffer[EVENTS];
	bool changed = false;
	ssize_t n;

	while ((n = read(bid_paths_fd(watch->paths), buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(void *)at;
			bool closed = !(event->mask & IN_Q_OVERFLOW) && is_only_closed(watch, event);

			if (event->mask & IN_Q_OVERFLOW)
				drop_all(watch, true);
			else if (!closed)
				bid_paths_event(watch->paths, event, drop_changed, watch);
			changed |= !closed;
			at += sizeof(*event) + event->len;
		}
	}
	return changed;
}

static void *work(void *user)
{
	struct bid_watch *watch = user;
	struct pollfd fds[] = {
		{ .fd = bid_paths_fd(watch->paths), .events = POLLIN },
		{ .fd = watch->end, .events = POLLIN },
	};

	for (;;) {
		bool changed = true;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			return NULL;
		if (fds[0].revents) {
			pthread_mutex_lock(&watch->lock);
			changed = hear(watch);
			pthread_mutex_unlock(&watch->lock);
		}
		/* a listing closes one file after another, and each time this thread would take a processor from it */
		if (!changed)
			poll(&fds[1], 1, GATHER_MS);
	}
	/* never seen; deaf, nothing may be believed any more */
	bid_warning("%s: changes of the store '%s' are not heard of any more", strerror(errno), bid_store_path(watch->store));
	pthread_mutex_lock(&watch->lock);
	watch->max = 0;
	watch->error = -EIO;
	drop_all(watch, true);
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

int bid_watch_new(struct bid_store *store, unsigned max, bid_watch_fn fn, void *user, struct bid_watch **ret_watch)
{
	struct bid_watch *watch;
	int r;

	if (!bid_watch_is_told(bid_store_root(store)))
		return -EOPNOTSUPP;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->store = store;
	watch->fn = fn;
	watch->user = user;
	watch->max = bid_watch_limit(max);
	bid_watched_init(&watch->ids);
	watch->end = eventfd(0, EFD_CLOEXEC);
	r = watch->end < 0 ? -errno : bid_paths_new(bid_store_root(store), &watch->paths);
	if (r < 0) {
		bid_close(watch->end);
		free(watch);
		return r;
	}
	pthread_mutex_init(&watch->lock, NULL);
	r = bid_thread_start(&watch->thread, "bid-watch", work, watch);
	if (r < 0) {
		bid_paths_free(watch->paths);
		bid_close(watch->end);
		pthread_mutex_destroy(&watch->lock);
		free(watch);
		return r;
	}
	*ret_watch = watch;
	return 0;
}

void bid_watch_free(struct bid_watch *watch)
{
	if (!watch)
		return;
	eventfd_write(watch->end, 1);
	pthread_join(watch->thread, NULL);
	bid_paths_end(watch->paths);
	drop_all(watch, false);
	bid_paths_free(watch->paths);
	bid_close(watch->end);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

uint64_t bid_watch_mark(struct bid_watch *watch)
{
	uint64_t mark;

	if (!watch)
		return 0;
	pthread_mutex_lock(&watch->lock);
	mark = watch->clock;
	pthread_mutex_unlock(&watch->lock);
	return mark;
}

bool bid_watch_has(struct bid_watch *watch, const struct bid_id *id)
{
	struct bid_watched *entry;

	if (!watch)
		return false;
	pthread_mutex_lock(&watch->lock);
	entry = bid_watched_find(&watch->ids, id);
	if (entry)
		bid_watched_use(&watch->ids, entry);
	pthread_mutex_unlock(&watch->lock);
	return entry;
}

/* With an id that is not watched yet; @must as above. */
static int add(struct bid_watch *watch, const struct bid_id *id, bool must, struct bid_watched **ret_entry)
{
	struct bid_watched *entry;
	int r;

	if (watch->max == 0)
		return watch->error ? watch->error : -ENOSPC;
	/* or what was done before would count as done after */
	hear(watch);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->id = *id;
	if (watch->ids.n >= watch->max)
		drop(watch, bid_watched_oldest(&watch->ids), false);
	r = bid_watched_hold_names(entry, watch->store, watch->paths, must);
	if (r < 0) {
		entry_free(watch, entry);
		return r;
	}
	/* only now: nothing that was found before counts */
	entry->since = ++watch->clock;
	bid_watched_enter(&watch->ids, entry);
	*ret_entry = entry;
	return 0;
}

/* bid_is_filed(), asked first where perf's link is known to lead: mostly it is there. */
static bool is_filed_as(struct bid_watch *watch, const struct bid_id *id, enum bid_kind kind, const struct stat *st)
{
	char where[PATH_MAX];

	if (bid_watch_where(watch, id, where, sizeof(where)) == 0 && bid_place_has(watch->store, where, kind, st))
		return true;
	return bid_is_filed(watch->store, id, kind, st);
}

/* If @file, by whatever way it was found, is one that is filed under the id of @entry. It was at the moment @mark. */
static int add_file(struct bid_watch *watch, struct bid_watched *entry, const struct bid_file *file, uint64_t mark)
{
	int r = -ENOENT;

	/* of the names that lead to it everything is heard from when they were watched on */
	if (entry->since <= mark || bid_is_filed(watch->store, &entry->id, file->kind, &file->st))
		r = bid_paths_hold_file(watch->paths, file->fd, entry, &entry->holds);
	if (r == 0)
		entry->holds->since = ++watch->clock;
	return r;
}

/* What the system refuses it will refuse again, so that what is watched has to do. @r is what came of watching one more. */
static void refused(struct bid_watch *watch, int r)
{
	if (r == -ENOSPC && watch->ids.n < watch->max)
		watch->max = watch->ids.n > 1 ? watch->ids.n : 1;
	if (r < 0 && r != -ENOENT)
		watch->error = r;
}

int bid_watch_add(struct bid_watch *watch, const struct bid_id *id, const struct bid_file *file)
{
	struct bid_watched *entry, *made = NULL;
	uint64_t mark = bid_watch_mark(watch);
	int r = 0;

	if (!watch)
		return -EOPNOTSUPP;
	/* before anything is done about it: what lies elsewhere is asked for again and again, too */
	if (bid_kind_has_detail(file->kind) || !is_filed_as(watch, id, file->kind, &file->st))
		return -ENOENT;
	pthread_mutex_lock(&watch->lock);
	entry = bid_watched_find(&watch->ids, id);
	if (!entry) {
		r = add(watch, id, false, &made);
		entry = made;
	}
	if (r == 0 && !bid_holds_file(entry->holds, &file->st, watch->clock))
		r = add_file(watch, entry, file, mark);
	/* of an id that has no file here, nothing is said */
	if (r < 0 && made)
		drop(watch, made, false);
	refused(watch, r);
	pthread_mutex_unlock(&watch->lock);
	return r;
}

/* One that is only looked at. */
static int add_linked(struct bid_watch *watch, const struct bid_id *id)
{
	bool full = watch->ids.n >= watch->max;
	char where[PATH_MAX];
	struct bid_watched *entry;
	int r = -ENOENT;

	/* as long as no other one has to go for it, it is seen when it is watched whether it is there; mostly it is */
	if (!full)
		r = add(watch, id, true, &entry);
	if (r == -ENOENT) {
		r = bid_one_where(watch->store, id, where, sizeof(where));
		if (r < 0)
			return r;
		r = add(watch, id, false, &entry);
	}
	refused(watch, r);
	return r;
}

/* Is there room for one that is only looked at? */
static bool has_room(struct bid_watch *watch)
{
	return watch->ids.n < watch->max || (watch->ids.n > 0 && bid_watched_is_unused(bid_watched_oldest(&watch->ids), IN_USE_S));
}

int bid_watch_add_names(struct bid_watch *watch, const struct bid_id *id)
{
	int r = 0;

	if (!watch)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&watch->lock);
	if (!bid_watched_find(&watch->ids, id))
		r = has_room(watch) ? add_linked(watch, id) : -EAGAIN;
	pthread_mutex_unlock(&watch->lock);
	return r;
}

bool bid_watch_id_in(struct bid_watch *watch, const char *dir, struct bid_id *ret_id)
{
	const struct bid_watched *entry;

	if (!watch)
		return false;
	pthread_mutex_lock(&watch->lock);
	entry = bid_paths_holder(watch->paths, dir);
	if (entry)
		*ret_id = entry->id;
	pthread_mutex_unlock(&watch->lock);
	return entry;
}

int bid_watch_where(struct bid_watch *watch, const struct bid_id *id, char *ret_path, size_t size)
{
	const struct bid_watched *entry;
	int r = -ENOENT;

	if (!watch)
		return -ENOENT;
	pthread_mutex_lock(&watch->lock);
	entry = bid_watched_find(&watch->ids, id);
	if (entry && entry->where) {
		/* an event is there to be read before the call that made it returns */
		hear(watch);
		entry = bid_watched_find(&watch->ids, id);
	}
	if (entry && entry->where) {
		r = strlen(entry->where) < size ? 0 : -ENAMETOOLONG;
		if (r == 0)
			memcpy(ret_path, entry->where, strlen(entry->where) + 1);
	}
	pthread_mutex_unlock(&watch->lock);
	return r;
}

bool bid_watch_note(struct bid_watch *watch, const struct bid_id *id, uint64_t mark, const struct stat *st, const char *dir,
		    bid_watch_note_fn fn, void *user)
{
	struct bid_watched *entry;

	if (!watch)
		return false;
	pthread_mutex_lock(&watch->lock);
	entry = bid_watched_find(&watch->ids, id);
	if (entry &&
	    (entry->since > mark || (st && !bid_holds_file(entry->holds, st, mark)) || (dir && !bid_holds_dir(entry->holds, dir))))
		entry = NULL;
	if (entry && fn)
		fn(user, &entry->note);
	pthread_mutex_unlock(&watch->lock);
	return entry;
}

unsigned bid_watch_count(struct bid_watch *watch, int *ret_error)
{
	unsigned n = 0;

	*ret_error = 0;
	if (!watch)
		return 0;
	pthread_mutex_lock(&watch->lock);
	n = watch->ids.n;
	*ret_error = watch->error;
	pthread_mutex_unlock(&watch->lock);
	return n;
}
