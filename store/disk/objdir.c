// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/objdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/perf_link.h"
#include "disk/store.h"

/* perf's old layout: set @ret_path to the path of the link of @id, if a file is there. */
static bool is_file_there(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	char link[BID_LAYOUT_MAX];
	struct stat st;

	snprintf(ret_path, size, "%s", bid_layout_link(id, link));
	return bid_beneath_stat(store->root, link, &st) == 0 && S_ISREG(st.st_mode);
}

/* well-known directories of perf and bidfs, each with the kind found only there; BID_KIND_NONE for any kind */
static const struct {
	const char *dir;
	unsigned kinds;
} known_objdirs[] = {
	{ BID_STORE_UNNAMED, ~0U },
	{ "[kernel.kallsyms]", 1U << BID_KIND_NONE | 1U << BID_KIND_KALLSYMS | 1U << BID_KIND_PROBES },
	{ "[vdso]", 1U << BID_KIND_NONE | 1U << BID_KIND_VDSO | 1U << BID_KIND_PROBES },
};

_Static_assert(sizeof(known_objdirs) / sizeof(known_objdirs[0]) == BID_OBJDIR_KNOWN_MAX, "each has its number");

const char *bid_objdir_known(unsigned number)
{
	return known_objdirs[number].dir;
}

bool bid_objdir_next(struct bid_objdir_iter *objdir, struct bid_store *store, const struct bid_id *id, enum bid_kind kind)
{
	if (!objdir->looked) {
		int r = bid_perf_link_target(store, id, objdir->target, sizeof(objdir->target));

		objdir->linked = r == 0 || (r == -EINVAL && is_file_there(store, id, objdir->target, sizeof(objdir->target)));
	}
	objdir->looked = true;
	if (objdir->step++ == 0) {
		objdir->path = objdir->target;
		if (objdir->linked)
			return true;
		objdir->step++;
	}
	for (; objdir->step - 2 < BID_OBJDIR_KNOWN_MAX; objdir->step++) {
		if (!(known_objdirs[objdir->step - 2].kinds & 1U << kind))
			continue;
		objdir->path = bid_layout_under(known_objdirs[objdir->step - 2].dir, id, objdir->known);
		return true;
	}
	return false;
}

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

bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	return !(foreign->is_download && bid_store_requires_signed(store)) &&
	       bid_store_open_linked(store, foreign->path, O_PATH, &fd) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0;
}

int bid_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id)
{
	struct bid_foreign foreign = { 0 };
	int kinds = 0;

	while (store->upper && bid_foreign_next(&foreign, disk_id, BID_KIND_NONE))
		kinds |= bid_foreign_is_there(store, &foreign) ? 1 << foreign.kind : 0;
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

void bid_objdir_drop_link(struct bid_store *store, const struct bid_id *disk_id, const char *path)
{
	if (bid_perf_link_drop(store, disk_id, path) == 0 && bid_objdir_kinds(store, path) != 0)
		bid_perf_link_point(store, disk_id, path);
}
