// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/layout.h"

enum { NAMED_S = 2 }; /* seconds between the creation of a file and its names */

int bid_store_sync(struct bid_store *store)
{
	long long now = time(NULL);

	if (syncfs(store->root) < 0)
		return -errno;
	atomic_store(&store->synced_s, now - NAMED_S);
	return 0;
}

bool bid_store_is_fresh(struct bid_store *store, const struct stat *st)
{
	long long changed = st->st_ctim.tv_sec, now = time(NULL), synced = atomic_load(&store->synced_s);
	struct stat root;

	/* a clock set back proves no order */
	return (store->dirty_for_s == 0 || changed >= now - store->dirty_for_s) && (changed >= synced || now < synced) &&
	       (fstat(store->root, &root) < 0 || root.st_dev == st->st_dev);
}

int bid_store_sync_file(struct bid_store *store, const struct bid_file *file)
{
	return bid_store_is_fresh(store, &file->st) ? bid_store_sync(store) : 0;
}

const char *bid_store_path(const struct bid_store *store)
{
	return store->path;
}

bool bid_store_writable(const struct bid_store *store)
{
	return store->flags & BID_STORE_WRITE;
}

int bid_store_statfs(struct bid_store *store, struct statvfs *ret_statvfs)
{
	return fstatvfs(store->root, ret_statvfs) < 0 ? -errno : 0;
}

int bid_store_open_fanout(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, bool make, int *ret_dir,
			  char ret_name[static BID_LAYOUT_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	char path[BID_LAYOUT_MAX], suffix[BID_LAYOUT_SUFFIX_MAX];
	const char *name;
	int r;

	bid_layout_fanout_path(folder, &disk_id, bid_layout_suffix(artifact, suffix), path);
	r = bid_beneath_parent(store->root, path, make ? O_CREAT : O_PATH, ret_dir, &name);
	if (r == 0)
		memcpy(ret_name, name, strlen(name) + 1);
	return r;
}

int bid_store_each_fanout(struct bid_store *store, const char *base, int (*fn)(void *user, DIR *dir, const char *first), void *user)
{
	bid_auto_fd int top = -1;
	int r = bid_beneath_open(store->root, base, O_PATH | O_DIRECTORY, &top);

	for (unsigned byte = 0; r == 0 && byte <= UINT8_MAX; byte++) {
		bid_auto_dir DIR *dir = NULL;
		char first[4];

		snprintf(first, sizeof(first), "%02x", byte & 0xff);
		r = bid_beneath_opendir(top, first, &dir);
		if (r == 0)
			r = fn(user, dir, first);
		else if (r == -ENOENT)
			r = 0;
	}
	return top < 0 && r == -ENOENT ? 0 : r;
}

int bid_store_open_linked(struct bid_store *store, const char *path, int flags, int *ret_fd)
{
	const char *const *dirs = bid_store_is_lower(store) ? store->upper->links : NULL;
	int r = bid_beneath_open_linked(store->root, path, flags, dirs, ret_fd);

	if (r != -EXDEV)
		return r;
	if (bid_store_is_lower(store) && !atomic_exchange(&store->left, true))
		bid_warning("links lead out of the lower store '%s', such as '%s': bidfs does not follow them - name the directory "
			    "that they lead to by 'links=DIR'",
			    store->path, path);
	return -ENOENT;
}

int bid_store_open_file(struct bid_store *store, const char *path, bool linked, struct bid_file *file)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	bid_auto_fd int fd = -1;
	struct stat st;
	int r;

	r = linked ? bid_store_open_linked(store, path, flags, &fd) : bid_beneath_open(store->root, path, flags, &fd);
	if (r == 0)
		r = bid_fstat(fd, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	file->fd = bid_steal_fd(&fd);
	file->st = st;
	return 0;
}

void bid_file_release(struct bid_file *file)
{
	bid_close(bid_steal_fd(&file->fd));
}
