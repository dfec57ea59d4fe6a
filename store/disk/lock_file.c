// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "disk/beneath.h"
#include "disk/layout.h"

enum {
	WAIT_MS = 5000,
	PAUSE_NS = 1000 * 1000,
};

/* Open the new file at @fd, mode 0600, to all users with write permission for the directory @dir. */
static int share_file(int fd, int dir)
{
	mode_t others;
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	others = st.st_mode & (S_IWGRP | S_IWOTH);
	if (fchown(fd, geteuid() == 0 ? st.st_uid : (uid_t)-1, st.st_gid) < 0)
		others &= S_IWOTH;
	/* read and write: on NFS an exclusive lock needs a file open for writing */
	return fchmod(fd, S_IRUSR | S_IWUSR | others | others << 1) < 0 ? -errno : 0;
}

static int make_file(const char *path, int dir, int *ret_fd)
{
	bid_auto_fd int fd = openat(dir, strrchr(path, '/') + 1, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int r = fd < 0 ? -errno : share_file(fd, dir);

	if (r == 0)
		*ret_fd = bid_steal_fd(&fd);
	return r;
}

int bid_lock_file_open(struct bid_store *store, const char *path, int *ret_fd)
{
	const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
	bid_auto_fd int dir = -1;
	int r = bid_beneath_open(store->root, path, flags, ret_fd);

	if (r != -ENOENT)
		return r;
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_PRIVATE, false, &dir);
	if (r == 0)
		r = make_file(path, dir, ret_fd);
	/* another process was faster */
	return r == -EEXIST ? bid_beneath_open(store->root, path, flags, ret_fd) : r;
}

int bid_store_lock(struct bid_store *store, bool exclusive)
{
	int64_t until = bid_clock_ms() + WAIT_MS;
	bid_auto_fd int fd = -1;
	int r = bid_lock_file_open(store, BID_LAYOUT_LOCK, &fd);

	while (r == 0 && flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
		if (errno != EINTR && (errno != EWOULDBLOCK || bid_clock_ms() >= until))
			r = -errno;
		else
			clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
	if (r < 0) {
		bid_debug("%s: cannot lock '%s/" BID_LAYOUT_LOCK "'", strerror(-r), bid_store_path(store));
		return -1;
	}
	return bid_steal_fd(&fd);
}
