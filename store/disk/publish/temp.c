// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

#define PREFIX "temp-"

#ifndef SMB2_SUPER_MAGIC /* Linux 5.17 */
#define SMB2_SUPER_MAGIC 0xfe534d42U
#define CIFS_SUPER_MAGIC 0xff534d42U
#endif

enum {
	LINK_S = 2, /* seconds until a symbolic link in the folder counts as left behind */
	STILL_S = 24 * 3600, /* seconds without a write until a file of another machine counts as left behind */
};

static int open_named(struct bid_temp *temp)
{
	for (int attempts = 0; attempts < 100; attempts++) {
		bid_auto_fd int fd = -1;
		uint64_t number;
		struct stat st;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		snprintf(temp->name, sizeof(temp->name), PREFIX "%016llx", (unsigned long long)number);
		fd = openat(temp->dir, temp->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		/* swept between open and flock, or just being swept */
		if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
			continue;
		if (fstat(fd, &st) < 0)
			return -errno;
		if (st.st_nlink == 0)
			continue;
		temp->fd = bid_steal_fd(&fd);
		return 0;
	}
	return -EEXIST;
}

int bid_temp_new(struct bid_store *store, bool named, struct bid_temp *ret_temp)
{
	bid_auto_fd int dir = -1;
	struct bid_temp temp = BID_TEMP_NONE;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_beneath_mkdirs(bid_store_root(store), BID_LAYOUT_TEMP, false, &dir);
	if (r < 0)
		return r;
	if (!named && !(bid_store_flags(store) & BID_STORE_NAMED_TEMP)) {
		temp.fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
		if (temp.fd < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
			r = -errno;
	}
	if (r >= 0 && temp.fd < 0) {
		temp.dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
		r = temp.dir < 0 ? -errno : open_named(&temp);
	}
	if (r < 0) {
		bid_temp_release(&temp);
		return r;
	}
	*ret_temp = temp;
	return 0;
}

int bid_temp_link(const struct bid_temp *temp, int dir, const char *name)
{
	if (temp->name[0])
		return linkat(temp->dir, temp->name, dir, name, 0) < 0 ? -errno : 0;
	return bid_fd_link(temp->fd, dir, name);
}

int bid_temp_replace(struct bid_temp *temp, int dir, const char *name)
{
	int r = renameat(temp->dir, temp->name, dir, name) < 0 ? -errno : 0;

	if (r == -EISDIR && unlinkat(dir, name, AT_REMOVEDIR) == 0)
		r = renameat(temp->dir, temp->name, dir, name) < 0 ? -errno : 0;
	if (r < 0)
		return r;
	temp->name[0] = '\0';
	return 0;
}

void bid_temp_release(struct bid_temp *temp)
{
	if (temp->name[0])
		unlinkat(temp->dir, temp->name, 0);
	temp->name[0] = '\0';
	bid_close(bid_steal_fd(&temp->fd));
	bid_close(bid_steal_fd(&temp->dir));
}

bool bid_temp_is_named(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

/* Open a file for locking: on NFS an exclusive lock needs a file open for writing. */
static int open_to_lock(int dir, const char *name)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, fd = openat(dir, name, O_RDWR | flags);

	return fd < 0 && (errno == EACCES || errno == EISDIR) ? openat(dir, name, O_RDONLY | flags) : fd;
}

/*
 * Can other machines write to the file system of @fd without their locks being visible here? The server and the mount options
 * decide.
 */
static bool is_shared(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	switch ((unsigned)st.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case V9FS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Has the unlocked file been unchanged for so long that no other machine writes it? */
static bool is_still(int fd)
{
	struct stat st;

	return !is_shared(fd) || (fstat(fd, &st) == 0 && st.st_mtim.tv_sec + STILL_S < time(NULL));
}

bool bid_temp_is_abandoned(int dir, const char *name, bool remove)
{
	bid_auto_fd int fd = open_to_lock(dir, name);
	struct stat st;

	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_still(fd)))
		return false;
	/* a link meant for an atomic replacement; links cannot be locked */
	if (fd < 0 && (errno != ELOOP || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode) ||
		       st.st_ctim.tv_sec + LINK_S > time(NULL)))
		return false;
	/* with the lock still held: or a writer could have come in between */
	return !remove || unlinkat(dir, name, 0) == 0;
}

void bid_temp_sweep(int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	bid_auto_dir DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	if (!entries) {
		bid_close(copy);
		return;
	}
	/* remove only files proved to be ours: our name, and no lock of a living writer */
	while ((entry = readdir(entries)))
		if (bid_temp_is_named(entry->d_name))
			bid_temp_is_abandoned(dir, entry->d_name, true);
}
