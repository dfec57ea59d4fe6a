// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/objdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/perf_link.h"
#include "disk/store.h"

int bid_objdir_kinds(struct bid_store *store, const char *path)
{
	bid_auto_fd int dir = -1;
	struct stat st;
	int kinds = 0;

	if (bid_beneath_open(store->root, path, O_PATH | O_DIRECTORY, &dir) < 0)
		return 0;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (fstatat(dir, bid_kind_store_name((enum bid_kind)kind), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			kinds |= 1 << kind;
	return kinds;
}

int bid_objdir_remove(struct bid_store *store, const char *path, unsigned kinds)
{
	bid_auto_fd int dir = -1;
	unsigned left = 0;
	struct stat st;
	int r;

	r = bid_beneath_open(store->root, path, O_RDONLY | O_DIRECTORY, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		const char *name = bid_kind_store_name((enum bid_kind)kind);

		if (kinds & 1U << kind) {
			if (unlinkat(dir, name, 0) < 0 && errno != ENOENT && errno != EISDIR)
				return -errno;
		} else if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
			left |= 1U << kind;
		}
	}
	if (left == 1U << BID_KIND_PROBES && fstatat(dir, bid_kind_store_name(BID_KIND_PROBES), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_size == 0 && unlinkat(dir, bid_kind_store_name(BID_KIND_PROBES), 0) == 0)
		left = 0;
	if (left == 0)
		bid_beneath_prune(store->root, path);
	return (int)left;
}

void bid_objdir_remove_link(struct bid_store *store, const struct bid_id *disk_id, const char *path)
{
	if (bid_perf_link_remove(store, disk_id, path) == 0 && bid_objdir_kinds(store, path) != 0)
		bid_perf_link_point(store, disk_id, path);
}
