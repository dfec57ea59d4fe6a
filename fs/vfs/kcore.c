// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/kcore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/mount_names.h"

/* The derived copy: the epoch as a timestamp of perf's, YYYYmmddHHMMSShh. */
static const char timestamp[] = "1970010100000000";

static const char *const files[] = { "kcore", "kallsyms", "modules" };

/* "[kernel.kcore]/ID", and "/@name". */
static char *path_of(const struct bid_id *id, const char *name)
{
	char hex[BID_ID_HEX_MAX], *path;

	return asprintf(&path, BID_KCORE_PATH "/%s%s%s", bid_id_format(id, hex), *name ? "/" : "", name) < 0 ? NULL : path;
}

static bool is_directory(const struct bid_tree *tree, const char *path)
{
	struct stat st;

	return bid_store_stat_path(tree->store, path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Is there a complete file, readable or not? 0 or -ENOENT. */
static int find_file(const struct bid_tree *tree, const char *path)
{
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_open_kcore(tree->store, path, &file);

	bid_file_release(&file);
	return r == -ENOENT ? r : 0;
}

int bid_kcore_lookup_id(const struct bid_tree *tree, const char *name, struct bid_node *child)
{
	int r = bid_id_parse_str(name, &child->id);
	char *path = r < 0 ? NULL : path_of(&child->id, "");
	bool there = path && is_directory(tree, path);

	free(path);
	child->type = BID_NODE_KCORE;
	if (r == 0 && !there && bid_store_has(tree->store, &child->id) <= 0)
		r = -ENOENT;
	return r;
}

/* May the kernel @id have a symbol table? */
static bool is_offered(const struct bid_tree *tree, const struct bid_id *id)
{
	int kinds = bid_store_kinds(tree->store, id);

	return kinds > 0 && kinds & (1 << BID_KIND_KALLSYMS | 1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO);
}

static int lookup_copy(const struct bid_tree *tree, const struct bid_id *id, const char *name, struct bid_node *child)
{
	child->type = BID_NODE_KCORE_COPY;
	child->id = *id;
	if (strcmp(name, timestamp) == 0)
		return is_offered(tree, id) ? 0 : -ENOENT;
	child->path = path_of(id, name);
	if (!child->path)
		return -ENOMEM;
	return is_directory(tree, child->path) ? 0 : -ENOENT;
}

/*
 * Has the kernel @id a symbol table to list modules from, or may one be derived? 0 or -ENOENT. A listing does not
 * read the table, up to 64 MiB, and so shows the "modules" of a damaged one; LOOKUP reads it, and returns -ENOENT.
 */
static int find_table(const struct bid_tree *tree, const struct bid_id *id)
{
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(tree->store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_KALLSYMS }, BID_NEVER_DERIVE,
			       &file);

	bid_file_release(&file);
	return r == 0 || r == -EAGAIN ? 0 : -ENOENT;
}

static int lookup_file(const struct bid_tree *tree, const struct bid_node *copy, const char *name, struct bid_node *child)
{
	size_t i = 0;

	while (i < BID_COUNT(files) && strcmp(name, files[i]) != 0)
		i++;
	if (i == BID_COUNT(files))
		return -EINVAL;
	child->id = copy->id;
	if (copy->path) {
		child->type = BID_NODE_KCORE_FILE;
		if (asprintf(&child->path, "%s/%s", copy->path, name) < 0) {
			child->path = NULL;
			return -ENOMEM;
		}
		return find_file(tree, child->path);
	}
	if (strcmp(name, "kcore") == 0)
		return -EINVAL;
	if (strcmp(name, "modules") == 0) {
		child->type = BID_NODE_MODULES;
		return find_table(tree, &copy->id);
	}
	child->type = BID_NODE_FILE;
	child->kind = BID_KIND_KALLSYMS;
	return 0;
}

int bid_kcore_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child)
{
	if (parent->type == BID_NODE_KCORE)
		return lookup_copy(tree, &parent->id, name, child);
	return lookup_file(tree, parent, name, child);
}

int bid_kcore_list(const struct bid_tree *tree, const struct bid_node *dir, bid_store_entry_fn fn, void *user)
{
	char *path;
	int r = 0;

	if (dir->type == BID_NODE_KCORE_COPY) {
		for (size_t i = 0; i < BID_COUNT(files) && r == 0; i++)
			r = fn(user, files[i], BID_ENTRY_NONE);
		return r;
	}
	path = path_of(&dir->id, "");
	r = path ? bid_store_each_entry(tree->store, path, fn, user) : -ENOMEM;
	free(path);
	return r == 0 || r == -ENOENT ? fn(user, timestamp, BID_ENTRY_DIR) : r;
}
