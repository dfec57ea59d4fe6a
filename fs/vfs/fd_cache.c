// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/fd_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "base/world_readable.h"

enum {
	BUCKETS = 8192, /* a power of two */
	IDLE_S = 60, /* seconds without use until a descriptor is dropped */
};

struct bid_cached_fd {
	uint64_t number;
	struct bid_file file; /* owned; its stat has the readers of the last check; the lock guards that and all below */
	struct bid_stat_data stat_data; /* stat data of the last check */
	unsigned refs; /* one for the table, one for each handle and caller */
	unsigned by_kernel, by_daemon; /* open handles, by their reader */
	int id; /* backing id; 0 for none */
	bool by_path; /* an O_PATH descriptor */
	bool last; /* the file has no name, and a reader may still need it */
	int64_t used_s; /* bid_clock_s() of the last use */
	struct bid_cached_fd *next; /* in its bucket */
	TAILQ_ENTRY(bid_cached_fd) order;
};

TAILQ_HEAD(cached_list, bid_cached_fd);

struct bid_fd_cache {
	struct bid_store *store; /* borrowed */
	const struct bid_fd_cache_ops *ops; /* borrowed, as @user */
	void *user;
	pthread_mutex_t lock; /* guards all below; not held during a check or close(2) */
	unsigned max, n; /* entries without a handle */
	struct bid_cached_fd *buckets[BUCKETS];
	struct cached_list idle; /* entries without a handle, oldest first */
};

int bid_fd_cache_new(struct bid_store *store, unsigned max, const struct bid_fd_cache_ops *ops, void *user,
		     struct bid_fd_cache **ret_cache)
{
	struct bid_fd_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	cache->store = store;
	cache->ops = ops;
	cache->user = user;
	cache->max = max;
	TAILQ_INIT(&cache->idle);
	*ret_cache = cache;
	return 0;
}

/* The link to the entry of @number, or to the NULL at the end of its bucket. Locking: the lock. */
static struct bid_cached_fd **link_to(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_cached_fd **link = &cache->buckets[number * 0x9e3779b97f4a7c15U >> 40 & (BUCKETS - 1)];

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

static struct bid_cached_fd *find_cached(struct bid_fd_cache *cache, uint64_t number)
{
	return *link_to(cache, number);
}

static bool is_open(const struct bid_cached_fd *cached)
{
	return cached->by_kernel + cached->by_daemon > 0;
}

/* Locking of the next four: the lock. */

static void add_idle(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	TAILQ_INSERT_TAIL(&cache->idle, cached, order);
	cache->n++;
	cached->used_s = bid_clock_s();
}

static void remove_idle(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	TAILQ_REMOVE(&cache->idle, cached, order);
	cache->n--;
}

/* Remove @cached from the table. The caller gets the table's use. */
static struct bid_cached_fd *remove_cached(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	*link_to(cache, cached->number) = cached->next;
	if (!is_open(cached))
		remove_idle(cache, cached);
	return cached;
}

/* Remove the oldest entry of a file that can be opened again, or else the oldest, from a full table. NULL if it is not full. */
static struct bid_cached_fd *remove_oldest(struct bid_fd_cache *cache)
{
	struct bid_cached_fd *cached;

	if (cache->n == 0 || cache->n < cache->max)
		return NULL;
	TAILQ_FOREACH (cached, &cache->idle, order)
		if (!cached->last)
			break;
	return remove_cached(cache, cached ? cached : TAILQ_FIRST(&cache->idle));
}

static void cached_free(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	if (cached->id)
		cache->ops->drop_id(cache->user, cached->id);
	bid_file_release(&cached->file);
	free(cached);
}

void bid_fd_cache_unref(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	unsigned refs;

	if (!cached)
		return;
	pthread_mutex_lock(&cache->lock);
	refs = --cached->refs;
	pthread_mutex_unlock(&cache->lock);
	if (refs == 0)
		cached_free(cache, cached);
}

void bid_fd_cache_free(struct bid_fd_cache *cache)
{
	struct bid_cached_fd *cached;

	if (!cache)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while ((cached = cache->buckets[i])) {
			cache->buckets[i] = cached->next;
			cached_free(cache, cached);
		}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* Drop @cached, unless another thread did, or a handle is open. */
static void drop_cached(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	struct bid_cached_fd *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	if (find_cached(cache, cached->number) == cached && !is_open(cached))
		gone = remove_cached(cache, cached);
	pthread_mutex_unlock(&cache->lock);
	bid_fd_cache_unref(cache, gone);
}

/* Copy the readers of a file: chmod(2) changes its stat data. */
static void set_readers(struct stat *st, const struct stat *from)
{
	st->st_mode = from->st_mode;
	st->st_uid = from->st_uid;
	st->st_gid = from->st_gid;
}

/* Open the file of @fd again. */
static int reopen(int fd, int flags)
{
	char path[BID_FD_PATH_MAX];
	int again = open(bid_fd_path(fd, path), flags | O_CLOEXEC);

	return again < 0 ? -errno : again;
}

/* The kernel opens a file by the rules of the sandbox: not if it was moved out of the store. Locking: the lock. */
static int check_kernel_opens(const struct bid_cached_fd *cached)
{
	bid_auto_fd int again = -1;

	if (cached->by_kernel == 0)
		return 0;
	again = reopen(cached->file.fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	return again < 0 ? again : 0;
}

/* Check that the file of @cached is still the artifact. @stat_data and @last are of the last check. */
static int check_cached(struct bid_fd_cache *cache, struct bid_cached_fd *cached, const struct bid_stat_data *stat_data,
			const struct stat *last, const struct bid_artifact *artifact, struct stat *ret_stat, bool *ret_same)
{
	struct bid_file file = { .fd = cached->file.fd };
	struct bid_stat_data now;
	int r = 0, id = 0;
	bool same;

	/* a cache hit is this one system call */
	if (fstat(file.fd, &file.st) < 0)
		return -errno;
	same = bid_stat_data_is_current(stat_data, &file.st);
	if (!same)
		r = bid_fstat(file.fd, &file.st);
	if (r < 0)
		return r;
	/* a text belongs to its name; an ELF file carries its id */
	if (file.st.st_nlink == 0 && !bid_kind_is_elf(artifact->kind))
		return -ENOENT;
	if (!same) {
		now = bid_stat_data_of(&file.st);
		r = bid_store_recheck(cache->store, artifact, &file);
		if (r < 0)
			return r;
		pthread_mutex_lock(&cache->lock);
		r = check_kernel_opens(cached);
		if (r == 0) {
			cached->stat_data = now;
			set_readers(&cached->file.st, &file.st);
		}
		/* the kernel may no longer open the file: the next handle needs another id */
		if (!is_open(cached)) {
			id = cached->id;
			cached->id = 0;
		}
		pthread_mutex_unlock(&cache->lock);
		if (id)
			cache->ops->drop_id(cache->user, id);
		if (r < 0)
			return r;
	} else {
		set_readers(&file.st, last);
	}
	if (ret_stat)
		*ret_stat = file.st;
	if (ret_same)
		*ret_same = same;
	return 0;
}

struct bid_cached_fd *bid_fd_cache_find(struct bid_fd_cache *cache, uint64_t number, const struct bid_artifact *artifact,
					struct stat *ret_stat, bool *ret_same)
{
	struct bid_stat_data stat_data;
	struct bid_cached_fd *cached;
	struct stat last;

	pthread_mutex_lock(&cache->lock);
	cached = find_cached(cache, number);
	if (cached) {
		cached->refs++;
		if (!is_open(cached)) {
			remove_idle(cache, cached);
			add_idle(cache, cached);
		}
		stat_data = cached->stat_data;
		last = cached->file.st;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!cached)
		return NULL;
	if (check_cached(cache, cached, &stat_data, &last, artifact, ret_stat, ret_same) == 0)
		return cached;
	drop_cached(cache, cached);
	bid_fd_cache_unref(cache, cached);
	return NULL;
}

/* Is the file in memory, because the store could not keep it? */
static bool is_in_memory(const struct stat *st)
{
	return st->st_nlink == 0;
}

/* Is @st of the file of @cached? Files in memory are made again and again: equal if size and time are equal. */
static bool is_of(const struct bid_cached_fd *cached, const struct stat *st)
{
	const struct stat *own = &cached->file.st;

	if (is_in_memory(own) && is_in_memory(st) && own->st_size == st->st_size && own->st_mtim.tv_sec == st->st_mtim.tv_sec &&
	    own->st_mtim.tv_nsec == st->st_mtim.tv_nsec)
		return true;
	return own->st_dev == st->st_dev && own->st_ino == st->st_ino;
}

void bid_fd_cache_drop_other(struct bid_fd_cache *cache, uint64_t number, const struct stat *st)
{
	struct bid_cached_fd *cached, *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	cached = find_cached(cache, number);
	if (cached && !is_open(cached) && !is_of(cached, st))
		gone = remove_cached(cache, cached);
	pthread_mutex_unlock(&cache->lock);
	bid_fd_cache_unref(cache, gone);
}

void bid_fd_cache_forget(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_cached_fd *cached, *gone = NULL;
	struct stat st;

	pthread_mutex_lock(&cache->lock);
	cached = find_cached(cache, number);
	/* a thread may still be busy with RELEASE, and the number may be in use again */
	if (cached && is_open(cached)) {
		gone = remove_cached(cache, cached);
		cached = NULL;
	} else if (cached) {
		cached->refs++;
		cached->last = false;
	}
	pthread_mutex_unlock(&cache->lock);
	if (cached && (fstat(cached->file.fd, &st) < 0 || st.st_nlink == 0))
		drop_cached(cache, cached);
	bid_fd_cache_unref(cache, cached);
	bid_fd_cache_unref(cache, gone);
}

/* Drop a reference of each of a list by "next". */
static void unref_all(struct bid_fd_cache *cache, struct bid_cached_fd *gone)
{
	while (gone) {
		struct bid_cached_fd *next = gone->next;

		bid_fd_cache_unref(cache, gone);
		gone = next;
	}
}

int bid_fd_cache_drop(struct bid_fd_cache *cache, const struct stat *st)
{
	int64_t used_s = bid_clock_s() - IDLE_S;
	struct bid_cached_fd *gone = NULL, *cached, *newer;
	int held = -1;

	pthread_mutex_lock(&cache->lock);
	for (cached = TAILQ_FIRST(&cache->idle); cached; cached = newer) {
		newer = TAILQ_NEXT(cached, order);
		if ((st ? !is_of(cached, st) : cached->used_s > used_s) || cached->refs > 1)
			continue;
		if (!cache->ops->may_be_read(cache->user, cached->number) || (!st && is_in_memory(&cached->file.st))) {
			remove_cached(cache, cached)->next = gone;
			gone = cached;
		} else if (st) {
			cached->last = true;
			held = held < 0 ? fcntl(cached->file.fd, F_DUPFD_CLOEXEC, 3) : held;
		}
	}
	pthread_mutex_unlock(&cache->lock);
	unref_all(cache, gone);
	return held;
}

bool bid_fd_cache_drop_memory(struct bid_fd_cache *cache)
{
	struct bid_cached_fd *gone = NULL, *cached, *newer;
	bool any;

	pthread_mutex_lock(&cache->lock);
	for (cached = TAILQ_FIRST(&cache->idle); cached; cached = newer) {
		newer = TAILQ_NEXT(cached, order);
		if (cached->refs > 1 || !is_in_memory(&cached->file.st))
			continue;
		remove_cached(cache, cached)->next = gone;
		gone = cached;
	}
	pthread_mutex_unlock(&cache->lock);
	any = gone;
	unref_all(cache, gone);
	return any;
}

/* Make an entry of @file. -ENOMEM, or as open(2); then @file is released, unless it is of probe definitions. */
static int make_cached(uint64_t number, struct bid_file *file, struct bid_cached_fd **ret_cached)
{
	bool by_path = file->kind == BID_KIND_PROBES && !is_in_memory(&file->st);
	struct bid_cached_fd *cached = calloc(1, sizeof(*cached));
	int kept = by_path ? reopen(file->fd, O_PATH) : file->fd;

	if (!cached || kept < 0) {
		if (by_path)
			bid_close(kept);
		else
			bid_file_release(file);
		free(cached);
		return kept < 0 ? kept : -ENOMEM;
	}
	cached->number = number;
	cached->file = *file;
	cached->file.fd = kept;
	cached->by_path = by_path;
	cached->stat_data = bid_stat_data_of(&file->st);
	if (!by_path)
		file->fd = -1;
	cached->refs = 1;
	*ret_cached = cached;
	return 0;
}

/* Add @cached to the table in place of @replaced, which may be NULL. Sets @gone, for bid_fd_cache_unref(). Locking: the lock. */
static void add_cached(struct bid_fd_cache *cache, struct bid_cached_fd *cached, struct bid_cached_fd *replaced,
		       struct bid_cached_fd *gone[static 2])
{
	struct bid_cached_fd **link;

	gone[0] = replaced ? remove_cached(cache, replaced) : NULL;
	gone[1] = remove_oldest(cache);
	link = link_to(cache, cached->number);
	cached->next = NULL;
	*link = cached;
	cached->refs++;
	add_idle(cache, cached);
}

int bid_fd_cache_insert(struct bid_fd_cache *cache, uint64_t number, struct bid_file *file, struct bid_cached_fd **ret_cached)
{
	struct bid_cached_fd *cached, *present, *gone[2] = { NULL };
	int r = make_cached(number, file, &cached);

	if (r < 0)
		return r;
	pthread_mutex_lock(&cache->lock);
	present = find_cached(cache, number);
	if (present && is_open(present) && is_of(present, &cached->file.st)) {
		present->refs++;
		present->stat_data = cached->stat_data;
		set_readers(&present->file.st, &cached->file.st);
		gone[0] = cached;
		cached = present;
	} else if (present && is_open(present)) {
		gone[0] = cached;
		r = -ESTALE;
	} else {
		add_cached(cache, cached, present, gone);
	}
	pthread_mutex_unlock(&cache->lock);
	bid_fd_cache_unref(cache, gone[0]);
	bid_fd_cache_unref(cache, gone[1]);
	if (r == 0)
		*ret_cached = cached;
	return r;
}

/* Has @cached, without handles of the daemon, a backing id, or does it get one? Locking: the lock. */
static bool ensure_id(struct bid_fd_cache *cache, struct bid_cached_fd *cached)
{
	if (cached->id == 0) {
		int id = cache->ops->make_id(cache->user, cached->file.fd);

		cached->id = id < 0 ? 0 : id;
	}
	return cached->id;
}

int bid_fd_cache_open_handle(struct bid_fd_cache *cache, struct bid_cached_fd *cached, int *ret_id)
{
	struct bid_cached_fd *present, *gone[2] = { NULL };
	int r = 0;

	/* a second open of the inode waits for the id of the first */
	pthread_mutex_lock(&cache->lock);
	present = find_cached(cache, cached->number);
	if (present != cached && (is_open(cached) || (present && is_open(present))))
		r = -ESTALE;
	else if (present != cached)
		add_cached(cache, cached, present, gone);
	if (r == 0) {
		if (!is_open(cached))
			remove_idle(cache, cached);
		*ret_id = cached->by_daemon == 0 && ensure_id(cache, cached) ? cached->id : 0;
		*(*ret_id ? &cached->by_kernel : &cached->by_daemon) += 1;
		cached->refs++;
	}
	pthread_mutex_unlock(&cache->lock);
	bid_fd_cache_unref(cache, gone[0]);
	bid_fd_cache_unref(cache, gone[1]);
	return r;
}

void bid_fd_cache_close_handle(struct bid_fd_cache *cache, struct bid_cached_fd *cached, bool by_kernel)
{
	struct bid_cached_fd *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	*(by_kernel ? &cached->by_kernel : &cached->by_daemon) -= 1;
	/* a forgotten inode has no entry */
	if (!is_open(cached) && find_cached(cache, cached->number) == cached) {
		gone = remove_oldest(cache);
		add_idle(cache, cached);
	}
	pthread_mutex_unlock(&cache->lock);
	bid_fd_cache_unref(cache, gone);
	bid_fd_cache_unref(cache, cached);
}

bool bid_fd_cache_stat(struct bid_fd_cache *cache, uint64_t number, struct stat *ret_st)
{
	const struct bid_cached_fd *cached;
	bool open;

	pthread_mutex_lock(&cache->lock);
	cached = find_cached(cache, number);
	open = cached && is_open(cached);
	if (open)
		*ret_st = cached->file.st;
	pthread_mutex_unlock(&cache->lock);
	return open;
}

int bid_cached_fd_descriptor(const struct bid_cached_fd *cached)
{
	return cached->file.fd;
}

int bid_cached_fd_open(const struct bid_cached_fd *cached, int *ret_own)
{
	int own;

	*ret_own = -1;
	if (!cached->by_path)
		return cached->file.fd;
	own = reopen(cached->file.fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (own >= 0)
		*ret_own = own;
	return own;
}
