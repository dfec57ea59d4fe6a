// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/open_files.h"

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

struct bid_fd {
	uint64_t number;
	struct bid_file file; /* owned; its stat has the readers of the last check; the lock guards that and all below */
	struct bid_stat_data stat_data; /* stat data of the last check */
	unsigned users; /* the table is one, each handle another */
	unsigned by_kernel, by_daemon; /* open handles, by their reader */
	int id; /* backing id; 0 for none */
	bool by_path; /* an O_PATH descriptor */
	bool last; /* the file has no name, and a reader may still need it */
	int64_t used_s; /* bid_clock_s() of the last use */
	struct bid_fd *next; /* in its bucket */
	TAILQ_ENTRY(bid_fd) order;
};

TAILQ_HEAD(fd_list, bid_fd);

struct bid_open_files {
	const struct bid_backing_ids *ids; /* borrowed; NULL for none */
	pthread_mutex_t lock; /* guards all below; not held during a check or close(2) */
	unsigned max, n; /* entries without a handle */
	struct bid_fd *buckets[BUCKETS];
	struct fd_list idle; /* entries without a handle, oldest first */
};

int bid_open_files_new(unsigned max, const struct bid_backing_ids *ids, struct bid_open_files **ret_cache)
{
	struct bid_open_files *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	cache->ids = ids;
	cache->max = max;
	TAILQ_INIT(&cache->idle);
	*ret_cache = cache;
	return 0;
}

/* The link to the entry of @number, or to the NULL at the end of its bucket. Locking: the lock. */
static struct bid_fd **link_to(struct bid_open_files *cache, uint64_t number)
{
	struct bid_fd **link = &cache->buckets[number * 0x9e3779b97f4a7c15U >> 40 & (BUCKETS - 1)];

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

static struct bid_fd *find_fd(struct bid_open_files *cache, uint64_t number)
{
	return *link_to(cache, number);
}

static bool is_open(const struct bid_fd *fd)
{
	return fd->by_kernel + fd->by_daemon > 0;
}

/* Locking of the next four: the lock. */

static void add_idle(struct bid_open_files *cache, struct bid_fd *fd)
{
	TAILQ_INSERT_TAIL(&cache->idle, fd, order);
	cache->n++;
	fd->used_s = bid_clock_s();
}

static void remove_idle(struct bid_open_files *cache, struct bid_fd *fd)
{
	TAILQ_REMOVE(&cache->idle, fd, order);
	cache->n--;
}

/* Remove @fd from the table. The caller gets the table's use. */
static struct bid_fd *remove_fd(struct bid_open_files *cache, struct bid_fd *fd)
{
	*link_to(cache, fd->number) = fd->next;
	if (!is_open(fd))
		remove_idle(cache, fd);
	return fd;
}

/* Remove the oldest entry of a file that can be opened again, or else the oldest, from a full table. NULL if it is not full. */
static struct bid_fd *remove_oldest(struct bid_open_files *cache)
{
	struct bid_fd *fd;

	if (cache->n == 0 || cache->n < cache->max)
		return NULL;
	TAILQ_FOREACH(fd, &cache->idle, order)
	if (!fd->last)
		break;
	return remove_fd(cache, fd ? fd : TAILQ_FIRST(&cache->idle));
}

static void free_fd(struct bid_open_files *cache, struct bid_fd *fd)
{
	if (fd->id)
		cache->ids->drop(cache->ids->user, fd->id);
	bid_file_release(&fd->file);
	free(fd);
}

void bid_open_files_put(struct bid_open_files *cache, struct bid_fd *fd)
{
	unsigned users;

	if (!fd)
		return;
	pthread_mutex_lock(&cache->lock);
	users = --fd->users;
	pthread_mutex_unlock(&cache->lock);
	if (users == 0)
		free_fd(cache, fd);
}

void bid_open_files_free(struct bid_open_files *cache)
{
	struct bid_fd *fd;

	if (!cache)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while ((fd = cache->buckets[i])) {
			cache->buckets[i] = fd->next;
			free_fd(cache, fd);
		}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* Drop @fd, unless another thread did, or a handle is open. */
static void drop_fd(struct bid_open_files *cache, struct bid_fd *fd)
{
	struct bid_fd *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	if (find_fd(cache, fd->number) == fd && !is_open(fd))
		gone = remove_fd(cache, fd);
	pthread_mutex_unlock(&cache->lock);
	bid_open_files_put(cache, gone);
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
static int check_kernel_opens(const struct bid_fd *fd)
{
	bid_auto_fd int again = -1;

	if (fd->by_kernel == 0)
		return 0;
	again = reopen(fd->file.fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	return again < 0 ? again : 0;
}

/* Check that the file of @fd is still the artifact. @stat_data and @last are of the last check. */
static int check_fd(struct bid_open_files *cache, struct bid_store *store, struct bid_fd *fd, const struct bid_stat_data *stat_data,
		    const struct stat *last, const struct bid_artifact *artifact, struct stat *ret_stat, bool *ret_same)
{
	struct bid_file file = { .fd = fd->file.fd };
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
		r = bid_store_recheck(store, artifact, &file);
		if (r < 0)
			return r;
		pthread_mutex_lock(&cache->lock);
		r = check_kernel_opens(fd);
		if (r == 0) {
			fd->stat_data = now;
			set_readers(&fd->file.st, &file.st);
		}
		/* the kernel may no longer open the file: the next handle needs another id */
		if (!is_open(fd)) {
			id = fd->id;
			fd->id = 0;
		}
		pthread_mutex_unlock(&cache->lock);
		if (id)
			cache->ids->drop(cache->ids->user, id);
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

struct bid_fd *bid_open_files_get(struct bid_open_files *cache, struct bid_store *store, uint64_t number,
				  const struct bid_artifact *artifact, struct stat *ret_stat, bool *ret_same)
{
	struct bid_stat_data stat_data;
	struct bid_fd *fd;
	struct stat last;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	if (fd) {
		fd->users++;
		if (!is_open(fd)) {
			remove_idle(cache, fd);
			add_idle(cache, fd);
		}
		stat_data = fd->stat_data;
		last = fd->file.st;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!fd)
		return NULL;
	if (check_fd(cache, store, fd, &stat_data, &last, artifact, ret_stat, ret_same) == 0)
		return fd;
	drop_fd(cache, fd);
	bid_open_files_put(cache, fd);
	return NULL;
}

/* Is the file in memory, because the store could not keep it? */
static bool is_in_memory(const struct stat *st)
{
	return st->st_nlink == 0;
}

/* Is @st of the file of @fd? Files in memory are made again and again: equal if size and time are equal. */
static bool is_of(const struct bid_fd *fd, const struct stat *st)
{
	const struct stat *own = &fd->file.st;

	if (is_in_memory(own) && is_in_memory(st) && own->st_size == st->st_size && own->st_mtim.tv_sec == st->st_mtim.tv_sec &&
	    own->st_mtim.tv_nsec == st->st_mtim.tv_nsec)
		return true;
	return own->st_dev == st->st_dev && own->st_ino == st->st_ino;
}

void bid_open_files_drop_other(struct bid_open_files *cache, uint64_t number, const struct stat *st)
{
	struct bid_fd *fd, *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	if (fd && !is_open(fd) && !is_of(fd, st))
		gone = remove_fd(cache, fd);
	pthread_mutex_unlock(&cache->lock);
	bid_open_files_put(cache, gone);
}

void bid_open_files_forget(struct bid_open_files *cache, uint64_t number)
{
	struct bid_fd *fd, *gone = NULL;
	struct stat st;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	/* a worker may still be busy with RELEASE, and the number may be in use again */
	if (fd && is_open(fd)) {
		gone = remove_fd(cache, fd);
		fd = NULL;
	} else if (fd) {
		fd->users++;
		fd->last = false;
	}
	pthread_mutex_unlock(&cache->lock);
	if (fd && (fstat(fd->file.fd, &st) < 0 || st.st_nlink == 0))
		drop_fd(cache, fd);
	bid_open_files_put(cache, fd);
	bid_open_files_put(cache, gone);
}

/* Put each of a list by "next". */
static void put_all(struct bid_open_files *cache, struct bid_fd *gone)
{
	while (gone) {
		struct bid_fd *next = gone->next;

		bid_open_files_put(cache, gone);
		gone = next;
	}
}

int bid_open_files_drop(struct bid_open_files *cache, const struct stat *st, bool (*is_held)(void *user, uint64_t number),
			void *user)
{
	int64_t used_s = bid_clock_s() - IDLE_S;
	struct bid_fd *gone = NULL, *fd, *newer;
	int held = -1;

	pthread_mutex_lock(&cache->lock);
	for (fd = TAILQ_FIRST(&cache->idle); fd; fd = newer) {
		newer = TAILQ_NEXT(fd, order);
		if ((st ? !is_of(fd, st) : fd->used_s > used_s) || fd->users > 1)
			continue;
		if (!is_held(user, fd->number) || (!st && is_in_memory(&fd->file.st))) {
			remove_fd(cache, fd)->next = gone;
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

bool bid_open_files_drop_memory(struct bid_open_files *cache)
{
	struct bid_fd *gone = NULL, *fd, *newer;
	bool any;

	pthread_mutex_lock(&cache->lock);
	for (fd = TAILQ_FIRST(&cache->idle); fd; fd = newer) {
		newer = TAILQ_NEXT(fd, order);
		if (fd->users > 1 || !is_in_memory(&fd->file.st))
			continue;
		remove_fd(cache, fd)->next = gone;
		gone = fd;
	}
	pthread_mutex_unlock(&cache->lock);
	any = gone;
	put_all(cache, gone);
	return any;
}

/* Make an entry of @file. -ENOMEM, or as open(2); then @file is released, unless it is of probe definitions. */
static int make_fd(uint64_t number, struct bid_file *file, struct bid_fd **ret_fd)
{
	bool by_path = file->kind == BID_KIND_PROBES && !is_in_memory(&file->st);
	struct bid_fd *fd = calloc(1, sizeof(*fd));
	int kept = by_path ? reopen(file->fd, O_PATH) : file->fd;

	if (!fd || kept < 0) {
		if (by_path)
			bid_close(kept);
		else
			bid_file_release(file);
		free(fd);
		return kept < 0 ? kept : -ENOMEM;
	}
	fd->number = number;
	fd->file = *file;
	fd->file.fd = kept;
	fd->by_path = by_path;
	fd->stat_data = bid_stat_data_of(&file->st);
	if (!by_path)
		file->fd = -1;
	fd->users = 1;
	*ret_fd = fd;
	return 0;
}

/* Add @fd to the table in place of @replaced, which may be NULL. @gone gets two entries to put. Locking: the lock. */
static void add_fd(struct bid_open_files *cache, struct bid_fd *fd, struct bid_fd *replaced, struct bid_fd *gone[static 2])
{
	struct bid_fd **link;

	gone[0] = replaced ? remove_fd(cache, replaced) : NULL;
	gone[1] = remove_oldest(cache);
	link = link_to(cache, fd->number);
	fd->next = NULL;
	*link = fd;
	fd->users++;
	add_idle(cache, fd);
}

int bid_open_files_keep(struct bid_open_files *cache, uint64_t number, struct bid_file *file, struct bid_fd **ret_fd)
{
	struct bid_fd *fd, *present, *gone[2] = { NULL };
	int r = make_fd(number, file, &fd);

	if (r < 0)
		return r;
	pthread_mutex_lock(&cache->lock);
	present = find_fd(cache, number);
	if (present && is_open(present) && is_of(present, &fd->file.st)) {
		present->users++;
		present->stat_data = fd->stat_data;
		set_readers(&present->file.st, &fd->file.st);
		gone[0] = fd;
		fd = present;
	} else if (present && is_open(present)) {
		gone[0] = fd;
		r = -ESTALE;
	} else {
		add_fd(cache, fd, present, gone);
	}
	pthread_mutex_unlock(&cache->lock);
	bid_open_files_put(cache, gone[0]);
	bid_open_files_put(cache, gone[1]);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

/* Has @fd, without handles of the daemon, a backing id, or does it get one? Locking: the lock. */
static bool ensure_id(struct bid_open_files *cache, struct bid_fd *fd)
{
	if (fd->id == 0 && cache->ids) {
		int id = cache->ids->make(cache->ids->user, fd->file.fd);

		fd->id = id < 0 ? 0 : id;
	}
	return fd->id;
}

int bid_open_files_open(struct bid_open_files *cache, struct bid_fd *fd, int *ret_id)
{
	struct bid_fd *present, *gone[2] = { NULL };
	int r = 0;

	/* a second open of the inode waits for the id of the first */
	pthread_mutex_lock(&cache->lock);
	present = find_fd(cache, fd->number);
	if (present != fd && (is_open(fd) || (present && is_open(present))))
		r = -ESTALE;
	else if (present != fd)
		add_fd(cache, fd, present, gone);
	if (r == 0) {
		if (!is_open(fd))
			remove_idle(cache, fd);
		*ret_id = fd->by_daemon == 0 && ensure_id(cache, fd) ? fd->id : 0;
		*(*ret_id ? &fd->by_kernel : &fd->by_daemon) += 1;
		fd->users++;
	}
	pthread_mutex_unlock(&cache->lock);
	bid_open_files_put(cache, gone[0]);
	bid_open_files_put(cache, gone[1]);
	return r;
}

void bid_open_files_close(struct bid_open_files *cache, struct bid_fd *fd, bool by_kernel)
{
	struct bid_fd *gone = NULL;

	pthread_mutex_lock(&cache->lock);
	*(by_kernel ? &fd->by_kernel : &fd->by_daemon) -= 1;
	/* a forgotten inode has no entry */
	if (!is_open(fd) && find_fd(cache, fd->number) == fd) {
		gone = remove_oldest(cache);
		add_idle(cache, fd);
	}
	pthread_mutex_unlock(&cache->lock);
	bid_open_files_put(cache, gone);
	bid_open_files_put(cache, fd);
}

bool bid_open_files_open_stat(struct bid_open_files *cache, uint64_t number, struct stat *ret_st)
{
	const struct bid_fd *fd;
	bool open;

	pthread_mutex_lock(&cache->lock);
	fd = find_fd(cache, number);
	open = fd && is_open(fd);
	if (open)
		*ret_st = fd->file.st;
	pthread_mutex_unlock(&cache->lock);
	return open;
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
