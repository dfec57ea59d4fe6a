// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

bool bid_entry_name(const char *name, struct bid_id *ret_id)
{
	return bid_id_parse_str(name, ret_id) == 0;
}

enum bid_kind bid_entry_kind(const char *name)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (strcmp(name, bid_kind_store_name((enum bid_kind)kind)) == 0)
			return (enum bid_kind)kind;
	return BID_KIND_NONE;
}

/* Open the parent directory of @path. Copies @path into @copy and sets @ret_name to its last component. */
static int open_parent(struct bid_store *store, const char *path, char copy[static PATH_MAX], int *ret_dir, const char **ret_name)
{
	char *slash;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(copy, path, strlen(path) + 1);
	slash = strrchr(copy, '/');
	*ret_name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	return bid_beneath_open(bid_store_root(store), slash ? copy : "", O_PATH | O_DIRECTORY, ret_dir);
}

static int unlink_below(struct bid_store *store, const char *path, int flags)
{
	bid_auto_fd int dir = -1;
	char copy[PATH_MAX];
	const char *name;
	int r = open_parent(store, path, copy, &dir, &name);

	if (r < 0)
		return r;
	return unlinkat(dir, name, flags) < 0 ? -errno : 0;
}

int bid_entry_unlink(struct bid_store *store, const char *path)
{
	return unlink_below(store, path, 0);
}

int bid_entry_rmdir(struct bid_store *store, const char *path)
{
	return unlink_below(store, path, AT_REMOVEDIR);
}

void bid_entry_prune(struct bid_store *store, const char *path)
{
	char rest[PATH_MAX], copy[PATH_MAX];

	snprintf(rest, sizeof(rest), "%s", path);
	while (*rest) {
		bid_auto_fd int dir = -1;
		const char *name;

		if (open_parent(store, rest, copy, &dir, &name) < 0 || unlinkat(dir, name, AT_REMOVEDIR) < 0)
			return;
		*(strrchr(rest, '/') ? strrchr(rest, '/') : rest) = '\0';
	}
}

/* perf's old layout: the entry is the file. */
static int take_file(struct bid_store *store, const char *path)
{
	char parent[PATH_MAX];
	int r = bid_entry_unlink(store, path);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(parent, sizeof(parent), "%s", path);
	*(strrchr(parent, '/') ? strrchr(parent, '/') : parent) = '\0';
	bid_entry_prune(store, parent);
	return 0;
}

int bid_entry_take(struct bid_store *store, const char *path, unsigned kinds)
{
	bid_auto_fd int dir = -1;
	unsigned left = 0;
	struct stat st;
	int r;

	r = bid_beneath_open(bid_store_root(store), path, O_RDONLY | O_DIRECTORY, &dir);
	if (r == -ENOENT)
		return bid_beneath_stat(bid_store_root(store), path, &st) == 0 && S_ISREG(st.st_mode) ? take_file(store, path) : 0;
	if (r < 0)
		return r;
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
		bid_entry_prune(store, path);
	return (int)left;
}
