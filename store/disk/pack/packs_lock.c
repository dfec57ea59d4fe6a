// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who merges packs does so alone. The lock is on a file that only those can open who may write packs: who may open a file, also to
 * read it, can hold a lock on it for ever.
 */
#include "disk/pack/packs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

enum { AGAIN_AFTER_NS = 20 * 1000 * 1000 };

/* The new file open at @fd, 0600, is for whoever may write the directory of packs @dir. */
static int share(int fd, int dir)
{
	mode_t others;
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	others = st.st_mode & (S_IWGRP | S_IWOTH);
	if (fchown(fd, geteuid() == 0 ? st.st_uid : (uid_t)-1, st.st_gid) < 0)
		others &= S_IWOTH;
	/* it is opened for both: on NFS, an exclusive lock wants a file that is open for writing */
	return fchmod(fd, S_IRUSR | S_IWUSR | others | others << 1) < 0 ? -errno : 0;
}

static int make_lock(struct bid_store *store, int dir, int *ret_fd)
{
	bid_auto_fd int private = -1, fd = -1;
	int r = bid_root_open(bid_store_root(store), BID_LAYOUT_PRIVATE, O_PATH | O_DIRECTORY, &private);

	if (r < 0)
		return r;
	fd = openat(private, strrchr(BID_LAYOUT_PACKS_LOCK, '/') + 1, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	r = share(fd, dir);
	if (r == 0)
		*ret_fd = bid_steal_fd(&fd);
	return r;
}

static int open_lock(struct bid_store *store, int *ret_fd)
{
	const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
	bid_auto_fd int dir = -1;
	int r = bid_root_open(bid_store_root(store), BID_LAYOUT_PACKS_LOCK, flags, ret_fd);

	if (r != -ENOENT)
		return r;
	r = bid_root_mkdirs(bid_store_root(store), BID_LAYOUT_PACKS, false, &dir);
	if (r == 0)
		r = make_lock(store, dir, ret_fd);
	/* somebody else was faster */
	return r == -EEXIST ? bid_root_open(bid_store_root(store), BID_LAYOUT_PACKS_LOCK, flags, ret_fd) : r;
}

static int lock(int fd, int wait_ms)
{
	int64_t until = bid_clock_ms() + wait_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -EOPNOTSUPP;
		if (errno == EWOULDBLOCK && bid_clock_ms() >= until)
			return -EBUSY;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = AGAIN_AFTER_NS }, NULL);
	}
	return 0;
}

int bid_packs_hold(struct bid_store *store, int wait_ms, int *ret_hold)
{
	bid_auto_fd int fd = -1;
	int r = open_lock(store, &fd);

	if (r == 0)
		r = lock(fd, wait_ms);
	if (r < 0 && r != -EOPNOTSUPP && wait_ms > 0)
		bid_warning("%s: '%s/" BID_LAYOUT_PACKS_LOCK "' cannot be locked; packs of records stay as they are", strerror(-r),
			    bid_store_path(store));
	if (r == 0)
		*ret_hold = bid_steal_fd(&fd);
	return r;
}
