// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char mark[] = " (deleted)";

const char *bid_fd_path(int fd, char buf[static BID_FD_PATH_MAX])
{
	snprintf(buf, BID_FD_PATH_MAX, "/proc/self/fd/%d", fd);
	return buf;
}

int bid_fd_link(int fd, int dir, const char *name)
{
	char path[BID_FD_PATH_MAX];

	return linkat(AT_FDCWD, bid_fd_path(fd, path), dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

int bid_path_of(int fd, char *ret_path, size_t size)
{
	char link[BID_FD_PATH_MAX];
	ssize_t len = readlink(bid_fd_path(fd, link), ret_path, size);

	if (len < 0)
		return -errno;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	ret_path[len] = '\0';
	return 0;
}

bool bid_path_strip_deleted(char *path)
{
	size_t len = strlen(path);

	if (len < sizeof(mark) || strcmp(path + len - strlen(mark), mark) != 0)
		return false;
	path[len - strlen(mark)] = '\0';
	return true;
}
