// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/export.h"

#include <errno.h>
#include <string.h>

#include "vfs/inode.h"
#include "vfs/kcore.h"
#include "vfs/mount_names.h"

struct export_search {
	uint64_t number;
	struct bid_node node; /* with no id yet */
};

/* bid_store_id_fn. Try @id, and perf's aliases: the first 20 bytes, and a short id with zeros. */
static int try_id(void *user, const struct bid_id *id)
{
	struct export_search *search = user;

	search->node.id = *id;
	if (bid_inode_number(&search->node) == search->number)
		return 1;
	if (id->len > BID_ID_PERF_MAX) {
		search->node.id = (struct bid_id){ .len = BID_ID_PERF_MAX };
		memcpy(search->node.id.bytes, id->bytes, BID_ID_PERF_MAX);
		return bid_inode_number(&search->node) == search->number;
	}
	while (search->node.id.len < BID_ID_PERF_MAX) {
		search->node.id.bytes[search->node.id.len++] = 0;
		if (bid_inode_number(&search->node) == search->number)
			return 1;
	}
	return 0;
}

static int find_id(const struct bid_tree *tree, uint64_t number, struct bid_node *node, unsigned fanout)
{
	struct export_search search = { .number = number, .node = *node };
	int r = bid_store_each_id_in(tree->store, (uint8_t)fanout, try_id, &search);

	if (r <= 0)
		return r == -ENOMEM ? r : -ESTALE;
	*node = search.node;
	return 0;
}

int bid_export_find(const struct bid_tree *tree, uint64_t number, struct bid_node *ret_node)
{
	struct bid_node node = { 0 };
	unsigned fanout;
	int r = 0;

	bid_inode_split(number, &node.type, &node.kind, &fanout);
	if ((node.type == BID_NODE_FILE) != (node.kind != BID_KIND_NONE) || bid_kind_has_subpath(node.kind))
		return -ESTALE;
	switch (node.type) {
	case BID_NODE_ID:
	case BID_NODE_LINK:
	case BID_NODE_INFO:
	case BID_NODE_SECTIONS:
	case BID_NODE_SOURCES: /* the top directory; others have a path */
	case BID_NODE_FILE:
		r = find_id(tree, number, &node, fanout);
		break;
	case BID_NODE_LINKS_FANOUT:
	case BID_NODE_DEBUG_FANOUT:
		node.fanout = (uint8_t)fanout;
		break;
	case BID_NODE_PATH: /* the root; others have a hash of the path */
	case BID_NODE_BY_PATH:
	case BID_NODE_IDS:
	case BID_NODE_LINKS:
	case BID_NODE_DEBUG:
	case BID_NODE_META:
	case BID_NODE_STATUS:
	case BID_NODE_METRICS:
	case BID_NODE_README:
		break;
	default:
		return -ESTALE;
	}
	if (r == 0 && bid_inode_number(&node) != number)
		r = -ESTALE;
	if (r == 0)
		*ret_node = node;
	return r;
}

/* The parents of directories. */
static const struct {
	enum bid_node_type type;
	enum bid_node_type parent; /* type of the parent of a node with a path */
	enum bid_node_type top; /* type of the parent of a node without one */
	const char *path; /* fixed path of the parent */
} parents[] = {
	{ BID_NODE_PATH, BID_NODE_PATH, BID_NODE_PATH, NULL },
	{ BID_NODE_PATH_ID, BID_NODE_PATH, BID_NODE_PATH, NULL }, /* the path ends with the id */
	{ BID_NODE_BY_PATH, BID_NODE_BY_PATH, BID_NODE_PATH, NULL },
	{ BID_NODE_SOURCES, BID_NODE_SOURCES, BID_NODE_ID, NULL },
	{ BID_NODE_IDS, BID_NODE_PATH, BID_NODE_PATH, NULL },
	{ BID_NODE_LINKS, BID_NODE_PATH, BID_NODE_PATH, NULL },
	{ BID_NODE_META, BID_NODE_PATH, BID_NODE_PATH, NULL },
	{ BID_NODE_ID, BID_NODE_IDS, BID_NODE_IDS, NULL },
	{ BID_NODE_SECTIONS, BID_NODE_ID, BID_NODE_ID, NULL },
	{ BID_NODE_LINKS_FANOUT, BID_NODE_LINKS, BID_NODE_LINKS, NULL },
	{ BID_NODE_DEBUG_FANOUT, BID_NODE_DEBUG, BID_NODE_DEBUG, NULL },
	{ BID_NODE_DEBUG, BID_NODE_PATH, BID_NODE_PATH, BID_NAMES_DEBUG },
	{ BID_NODE_KCORE, BID_NODE_PATH, BID_NODE_PATH, BID_KCORE_PATH },
	{ BID_NODE_KCORE_COPY, BID_NODE_KCORE, BID_NODE_KCORE, NULL },
};

int bid_export_parent(const struct bid_node *node, struct bid_node *ret_parent)
{
	const char *path = bid_node_path(node), *slash = strrchr(path, '/');
	struct bid_node parent = { 0 };
	size_t i = 0;

	while (i < BID_COUNT(parents) && parents[i].type != node->type)
		i++;
	if (i == BID_COUNT(parents))
		return -ENOTDIR;
	parent.type = *path ? parents[i].parent : parents[i].top;
	if (parent.type == BID_NODE_ID || parent.type == BID_NODE_SOURCES || parent.type == BID_NODE_KCORE)
		parent.id = node->id;
	if (parents[i].path || (slash && parent.type != BID_NODE_KCORE)) {
		parent.path = parents[i].path ? strdup(parents[i].path) : strndup(path, (size_t)(slash - path));
		if (!parent.path)
			return -ENOMEM;
	}
	*ret_parent = parent;
	return 0;
}
