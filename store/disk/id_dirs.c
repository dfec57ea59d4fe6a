// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/id_dirs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

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
} known_dirs[] = {
	{ BID_STORE_UNNAMED, ~0U },
	{ "[kernel.kallsyms]", 1U << BID_KIND_NONE | 1U << BID_KIND_KALLSYMS | 1U << BID_KIND_PROBES },
	{ "[vdso]", 1U << BID_KIND_NONE | 1U << BID_KIND_VDSO | 1U << BID_KIND_PROBES },
};

_Static_assert(sizeof(known_dirs) / sizeof(known_dirs[0]) == BID_ID_DIRS_KNOWN_MAX, "each has its number");

const char *bid_id_dirs_known(unsigned number)
{
	return known_dirs[number].dir;
}

bool bid_id_dirs_next(struct bid_id_dirs *dirs, struct bid_store *store, const struct bid_id *id, enum bid_kind kind)
{
	if (!dirs->looked) {
		int r = bid_perf_link_target(store, id, dirs->target, sizeof(dirs->target));

		dirs->linked = r == 0 || (r == -EINVAL && is_file_there(store, id, dirs->target, sizeof(dirs->target)));
	}
	dirs->looked = true;
	if (dirs->step++ == 0) {
		dirs->path = dirs->target;
		if (dirs->linked)
			return true;
		dirs->step++;
	}
	for (; dirs->step - 2 < BID_ID_DIRS_KNOWN_MAX; dirs->step++) {
		if (!(known_dirs[dirs->step - 2].kinds & 1U << kind))
			continue;
		dirs->path = bid_layout_under(known_dirs[dirs->step - 2].dir, id, dirs->known);
		return true;
	}
	return false;
}
