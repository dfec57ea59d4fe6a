// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "api/download_lock.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
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

/*
 * Open @path, a file directly in BID_LAYOUT_PRIVATE, for reading and writing. A process that can open a lock file can lock it for
 * ever. A new one is therefore open to those users alone who can write the folder.
 */
static int open_lock_file(struct bid_store *store, const char *path, int *ret_fd)
{
	const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
	bid_auto_fd int dir = -1;
	int r = bid_beneath_open(store->root, path, flags, ret_fd);

	if (r != -ENOENT)
		return r;
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_PRIVATE, NULL, &dir);
	if (r == 0)
		r = make_file(path, dir, ret_fd);
	/* another process was faster */
	return r == -EEXIST ? bid_beneath_open(store->root, path, flags, ret_fd) : r;
}

int bid_store_lock(struct bid_store *store, bool exclusive)
{
	int64_t until = bid_clock_ms() + WAIT_MS;
	bid_auto_fd int fd = -1;
	int r = open_lock_file(store, BID_LAYOUT_LOCK, &fd);

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

/*
 * Locks of downloads. One file for all: a lock is an open file description lock (fcntl(2)) of the byte at the key, so there is
 * nothing to clean up. A key is used as an offset alone: nothing is written.
 */

#define HANG_S 1

struct bid_download_locks {
	struct bid_store *store; /* borrowed */
	pthread_mutex_t lock; /* guards fd; held during a system call for a lock */
	int fd; /* -1 until the first use */
};

int bid_download_locks_new(struct bid_store *store, struct bid_download_locks **ret_locks)
{
	struct bid_download_locks *locks = calloc(1, sizeof(*locks));

	if (!locks)
		return -ENOMEM;
	locks->store = store;
	locks->fd = -1;
	pthread_mutex_init(&locks->lock, NULL);
	*ret_locks = locks;
	return 0;
}

void bid_download_locks_free(struct bid_download_locks *locks)
{
	if (!locks)
		return;
	bid_close(locks->fd);
	pthread_mutex_destroy(&locks->lock);
	free(locks);
}

uint64_t bid_download_lock_server(const char *name)
{
	return XXH3_64bits(name, strlen(name));
}

uint64_t bid_download_lock_key(const struct bid_artifact *artifact, uint64_t servers)
{
	const char *subpath = artifact->subpath ? bid_subpath_text(artifact->subpath) : "";
	struct {
		uint64_t servers, subpath;
		uint8_t kind, len, id[BID_ID_MAX];
	} what;

	memset(&what, 0, sizeof(what));
	what.servers = servers;
	what.subpath = XXH3_64bits(subpath, strlen(subpath));
	what.kind = (uint8_t)artifact->kind;
	what.len = artifact->id.len;
	memcpy(what.id, artifact->id.bytes, artifact->id.len);
	/* a valid offset for fcntl(2): not negative, and not the last one, which has no byte behind it */
	return XXH3_64bits(&what, sizeof(what)) >> 2;
}

/* Open the file, again if another process has removed it. The locks in a removed file end: they cost a second download at most. */
static int open_file(struct bid_download_locks *locks)
{
	struct stat st;

	if (locks->fd >= 0 && fstat(locks->fd, &st) == 0 && st.st_nlink > 0)
		return 0;
	bid_close(bid_steal_fd(&locks->fd));
	return open_lock_file(locks->store, BID_LAYOUT_FETCHING, &locks->fd);
}

static int set_lock(int fd, uint64_t key, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)key, .l_len = 1 };

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* Lock @locks, unless another thread has it for long: the lock service of an NFS server may hang. */
static bool lock_in_time(struct bid_download_locks *locks)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += HANG_S;
	return pthread_mutex_timedlock(&locks->lock, &deadline) == 0;
}

int bid_download_locks_try(struct bid_download_locks *locks, uint64_t key)
{
	int r;

	if (!lock_in_time(locks))
		return -ETIMEDOUT;
	r = open_file(locks);
	if (r == 0)
		r = set_lock(locks->fd, key, F_WRLCK);
	pthread_mutex_unlock(&locks->lock);
	return r;
}

void bid_download_locks_unlock(struct bid_download_locks *locks, uint64_t key)
{
	/* otherwise the lock ends with the process */
	if (!lock_in_time(locks))
		return;
	set_lock(locks->fd, key, F_UNLCK);
	pthread_mutex_unlock(&locks->lock);
}
