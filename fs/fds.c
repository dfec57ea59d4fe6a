// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fds.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 1024 }; /* a power of two */

struct bid_fd {
	uint64_t number;
	struct bid_file file; /* owned */
	unsigned users; /* protected by the lock, as all below */
	bool listed; /* in the table; one that is not goes with its last user */
	struct bid_fd *next; /* in its bucket */
	struct bid_fd *older, *newer; /* by last use */
};

struct bid_fds {
	pthread_mutex_t lock; /* protects all below */
	unsigned max, n;
	struct bid_fd *buckets[BUCKETS];
	struct bid_fd ends; /* of the list by last use: .newer is the oldest, .older the newest */
};

int bid_fds_new(unsigned max, struct bid_fds **ret_fds)
{
	struct bid_fds *fds = calloc(1, sizeof(*fds));

	if (!fds)
		return -ENOMEM;
	pthread_mutex_init(&fds->lock, NULL);
	fds->max = max;
	fds->ends.older = fds->ends.newer = &fds->ends;
	*ret_fds = fds;
	return 0;
}

static struct bid_fd **bucket_of(struct bid_fds *fds, uint64_t number)
{
	return &fds->buckets[number * 0x9e3779b97f4a7c15U >> 40 & (BUCKETS - 1)];
}

static void destroy(struct bid_fd *fd)
{
	bid_file_release(&fd->file);
	free(fd);
}

static void unchain(struct bid_fd *fd)
{
	fd->older->newer = fd->newer;
	fd->newer->older = fd->older;
}

static void make_newest(struct bid_fds *fds, struct bid_fd *fd)
{
	fd->older = fds->ends.older;
	fd->newer = &fds->ends;
	fd->older->newer = fd;
	fds->ends.older = fd;
}

/* Take @fd out of the table. It is destroyed by whoever finds it without users. */
static void unlist(struct bid_fds *fds, struct bid_fd *fd)
{
	struct bid_fd **at = bucket_of(fds, fd->number);

	while (*at != fd)
		at = &(*at)->next;
	*at = fd->next;
	unchain(fd);
	fd->listed = false;
	fds->n--;
	if (fd->users == 0)
		destroy(fd);
}

void bid_fds_free(struct bid_fds *fds)
{
	if (!fds)
		return;
	while (fds->ends.newer != &fds->ends)
		unlist(fds, fds->ends.newer);
	pthread_mutex_destroy(&fds->lock);
	free(fds);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Is the file what it was when its id was checked? */
static bool unchanged(const struct bid_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) == 0 && st.st_size == file->st.st_size && same_time(st.st_mtim, file->st.st_mtim) &&
	       same_time(st.st_ctim, file->st.st_ctim);
}

static struct bid_fd *find(struct bid_fds *fds, uint64_t number)
{
	struct bid_fd *fd = *bucket_of(fds, number);

	while (fd && fd->number != number)
		fd = fd->next;
	return fd;
}

struct bid_fd *bid_fds_get(struct bid_fds *fds, uint64_t number)
{
	struct bid_fd *fd;

	pthread_mutex_lock(&fds->lock);
	fd = find(fds, number);
	if (fd && !unchanged(&fd->file)) {
		unlist(fds, fd);
		fd = NULL;
	}
	if (fd) {
		fd->users++;
		unchain(fd);
		make_newest(fds, fd);
	}
	pthread_mutex_unlock(&fds->lock);
	return fd;
}

struct bid_fd *bid_fds_keep(struct bid_fds *fds, uint64_t number, struct bid_file *file)
{
	struct bid_fd *fd = calloc(1, sizeof(*fd)), *other;

	if (!fd) {
		bid_file_release(file);
		return NULL;
	}
	fd->number = number;
	fd->file = *file;
	file->fd = -1;
	fd->users = 1;
	fd->listed = true;

	pthread_mutex_lock(&fds->lock);
	other = find(fds, number);
	if (other)
		unlist(fds, other);
	while (fds->n >= fds->max && fds->ends.newer != &fds->ends)
		unlist(fds, fds->ends.newer);
	fd->next = *bucket_of(fds, number);
	*bucket_of(fds, number) = fd;
	make_newest(fds, fd);
	fds->n++;
	pthread_mutex_unlock(&fds->lock);
	return fd;
}

void bid_fds_put(struct bid_fds *fds, struct bid_fd *fd)
{
	pthread_mutex_lock(&fds->lock);
	if (--fd->users == 0 && !fd->listed)
		destroy(fd);
	pthread_mutex_unlock(&fds->lock);
}

int bid_fd_number(const struct bid_fd *fd)
{
	return fd->file.fd;
}
