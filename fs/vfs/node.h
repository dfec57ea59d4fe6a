/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A node: the meaning of a name of the mount. Pure C: knows build-ids, not FUSE.
 *
 *	bid_tree_lookup()	parses a name into a node
 *	bid_node_copy()
 *	bid_node_release()	each copy
 */
#ifndef BID_FS_NODE_H
#define BID_FS_NODE_H

#include <stdint.h>
#include <sys/stat.h>

#include "api/artifact.h"

enum bid_node_type {
	BID_NODE_NONE = 0,
	/* directories */
	BID_NODE_PATH, /* part of an original path, as in the store; path "" is the root */
	BID_NODE_PATH_ID, /* <original path>/ID: path and id */
	BID_NODE_BY_PATH, /* by-path/… : path */
	BID_NODE_IDS, /* buildid */
	BID_NODE_ID, /* buildid/ID: id */
	BID_NODE_LINKS, /* .build-id */
	BID_NODE_LINKS_FANOUT, /* .build-id/xx: fanout */
	BID_NODE_DEBUG, /* usr/lib/debug/.build-id */
	BID_NODE_DEBUG_FANOUT, /* usr/lib/debug/.build-id/xx: fanout */
	BID_NODE_META, /* .bidfs */
	BID_NODE_SECTIONS, /* buildid/ID/section: id */
	BID_NODE_SOURCES, /* buildid/ID/source and directories in it: id, and path "" or "/usr/src" */
	BID_NODE_KCORE, /* [kernel.kcore]/ID: id */
	BID_NODE_KCORE_COPY, /* [kernel.kcore]/ID/TIMESTAMP: id; and path of perf's own */
	/* symbolic links */
	BID_NODE_LINK, /* .build-id/xx/rest: id */
	BID_NODE_ALIAS, /* debug, .debug: path is the text; an alias of buildid/ID: id */
	/* files */
	BID_NODE_FILE, /* an artifact: id, kind, and subpath of some kinds */
	BID_NODE_INFO, /* buildid/ID/info: id */
	BID_NODE_MODULES, /* in the format of /proc/modules: id */
	BID_NODE_KCORE_FILE, /* [kernel.kcore]/ID/TIMESTAMP/... of perf's: id and path */
	BID_NODE_STATUS,
	BID_NODE_METRICS,
	BID_NODE_README,
	BID_NODE_TMPFILE, /* temporary file: id of its directory, tmpfile, and kind of a final name */
};

/* Fields that a type does not use are zero. */
struct bid_node {
	enum bid_node_type type;
	enum bid_kind kind;
	uint8_t fanout; /* first byte of the ids */
	struct bid_id id;
	union {
		uint32_t version; /* FILE, LINK: tells a file or text from its successor (fuse/attr.c); 0 for any */
		uint32_t tmpfile; /* TMPFILE: number of the file */
	};
	char *path; /* relative to the store; owned; NULL for "" */
	const struct bid_subpath *subpath; /* a reference, or NULL */
};

/* The artifact of @node, a BID_NODE_FILE. Borrows from @node. */
struct bid_artifact bid_node_artifact(const struct bid_node *node);

void bid_node_release(struct bid_node *node);

/* Copy @node. -ENOMEM. */
int bid_node_copy(const struct bid_node *node, struct bid_node *ret_copy);

bool bid_node_equal(const struct bid_node *a, const struct bid_node *b);

const char *bid_node_path(const struct bid_node *node);

/* S_IFDIR, S_IFLNK or S_IFREG. */
mode_t bid_node_format(const struct bid_node *node);

/* Is @node of probe definitions, the only artifact that changes in place? */
bool bid_node_is_probes(const struct bid_node *node);

/* Is @node an artifact or a link of perf's? */
bool bid_node_has_versions(const struct bid_node *node);

#endif
