// SPDX-License-Identifier: LGPL-2.1-or-later
#include "handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "inode.h"
#include "kcore.h"
#include "names.h"

enum { REST = 10 }; /* the directories are read anew after this many times what it took */

/* A directory by its number. */
struct place {
	uint64_t number;
	struct bid_node node; /* owned */
};

struct bid_handles {
	const struct bid_tree *tree; /* borrowed */
	pthread_mutex_t lock; /* protects all below, and is held while the directories are read */
	struct place *places; /* of original paths, by number; owned */
	size_t n, room;
	int64_t fresh_until; /* bid_clock_ns() */
};

int bid_handles_new(const struct bid_tree *tree, struct bid_handles **ret_handles)
{
	struct bid_handles *handles = calloc(1, sizeof(*handles));

	if (!handles)
		return -ENOMEM;
	handles->tree = tree;
	pthread_mutex_init(&handles->lock, NULL);
	*ret_handles = handles;
	return 0;
}

static void clear(struct bid_handles *handles)
{
	for (size_t i = 0; i < handles->n; i++)
		bid_node_release(&handles->places[i].node);
	free(handles->places);
	handles->places = NULL;
	handles->n = handles->room = 0;
}

void bid_handles_free(struct bid_handles *handles)
{
	if (!handles)
		return;
	clear(handles);
	pthread_mutex_destroy(&handles->lock);
	free(handles);
}

/* Directories of original paths */

static int add_place(struct bid_handles *handles, const struct bid_node *node)
{
	struct place *place;

	if (bid_array_grow(handles->places, handles->n, handles->room) < 0)
		return -ENOMEM;
	place = &handles->places[handles->n];
	if (bid_node_copy(node, &place->node) < 0)
		return -ENOMEM;
	place->number = bid_inode_number(node);
	handles->n++;
	return 0;
}

static int add_below(void *user, const char *name, const struct bid_node *node)
{
	struct bid_handles *handles = user;
	struct bid_node by_path = *node;
	int r;

	if (node->type != BID_NODE_PATH && node->type != BID_NODE_PATH_ID)
		return 0;
	r = add_place(handles, node);
	if (r < 0 || node->type == BID_NODE_PATH_ID)
		return r;
	by_path.type = BID_NODE_BY_PATH;
	r = add_place(handles, &by_path);
	if (r < 0)
		return r;
	r = bid_tree_list(handles->tree, node, add_below, handles);
	return r == -ENOMEM ? r : 0; /* one that cannot be read has no handles */
}

static int compare(const void *a, const void *b)
{
	uint64_t left = ((const struct place *)a)->number, right = ((const struct place *)b)->number;

	return left < right ? -1 : left > right;
}

static int read_places(struct bid_handles *handles)
{
	static const struct bid_node root = { .type = BID_NODE_PATH }, by_path = { .type = BID_NODE_BY_PATH };
	int64_t begun = bid_clock_ns(), ended;
	int r;

	clear(handles);
	r = add_place(handles, &by_path);
	if (r == 0)
		r = bid_tree_list(handles->tree, &root, add_below, handles);
	if (r < 0) {
		clear(handles);
		return r;
	}
	if (handles->n > 1)
		qsort(handles->places, handles->n, sizeof(*handles->places), compare);
	ended = bid_clock_ns();
	handles->fresh_until = ended + (ended - begun) * REST;
	return 0;
}

static int resolve_place(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node)
{
	const struct place key = { .number = number };
	const struct place *place = NULL;
	int r = 0;

	pthread_mutex_lock(&handles->lock);
	if (handles->n)
		place = bsearch(&key, handles->places, handles->n, sizeof(key), compare);
	if (!place && bid_clock_ns() >= handles->fresh_until) {
		r = read_places(handles);
		if (r == 0 && handles->n)
			place = bsearch(&key, handles->places, handles->n, sizeof(key), compare);
	}
	if (r == 0)
		r = place ? bid_node_copy(&place->node, ret_node) : -ESTALE;
	pthread_mutex_unlock(&handles->lock);
	return r;
}

/* What has an id */

struct search {
	uint64_t number;
	struct bid_node node; /* all of it but the id */
};

static int try_id(void *user, const struct bid_id *id)
{
	struct search *search = user;

	search->node.id = *id;
	return bid_inode_number(&search->node) == search->number;
}

static int resolve_id(const struct bid_handles *handles, uint64_t number, const struct bid_node *pattern, unsigned fan,
		      struct bid_node *ret_node)
{
	struct search search = { .number = number, .node = *pattern };
	int r = bid_store_each_id_in(handles->tree->store, (uint8_t)fan, try_id, &search);

	if (r <= 0)
		return r == -ENOMEM ? r : -ESTALE;
	*ret_node = search.node;
	return 0;
}

static int resolve_alias(uint64_t number, struct bid_node *ret_node)
{
	for (size_t i = 0; i < BID_COUNT(bid_names_fixed); i++) {
		const struct bid_node alias = { .type = bid_names_fixed[i].type, .path = (char *)bid_names_fixed[i].path };

		if (alias.type == BID_NODE_ALIAS && bid_inode_number(&alias) == number)
			return bid_node_copy(&alias, ret_node);
	}
	return -ESTALE;
}

int bid_handles_resolve(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node)
{
	struct bid_node node = { 0 };
	unsigned fan;

	bid_inode_take_apart(number, &node.type, &node.kind, &fan);
	/* names of sources and sections are nowhere to be read off before they are kept */
	if ((node.type == BID_NODE_FILE) != (node.kind != BID_KIND_NONE) || bid_kind_has_detail(node.kind))
		return -ESTALE;
	switch (node.type) {
	case BID_NODE_PATH:
	case BID_NODE_PATH_ID:
	case BID_NODE_BY_PATH:
		return resolve_place(handles, number, ret_node);
	case BID_NODE_ID:
	case BID_NODE_LINK:
	case BID_NODE_INFO:
	case BID_NODE_SECTIONS:
	case BID_NODE_SOURCES: /* but only the top */
	case BID_NODE_FILE:
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY:
	case BID_NODE_MODULES:
		return resolve_id(handles, number, &node, fan, ret_node);
	case BID_NODE_ALIAS:
		return resolve_alias(number, ret_node);
	case BID_NODE_LINKS_FAN:
	case BID_NODE_DEBUG_FAN:
		node.fan = (uint8_t)fan;
		break;
	case BID_NODE_STATUS:
	case BID_NODE_METRICS:
		node.serial = (uint32_t)number;
		break;
	default:
		break;
	}
	if (node.type == BID_NODE_NONE || bid_inode_number(&node) != number)
		return -ESTALE;
	*ret_node = node;
	return 0;
}

/* The node of @type whose path is that of @node without its last part. */
static int shorten(const struct bid_node *node, enum bid_node_type type, struct bid_node *ret_parent)
{
	struct bid_node parent = { .type = type };
	const char *path = bid_node_path(node), *slash = strrchr(path, '/');

	/* at the top of by-path is the root */
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

int bid_node_parent(const struct bid_node *node, struct bid_node *ret_parent)
{
	struct bid_node parent = { .type = BID_NODE_PATH };

	switch (node->type) {
	case BID_NODE_PATH:
	case BID_NODE_PATH_ID: /* its path is the whole one, with the id */
		return shorten(node, BID_NODE_PATH, ret_parent);
	case BID_NODE_BY_PATH:
		return shorten(node, BID_NODE_BY_PATH, ret_parent);
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
			int r = shorten(node, BID_NODE_SOURCES, &parent);

			if (r < 0)
				return r;
		} else {
			parent.type = BID_NODE_ID;
		}
		parent.id = node->id;
		break;
	case BID_NODE_LINKS_FAN:
		parent.type = BID_NODE_LINKS;
		break;
	case BID_NODE_DEBUG_FAN:
		parent.type = BID_NODE_DEBUG;
		break;
	case BID_NODE_DEBUG:
		parent.path = strdup("usr/lib/debug");
		if (!parent.path)
			return -ENOMEM;
		break;
	default:
		return -ENOTDIR;
	}
	*ret_parent = parent;
	return 0;
}
