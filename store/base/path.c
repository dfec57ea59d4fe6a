// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char mark[] = " (deleted)";

int bid_path_of(int fd, char *ret_path, size_t size)
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, ret_path, size);
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
