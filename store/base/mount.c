// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/mount.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

bool bid_is_mount(const char *path)
{
	char status[PATH_MAX + sizeof("/.bidfs/status")];
	struct statfs st;

	snprintf(status, sizeof(status), "%s/.bidfs/status", path);
	return statfs(path, &st) == 0 && st.f_type == FUSE_SUPER_MAGIC && access(status, F_OK) == 0;
}
