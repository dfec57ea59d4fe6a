// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/naming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "disk/check.h"
#include "disk/entries.h"
#include "disk/layout.h"
#include "disk/links.h"
#include "disk/publish/join.h"
#include "disk/root.h"
#include "disk/store.h"

bool bid_is_nameless(const char *place)
{
	return strncmp(place, BID_STORE_NAMELESS "/", strlen(BID_STORE_NAMELESS "/")) == 0;
}

/* Is what lies at @place as @kind there, and right? */
static bool is_right(struct bid_store *store, const char *place, const struct bid_id *filed, enum bid_kind kind)
{
	struct bid_request request = { .id = *filed, .kind = kind };
	struct bid_file file = BID_FILE_NONE;
	char path[PATH_MAX + 16];
	int r;

	snprintf(path, sizeof(path), "%s/%s", place, bid_kind_store_name(kind));
	r = bid_check_open(store, path, &request, &file);
	bid_file_release(&file);
	return r == 0;
}

/* Is there at @path by what perf knows a build? */
static bool is_build(struct bid_store *store, const char *path, const struct bid_id *filed)
{
	return is_right(store, path, filed, BID_KIND_ELF) || is_right(store, path, filed, BID_KIND_KALLSYMS) ||
	       is_right(store, path, filed, BID_KIND_VDSO);
}

/* Let @path have what the nameless have, that is right. Returns as bid_join(). */
static int join(struct bid_store *store, const struct bid_id *filed, const char *nameless, const char *path)
{
	struct bid_place_of entry = { .path = nameless, .id = *filed };
	bid_auto_fd int dir = -1;
	int r = bid_root_open(bid_store_root(store), nameless, O_RDONLY | O_DIRECTORY, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	entry.fd = dir;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (!bid_kind_is_elf((enum bid_kind)kind) || is_right(store, nameless, filed, (enum bid_kind)kind))
			entry.kinds |= 1U << kind;
	return bid_join(store, &entry, path, false);
}

/* Take from the nameless what is at @path by now. What came there since stays, and is found. */
static void take_away(struct bid_store *store, const char *nameless, const char *path)
{
	char there[PATH_MAX + 16], here[PATH_MAX + 16];
	struct stat st, other;
	unsigned kinds = 0;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		const char *name = bid_kind_store_name((enum bid_kind)kind);

		snprintf(there, sizeof(there), "%s/%s", nameless, name);
		snprintf(here, sizeof(here), "%s/%s", path, name);
		if (bid_root_stat(bid_store_root(store), there, &st) == 0 &&
		    bid_root_stat(bid_store_root(store), here, &other) == 0 && st.st_ino == other.st_ino &&
		    st.st_dev == other.st_dev)
			kinds |= 1U << kind;
	}
	bid_entry_take(store, nameless, kinds);
}

int bid_name_nameless(struct bid_store *store, const struct bid_id *id, const char *path, bool durable)
{
	struct bid_id filed = bid_layout_filed(id);
	char nameless[BID_LAYOUT_MAX];
	int r;

	if (!is_build(store, path, &filed))
		return -EBADMSG;
	bid_layout_under(BID_STORE_NAMELESS, &filed, nameless);
	r = join(store, &filed, nameless, path);
	if (r == 0)
		r = bid_link_point(store, &filed, path);
	/* what came before that, of somebody who was led there */
	if (r == 0)
		r = join(store, &filed, nameless, path);
	if (r == 0 && durable)
		r = bid_store_sync(store);
	if (r == 0)
		take_away(store, nameless, path);
	return r;
}
