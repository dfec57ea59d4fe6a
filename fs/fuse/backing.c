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

/* of Linux 6.9; older headers do not have it, and a newer libfuse may be there all the same */
#ifndef FUSE_DEV_IOC_BACKING_OPEN
struct fuse_backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define FUSE_DEV_IOC_BACKING_OPEN  _IOW(FUSE_DEV_IOC_MAGIC, 1, struct fuse_backing_map)
#define FUSE_DEV_IOC_BACKING_CLOSE _IOW(FUSE_DEV_IOC_MAGIC, 2, uint32_t)
#endif

enum { IDLE_S = 60 }; /* what had no handle for so long is kept for nobody */

/* An inode's attachment; protected by the lock of its owner. It outlives its inode as long as there are handles. */
struct bid_backing {
	struct bid_backings *owner; /* borrowed */
	int id; /* the kernel's, which stands for a file; 0 is none */
	struct stat st; /* of the file that is or was open, at first; what was made in memory has no name */
	unsigned by_kernel; /* handles that the kernel reads */
	unsigned by_daemon; /* handles that we read */
	bool detached; /* its inode is gone */
	int64_t kept_s; /* bid_clock_s(), since when it has no handle */
	struct bid_backing *older, *newer; /* by last use, while it has an id and no handle: kept for the next open */
};

struct bid_backings {
	int device; /* of the session; borrowed, -1 before the first open and after the session */
	pthread_mutex_t lock; /* protects all below and every inode's attachment; held while an id is registered */
	unsigned max_kept, n_kept; /* ids without an open handle */
	struct bid_backing ends; /* of the list of kept ids: .newer is the oldest, .older the newest */
	uint64_t refused; /* files that the kernel did not take */
	int error; /* what it said of the last; 0 if there is none */
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
	/* one more is what the kernel takes at most; and then no other file system can be stacked on the mount */
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

/* Not fuse_passthrough_close(): there may be no request any more. */
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

/* What is made in memory is another file for each who asks, of the same size and time if it is of the same content. */
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
 * Have the kernel read @fd: returns its id, or a negative errno, which is told once. Not fuse_passthrough_open(), which prints each
 * of them and does not return why.
 */
static int register_file(struct bid_backings *backings, int fd)
{
	struct fuse_backing_map map = { .fd = fd };
	int id = ioctl(backings->device, FUSE_DEV_IOC_BACKING_OPEN, &map), error = id > 0 ? 0 : id < 0 ? -errno : -EIO;

	if (error == 0)
		return id;
	if (backings->refused++ == 0 || error != backings->error)
		bid_warning("files of the store are read by the daemon, because the kernel does not: %s%s",
			    error == -ELOOP ? "they lie on too many file systems one on another: " : "", strerror(-error));
	backings->error = error;
	return error;
}

/* Give @backing, which has no handle that the kernel reads, an id for @fd. */
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
	/*
	 * Handles of one inode share one file, or its pages: another one has to wait until the last of them is closed. Without any,
	 * the inode is of whatever file is there now.
	 */
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

	/* held across the registration: a second open of the inode must wait for the id of the first */
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
	/*
	 * The kernel releases a handle before it forgets the inode, but another worker may be at that still, and by then the inode
	 * may be known again, with handles of its own. After the session nobody releases anything.
	 */
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
