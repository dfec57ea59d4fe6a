// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/backing.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/log.h"

/* Linux 6.9; the headers may be older than libfuse */
#ifndef FUSE_DEV_IOC_BACKING_OPEN
struct fuse_backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define FUSE_DEV_IOC_BACKING_OPEN  _IOW(FUSE_DEV_IOC_MAGIC, 1, struct fuse_backing_map)
#define FUSE_DEV_IOC_BACKING_CLOSE _IOW(FUSE_DEV_IOC_MAGIC, 2, uint32_t)
#endif

enum { IDLE_S = 60 }; /* seconds without a handle until an id is dropped */

/* Attachment of an inode, guarded by the lock of @owner. It lives until the inode and the last handle are gone. */
struct bid_backing {
	struct bid_backings *owner; /* borrowed */
	int id; /* backing id of the kernel; 0 for none */
	struct stat st; /* attributes at the first open; st_nlink 0 for a file in memory */
	unsigned by_kernel; /* handles read by the kernel */
	unsigned by_daemon; /* handles read by the daemon */
	bool detached; /* the inode is gone */
	int64_t kept_s; /* bid_clock_s() of the last RELEASE */
	struct bid_backing *older, *newer; /* in the list of ids without a handle */
};

struct bid_backings {
	int device; /* /dev/fuse of the session; borrowed; -1 before the first open and after the session */
	pthread_mutex_t lock; /* guards all below and the attachment of each inode; held during a registration */
	unsigned max_kept, n_kept; /* ids without a handle */
	struct bid_backing ends; /* ends of the list by last use: .newer is the oldest, .older the newest */
	uint64_t refused; /* opens that the kernel refused */
	int error; /* last negative errno of the kernel; 0 for none */
};

#if FUSE_USE_VERSION >= FUSE_MAKE_VERSION(3, 17)
bool bid_backing_compiled(void)
{
	return true;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	if (!(conn->capable & FUSE_CAP_PASSTHROUGH))
		return false;
	fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH);
	/* a mount with a depth of 2, the most of the kernel, cannot be stacked again */
	conn->max_backing_stack_depth = stacked;
	return true;
}

static void set_id(struct fuse_file_info *fi, int id)
{
	fi->backing_id = id;
}
#else
bool bid_backing_compiled(void)
{
	return false;
}

bool bid_backing_negotiate(struct fuse_conn_info *conn, bool stacked)
{
	return false;
}

static void set_id(struct fuse_file_info *fi, int id)
{
}
#endif

int bid_backings_new(unsigned max_kept, struct bid_backings **ret_backings)
{
	struct bid_backings *backings = calloc(1, sizeof(*backings));

	if (!backings)
		return -ENOMEM;
	pthread_mutex_init(&backings->lock, NULL);
	backings->device = -1;
	backings->max_kept = max_kept;
	backings->ends.older = backings->ends.newer = &backings->ends;
	*ret_backings = backings;
	return 0;
}

void bid_backings_end(struct bid_backings *backings)
{
	backings->device = -1;
}

void bid_backings_free(struct bid_backings *backings)
{
	if (!backings)
		return;
	pthread_mutex_destroy(&backings->lock);
	free(backings);
}

/* fuse_passthrough_close() needs a request. */
static void close_id(struct bid_backing *backing)
{
	uint32_t id = (uint32_t)backing->id;

	if (backing->owner->device >= 0)
		ioctl(backing->owner->device, FUSE_DEV_IOC_BACKING_CLOSE, &id);
	backing->id = 0;
}

static void unlist_id(struct bid_backing *backing)
{
	backing->older->newer = backing->newer;
	backing->newer->older = backing->older;
	backing->owner->n_kept--;
}

static void keep_id(struct bid_backing *backing)
{
	struct bid_backings *backings = backing->owner;
	struct bid_backing *oldest = backings->ends.newer;

	if (backings->n_kept >= backings->max_kept) {
		unlist_id(oldest);
		close_id(oldest);
	}
	backing->older = backings->ends.older;
	backing->newer = &backings->ends;
	backing->older->newer = backing;
	backings->ends.older = backing;
	backings->n_kept++;
	backing->kept_s = bid_clock_s();
}

/* Files in memory are made again and again: equal if size and time are equal. */
static bool is_of(const struct bid_backing *backing, const struct stat *st)
{
	const struct stat *own = &backing->st;

	if (own->st_nlink == 0 && st->st_nlink == 0 && own->st_size == st->st_size && own->st_mtim.tv_sec == st->st_mtim.tv_sec &&
	    own->st_mtim.tv_nsec == st->st_mtim.tv_nsec)
		return true;
	return own->st_dev == st->st_dev && own->st_ino == st->st_ino;
}

void bid_backings_drop(struct bid_backings *backings, const struct stat *st)
{
	int64_t kept_s = bid_clock_s() - IDLE_S;
	struct bid_backing *newer;

	if (!backings)
		return;
	pthread_mutex_lock(&backings->lock);
	for (struct bid_backing *backing = backings->ends.newer; backing != &backings->ends; backing = newer) {
		newer = backing->newer;
		if (st ? !is_of(backing, st) : backing->kept_s > kept_s)
			continue;
		unlist_id(backing);
		close_id(backing);
	}
	pthread_mutex_unlock(&backings->lock);
}

/*
 * Register @fd. Returns the id or a negative errno; logs the first of each errno. fuse_passthrough_open() prints each one and
 * does not return it.
 */
static int register_file(struct bid_backings *backings, int fd)
{
	struct fuse_backing_map map = { .fd = fd };
	int id = ioctl(backings->device, FUSE_DEV_IOC_BACKING_OPEN, &map), error = id > 0 ? 0 : id < 0 ? -errno : -EIO;

	if (error == 0)
		return id;
	if (backings->refused++ == 0 || error != backings->error)
		bid_warning("the daemon reads the files of the store, because the kernel does not: %s%s",
			    error == -ELOOP ? "they lie below too many file systems: " : "", strerror(-error));
	backings->error = error;
	return error;
}

/* Give @backing, without a handle of the kernel, an id for @fd. */
static int ensure_id(struct bid_backing *backing, int fd, const struct stat *st)
{
	int id;

	if (backing->by_daemon)
		return -EOPNOTSUPP;
	if (backing->id) {
		unlist_id(backing);
		if (is_of(backing, st))
			return 0;
		close_id(backing);
	}
	id = register_file(backing->owner, fd);
	if (id < 0)
		return -EOPNOTSUPP;
	backing->id = id;
	backing->st = *st;
	return 0;
}

static int open_locked(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		       struct bid_backing **ret_backing)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_backing *backing = bid_inodes_attached(fs->inodes, number);

	if (!backing) {
		backing = calloc(1, sizeof(*backing));
		if (!backing || bid_inodes_attach(fs->inodes, number, backing) < 0) {
			free(backing);
			return -ENOMEM;
		}
		backing->owner = fs->backings;
		fs->backings->device = fuse_session_fd(fs->session);
	}
	/* handles share a file or its pages until the last one is closed; without a handle the inode takes any file */
	if (backing->by_kernel + backing->by_daemon > 0 && !is_of(backing, st))
		return -ESTALE;
	if (backing->by_kernel == 0 && (fs->mode != BID_MODE_PASSTHROUGH || ensure_id(backing, fd, st) < 0)) {
		backing->st = *st;
		backing->by_daemon++;
		*ret_backing = backing;
		return -EOPNOTSUPP;
	}
	backing->by_kernel++;
	*ret_backing = backing;
	set_id(fi, backing->id);
	return 0;
}

int bid_backing_open(fuse_req_t req, fuse_ino_t number, int fd, const struct stat *st, struct fuse_file_info *fi,
		     struct bid_backing **ret_backing)
{
	struct bid_fs *fs = bid_fs_of(req);
	int r;

	/* a second open of the inode waits for the id of the first */
	pthread_mutex_lock(&fs->backings->lock);
	r = open_locked(req, number, fd, st, fi, ret_backing);
	pthread_mutex_unlock(&fs->backings->lock);
	return r;
}

bool bid_backing_stat(struct bid_fs *fs, uint64_t number, struct stat *ret_st)
{
	struct bid_backing *backing;
	bool open;

	if (!fs->backings)
		return false;
	pthread_mutex_lock(&fs->backings->lock);
	backing = bid_inodes_attached(fs->inodes, number);
	open = backing && backing->by_kernel + backing->by_daemon > 0;
	if (open)
		*ret_st = backing->st;
	pthread_mutex_unlock(&fs->backings->lock);
	return open;
}

uint64_t bid_backings_refused(struct bid_backings *backings, int *ret_error)
{
	uint64_t refused;

	*ret_error = 0;
	if (!backings)
		return 0;
	pthread_mutex_lock(&backings->lock);
	refused = backings->refused;
	*ret_error = backings->error;
	pthread_mutex_unlock(&backings->lock);
	return refused;
}

void bid_backing_close(struct bid_backing *backing, bool by_kernel)
{
	struct bid_backings *backings = backing->owner;
	bool gone;

	pthread_mutex_lock(&backings->lock);
	*(by_kernel ? &backing->by_kernel : &backing->by_daemon) -= 1;
	gone = backing->detached && backing->by_kernel + backing->by_daemon == 0;
	if (gone && backing->id)
		close_id(backing);
	else if (!gone && by_kernel && backing->by_kernel == 0)
		keep_id(backing);
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
	/* a worker may still be busy with RELEASE, and the inode number may be in use again; after the session no RELEASE comes */
	held = backings->device >= 0 && backing->by_kernel + backing->by_daemon > 0;
	backing->detached = true;
	if (!held && backing->id) {
		if (backing->by_kernel == 0)
			unlist_id(backing);
		close_id(backing);
	}
	pthread_mutex_unlock(&backings->lock);
	if (!held)
		free(backing);
}
