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

/* Make the node of @type one path component above @node. */
static int parent_of_path(const struct bid_node *node, enum bid_node_type type, struct bid_node *ret_parent)
{
	struct bid_node parent = { .type = type };
	const char *path = bid_node_path(node), *slash = strrchr(path, '/');

	/* the parent of by-path is the root */
	if (!*path) {
		*ret_parent = (struct bid_node){ .type = BID_NODE_PATH };
		return 0;
	}
	if (slash) {
		parent.path = strndup(path, (size_t)(slash - path));
		if (!parent.path)
			return -ENOMEM;
	}
	*ret_parent = parent;
	return 0;
}

int bid_export_parent(const struct bid_node *node, struct bid_node *ret_parent)
{
	struct bid_node parent = { .type = BID_NODE_PATH };

	switch (node->type) {
	case BID_NODE_PATH:
	case BID_NODE_PATH_ID: /* the path ends with the id */
		return parent_of_path(node, BID_NODE_PATH, ret_parent);
	case BID_NODE_BY_PATH:
		return parent_of_path(node, BID_NODE_BY_PATH, ret_parent);
	case BID_NODE_IDS:
	case BID_NODE_LINKS:
	case BID_NODE_META:
		break;
	case BID_NODE_KCORE_COPY:
		parent.type = BID_NODE_KCORE;
		parent.id = node->id;
		break;
	case BID_NODE_KCORE:
		parent.path = strdup(BID_KCORE_PATH);
		if (!parent.path)
			return -ENOMEM;
		break;
	case BID_NODE_ID:
		parent.type = BID_NODE_IDS;
		break;
	case BID_NODE_SECTIONS:
		parent.type = BID_NODE_ID;
		parent.id = node->id;
		break;
	case BID_NODE_SOURCES:
		if (*bid_node_path(node)) {
			int r = parent_of_path(node, BID_NODE_SOURCES, &parent);

			if (r < 0)
				return r;
		} else {
			parent.type = BID_NODE_ID;
		}
		parent.id = node->id;
		break;
	case BID_NODE_LINKS_FANOUT:
		parent.type = BID_NODE_LINKS;
		break;
	case BID_NODE_DEBUG_FANOUT:
		parent.type = BID_NODE_DEBUG;
		break;
	case BID_NODE_DEBUG:
		parent.path = strdup(BID_NAMES_DEBUG);
		if (!parent.path)
			return -ENOMEM;
		break;
	default:
		return -ENOTDIR;
	}
	*ret_parent = parent;
	return 0;
}
