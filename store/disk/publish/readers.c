// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "base/path.h"
#include "disk/store.h"

enum {
	NOT_OWN = S_IRWXG | S_IRWXO,
	READ_ALL = S_IRUSR | S_IRGRP | S_IROTH,
	COPIED = 0555,
};

int bid_readers_path(int fd, const struct stat *st, char ret_path[static PATH_MAX])
{
	int r = bid_path_of(fd, ret_path, PATH_MAX);

	if (r == 0 && ret_path[0] != '/')
		r = -ENAMETOOLONG;
	if (r == 0 && st->st_nlink == 0)
		bid_path_strip_deleted(ret_path);
	return r;
}

static bool is_same_mount(int fd, const char *directory)
{
	struct statx file, there;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &file) == 0 && file.stx_mask & STATX_MNT_ID &&
	       statx(AT_FDCWD, directory, AT_STATX_DONT_SYNC, STATX_MNT_ID, &there) == 0 && there.stx_mask & STATX_MNT_ID &&
	       file.stx_mnt_id == there.stx_mnt_id;
}

/* May nobody but root and the user @uid have made any of the directories that @path is in? */
static bool is_of_its_owner(const char *path, uid_t uid)
{
	char directory[PATH_MAX];
	struct stat st;

	snprintf(directory, sizeof(directory), "%s", path);
	for (char *slash = strrchr(directory, '/'); slash > directory; slash = strrchr(directory, '/')) {
		*slash = '\0';
		if (lstat(directory, &st) < 0 || (st.st_uid != 0 && st.st_uid != uid))
			return false;
		/* others may make directories in one of those that are as /tmp is, but they are theirs */
		if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
			return false;
	}
	return true;
}

/* Does @path lead to the file open at @fd, or if that has no name any more, into the file system that it was in? */
static bool leads_to(const char *path, int fd, const struct stat *st)
{
	char directory[PATH_MAX];
	struct stat there;

	if (st->st_nlink > 0)
		return lstat(path, &there) == 0 && there.st_ino == st->st_ino && there.st_dev == st->st_dev;
	snprintf(directory, sizeof(directory), "%.*s/", (int)(strrchr(path, '/') - path), path);
	/* the directories may be others than when it had its name */
	return is_same_mount(fd, directory) && is_of_its_owner(path, st->st_uid);
}

/* How long is the path of the last directory that both are in, or are? */
static size_t common(const char *path, const char *other)
{
	size_t len = 0;

	for (size_t i = 0;; i++) {
		bool ends = path[i] == '\0' || other[i] == '\0';

		if ((path[i] == '/' || !path[i]) && (other[i] == '/' || !other[i]))
			len = i;
		if (ends || path[i] != other[i])
			return len;
	}
}

/* Does who adds to the store alone get to it? */
static bool is_private(const char *store)
{
	char directory[PATH_MAX];
	struct stat st;

	snprintf(directory, sizeof(directory), "%s", store);
	do {
		if (lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & (S_IXGRP | S_IXOTH)) &&
		    st.st_uid == geteuid())
			return true;
		*strrchr(directory, '/') = '\0';
	} while (*directory);
	return false;
}

/* The way to @path, of which nothing is known with NULL. */
static struct bid_way way_of(struct bid_store *store, const char *path)
{
	struct bid_way way = BID_WAY_OPEN;
	char ours[PATH_MAX];
	struct stat root;

	/* in most cases everybody gets there, whoever gets to the store */
	if (path)
		bid_way_along(&way, path, 0);
	else
		bid_way_pass(&way, NULL, false);
	if (way.open || fstat(bid_store_root(store), &root) < 0 || bid_readers_path(bid_store_root(store), &root, ours) < 0)
		return way;
	if (is_private(ours)) {
		way = BID_WAY_OPEN;
	} else if (path) {
		way = BID_WAY_OPEN;
		bid_way_along(&way, path, common(path, ours));
	}
	return way;
}

struct bid_readers bid_readers_by_mode(int fd, const struct stat *st)
{
	struct stat own = *st;

	bid_fstat(fd, &own);
	return (struct bid_readers){ .mode = own.st_mode & COPIED, .uid = st->st_uid, .gid = st->st_gid };
}

/* Of @readers those who come by @way. */
static struct bid_readers narrow(struct bid_readers readers, const struct bid_way *way)
{
	struct stat st = { .st_mode = readers.mode, .st_uid = readers.uid, .st_gid = readers.gid };

	if (way->open)
		return readers;
	bid_way_narrow(way, &st);
	readers.hidden = true;
	readers.mode = st.st_mode & READ_ALL;
	readers.uid = st.st_uid;
	readers.gid = st.st_gid;
	return readers;
}

struct bid_readers bid_readers_of(struct bid_store *store, int fd, const struct stat *st)
{
	char path[PATH_MAX];
	bool told = bid_readers_path(fd, st, path) == 0 && leads_to(path, fd, st);
	struct bid_readers readers = bid_readers_by_mode(fd, st);
	struct bid_way way = way_of(store, told ? path : NULL);

	readers.untold = !told;
	return narrow(readers, &way);
}

int bid_readers_set(const struct bid_readers *readers, int fd)
{
	mode_t mode = readers->mode;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((mode & READ_ALL) != READ_ALL) {
		/* who copies a file has read it */
		if (st.st_uid != readers->uid && (readers->uid == (uid_t)-1 || fchown(fd, readers->uid, (gid_t)-1) < 0))
			mode |= S_IRUSR;
		if (st.st_gid != readers->gid && fchown(fd, (uid_t)-1, readers->gid) < 0)
			mode &= (mode_t)~NOT_OWN;
	}
	return fchmod(fd, mode) < 0 ? -errno : 0;
}
