// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/other_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/objdir.h"
#include "disk/perf_link.h"
#include "disk/store.h"

/* ".bidfs/name/xx/rest" */
static const char *notes_of(const struct bid_id *id, char buf[static BID_LAYOUT_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(id);

	return bid_layout_fanout_path(BID_LAYOUT_NAMES, &disk_id, "", buf);
}

/* Record @path as a symbolic link, because symlink(2) is atomic. Nothing follows the link. Returns 1 if it is new. */
static int note_path(int dir, const char *path)
{
	char name[17];

	snprintf(name, sizeof(name), "%016llx", (unsigned long long)XXH3_64bits(path, strlen(path)));
	if (symlinkat(path, dir, name) < 0)
		return errno == EEXIST ? 0 : -errno;
	return 1;
}

int bid_other_paths_note(struct bid_store *store, const struct bid_id *id, const char *path)
{
	char notes[BID_LAYOUT_MAX], where[PATH_MAX];
	bid_auto_fd int dir = -1;
	int r = bid_beneath_mkdirs(store->root, notes_of(id, notes), NULL, &dir);

	if (r == 0)
		r = note_path(dir, path);
	if (r > 0 && bid_perf_link_find(store, id, where, sizeof(where)) == 0)
		r = note_path(dir, where);
	return r < 0 ? r : 0;
}

/* Can @path be a name of @id? Names that this program records can; damage may turn a record into anything. */
static bool is_name_of(const struct bid_id *id, const char *path)
{
	struct bid_id disk_id = bid_layout_disk_id(id);

	return strchr(path, '/') && bid_path_is_plain(path) && bid_layout_is_named_after(path, &disk_id);
}

static int each_listed(struct bid_store *store, const struct bid_id *id,
		       int (*fn)(void *user, int dir, const char *name, const char *path, bool exists), void *user)
{
	char notes[BID_LAYOUT_MAX], path[PATH_MAX];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(store->root, notes_of(id, notes), &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0)
		if (bid_beneath_readlink(dirfd(dir), entry->d_name, path) == 0)
			r = fn(user, dirfd(dir), entry->d_name, path, is_name_of(id, path) && bid_objdir_kinds(store, path) != 0);
	return r != 0 ? r : -errno;
}

struct each_path {
	int (*fn)(void *user, const char *path);
	void *user;
};

static int pass_existing(void *user, int dir, const char *name, const char *path, bool exists)
{
	const struct each_path *each = user;

	return exists ? each->fn(each->user, path) : 0;
}

int bid_other_paths_each(struct bid_store *store, const struct bid_id *id, int (*fn)(void *user, const char *path), void *user)
{
	return each_listed(store, id, pass_existing, &(struct each_path){ .fn = fn, .user = user });
}

static int unlist_path(void *user, int dir, const char *name, const char *path, bool exists)
{
	const bool *all = user;

	if (*all || !exists)
		unlinkat(dir, name, 0);
	return 0;
}

int bid_other_paths_forget(struct bid_store *store, const struct bid_id *id, bool all)
{
	char notes[BID_LAYOUT_MAX];
	int r = each_listed(store, id, unlist_path, &all);

	/* only an empty one goes */
	bid_beneath_rmdir(store->root, notes_of(id, notes));
	return r;
}
