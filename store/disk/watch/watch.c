// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which ids are watched, and the thread that hears of changes. */
#include <bid/watch.h>

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/watch/paths.h"

enum {
	BUCKETS = 4096, /* a power of two */
	EVENTS = 64 << 10, /* bytes that are read at a time */
	IN_USE_S = 3600,
};

struct entry {
	struct bid_id id;
	uint64_t since; /* the moment it was watched from */
	time_t used; /* CLOCK_MONOTONIC */
	void *note; /* the caller's */
	char *where; /* perf's link leads to this build; owned, NULL if not known */
	struct bid_hold *holds; /* owned */
	struct entry *next; /* in its bucket */
	struct entry *older, *newer; /* by last use */
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
	unsigned max, n;
	int error; /* why the last one that could not be watched was not */
	struct entry *buckets[BUCKETS];
	struct entry ends; /* of the list by last use: .newer is the oldest, .older the newest */
};

/*
 * Do all changes of files there go through this kernel, so that inotify(7) tells of them? Not those of network file systems and
 * FUSE, which servers change, nor of overlays, which may be changed below.
 */
static bool is_local(int root)
{
	static const unsigned long types[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, 0xca451a4e, /* bcachefs */
		0x2fc12fc1, /* ZFS */
		0x3153464a, /* JFS */
	};
	struct statfs st;

	if (fstatfs(root, &st) < 0)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if ((unsigned long)st.f_type == types[i])
			return true;
	return false;
}

static struct entry **bucket_of(struct bid_watch *watch, const struct bid_id *id)
{
	return &watch->buckets[XXH3_64bits(id->bytes, id->len) & (BUCKETS - 1)];
}

static struct entry *find(struct bid_watch *watch, const struct bid_id *id)
{
	struct entry *entry = *bucket_of(watch, id);

	while (entry && !bid_id_equal(&entry->id, id))
		entry = entry->next;
	return entry;
}

static void unchain(struct entry *entry)
{
	entry->older->newer = entry->newer;
	entry->newer->older = entry->older;
}

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return time.tv_sec;
}

static void make_newest(struct bid_watch *watch, struct entry *entry)
{
	entry->older = watch->ends.older;
	entry->newer = &watch->ends;
	entry->older->newer = entry;
	watch->ends.older = entry;
	entry->used = now();
}

static void entry_free(struct bid_watch *watch, struct entry *entry)
{
	bid_paths_let_go(watch->paths, &entry->holds);
	free(entry->where);
	free(entry);
}

static void drop(struct bid_watch *watch, struct entry *entry, bool changed)
{
	struct entry **at = bucket_of(watch, &entry->id);
	struct bid_id id = entry->id;
	void *note = entry->note;

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	unchain(entry);
	watch->n--;
	entry_free(watch, entry);
	watch->fn(watch->user, &id, changed, note);
}

static void drop_changed(void *user, void *holder)
{
	drop(user, holder, true);
}

static void drop_all(struct bid_watch *watch, bool changed)
{
	while (watch->ends.newer != &watch->ends)
		drop(watch, watch->ends.newer, changed);
}

/*
 * perf opens the definitions of each build that it lists for writing, and mostly writes nothing. What is written through a mapping
 * makes no event but that of the end, and gives the file another time; but not a page that was written to before the watch was set,
 * and not to disk yet. perf writes by write(2).
 */
static bool is_only_closed(const struct bid_watch *watch, const struct inotify_event *event)
{
	const struct bid_stamp *stamp;
	const struct entry *entry = bid_paths_closed(watch->paths, event, &stamp);
	char path[PATH_MAX + 16];
	struct stat st;

	if (!entry || !entry->where)
		return false;
	snprintf(path, sizeof(path), "%s/%s", entry->where, bid_kind_store_name(BID_KIND_PROBES));
	return bid_root_stat(bid_store_root(watch->store), path, &st) == 0 && bid_stamp_holds(stamp, &st);
}

/* Take in what the kernel has to tell: all that was done before this call. The lock is held. */
static void hear(struct bid_watch *watch)
{
	_Alignas(struct inotify_event) char buffer[EVENTS];
	ssize_t n;

	while ((n = read(bid_paths_fd(watch->paths), buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + n;) {
			const struct inotify_event *event = (const struct inotify_event *)(void *)at;

			if (event->mask & IN_Q_OVERFLOW)
				drop_all(watch, true);
			else if (!is_only_closed(watch, event))
				bid_paths_event(watch->paths, event, drop_changed, watch);
			at += sizeof(*event) + event->len;
		}
	}
}

static void *work(void *user)
{
	struct bid_watch *watch = user;
	struct pollfd fds[] = {
		{ .fd = bid_paths_fd(watch->paths), .events = POLLIN },
		{ .fd = watch->end, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			return NULL;
		if (fds[0].revents) {
			pthread_mutex_lock(&watch->lock);
			hear(watch);
			pthread_mutex_unlock(&watch->lock);
		}
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

/* Leave most of what the user may watch to other programs. */
static unsigned limit(unsigned max)
{
	enum { SHARE = 4, WATCHES_OF_AN_ID = 4 };
	bid_auto_file FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
	unsigned allowed;

	if (file && fscanf(file, "%u", &allowed) == 1 && allowed / SHARE / WATCHES_OF_AN_ID < max)
		return allowed / SHARE / WATCHES_OF_AN_ID;
	return max;
}

int bid_watch_new(struct bid_store *store, unsigned max, bid_watch_fn fn, void *user, struct bid_watch **ret_watch)
{
	struct bid_watch *watch;
	int r;

	if (!is_local(bid_store_root(store)))
		return -EOPNOTSUPP;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->store = store;
	watch->fn = fn;
	watch->user = user;
	watch->max = limit(max);
	watch->ends.older = watch->ends.newer = &watch->ends;
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
	struct entry *entry;

	if (!watch)
		return false;
	pthread_mutex_lock(&watch->lock);
	entry = find(watch, id);
	if (entry) {
		unchain(entry);
		make_newest(watch, entry);
	}
	pthread_mutex_unlock(&watch->lock);
	return entry;
}

/* The original path that the place @path is in: its time is that of the last of its builds. Not what has all builds of a kind. */
static int hold_parent(struct bid_watch *watch, struct entry *entry, char *path)
{
	char *slash = strrchr(path, '/');
	int r = 0;

	if (!slash || path[0] == '[' || strncmp(path, BID_LAYOUT_LINKS, strlen(BID_LAYOUT_LINKS)) == 0)
		return 0;
	*slash = '\0';
	r = bid_paths_hold(watch->paths, path, entry, &entry->holds, NULL);
	*slash = '/';
	return r;
}

/* perf's link for the id of @entry leads to @path, which is watched; @dir is that directory, or -1 if it was watched before. */
static void remember(struct bid_watch *watch, struct entry *entry, const char *path, int dir)
{
	if (dir >= 0 ? bid_one_is_build(path, dir) : bid_one_classify(watch->store, path) == BID_ENTRY_ID)
		entry->where = strdup(path); /* without memory it is asked for */
}

/* Watch @place, one of those where the id of @entry may lie, and what it is in. */
static int hold_place(struct bid_watch *watch, struct entry *entry, struct bid_place *place, bool linked)
{
	bid_auto_fd int dir = -1;
	int r = bid_paths_hold(watch->paths, place->path, entry, &entry->holds, &dir);

	if (r == 0)
		r = hold_parent(watch, entry, place->path);
	if (r == 0 && linked)
		remember(watch, entry, place->path, dir);
	return r;
}

/* Every name that decides what is found for the id of @entry. If there @must be a link of just its name, -ENOENT without. */
static int hold_names(struct bid_watch *watch, struct entry *entry, bool must)
{
	struct bid_spelling spelling = { 0 };
	char link[BID_LAYOUT_MAX];
	struct bid_id filed;
	int r = 0;

	while (r == 0 && bid_spelling_next(&spelling, &entry->id, &filed)) {
		struct bid_place place = { 0 };

		/* before it is read */
		r = bid_paths_hold_name(watch->paths, bid_layout_link(&filed, link), entry, &entry->holds);
		while (r == 0 && bid_place_next(&place, watch->store, &filed, BID_KIND_NONE)) {
			/* where the link itself leads: in perf's old layout it is the file */
			bool linked = spelling.step == 1 && place.step == 1 && strcmp(place.path, link) != 0;

			if (must && spelling.step == 1 && !(place.step == 1 ? linked : place.linked))
				return -ENOENT;
			r = hold_place(watch, entry, &place, linked);
		}
	}
	return r;
}

/* With an id that is not watched yet; @must as above. */
static int add(struct bid_watch *watch, const struct bid_id *id, bool must, struct entry **ret_entry)
{
	struct entry *entry;
	int r;

	if (watch->max == 0)
		return watch->error ? watch->error : -ENOSPC;
	/* or what was done before would count as done after */
	hear(watch);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->id = *id;
	if (watch->n >= watch->max)
		drop(watch, watch->ends.newer, false);
	r = hold_names(watch, entry, must);
	if (r < 0) {
		entry_free(watch, entry);
		return r;
	}
	/* only now: nothing that was found before counts */
	entry->since = ++watch->clock;
	entry->next = *bucket_of(watch, id);
	*bucket_of(watch, id) = entry;
	make_newest(watch, entry);
	watch->n++;
	*ret_entry = entry;
	return 0;
}

/* Is the file with the attributes @st that of @kind in @place? */
static bool lies_at(struct bid_store *store, const char *place, enum bid_kind kind, const struct stat *st)
{
	char path[PATH_MAX + 16];
	struct stat there;

	snprintf(path, sizeof(path), "%s/%s", place, bid_kind_store_name(kind));
	if (bid_root_stat(bid_store_root(store), path, &there) < 0 && bid_root_stat(bid_store_root(store), place, &there) < 0)
		return false;
	return there.st_dev == st->st_dev && there.st_ino == st->st_ino;
}

/* Is the file with the attributes @st one that is filed under @id? */
static bool is_filed(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const struct stat *st)
{
	struct bid_spelling spelling = { 0 };
	struct bid_id filed;

	while (bid_spelling_next(&spelling, id, &filed)) {
		struct bid_place place = { 0 };

		while (bid_place_next(&place, store, &filed, kind))
			if (lies_at(store, place.path, kind, st))
				return true;
	}
	return false;
}

/* The same, asked first where perf's link is known to lead: mostly it is there. */
static bool is_filed_as(struct bid_watch *watch, const struct bid_id *id, enum bid_kind kind, const struct stat *st)
{
	char where[PATH_MAX];

	if (bid_watch_where(watch, id, where, sizeof(where)) == 0 && lies_at(watch->store, where, kind, st))
		return true;
	return is_filed(watch->store, id, kind, st);
}

/* If @file, by whatever way it was found, is one that is filed under the id of @entry. It was at the moment @mark. */
static int add_file(struct bid_watch *watch, struct entry *entry, const struct bid_file *file, uint64_t mark)
{
	int r = -ENOENT;

	/* of the names that lead to it everything is heard from when they were watched on */
	if (entry->since <= mark || is_filed(watch->store, &entry->id, file->kind, &file->st))
		r = bid_paths_hold_file(watch->paths, file->fd, entry, &entry->holds);
	if (r == 0)
		entry->holds->since = ++watch->clock;
	return r;
}

/* What the system refuses it will refuse again, so that what is watched has to do. @r is what came of watching one more. */
static void refused(struct bid_watch *watch, int r)
{
	if (r == -ENOSPC && watch->n < watch->max)
		watch->max = watch->n > 1 ? watch->n : 1;
	if (r < 0 && r != -ENOENT)
		watch->error = r;
}

int bid_watch_add(struct bid_watch *watch, const struct bid_id *id, const struct bid_file *file)
{
	struct entry *entry, *made = NULL;
	uint64_t mark = bid_watch_mark(watch);
	int r = 0;

	if (!watch)
		return -EOPNOTSUPP;
	/* before anything is done about it: what lies elsewhere is asked for again and again, too */
	if (bid_kind_has_detail(file->kind) || !is_filed_as(watch, id, file->kind, &file->st))
		return -ENOENT;
	pthread_mutex_lock(&watch->lock);
	entry = find(watch, id);
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
	bool full = watch->n >= watch->max;
	char where[PATH_MAX];
	struct entry *entry;
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
static bool has_room(const struct bid_watch *watch)
{
	return watch->n < watch->max || (watch->n > 0 && watch->ends.newer->used + IN_USE_S < now());
}

int bid_watch_add_names(struct bid_watch *watch, const struct bid_id *id)
{
	int r = 0;

	if (!watch)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&watch->lock);
	if (!find(watch, id))
		r = has_room(watch) ? add_linked(watch, id) : -EAGAIN;
	pthread_mutex_unlock(&watch->lock);
	return r;
}

bool bid_watch_id_in(struct bid_watch *watch, const char *dir, struct bid_id *ret_id)
{
	const struct entry *entry;

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
	const struct entry *entry;
	int r = -ENOENT;

	if (!watch)
		return -ENOENT;
	pthread_mutex_lock(&watch->lock);
	entry = find(watch, id);
	if (entry && entry->where) {
		/* an event is there to be read before the call that made it returns */
		hear(watch);
		entry = find(watch, id);
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
	struct entry *entry;

	if (!watch)
		return false;
	pthread_mutex_lock(&watch->lock);
	entry = find(watch, id);
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
	n = watch->n;
	*ret_error = watch->error;
	pthread_mutex_unlock(&watch->lock);
	return n;
}
