// SPDX-License-Identifier: LGPL-2.1-or-later
/* perf's other changes to its cache: directories, links, removal, and probe definitions written in place. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/perf_write.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/perf_link.h"
#include "disk/publish/temp.h"
#include "disk/remove.h"
#include "disk/store.h"

int bid_store_mkdir(struct bid_store *store, const char *path)
{
	bid_auto_fd int dir = -1;
	const char *name;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_beneath_parent(store->root, path, O_CREAT, &dir, &name);
	return r == 0 && mkdirat(dir, name, 0755) < 0 ? -errno : r;
}

int bid_store_rmdir(struct bid_store *store, const char *path)
{
	return bid_store_writable(store) ? bid_beneath_rmdir(store->root, path) : -EROFS;
}

/* Is @target the directory "<path>/<id>" of @disk_id? */
static bool is_objdir_of(const char *target, const struct bid_id *disk_id)
{
	return strchr(target, '/') && bid_layout_is_named_after(target, disk_id);
}

int bid_store_symlink(struct bid_store *store, const struct bid_id *id, const char *text)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	const char *target = bid_layout_target(text);
	char there[PATH_MAX];
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	if (!target || strlen(target) >= PATH_MAX || !is_objdir_of(target, &disk_id))
		return -EINVAL;
	if (bid_perf_link_look(store, &disk_id, there) != BID_PERF_LINK_NONE)
		return -EEXIST;
	r = bid_perf_link_make(store, &disk_id, target, NULL);
	return r < 0 ? r : 0;
}

int bid_store_unlink_link(struct bid_store *store, const struct bid_id *id)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	int result = -ENOENT;

	if (!bid_store_writable(store))
		return -EROFS;
	while (bid_alias_next(&alias, id, &disk_id)) {
		char target[PATH_MAX], link[BID_LAYOUT_MAX];
		enum bid_perf_link_state state = bid_perf_link_look(store, &disk_id, target);
		int r;

		if (state == BID_PERF_LINK_NONE)
			continue;
		r = state == BID_PERF_LINK_ODD ? -EPERM : bid_beneath_unlink(store->root, bid_layout_link(&disk_id, link));
		if (r < 0 && r != -ENOENT)
			return r;
		result = 0;
	}
	return result;
}

int bid_store_unlink(struct bid_store *store, const struct bid_artifact *artifact, const char *path)
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	char file[BID_LAYOUT_FILE_MAX];
	int r, kinds;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_beneath_unlink(store->root, bid_layout_file(path, artifact->kind, file));
	if (r < 0)
		return r;
	kinds = bid_store_kinds(store, &artifact->id);
	if (kinds >= 0 && !(kinds & 1 << artifact->kind))
		bid_remove_records(store, &disk_id, 1U << artifact->kind, kinds == 0);
	return 0;
}

bool bid_store_has_alone(struct bid_store *store, const struct bid_artifact *artifact, const struct stat *found)
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	struct bid_id_dirs dirs = { 0 };

	if (!bid_store_writable(store) || found->st_nlink != 1)
		return false;
	while (bid_id_dirs_next(&dirs, store, &disk_id, artifact->kind)) {
		char path[BID_LAYOUT_FILE_MAX];
		struct stat st;

		bid_layout_file(dirs.path, artifact->kind, path);
		if (bid_beneath_stat(store->root, path, &st) == 0 && bid_same_inode(&st, found))
			return true;
	}
	return false;
}

/* Create the file @name in @dir with the bytes of @content. The name comes last. */
static int make_probes(struct bid_store *store, const struct bid_file *content, int dir, const char *name)
{
	struct bid_temp temp = BID_TEMP_NONE;
	int r = bid_temp_new(store, false, &temp);

	if (r == 0 && content->fd >= 0)
		r = bid_copy_file(content->fd, temp.fd);
	if (r == 0 && fchmod(temp.fd, 0644) < 0)
		r = -errno;
	if (r == 0)
		r = bid_temp_link(&temp, dir, name);
	bid_temp_release(&temp);
	return r;
}

/* Open the file that a reader finds, for writing. */
static int open_found(struct bid_store *store, const struct bid_id *disk_id, int *ret_fd)
{
	struct bid_id_dirs dirs = { 0 };
	bid_auto_fd int best = -1;
	struct stat st, before = { 0 };

	while ((best < 0 || before.st_size == 0) && bid_id_dirs_next(&dirs, store, disk_id, BID_KIND_PROBES)) {
		char path[BID_LAYOUT_FILE_MAX];
		bid_auto_fd int fd = -1;
		int r;

		if (!bid_layout_is_named_after(dirs.path, disk_id))
			continue;
		bid_layout_file(dirs.path, BID_KIND_PROBES, path);
		r = bid_beneath_open(store->root, path, O_RDWR | O_NONBLOCK, &fd);
		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r < 0)
			return r;
		if (fstat(fd, &st) < 0)
			return -errno;
		if (best < 0 || bid_probes_precede(&st, &before)) {
			bid_close(best);
			best = bid_steal_fd(&fd);
			before = st;
		}
	}
	if (best < 0)
		return -ENOENT;
	*ret_fd = bid_steal_fd(&best);
	return 0;
}

int bid_store_open_probes(struct bid_store *store, const struct bid_id *id, const char *path, const struct bid_file *content,
			  int *ret_fd)
{
	const char *name = bid_kind_store_name(BID_KIND_PROBES);
	struct bid_id disk_id = bid_layout_disk_id(id);
	bid_auto_fd int dir = -1, fd = -1;
	char where[PATH_MAX];
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = open_found(store, &disk_id, ret_fd);
	if (r != -ENOENT)
		return r;
	if (bid_store_perf_link(store, &disk_id, where, sizeof(where)) < 0 || !is_objdir_of(where, &disk_id)) {
		if (!path || !is_objdir_of(path, &disk_id))
			return content ? -EPERM : -ENOENT;
		snprintf(where, sizeof(where), "%s", path);
	}
	if (content)
		r = bid_beneath_mkdirs(store->root, where, NULL, &dir);
	else
		r = bid_beneath_open(store->root, where, O_PATH | O_DIRECTORY, &dir);
	if (r < 0)
		return r;
	r = bid_beneath_open(dir, name, O_RDWR | O_NONBLOCK, &fd);
	if (r == -ENOENT && content) {
		r = make_probes(store, content, dir, name);
		if (r == 0 || r == -EEXIST)
			r = bid_beneath_open(dir, name, O_RDWR | O_NONBLOCK, &fd);
	}
	if (r < 0)
		return r;
	*ret_fd = bid_steal_fd(&fd);
	return 0;
}
