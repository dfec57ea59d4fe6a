// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/is_mount.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

bool bid_is_mount(const char *path)
{
	char status[PATH_MAX + sizeof("/.bidfs/status")];
	struct statfs st;

	snprintf(status, sizeof(status), "%s/.bidfs/status", path);
	return statfs(path, &st) == 0 && st.f_type == FUSE_SUPER_MAGIC && access(status, F_OK) == 0;
}

bool bid_is_in_mount(int fd, const struct stat *st)
{
	bid_auto_file FILE *table = NULL;
	bid_auto_free char *line = NULL;
	unsigned major, minor;
	struct statfs fs;
	size_t size = 0;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC)
		return false;
	table = fopen("/proc/self/mountinfo", "re");
	while (table && getline(&line, &size, table) > 0)
		if (strstr(line, " - fuse.bidfs ") && sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 &&
		    makedev(major, minor) == st->st_dev)
			return true;
	return false;
}
