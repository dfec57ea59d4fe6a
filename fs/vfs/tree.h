/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The namespace: which names there are, and what each of them means. Pure C: knows the store and build-ids, not FUSE.
 *
 * Names are parsed here, once; what comes out are nodes, which cannot hold a malformed id.
 */
#ifndef BID_FS_TREE_H
#define BID_FS_TREE_H

#include "api/store.h"
#include "vfs/node.h"

struct bid_tmpfiles;
struct bid_unlinked;

struct bid_tree {
	struct bid_store *store; /* borrowed */
	struct bid_unlinked *probes, *links; /* unlinked ones; borrowed; NULL if nothing is unlinked */
	struct bid_tmpfiles *tmpfiles; /* borrowed; NULL if nothing is written */
	bool any_id; /* an id need not be stored to have a directory: there are sources */
};

/* A look-up opens these on its way, and a caller that needs them saves a second look. */
struct bid_found {
	struct stat st; /* of a directory below an original path; mode 0 if it was not looked at */
	struct bid_file file; /* of an artifact below an original path, open and checked; or BID_FILE_NONE; owned */
	char *text; /* of perf's link; owned; NULL if it was not read */
};

#define BID_FOUND_NONE ((struct bid_found){ .file = { .fd = -1 } })

void bid_found_release(struct bid_found *found);

/*
 * What @name means in the directory @parent. Never touches the network; that an artifact's name means something does not say that
 * it is here. @found is BID_FOUND_NONE before, and the caller releases it; or NULL. Returns 0 (the caller releases
 * @ret_child), or
 *   -ENOENT	no such name for now
 *   -EINVAL	a name that can never mean anything here: the answer may be kept for long
 *   -ENOTDIR	@parent is no directory
 *   -ENOMEM
 */
int bid_tree_lookup(const struct bid_tree *tree, const struct bid_node *parent, const char *name, struct bid_node *ret_child,
		    struct bid_found *found);

/*
 * Is @node a directory "<path>/ID" of artifacts, or a copy of /proc/kcore that perf makes: may files be made in it? Returns 0 and
 * its id, or -EPERM.
 */
int bid_tree_dir_id(const struct bid_node *node, struct bid_id *ret_id);

/* The kind whose file in "<path>/ID" has the name @name, or BID_KIND_NONE. */
enum bid_kind bid_tree_kind(const char *name);

/*
 * Does the name of the directory @path, relative to the store, begin with a dot? rsync(1) makes such a one in "<path>/ID" for the
 * files that it moves to their final names later; nothing in it is published, and all is listed.
 */
bool bid_tree_is_temporary(const char *path);

/* May the file of @node, such a directory, that has its place have the name @name? */
bool bid_tree_is_final_name(const struct bid_node *node, const char *name);

/* Was the link of @id unlinked through the mount, and none made since? */
bool bid_tree_is_unlinked(const struct bid_tree *tree, const struct bid_id *id);

/* Is @dir, a BID_NODE_PATH_ID, the directory that perf's link of its id leads to? */
bool bid_tree_is_target(const struct bid_tree *tree, const struct bid_node *dir);

/* Has the store a file @name in @dir, a BID_NODE_PATH_ID? */
bool bid_tree_has_file(const struct bid_tree *tree, const struct bid_node *dir, const char *name);

/* perf's link @name in @dir, ".build-id/xx", whether there is one or not. -EINVAL if @name does not make an id. */
int bid_tree_link(const struct bid_node *dir, const char *name, struct bid_node *ret_link);

/* A callback of bid_tree_list(); @node lives until it returns. A non-zero return ends the listing. */
typedef int (*bid_tree_fn)(void *user, const char *name, const struct bid_node *node);

/* In how many parts @node is listed: many for a directory that may have a million names. */
unsigned bid_tree_parts(const struct bid_node *node);

/*
 * Every name in part @part of @node, from 0 on, that means something here and now, in no order; ids that are not stored are not
 * listed. Where there is more than one part, it has the ids that begin with the byte @part. May block on disk.
 */
int bid_tree_list(const struct bid_tree *tree, const struct bid_node *node, unsigned part, bid_tree_fn fn, void *user);

/* The text of a symbolic link. -EINVAL if @node is none, -ENAMETOOLONG. */
int bid_tree_readlink(const struct bid_tree *tree, const struct bid_node *node, char *ret_text, size_t size);

#endif
