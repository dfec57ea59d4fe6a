// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/scan/way.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/access.h"
#include "base/cleanup.h"

/* What is hashed of a directory that does not let everybody through. */
struct gate {
	uint64_t above, mode, uid, gid;
};

uint64_t bid_way_through(uint64_t above, int fd, const struct stat *st)
{
	struct gate gate = { .above = above, .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid };

	return bid_way_is_open(st, bid_fd_is_listed(fd)) ? above : XXH3_64bits(&gate, sizeof(gate));
}

uint64_t bid_way_to(const char *path)
{
	char directory[PATH_MAX];
	uint64_t way = 0;

	snprintf(directory, sizeof(directory), "%s", path);
	for (char *slash = directory;; slash = strchr(slash + 1, '/')) {
		bid_auto_fd int fd = -1;
		struct stat st = { .st_uid = (uid_t)-1 };

		if (slash)
			*slash = '\0';
		/* what cannot be looked at lets nobody through */
		fd = open(*directory ? directory : "/", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			fstat(fd, &st);
		way = bid_way_through(way, fd, &st);
		if (!slash)
			return way;
		*slash = '/';
	}
}
