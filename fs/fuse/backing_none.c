// SPDX-License-Identifier: LGPL-2.1-or-later
/* The twin of backing.c for libfuse before 3.17: the daemon reads every handle. */
#include "fuse/backing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* An inode's attachment; protected by the lock of its owner. It outlives its inode as long as there are handles. */
struct bid_backing {
	struct bid_backings *owner; /* borrowed */
	struct stat st; /* of the file that is open */
	unsigned handles;
	bool detached; /* its inode is gone */
};

struct bid_backings {
	pthread_mutex_t lock; /* protects every inode's attachment */
	bool ended; /* nobody releases a handle any more */
};

bool bid_backing_compiled(void)
{
	return false;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	return false;
}

int bid_backings_new(unsigned max_kept, struct bid_backings **ret_backings)
{
	struct bid_backings *backings = calloc(1, sizeof(*backings));

	if (!backings)
		return -ENOMEM;
	pthread_mutex_init(&backings->lock, NULL);
	*ret_backings = backings;
	return 0;
}

void bid_backings_end(struct bid_backings *backings)
{
	backings->ended = true;
}

void bid_backings_free(struct bid_backings *backings)
{
	if (!backings)
		return;
	pthread_mutex_destroy(&backings->lock);
	free(backings);
}

void bid_backings_let_go(struct bid_backings *backings, const struct stat *st)
{
}

static int open_locked(struct bid_fs *fs, fuse_ino_t number, const struct stat *st, struct bid_backing **ret_backing)
{
	struct bid_backing *backing = bid_inodes_attached(fs->inodes, number);

	if (!backing) {
		backing = calloc(1, sizeof(*backing));
		if (!backing || bid_inodes_attach(fs->inodes, number, backing) < 0) {
			free(backing);
			return -ENOMEM;
		}
		backing->owner = fs->backings;
	}
	/* what is made in memory is another file for each who asks, of the same size and time if it is of the same content */
	if (backing->handles > 0 && (backing->st.st_dev != st->st_dev || backing->st.st_ino != st->st_ino) &&
	    (backing->st.st_nlink > 0 || st->st_nlink > 0 || backing->st.st_size != st->st_size ||
	     backing->st.st_mtim.tv_sec != st->st_mtim.tv_sec || backing->st.st_mtim.tv_nsec != st->st_mtim.tv_nsec))
		return -ESTALE;
	backing->st = *st;
	backing->handles++;
	*ret_backing = backing;
	return -EOPNOTSUPP;
}

int bid_backing_open(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		     struct bid_backing **ret_backing)
{
	struct bid_fs *fs = bid_fs_of(req);
	int r;

	pthread_mutex_lock(&fs->backings->lock);
	r = open_locked(fs, number, st, ret_backing);
	pthread_mutex_unlock(&fs->backings->lock);
	return r;
}

bool bid_backing_stat(struct bid_fs *fs, uint64_t number, struct stat *ret_st)
{
	struct bid_backing *backing;
	bool open;

	pthread_mutex_lock(&fs->backings->lock);
	backing = bid_inodes_attached(fs->inodes, number);
	open = backing && backing->handles > 0;
	if (open)
		*ret_st = backing->st;
	pthread_mutex_unlock(&fs->backings->lock);
	return open;
}

uint64_t bid_backings_refused(struct bid_backings *backings, int *ret_error)
{
	*ret_error = 0;
	return 0;
}

void bid_backing_close(struct bid_backing *backing, bool by_kernel)
{
	struct bid_backings *backings = backing->owner;
	bool gone;

	pthread_mutex_lock(&backings->lock);
	gone = --backing->handles == 0 && backing->detached;
	pthread_mutex_unlock(&backings->lock);
	if (gone)
		free(backing);
}

void bid_backing_detach(void *attachment)
{
	struct bid_backing *backing = attachment;
	struct bid_backings *backings = backing->owner;
	bool held;

	pthread_mutex_lock(&backings->lock);
	held = !backings->ended && backing->handles > 0;
	backing->detached = true;
	pthread_mutex_unlock(&backings->lock);
	if (!held)
		free(backing);
}
