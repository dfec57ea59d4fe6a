// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/perf_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

int bid_perf_link_target(struct bid_store *store, const struct bid_id *disk_id, char *ret_path, size_t size)
{
	char link[BID_LAYOUT_MAX], text[PATH_MAX];
	bid_auto_fd int dir = -1;
	const char *name, *target;
	int r = bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_PATH, &dir, &name);

	if (r == 0)
		r = bid_beneath_readlink(dir, name, text);
	if (r < 0)
		return r;
	target = bid_layout_target(text);
	if (!target)
		return -EINVAL;
	if (strlen(target) >= size)
		return -ENAMETOOLONG;
	memcpy(ret_path, target, strlen(target) + 1);
	return 0;
}

int bid_perf_link_find(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	int r = -ENOENT;

	while (r == -ENOENT && bid_alias_next(&alias, id, &disk_id))
		r = bid_perf_link_target(store, &disk_id, ret_path, size);
	return r;
}

int bid_store_perf_link(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	int result = -ENOENT;

	for (; store; store = store->lower) {
		int r = bid_store_has_paths(store) ? bid_perf_link_find(store, id, ret_path, size) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

bool bid_perf_link_points_to(int fanout, const struct bid_id *disk_id, const char *path)
{
	char hex[BID_ID_HEX_MAX], text[PATH_MAX];
	const char *target = NULL;

	if (bid_beneath_readlink(fanout, bid_id_format(disk_id, hex) + 2, text) == 0)
		target = bid_layout_target(text);
	return target && strcmp(target, path) == 0;
}

enum bid_perf_link_state bid_perf_link_look(struct bid_store *store, const struct bid_id *disk_id, char ret_target[static PATH_MAX])
{
	char link[BID_LAYOUT_MAX];
	bid_auto_fd int fanout = -1;
	const char *name;

	if (bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_PATH, &fanout, &name) < 0)
		return BID_PERF_LINK_NONE;
	return bid_perf_link_look_in(store, fanout, disk_id, ret_target);
}

enum bid_perf_link_state bid_perf_link_look_in(struct bid_store *store, int fanout, const struct bid_id *disk_id,
					       char ret_target[static PATH_MAX])
{
	char text[PATH_MAX], hex[BID_ID_HEX_MAX];
	const char *target;
	struct stat st;
	int r = bid_beneath_readlink(fanout, bid_id_format(disk_id, hex) + 2, text);

	if (r == -EINVAL)
		return BID_PERF_LINK_ODD;
	if (r == -ENAMETOOLONG)
		return BID_PERF_LINK_FOREIGN;
	if (r < 0)
		return BID_PERF_LINK_NONE;
	target = bid_layout_target(text);
	if (!target)
		return BID_PERF_LINK_FOREIGN;
	memcpy(ret_target, target, strlen(target) + 1);
	r = bid_beneath_stat(store->root, target, &st);
	if (r == -ENOENT || r == -ENAMETOOLONG)
		return BID_PERF_LINK_DANGLING;
	return bid_layout_is_named_after(target, disk_id) ? BID_PERF_LINK_GOOD : BID_PERF_LINK_MISMATCHED;
}

int bid_perf_link_make(struct bid_store *store, const struct bid_id *id, const char *target, unsigned *made)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	bid_auto_fd int dir = -1;
	char text[PATH_MAX + 8], link[BID_LAYOUT_MAX];
	char *slash;
	int r;

	bid_layout_link(&disk_id, link);
	slash = strrchr(link, '/');
	*slash = '\0';
	r = bid_beneath_mkdirs(store->root, link, made, &dir);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), BID_LAYOUT_UP "%s", target);
	if (symlinkat(text, dir, slash + 1) < 0)
		return errno == EEXIST ? 0 : -errno;
	return 1;
}

int bid_perf_link_point(struct bid_store *store, const struct bid_id *disk_id, const char *target)
{
	char text[PATH_MAX + 8], link[BID_LAYOUT_MAX], temp[BID_TEMP_NAME_MAX];
	bid_auto_fd int fanout = -1, dir = -1;
	const char *name;
	int r;

	r = bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_CREAT, &fanout, &name);
	if (r == 0)
		r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &dir);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), BID_LAYOUT_UP "%s", target);
	if (symlinkat(text, fanout, name) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* rename(2) replaces the old link atomically: readers always see a link */
	r = bid_temp_name(temp);
	if (r < 0)
		return r;
	if (symlinkat(text, dir, temp) < 0)
		return -errno;
	if (renameat(dir, temp, fanout, name) < 0) {
		r = -errno;
		unlinkat(dir, temp, 0);
	}
	return r;
}

int bid_perf_link_remove(struct bid_store *store, const struct bid_id *disk_id, const char *target)
{
	char link[BID_LAYOUT_MAX];
	bid_auto_fd int fanout = -1;
	const char *name;
	int r = bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_PATH, &fanout, &name);

	if (r < 0)
		return r;
	if (!bid_perf_link_points_to(fanout, disk_id, target))
		return -ENOENT;
	return unlinkat(fanout, name, 0) < 0 ? -errno : 0;
}
