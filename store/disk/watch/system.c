// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/watch/system.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

bool bid_watch_is_told(int dir)
{
	static const unsigned long types[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, 0xca451a4e, /* bcachefs */
		0x2fc12fc1, /* ZFS */
		0x3153464a, /* JFS */
	};
	struct statfs st;

	if (fstatfs(dir, &st) < 0)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if ((unsigned long)st.f_type == types[i])
			return true;
	return false;
}

unsigned bid_watch_limit(unsigned max)
{
	enum { SHARE = 4, WATCHES_OF_AN_ID = 4 };
	bid_auto_file FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
	unsigned allowed;

	if (file && fscanf(file, "%u", &allowed) == 1 && allowed / SHARE / WATCHES_OF_AN_ID < max)
		return allowed / SHARE / WATCHES_OF_AN_ID;
	return max;
}
