// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/mount.h"

#include <errno.h>
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

int bid_mount_devices(dev_t **ret_devices, size_t *ret_n)
{
	bid_auto_file FILE *table = fopen("/proc/self/mountinfo", "re");
	bid_auto_free dev_t *devices = NULL;
	bid_auto_free char *line = NULL;
	size_t size = 0, n = 0;

	if (!table && errno != ENOENT)
		return -errno;
	while (table && getline(&line, &size, table) > 0) {
		unsigned major, minor;
		dev_t *grown;

		if (!strstr(line, " - fuse.bidfs ") || sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2)
			continue;
		grown = reallocarray(devices, n + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		devices = grown;
		devices[n++] = makedev(major, minor);
	}
	*ret_devices = bid_steal(devices);
	*ret_n = n;
	return 0;
}

bool bid_is_in_mount(int fd, const struct stat *st)
{
	bid_auto_free dev_t *devices = NULL;
	struct statfs fs;
	size_t n = 0;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC || bid_mount_devices(&devices, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (devices[i] == st->st_dev)
			return true;
	return false;
}
