// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/other_paths.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

int bid_replace_name(struct bid_store *store, int fd, int to, const char *name)
{
	char temp_name[BID_TEMP_NAME_MAX];
	bid_auto_fd int temp = -1;
	int r = bid_fd_link(fd, to, name);

	if (r != -EEXIST)
		return r;
	r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &temp);
	if (r == 0)
		r = bid_temp_name(temp_name);
	if (r == 0)
		r = bid_fd_link(fd, temp, temp_name);
	if (r < 0)
		return r;
	if (renameat(temp, temp_name, to, name) < 0)
		r = -errno;
	/* rename(2) leaves both names if they are one inode, and the first name if the directory was removed */
	unlinkat(temp, temp_name, 0);
	return r;
}

struct replacing {
	struct bid_store *store;
	const struct bid_artifact *artifact;
	const struct stat *only; /* the only file to replace; NULL for any */
	int fd; /* the new file */
	int names; /* replaced */
};

/* Replace the file @path, if it exists and is not of another build whose id begins alike. */
static int replace_file(struct replacing *replacing, const char *path)
{
	bid_auto_fd int parent = -1;
	const char *name;
	struct stat st;
	int r = bid_beneath_parent(replacing->store->root, path, O_RDONLY, &parent, &name);

	if (r == 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r;
	if (!S_ISREG(st.st_mode) || (replacing->only && !bid_same_inode(&st, replacing->only)) ||
	    bid_is_anothers_file(replacing->store, path, replacing->artifact))
		return 0;
	r = bid_replace_name(replacing->store, replacing->fd, parent, name);
	if (r == 0 && fsync(parent) < 0)
		r = -errno;
	replacing->names += r == 0;
	return r;
}

static int replace_in(void *user, const char *objdir)
{
	struct replacing *replacing = user;
	char path[BID_LAYOUT_FILE_MAX];

	return replace_file(replacing, bid_layout_file(objdir, replacing->artifact->kind, path));
}

int bid_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, const struct stat *only, int fd)
{
	struct replacing replacing = { .store = store, .artifact = artifact, .only = only, .fd = fd };
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	struct bid_id_dirs dirs = { 0 };
	int r = 0;

	while (r == 0 && bid_id_dirs_next(&dirs, store, &disk_id, artifact->kind))
		r = replace_in(&replacing, dirs.path);
	if (r == 0)
		r = bid_other_paths_each(store, &disk_id, replace_in, &replacing);
	if (r == 0 && path)
		r = replace_file(&replacing, path);
	return r < 0 ? r : replacing.names;
}
