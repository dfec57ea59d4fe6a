/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The namespace: names and their meaning. Pure C: knows the store and build-ids, not FUSE.
 *
 *	bid_tree_lookup()	parses a name, once, into a node, which never has a malformed id
 *	bid_tree_list()		lists a directory
 *	bid_tree_readlink()	reads a link
 */
#ifndef BID_FS_TREE_H
#define BID_FS_TREE_H

#include <limits.h>
#include <stdatomic.h>

#include "api/store.h"
#include "vfs/node.h"

struct bid_tmpfiles;
struct bid_whiteouts;

struct bid_tree {
	struct bid_store *store; /* borrowed */
	struct bid_whiteouts *probe_whiteouts, *link_whiteouts; /* names unlinked through the mount; borrowed; NULL for none */
	struct bid_tmpfiles *tmpfiles; /* borrowed; NULL for none */
	bool debug_view; /* the root is the directory "usr/lib/debug" */
	bool any_id; /* there are servers, so that each id has a directory */
	atomic_size_t listed; /* bytes of open listings: dir_handle.h */
};

/* By-products of a LOOKUP, which spare the caller a second look. */
struct bid_found {
	struct stat st; /* attributes of a directory below an original path; mode 0 if unknown */
	struct bid_file file; /* an artifact below an original path, checked; or BID_FILE_NONE; owned */
	char *text; /* text of perf's link; owned; NULL if unknown */
};

#define BID_FOUND_NONE ((struct bid_found){ .file = { .fd = -1 } })

void bid_found_release(struct bid_found *found);

/*
 * Look @name up in the directory @parent. Never uses the network: the artifact of a node may be absent. @found is NULL, or
 * BID_FOUND_NONE for the caller to release. Returns 0, and @ret_child for the caller to release, or
 *	-ENOENT	no such name now
 *	-EINVAL	@name has no meaning here, ever
 *	-ENOTDIR	@parent is no directory
 *	-ENOMEM
 */
int bid_tree_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *ret_child,
		    struct bid_found *found);

/* May a writer make files in @node, "<path>/ID"? Returns 0 and its id, or -EPERM. */
int bid_tree_dir_id(const struct bid_node *node, struct bid_id *ret_id);

/*
 * Does the last name of @path, a directory of the store, begin with a dot? rsync(1) makes such a one in "<path>/ID" for
 * temporary files. Nothing in it is published, and everything is listed.
 */
bool bid_tree_is_temporary(const char *path);

/* Was the link of @id unlinked through the mount, and not made again? */
bool bid_tree_is_unlinked(const struct bid_tree *tree, const struct bid_id *id);

/*
 * Find perf's link for @id, and its target in the mount. A build with nothing but a debug file in "[debuginfod]" has none: with the
 * debug file and without the program perf 6.12 ends with SIGSEGV, and perf 6.1 reports wrong symbols. Returns 1, 0 for a link that
 * leads nowhere, or -ENOENT.
 */
int bid_tree_find_link(const struct bid_tree *tree, const struct bid_id *id, char ret_path[static PATH_MAX]);

/*
 * Does a listing show perf's link for @id? As bid_tree_find_link(), but the target of a link to an original path is not looked at:
 * with the look, a listing of 100,000 links takes ten times as long.
 */
bool bid_tree_lists_link(const struct bid_tree *tree, const struct bid_id *id);

/* Is @dir, a BID_NODE_PATH_ID, the target of perf's link for its id? */
bool bid_tree_is_target(const struct bid_tree *tree, const struct bid_node *dir);

/* The node of perf's link @name in @dir, ".build-id/xx", existing or not. -EINVAL if @name does not make an id. */
int bid_tree_parse_link(const struct bid_node *dir, const char *name, struct bid_node *ret_link);

/* Callback of bid_tree_list(). It borrows @node. A result other than 0 ends the listing. */
typedef int (*bid_tree_fn)(void *user, const char *name, const struct bid_node *node);

/* The number of parts of a listing of @node: 256 for all ids, else 1. */
unsigned bid_tree_parts(const struct bid_node *node);

/*
 * List part @part of @node, from 0 on, in no order: the names of stored ids and files. Part n of 256 has the ids with the first
 * byte n. Returns 0, the result of @fn, or a negative errno. May block on disk.
 */
int bid_tree_list(const struct bid_tree *tree, const struct bid_node *node, unsigned part, bid_tree_fn fn, void *user);

/* Read the text of a link. -EINVAL for other nodes, -ENAMETOOLONG. */
int bid_tree_readlink(const struct bid_tree *tree, const struct bid_node *node, char *ret_text, size_t size);

#endif
