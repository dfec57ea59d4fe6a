// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/fd_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/stat_data.h"

enum {
	BUCKETS = 8192, /* a power of two */
	IDLE_S = 60, /* seconds without use until a descriptor is dropped */
};

struct bid_fd {
	uint64_t number;
	struct bid_file file; /* owned; its stat has the readers of the last check; the lock guards that and all below */
	struct bid_stat_data stat_data; /* stat data of the last check */
	unsigned users; /* the table is one */
	bool by_path; /* an O_PATH descriptor */
	bool last; /* the file has no name, and a reader may still need it */
	int64_t used_s; /* bid_clock_s() of the last use */
	struct bid_fd *next; /* in its bucket */
	struct bid_fd *older, *newer; /* by last use */
};

struct bid_fd_cache {
	pthread_mutex_t lock; /* guards all below; not held during a check or close(2) */
	unsigned max, n;
	struct bid_fd *buckets[BUCKETS];
	struct bid_fd ends; /* ends of the list by last use: .newer is the oldest, .older the newest */
};

int bid_fd_cache_new(unsigned max, struct bid_fd_cache **ret_cache)
{
	struct bid_fd_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	cache->max = max;
	cache->ends.older = cache->ends.newer = &cache->ends;
	*ret_cache = cache;
	return 0;
}

static struct bid_fd **bucket_of(struct bid_fd_cache *cache, uint64_t number)
{
	return &cache->buckets[number * 0x9e3779b97f4a7c15U >> 40 & (BUCKETS - 1)];
}

static struct bid_fd *find_fd(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_fd *fd = *bucket_of(cache, number);

	while (fd && fd->number != number)
		fd = fd->next;
	return fd;
}

static void remove_from_order(struct bid_fd *fd)
{
	fd->older->newer = fd->newer;
	fd->newer->older = fd->older;
}

static void make_newest(struct bid_fd_cache *cache, struct bid_fd *fd)
{
	fd->older = cache->ends.older;
	fd->newer = &cache->ends;
	fd->older->newer = fd;
	cache->ends.older = fd;
	fd->used_s = bid_clock_s();
}

/* Remove @fd from the table. The caller gets the table's use. */
static void remove_fd(struct bid_fd_cache *cache, struct bid_fd *fd)
{
	struct bid_fd **at = bucket_of(cache, fd->number);

	while (*at != fd)
		at = &(*at)->next;
	*at = fd->next;
	remove_from_order(fd);
	cache->n--;
}

void bid_fd_cache_put(struct bid_fd_cache *cache, struct bid_fd *fd)
{
	unsigned users;

	pthread_mutex_lock(&cache->lock);
	users = --fd->users;
	pthread_mutex_unlock(&cache->lock);
	if (users > 0)
		return;
	bid_file_release(&fd->file);
	free(fd);
}

void bid_fd_cache_free(struct bid_fd_cache *cache)
{
	struct bid_fd *fd;

	if (!cache)
		return;
	while ((fd = cache->ends.newer) != &cache->ends) {
		remove_fd(cache, fd);
		bid_fd_cache_put(cache, fd);
	}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* Drop @fd, unless another thread did. */
static void drop_fd(struct bid_fd_cache *cache, struct bid_fd *fd)
{
	bool listed;

	pthread_mutex_lock(&cache->lock);
	listed = find_fd(cache, fd->number) == fd;
	if (listed)
		remove_fd(cache, fd);
	pthread_mutex_unlock(&cache->lock);
	if (listed)
		bid_fd_cache_put(cache, fd);
}

/* Copy the readers of a file: chmod(2) changes its stat data. */
static void set_readers(struct stat *st, const struct stat *from)
{
	st->st_mode = from->st_mode;
	st->st_uid = from->st_uid;
	st->st_gid = from->st_gid;
}

/* Check that the file of @fd is still the artifact. @stat_data and @last are of the last check. */
static int check_fd(struct bid_fd_cache *cache, struct bid_store *store, struct bid_fd *fd, const struct bid_stat_data *stat_data,
		    const struct stat *last, const struct bid_request *request, struct stat *ret_stat, bool *ret_same)
{
	struct bid_file file = { .fd = fd->file.fd };
	struct bid_stat_data now;
	bool same;
	int r = 0;

	/* a cache hit is this one system call */
	if (fstat(file.fd, &file.st) < 0)
		return -errno;
	same = bid_stat_data_is_current(stat_data, &file.st);
	if (!same)
		r = bid_fstat(file.fd, &file.st);
	if (r < 0)
		return r;
	/* a text belongs to its name; an ELF file carries its id */
	if (file.st.st_nlink == 0 && !bid_kind_is_elf(request->kind))
		return -ENOENT;
	if (!same) {
		now = bid_stat_data_of(&file.st);
		r = bid_store_recheck(store, request, &file);
		if (r < 0)
			return r;
		pthread_mutex_lock(&cache->lock);
		fd->stat_data = now;
		set_readers(&fd->file.st, &file.st);
		pthread_mutex_unlock(&cache->lock);
	} else {
		set_readers(&file.st, last);
	}
	if (ret_stat)
		*ret_stat = file.st;
	if (ret_same)
		*ret_same = same;
	return 0;
}

struct bid_fd *bid_fd_cache_get(struct bid_fd_cache *cache, struct bid_store *store, uint64_t number,
				const struct bid_request *request, struct stat *ret_stat, bool *ret_same)
{
	struct bid_stat_data stat_data;
	struct bid_fd *fd;
	struct stat last;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	if (fd) {
		fd->users++;
		remove_from_order(fd);
		make_newest(cache, fd);
		stat_data = fd->stat_data;
		last = fd->file.st;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!fd)
		return NULL;
	if (check_fd(cache, store, fd, &stat_data, &last, request, ret_stat, ret_same) == 0)
		return fd;
	drop_fd(cache, fd);
	bid_fd_cache_put(cache, fd);
	return NULL;
}

static bool is_of(const struct bid_fd *fd, const struct stat *st)
{
	return fd->file.st.st_dev == st->st_dev && fd->file.st.st_ino == st->st_ino;
}

static bool is_like(const struct bid_fd *fd, const struct stat *st)
{
	const struct stat *own = &fd->file.st;

	return own->st_size == st->st_size && own->st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       own->st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

void bid_fd_cache_drop_other(struct bid_fd_cache *cache, uint64_t number, const struct stat *st, bool made)
{
	struct bid_fd *fd;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	if (fd && (is_of(fd, st) || (made && is_like(fd, st))))
		fd = NULL;
	if (fd)
		remove_fd(cache, fd);
	pthread_mutex_unlock(&cache->lock);
	if (fd)
		bid_fd_cache_put(cache, fd);
}

void bid_fd_cache_forget(struct bid_fd_cache *cache, uint64_t number)
{
	struct bid_fd *fd;
	struct stat st;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	if (fd) {
		fd->users++;
		fd->last = false;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!fd)
		return;
	if (fstat(fd->file.fd, &st) < 0 || st.st_nlink == 0)
		drop_fd(cache, fd);
	bid_fd_cache_put(cache, fd);
}

/* Put each of a list by "next". */
static void put_all(struct bid_fd_cache *cache, struct bid_fd *gone)
{
	while (gone) {
		struct bid_fd *next = gone->next;

		bid_fd_cache_put(cache, gone);
		gone = next;
	}
}

/* Is the file in memory, because the store could not keep it? */
static bool is_in_memory(const struct bid_fd *fd)
{
	return fd->file.st.st_nlink == 0;
}

int bid_fd_cache_drop(struct bid_fd_cache *cache, const struct stat *st, bool (*is_held)(void *user, uint64_t number), void *user)
{
	int64_t used_s = bid_clock_s() - IDLE_S;
	struct bid_fd *gone = NULL, *newer;
	int held = -1;

	pthread_mutex_lock(&cache->lock);
	for (struct bid_fd *fd = cache->ends.newer; fd != &cache->ends; fd = newer) {
		newer = fd->newer;
		if (st ? !is_of(fd, st) : fd->used_s > used_s)
			continue;
		if (fd->users > 1)
			continue;
		if (!is_held(user, fd->number) || (!st && is_in_memory(fd))) {
			remove_fd(cache, fd);
			fd->next = gone;
			gone = fd;
		} else if (st) {
			fd->last = true;
			held = held < 0 ? fcntl(fd->file.fd, F_DUPFD_CLOEXEC, 3) : held;
		}
	}
	pthread_mutex_unlock(&cache->lock);
	put_all(cache, gone);
	return held;
}

bool bid_fd_cache_drop_memory(struct bid_fd_cache *cache)
{
	struct bid_fd *gone = NULL, *newer;
	bool any;

	pthread_mutex_lock(&cache->lock);
	for (struct bid_fd *fd = cache->ends.newer; fd != &cache->ends; fd = newer) {
		newer = fd->newer;
		if (fd->users > 1 || !is_in_memory(fd))
			continue;
		remove_fd(cache, fd);
		fd->next = gone;
		gone = fd;
	}
	pthread_mutex_unlock(&cache->lock);
	any = gone;
	put_all(cache, gone);
	return any;
}

/* Choose the oldest descriptor of a file that can be opened again, or else the oldest. */
static struct bid_fd *next_victim(struct bid_fd_cache *cache)
{
	for (unsigned i = 0; i < cache->n && cache->ends.newer->last; i++) {
		struct bid_fd *last = cache->ends.newer;

		remove_from_order(last);
		make_newest(cache, last);
	}
	return cache->ends.newer;
}

/* Open the file of @fd again. */
static int reopen(int fd, int flags)
{
	char path[BID_FD_PATH_MAX];
	int again = open(bid_fd_path(fd, path), flags | O_CLOEXEC);

	return again < 0 ? -errno : again;
}

struct bid_fd *bid_fd_cache_keep(struct bid_fd_cache *cache, uint64_t number, struct bid_file *file)
{
	bool by_path = file->kind == BID_KIND_PROBES && file->st.st_nlink > 0;
	struct bid_fd *fd = calloc(1, sizeof(*fd)), *replaced, *oldest = NULL;
	int kept = by_path ? reopen(file->fd, O_PATH) : file->fd;

	if (!fd || kept < 0) {
		if (by_path)
			bid_close(kept);
		else
			bid_file_release(file);
		free(fd);
		return NULL;
	}
	fd->number = number;
	fd->file = *file;
	fd->file.fd = kept;
	fd->by_path = by_path;
	fd->stat_data = bid_stat_data_of(&file->st);
	if (!by_path)
		file->fd = -1;
	fd->users = 2; /* the table and the caller */

	pthread_mutex_lock(&cache->lock);
	replaced = find_fd(cache, number);
	if (replaced)
		remove_fd(cache, replaced);
	if (cache->n >= cache->max) {
		oldest = next_victim(cache);
		remove_fd(cache, oldest);
	}
	fd->next = *bucket_of(cache, number);
	*bucket_of(cache, number) = fd;
	make_newest(cache, fd);
	cache->n++;
	pthread_mutex_unlock(&cache->lock);
	if (replaced)
		bid_fd_cache_put(cache, replaced);
	if (oldest)
		bid_fd_cache_put(cache, oldest);
	return fd;
}

int bid_fd_number(const struct bid_fd *fd)
{
	return fd->file.fd;
}

int bid_fd_open(const struct bid_fd *fd, int *ret_own)
{
	int own;

	*ret_own = -1;
	if (!fd->by_path)
		return fd->file.fd;
	own = reopen(fd->file.fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (own >= 0)
		*ret_own = own;
	return own;
}
