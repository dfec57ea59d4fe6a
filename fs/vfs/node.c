// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bid_node_release(struct bid_node *node)
{
	free(node->path);
	node->path = NULL;
	bid_subpath_unref(node->subpath);
	node->subpath = NULL;
}

struct bid_artifact bid_node_artifact(const struct bid_node *node)
{
	return (struct bid_artifact){ .id = node->id, .kind = node->kind, .subpath = node->subpath };
}

int bid_node_copy(const struct bid_node *node, struct bid_node *ret_copy)
{
	struct bid_node copy = *node;

	if (node->path) {
		copy.path = strdup(node->path);
		if (!copy.path)
			return -ENOMEM;
	}
	bid_subpath_ref(copy.subpath);
	*ret_copy = copy;
	return 0;
}

const char *bid_node_path(const struct bid_node *node)
{
	return node->path ? node->path : "";
}

bool bid_node_equal(const struct bid_node *a, const struct bid_node *b)
{
	return a->type == b->type && a->kind == b->kind && a->fanout == b->fanout && a->version == b->version &&
	       bid_id_equal(&a->id, &b->id) && strcmp(bid_node_path(a), bid_node_path(b)) == 0 &&
	       bid_subpath_equal(a->subpath, b->subpath);
}

mode_t bid_node_format(const struct bid_node *node)
{
	if (node->type >= BID_NODE_FILE)
		return S_IFREG;
	return node->type >= BID_NODE_LINK ? S_IFLNK : S_IFDIR;
}

bool bid_node_is_probes(const struct bid_node *node)
{
	return node->type == BID_NODE_FILE && node->kind == BID_KIND_PROBES;
}

bool bid_node_has_versions(const struct bid_node *node)
{
	return node->type == BID_NODE_FILE || node->type == BID_NODE_LINK;
}
