// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/source_section.h"
#include "vfs/kcore.h"
#include "vfs/mount_names.h"
#include "vfs/whiteouts.h"

/* Set the path of @node to "<@path>/<@name>". */
static int set_path(struct bid_node *node, const char *path, const char *name)
{
	if (strlen(path) + strlen(name) + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	return asprintf(&node->path, "%s%s%s", path, *path ? "/" : "", name) < 0 ? -ENOMEM : 0;
}

static int lookup_fixed(const struct bid_tree *tree, const char *parent, const char *name, struct bid_node *child)
{
	for (size_t i = 0; i < BID_COUNT(bid_names_fixed); i++) {
		if (!bid_names_is_in(i, parent, tree->debug_view) || strcmp(bid_names_fixed[i].name, name) != 0)
			continue;
		child->type = bid_names_fixed[i].type;
		return bid_names_fixed[i].path ? set_path(child, "", bid_names_fixed[i].path) : 0;
	}
	return -ENOENT;
}

/*
 * Has the store a file of @id, or at least perf's link, even one that leads nowhere? Nearly all ids have a link, so it comes
 * first.
 */
static bool is_listed(const struct bid_tree *tree, const struct bid_id *id)
{
	char where[PATH_MAX];

	return bid_store_perf_link(tree->store, id, where, sizeof(where)) == 0 || bid_store_has(tree->store, id) > 0;
}

/* Find the id of @digits, as bidctl does. With servers any digits are an id, unless they abbreviate several stored ids. */
static int find_meant(const struct bid_tree *tree, const char *digits, struct bid_id *ret_id)
{
	int r = bid_id_parse_str(digits, ret_id), found;

	if (r == 0 && ((tree->any_id && ret_id->len >= BID_ID_WHOLE_MIN) || is_listed(tree, ret_id)))
		return 0;
	/* for a complete id, a search of all ids costs too much */
	if (r == 0 && ret_id->len >= BID_ID_PERF_MAX)
		return -ENOENT;
	found = bid_store_expand_id(tree->store, digits, NULL, NULL, ret_id);
	if (found == 0 || found == -ENOTUNIQ)
		return found == 0 ? 0 : -ENOENT;
	if (r == 0 && tree->any_id)
		return 0;
	return found == -EINVAL && r < 0 ? -EINVAL : -ENOENT;
}

/* An alias of an id is a link to it. */
static int lookup_id(const struct bid_tree *tree, const char *name, struct bid_node *child)
{
	char digits[BID_ID_HEX_MAX + 1], hex[BID_ID_HEX_MAX];
	int r = find_meant(tree, bid_id_lower(name, digits), &child->id);

	if (r < 0)
		return r;
	child->type = strcmp(name, bid_id_format(&child->id, hex)) == 0 ? BID_NODE_ID : BID_NODE_ALIAS;
	return 0;
}

/* Does a name of the mount itself hide the original path @path? */
static bool is_shadowed(const char *path)
{
	for (size_t i = 0; i < BID_COUNT(bid_names_fixed); i++) {
		const char *parent = bid_names_fixed[i].parent, *name = bid_names_fixed[i].name, *rest = path;

		if (bid_names_fixed[i].type == BID_NODE_PATH || strncmp(rest, parent, strlen(parent)) != 0)
			continue;
		rest += strlen(parent);
		if (*parent && *rest++ != '/')
			continue;
		if (strncmp(rest, name, strlen(name)) == 0 && (rest[strlen(name)] == '\0' || rest[strlen(name)] == '/'))
			return true;
	}
	return false;
}

/*
 * Change @path, the text of perf's link for @id if @linked, to the target of the link in the mount. A build without a directory in
 * the mount, as in a tree of debug files, has one in "[debuginfod]". An id of more than 20 bytes has one there, too: perf's
 * directory may be of another id with its first 20. Returns 1 if the store has files of @id, 0 if it has perf's link alone, or
 * -ENOENT.
 */
static int resolve_target(const struct bid_tree *tree, const struct bid_id *id, bool linked, char path[static PATH_MAX])
{
	bool shown = linked && id->len <= BID_ID_PERF_MAX && !is_shadowed(path);
	bool whole = shown && bid_store_entry_at(tree->store, path, NULL) == BID_ENTRY_ID;
	bool stored = whole || bid_store_has(tree->store, id) > 0;
	char hex[BID_ID_HEX_MAX];

	if (!shown || (stored && !whole))
		snprintf(path, PATH_MAX, BID_STORE_UNNAMED "/%s", bid_id_format(id, hex));
	return stored ? 1 : linked ? 0 : -ENOENT;
}

/* Find the target of perf's link for @id. As resolve_target(). */
static int find_target(const struct bid_tree *tree, const struct bid_id *id, char ret_path[static PATH_MAX])
{
	return resolve_target(tree, id, bid_store_perf_link(tree->store, id, ret_path, PATH_MAX) == 0, ret_path);
}

static bool is_below_unnamed(const char *path)
{
	return strncmp(path, BID_STORE_UNNAMED "/", strlen(BID_STORE_UNNAMED "/")) == 0;
}

int bid_tree_find_link(const struct bid_tree *tree, const struct bid_id *id, char ret_path[static PATH_MAX])
{
	int r = find_target(tree, id, ret_path);

	/* old layouts of perf have no kinds */
	if (r > 0 && is_below_unnamed(ret_path) &&
	    (bid_store_kinds(tree->store, id) & ~(1 << BID_KIND_PROBES)) == 1 << BID_KIND_DEBUGINFO)
		return -ENOENT;
	return r;
}

bool bid_tree_is_target(const struct bid_tree *tree, const struct bid_node *dir)
{
	const char *path = bid_node_path(dir);
	char where[PATH_MAX];
	bool linked = bid_store_perf_link(tree->store, &dir->id, where, sizeof(where)) == 0;

	/* only these two may be the target, which takes a look at the files of the id */
	if (!(linked && strcmp(where, path) == 0) && !is_below_unnamed(path))
		return false;
	resolve_target(tree, &dir->id, linked, where);
	return strcmp(where, path) == 0;
}

/*
 * Without servers a link may lead nowhere: cp(1) makes it before its target. With servers LOOKUP fetches the target
 * (ops_lookup.c).
 */
static int lookup_link(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child,
		       struct bid_found *found)
{
	char where[PATH_MAX];
	int r = bid_tree_parse_link(parent, name, child);

	if (r == 0 && bid_tree_is_unlinked(tree, &child->id))
		r = -ENOENT;
	if (r < 0)
		return r;
	r = bid_tree_find_link(tree, &child->id, where);
	if (r < (tree->any_id ? 1 : 0))
		return -ENOENT;
	return found && asprintf(&found->text, "../../%s", where) < 0 ? -ENOMEM : 0;
}

static int stop_at_first(void *user, const char *name, enum bid_entry entry)
{
	return 1;
}

/*
 * Is the directory @child in @parent, without an artifact, one of a build? perf has just made it, or is about to remove it.
 * Directories of bazel, conan and docker have hashes as names, too, but contain directories.
 */
static bool is_empty_build(const struct bid_tree *tree, const char *parent, const struct bid_node *child)
{
	return *parent && child->id.len >= BID_ID_WHOLE_MIN &&
	       bid_store_each_entry(tree->store, child->path, stop_at_first, NULL) != 1;
}

static int lookup_path(const struct bid_tree *tree, const char *parent, const char *name, struct bid_node *child,
		       struct bid_found *found)
{
	enum bid_entry entry;
	int r;

	if (strcmp(parent, BID_KCORE_PATH) == 0)
		return bid_kcore_lookup_id(tree, name, child);
	r = lookup_fixed(tree, parent, name, child);
	if (r != -ENOENT)
		return r;
	r = set_path(child, parent, name);
	if (r < 0)
		return r;

	r = bid_id_parse_str(name, &child->id);
	entry = bid_store_entry_at(tree->store, child->path, found ? &found->st : NULL);
	if (r == 0 && (entry == BID_ENTRY_ID || (entry == BID_ENTRY_DIR && is_empty_build(tree, parent, child)))) {
		child->type = BID_NODE_PATH_ID;
		return 0;
	}
	if (entry == BID_ENTRY_DIR || strcmp(child->path, BID_STORE_UNNAMED) == 0 || strcmp(child->path, BID_KCORE_PATH) == 0) {
		child->type = BID_NODE_PATH;
		child->id = (struct bid_id){ 0 };
		return 0;
	}
	child->type = BID_NODE_PATH_ID;
	return r == 0 && strcmp(parent, BID_STORE_UNNAMED) == 0 && bid_store_has(tree->store, &child->id) > 0 &&
			       bid_tree_is_target(tree, child)
		       ? 0
		       : -ENOENT;
}

/* The kind of the file in by-path: ELF, or a kernel's substitute; BID_KIND_NONE without either. */
static enum bid_kind by_path_kind(const struct bid_tree *tree, const struct bid_id *id)
{
	static const enum bid_kind wanted[] = { BID_KIND_ELF, BID_KIND_KALLSYMS, BID_KIND_VDSO, BID_KIND_DEBUGINFO };
	int kinds = bid_store_kinds(tree->store, id);

	for (size_t i = 0; kinds > 0 && i < BID_COUNT(wanted); i++)
		if (kinds & 1 << wanted[i])
			return wanted[i];
	return BID_KIND_NONE;
}

static int lookup_by_path(const struct bid_tree *tree, const char *parent, const char *name, struct bid_node *child,
			  struct bid_found *found)
{
	enum bid_entry entry;
	int r;

	r = set_path(child, parent, name);
	if (r < 0)
		return r;
	/* copies of /proc/kcore are no builds */
	if (strcmp(child->path, BID_KCORE_PATH) == 0)
		return -ENOENT;
	entry = bid_store_entry_at(tree->store, child->path, found ? &found->st : NULL);
	r = bid_id_parse_str(name, &child->id);
	if (entry == BID_ENTRY_DIR && (r < 0 || !is_empty_build(tree, parent, child))) {
		child->type = BID_NODE_BY_PATH;
		child->id = (struct bid_id){ 0 };
		return 0;
	}
	if (r < 0 || entry != BID_ENTRY_ID)
		return -ENOENT;
	/* a file has one inode under all its names */
	bid_node_release(child);
	if (found)
		found->st.st_mode = 0;
	child->type = BID_NODE_FILE;
	child->kind = by_path_kind(tree, &child->id);
	return child->kind == BID_KIND_NONE ? -ENOENT : 0;
}

static int lookup_fanout(const char *name, enum bid_node_type type, struct bid_node *child)
{
	struct bid_id id;

	if (strlen(name) != 2 || bid_id_parse_str(name, &id) < 0)
		return -EINVAL;
	child->type = type;
	child->fanout = id.bytes[0];
	return 0;
}

/* Parse an id of the first byte @fanout and @len digits of @name. */
static int parse_split_id(uint8_t fanout, const char *name, size_t len, struct bid_id *ret_id)
{
	char hex[2 + BID_ID_HEX_MAX];

	if (len >= BID_ID_HEX_MAX)
		return -EINVAL;
	snprintf(hex, sizeof(hex), "%02x%.*s", fanout, (int)len, name);
	return bid_id_parse(hex, len + 2, ret_id);
}

bool bid_tree_is_unlinked(const struct bid_tree *tree, const struct bid_id *id)
{
	char where[PATH_MAX];

	return tree->link_whiteouts && bid_whiteouts_has(tree->link_whiteouts, id) &&
	       bid_store_perf_link(tree->store, id, where, sizeof(where)) == -ENOENT;
}

bool bid_tree_lists_link(const struct bid_tree *tree, const struct bid_id *id)
{
	char where[PATH_MAX];

	if (bid_store_perf_link(tree->store, id, where, sizeof(where)) == 0 && !is_below_unnamed(where))
		return true;
	return !bid_tree_is_unlinked(tree, id) && bid_tree_find_link(tree, id, where) >= 0;
}

int bid_tree_parse_link(const struct bid_node *dir, const char *name, struct bid_node *ret_link)
{
	struct bid_node link = { .type = BID_NODE_LINK };

	if (parse_split_id(dir->fanout, name, strlen(name), &link.id) < 0)
		return -EINVAL;
	*ret_link = link;
	return 0;
}

static int lookup_debug(uint8_t fanout, const char *name, struct bid_node *child)
{
	static const char suffix[] = ".debug";
	size_t len = strlen(name), cut = sizeof(suffix) - 1;
	bool debug = len > cut && strcmp(name + len - cut, suffix) == 0;

	if (parse_split_id(fanout, name, debug ? len - cut : len, &child->id) < 0)
		return -EINVAL;
	child->type = BID_NODE_FILE;
	child->kind = debug ? BID_KIND_DEBUGINFO : BID_KIND_ELF;
	return 0;
}

/* Look @name up in buildid/ID. */
static int lookup_artifact(const struct bid_node *parent, const char *name, struct bid_node *child)
{
	child->id = parent->id;
	child->type = BID_NODE_FILE;
	child->kind = bid_kind_parse(name);
	if (strcmp(name, "info") == 0)
		child->type = BID_NODE_INFO;
	else if (strcmp(name, bid_kind_name(BID_KIND_SECTION)) == 0)
		child->type = BID_NODE_SECTIONS;
	else if (strcmp(name, bid_kind_name(BID_KIND_SOURCE)) == 0)
		child->type = BID_NODE_SOURCES;
	else if (child->kind == BID_KIND_NONE)
		return -EINVAL;
	return 0;
}

/*
 * Look @name up in "<path>/ID", where the mount shows the files of the store. The target of perf's link may also fetch, because
 * FUSE does not tell readers by the link from others.
 */
static int lookup_stored(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child,
			 struct bid_found *found)
{
	struct bid_file file = BID_FILE_NONE;
	int r;

	child->id = parent->id;
	child->type = BID_NODE_FILE;
	child->kind = bid_kind_parse_store_name(name);
	if (child->kind == BID_KIND_NONE)
		return -EINVAL;
	if (child->kind == BID_KIND_PROBES && tree->probe_whiteouts && bid_whiteouts_has(tree->probe_whiteouts, &child->id))
		return -ENOENT;
	r = bid_store_lookup_in(tree->store, bid_node_path(parent), &(struct bid_artifact){ .id = child->id, .kind = child->kind },
				&file);
	if (r == 0 && found)
		found->file = file;
	else
		bid_file_release(&file);
	/* a file that cannot be served exists too: the OPEN returns its error */
	if (r != -ENOENT)
		return 0;
	/*
	 * perf treats a module whose file it cannot unpack as the kernel, and looks for its kallsyms (util/dso.c:
	 * dso__build_id_filename())
	 */
	if (child->kind == BID_KIND_KALLSYMS && bid_store_is_module(tree->store, &child->id))
		child->kind = BID_KIND_ELF;
	return bid_tree_is_target(tree, parent) ? 0 : -ENOENT;
}

/* Look @name up in "<path>/ID", which may have been an empty directory, and got subdirectories. */
static int lookup_in_path_id(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child,
			     struct bid_found *found)
{
	char path[PATH_MAX];
	int r = lookup_stored(tree, parent, name, child, found);

	if (r == 0 || snprintf(path, sizeof(path), "%s/%s", bid_node_path(parent), name) >= (int)sizeof(path) ||
	    bid_store_entry_at(tree->store, path, NULL) == BID_ENTRY_NONE)
		return r;
	*child = (struct bid_node){ 0 };
	return lookup_path(tree, bid_node_path(parent), name, child, found);
}

static int lookup_section(const struct bid_node *parent, const char *name, struct bid_node *child)
{
	struct bid_subpath *subpath;
	int r = bid_subpath_section(name, &subpath);

	if (r < 0)
		return r;
	child->type = BID_NODE_FILE;
	child->kind = BID_KIND_SECTION;
	child->id = parent->id;
	child->subpath = subpath;
	return 0;
}

/*
 * FUSE looks a path up name by name, and a request to a server for each directory would be slow. A name with a dot may be a
 * file: LOOKUP requests it from the servers, and takes it for a directory if none has it (ops_lookup.c). A name without a dot is a
 * directory until an open for reading (ops_readdir.c).
 */
static int lookup_source(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child)
{
	enum bid_entry entry;
	struct bid_subpath *subpath;
	char *path;
	int r;

	if (asprintf(&path, "%s/%s", bid_node_path(parent), name) < 0)
		return -ENOMEM;
	child->path = path;
	child->id = parent->id;
	r = bid_subpath_source(path, &subpath);
	if (r < 0)
		return r;
	entry = bid_store_source_entry(tree->store, &child->id, path);
	if (entry == BID_ENTRY_NONE && tree->any_id)
		entry = strchr(name + 1, '.') ? BID_ENTRY_FILE : BID_ENTRY_DIR;
	if (entry != BID_ENTRY_FILE) {
		bid_subpath_unref(subpath);
		child->type = BID_NODE_SOURCES;
		return entry == BID_ENTRY_DIR ? 0 : -ENOENT;
	}
	bid_node_release(child);
	child->type = BID_NODE_FILE;
	child->kind = BID_KIND_SOURCE;
	child->subpath = subpath;
	return 0;
}

static int lookup_meta(const char *name, struct bid_node *child)
{
	for (size_t i = 0; i < BID_COUNT(bid_names_meta); i++)
		if (strcmp(name, bid_names_meta[i].name) == 0)
			child->type = bid_names_meta[i].type;
	return child->type == BID_NODE_NONE ? -EINVAL : 0;
}

static int lookup_in(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *child,
		     struct bid_found *found)
{
	switch (parent->type) {
	case BID_NODE_PATH:
		return lookup_path(tree, bid_node_path(parent), name, child, found);
	case BID_NODE_BY_PATH:
		return lookup_by_path(tree, bid_node_path(parent), name, child, found);
	case BID_NODE_IDS:
		return lookup_id(tree, name, child);
	case BID_NODE_ID:
		return lookup_artifact(parent, name, child);
	case BID_NODE_PATH_ID:
		return lookup_in_path_id(tree, parent, name, child, found);
	case BID_NODE_LINKS:
		return lookup_fanout(name, BID_NODE_LINKS_FANOUT, child);
	case BID_NODE_DEBUG:
		return lookup_fanout(name, BID_NODE_DEBUG_FANOUT, child);
	case BID_NODE_LINKS_FANOUT:
		return lookup_link(tree, parent, name, child, found);
	case BID_NODE_DEBUG_FANOUT:
		return lookup_debug(parent->fanout, name, child);
	case BID_NODE_META:
		return lookup_meta(name, child);
	case BID_NODE_SECTIONS:
		return lookup_section(parent, name, child);
	case BID_NODE_SOURCES:
		return lookup_source(tree, parent, name, child);
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY:
		return bid_kcore_lookup(tree, parent, name, child);
	default:
		return -ENOTDIR;
	}
}

void bid_found_release(struct bid_found *found)
{
	bid_file_release(&found->file);
	free(found->text);
}

int bid_tree_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *ret_child,
		    struct bid_found *found)
{
	struct bid_node child = { 0 };
	int r = lookup_in(tree, parent, name, &child, found);

	if (r < 0) {
		bid_node_release(&child);
		return r;
	}
	*ret_child = child;
	return 0;
}

bool bid_tree_is_temporary(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] == '.';
}

int bid_tree_dir_id(const struct bid_node *node, struct bid_id *ret_id)
{
	const char *path = bid_node_path(node), *slash = strrchr(path, '/'), *end;

	if (node->type == BID_NODE_PATH_ID) {
		*ret_id = node->id;
		return 0;
	}
	/* an empty directory with a short hex name is a part of a path */
	if (node->type != BID_NODE_PATH || !slash)
		return -EPERM;
	if (!bid_tree_is_temporary(path))
		return bid_id_parse_str(slash + 1, ret_id) < 0 ? -EPERM : 0;
	/* the id is the name of the directory above */
	end = slash;
	while (slash > path && slash[-1] != '/')
		slash--;
	return bid_id_parse(slash, (size_t)(end - slash), ret_id) < 0 ? -EPERM : 0;
}

int bid_tree_readlink(const struct bid_tree *tree, const struct bid_node *node, char *ret_text, size_t size)
{
	char where[PATH_MAX], hex[BID_ID_HEX_MAX];
	int len;

	switch (node->type) {
	case BID_NODE_ALIAS:
		len = snprintf(ret_text, size, "%s", node->id.len ? bid_id_format(&node->id, hex) : bid_node_path(node));
		break;
	case BID_NODE_LINK:
		find_target(tree, &node->id, where);
		len = snprintf(ret_text, size, "../../%s", where);
		break;
	default:
		return -EINVAL;
	}
	return (size_t)len < size ? 0 : -ENAMETOOLONG;
}
