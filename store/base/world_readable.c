// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/world_readable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/path.h"

static const char list[] = "system.posix_acl_access";

enum {
	PASS_ALL = S_IXUSR | S_IXGRP | S_IXOTH,
	NOT_OWN = S_IRWXG | S_IRWXO,
	WRITE_NOT_OWN = S_IWGRP | S_IWOTH,
	COPIED = 0555,
};

/* A list may refuse anybody, and the bits of the group are its mask. A file counts as having one if that is unknown. */
static bool has_list(const char *path)
{
	ssize_t size = getxattr(path, list, NULL, 0);

	return size > 0 || (size < 0 && errno != ENODATA && errno != EOPNOTSUPP);
}

static bool fd_has_list(int fd)
{
	char path[BID_FD_PATH_MAX];
	ssize_t size = fgetxattr(fd, list, NULL, 0);

	/* getxattr(2) of an O_PATH descriptor */
	if (size < 0 && errno == EBADF)
		return has_list(bid_fd_path(fd, path));
	return size > 0 || (size < 0 && errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_fstat(int fd, struct stat *ret_st)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!bid_mode_is_world_readable(st.st_mode) || fd_has_list(fd)) {
		uid_t own = geteuid();

		st.st_mode &= ~(mode_t)NOT_OWN;
		if (own != 0 && st.st_uid != own) {
			st.st_uid = own;
			st.st_mode |= S_IRUSR;
		}
	}
	*ret_st = st;
	return 0;
}

bool bid_dir_is_world_searchable(int fd, const struct stat *st)
{
	return (st->st_mode & PASS_ALL) == PASS_ALL && !fd_has_list(fd);
}

static bool all_pass_by_path(const char *directory, const uid_t *maker)
{
	struct stat st;

	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode) || (st.st_mode & PASS_ALL) != PASS_ALL || has_list(directory))
		return false;
	if (!maker)
		return true;
	/* in a sticky directory such as /tmp, other users can only make directories that they own */
	return (st.st_uid == 0 || st.st_uid == *maker) && (!(st.st_mode & WRITE_NOT_OWN) || st.st_mode & S_ISVTX);
}

/* bid_path_is_world_searchable(). With @maker, nobody but root and that user may have made any of the directories. */
static bool all_get_to(const char *path, const char *beside, const uid_t *maker)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "%s", path);
	for (char *slash = strrchr(directory, '/'); slash > directory; slash = strrchr(directory, '/')) {
		size_t len = (size_t)(slash - directory);

		*slash = '\0';
		if (beside && strncmp(beside, directory, len) == 0 && (beside[len] == '/' || !beside[len]))
			return true;
		if (!all_pass_by_path(directory, maker))
			return false;
	}
	return beside || all_pass_by_path("/", maker);
}

bool bid_path_is_world_searchable(const char *path, const char *beside)
{
	return all_get_to(path, beside, NULL);
}

static bool is_same_mount(int fd, const char *directory)
{
	struct statx file, there;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &file) == 0 && file.stx_mask & STATX_MNT_ID &&
	       statx(AT_FDCWD, directory, AT_STATX_DONT_SYNC, STATX_MNT_ID, &there) == 0 && there.stx_mask & STATX_MNT_ID &&
	       file.stx_mnt_id == there.stx_mnt_id;
}

bool bid_is_world_readable(int fd, const struct stat *st, const char *beside)
{
	char path[PATH_MAX], directory[PATH_MAX];
	struct stat there;

	if (!bid_mode_is_world_readable(st->st_mode) || fd_has_list(fd) || bid_path_of(fd, path, sizeof(path)) < 0 ||
	    path[0] != '/')
		return false;
	if (st->st_nlink > 0)
		return lstat(path, &there) == 0 && there.st_ino == st->st_ino && there.st_dev == st->st_dev &&
		       bid_path_is_world_searchable(path, beside);
	snprintf(directory, sizeof(directory), "%.*s/", (int)(strrchr(path, '/') - path), path);
	return is_same_mount(fd, directory) && all_get_to(path, beside, &st->st_uid);
}

int bid_set_readers(int fd, mode_t mode, uid_t owner)
{
	bool all = bid_mode_is_world_readable(mode);

	if (!all && owner != geteuid())
		(void)!fchown(fd, owner, (gid_t)-1);
	return fchmod(fd, all ? mode & COPIED : S_IRUSR) < 0 ? -errno : 0;
}
