/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of the mount itself: tables for bid_tree_lookup() and bid_tree_list(). */
#ifndef BID_FS_MOUNT_NAMES_H
#define BID_FS_MOUNT_NAMES_H

#include <string.h>

#include "api/store.h"
#include "vfs/node.h"

#define BID_NAMES_DEBUG "usr/lib/debug" /* the debuggers' view: the root with "view=debug" */

/* Names that do not depend on the store. */
static const struct {
	const char *parent; /* a BID_NODE_PATH */
	const char *name;
	enum bid_node_type type;
	const char *path;
} bid_names_fixed[] = {
	{ "", "buildid", BID_NODE_IDS, NULL },
	{ "", "by-path", BID_NODE_BY_PATH, NULL },
	{ "", ".build-id", BID_NODE_LINKS, NULL },
	{ "", ".bidfs", BID_NODE_META, NULL },
	{ "", ".debug", BID_NODE_ALIAS, "." }, /* perf --symfs M looks in M/.debug */
	{ "", "debug", BID_NODE_ALIAS, BID_NAMES_DEBUG },
	{ "", "usr", BID_NODE_PATH, "usr" },
	{ "usr", "lib", BID_NODE_PATH, "usr/lib" },
	{ "usr/lib", "debug", BID_NODE_PATH, BID_NAMES_DEBUG },
	{ BID_NAMES_DEBUG, ".build-id", BID_NODE_DEBUG, NULL },
};

static const struct {
	const char *name;
	enum bid_node_type type;
} bid_names_meta[] = {
	{ "status", BID_NODE_STATUS },
	{ "metrics", BID_NODE_METRICS },
	{ "README", BID_NODE_README },
};

#define BID_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Is bid_names_fixed[@i] a name in the directory @path? With @debug_view the root is BID_NAMES_DEBUG, and has ".bidfs" and
 * "buildid", too.
 */
static inline bool bid_names_is_in(size_t i, const char *path, bool debug_view)
{
	enum bid_node_type type = bid_names_fixed[i].type;

	return strcmp(debug_view && (type == BID_NODE_META || type == BID_NODE_IDS) ? BID_NAMES_DEBUG : bid_names_fixed[i].parent,
		      path) == 0;
}

#endif
