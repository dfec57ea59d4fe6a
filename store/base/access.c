// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/access.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/path.h"

static const char list[] = "system.posix_acl_access";

enum {
	PASS_ALL = S_IXUSR | S_IXGRP | S_IXOTH,
	PASS_GROUP = S_IXUSR | S_IXGRP,
	NOT_OWN = S_IRWXG | S_IRWXO,
	READ_NOT_OWN = S_IRGRP | S_IROTH, /* whichever group one is of */
	RUN_NOT_OWN = S_IXGRP | S_IXOTH,
};

bool bid_fd_is_listed(int fd)
{
	char path[BID_FD_PATH_MAX];
	ssize_t size = fgetxattr(fd, list, NULL, 0);

	/* of an O_PATH descriptor */
	if (size < 0 && errno == EBADF)
		return bid_is_listed(bid_fd_path(fd, path));
	return size > 0 || (size < 0 && errno != ENODATA && errno != EOPNOTSUPP);
}

int bid_fstat(int fd, struct stat *ret_st)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_mode & NOT_OWN && bid_fd_is_listed(fd))
		st.st_mode &= ~(mode_t)NOT_OWN;
	*ret_st = st;
	return 0;
}

bool bid_is_listed(const char *path)
{
	ssize_t size = getxattr(path, list, NULL, 0);

	return size > 0 || (size < 0 && errno != ENODATA && errno != EOPNOTSUPP);
}

bool bid_way_is_open(const struct stat *st, bool listed)
{
	/* a list may refuse anybody */
	return (st->st_mode & PASS_ALL) == PASS_ALL && !listed;
}

void bid_way_pass(struct bid_way *way, const struct stat *st, bool listed)
{
	static const struct stat closed = { .st_uid = (uid_t)-1 };
	bool grouped;

	st = st ? st : &closed;
	if (bid_way_is_open(st, listed))
		return;
	grouped = (st->st_mode & PASS_GROUP) == PASS_GROUP && !listed;
	way->grouped = grouped && (way->open || (way->grouped && way->gid == st->st_gid));
	way->gid = st->st_gid;
	way->uid = way->open || way->uid == st->st_uid ? st->st_uid : (uid_t)-1;
	way->open = false;
}

static void pass(struct bid_way *way, const char *directory)
{
	struct stat st;

	if (lstat(directory, &st) == 0 && S_ISDIR(st.st_mode))
		bid_way_pass(way, &st, bid_is_listed(directory));
	else
		bid_way_pass(way, NULL, false);
}

void bid_way_along(struct bid_way *way, const char *path, size_t len)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "%s", path);
	for (char *slash = strrchr(directory, '/'); slash > directory + len; slash = strrchr(directory, '/')) {
		*slash = '\0';
		pass(way, directory);
	}
	if (len == 0)
		pass(way, "/");
}

bool bid_all_get_to(const char *path)
{
	struct bid_way way = BID_WAY_OPEN;

	bid_way_along(&way, path, 0);
	return way.open;
}

/* Has the group of @way, of a file with @st, all these bits? */
static bool has_group(const struct bid_way *way, const struct stat *st, mode_t not_own)
{
	return (st->st_mode & not_own) == not_own || (st->st_mode & not_own & S_IRWXG && way->gid == st->st_gid);
}

void bid_way_narrow(const struct bid_way *way, struct stat *st)
{
	mode_t mode = st->st_mode & ~(mode_t)NOT_OWN;

	if (way->open)
		return;
	if (way->uid != st->st_uid)
		st->st_uid = (uid_t)-1; /* he may not get there himself */
	if (way->grouped && has_group(way, st, READ_NOT_OWN)) {
		mode |= S_IRGRP | (has_group(way, st, RUN_NOT_OWN) ? S_IXGRP : 0);
		st->st_gid = way->gid;
	}
	st->st_mode = mode;
}

void bid_way_narrow_opened(const struct bid_way *way, struct stat *st)
{
	mode_t mode = st->st_mode;
	uid_t own;

	if (way->open)
		return;
	bid_way_narrow(way, st);
	own = geteuid();
	if (st->st_uid == (uid_t)-1 || (own != 0 && st->st_uid != own)) {
		st->st_uid = own;
		st->st_mode |= S_IRUSR | (mode & (S_IXUSR | RUN_NOT_OWN) ? S_IXUSR : 0);
	}
}
