// SPDX-License-Identifier: LGPL-2.1-or-later
#include "handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "inode.h"
#include "kcore.h"
#include "names.h"
#include "seek.h"

/* A number that is searched for. */
struct sought {
	struct sought *next;
	uint64_t number;
	struct bid_handle_waiter waiter;
};

struct bid_handles {
	const struct bid_tree *tree; /* borrowed */
	struct bid_seek *seek; /* owned; the thread's */
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t more;
	struct sought *first, **last; /* owned */
	bool started; /* there is a thread */
	atomic_bool ended;
};

int bid_handles_new(const struct bid_tree *tree, struct bid_handles **ret_handles)
{
	struct bid_handles *handles = calloc(1, sizeof(*handles));

	if (!handles || bid_seek_new(tree, &handles->seek) < 0) {
		free(handles);
		return -ENOMEM;
	}
	handles->tree = tree;
	handles->last = &handles->first;
	pthread_mutex_init(&handles->lock, NULL);
	pthread_cond_init(&handles->more, NULL);
	*ret_handles = handles;
	return 0;
}

void bid_handles_free(struct bid_handles *handles)
{
	if (!handles)
		return;
	bid_seek_free(handles->seek);
	pthread_cond_destroy(&handles->more);
	pthread_mutex_destroy(&handles->lock);
	free(handles);
}

/* Searching, from a thread of its own */

static void answer(struct sought *sought, int error, struct bid_node *node)
{
	sought->waiter.answer(sought->waiter.user, error, node);
	free(sought);
}

/* Whoever waits behind others is not kept waiting once he has given up. */
static void send_away(struct bid_handles *handles)
{
	struct sought *gone = NULL, **at, *next;

	pthread_mutex_lock(&handles->lock);
	for (at = &handles->first; (next = *at);) {
		if (!next->waiter.is_gone(next->waiter.user)) {
			at = &next->next;
			continue;
		}
		*at = next->next;
		next->next = gone;
		gone = next;
	}
	handles->last = at;
	pthread_mutex_unlock(&handles->lock);
	for (; gone; gone = next) {
		next = gone->next;
		answer(gone, -EINTR, NULL);
	}
}

struct turn {
	struct bid_handles *handles;
	struct sought *sought;
};

/* bid_seek_over_fn */
static bool is_over(void *user)
{
	const struct turn *turn = user;

	send_away(turn->handles);
	return atomic_load(&turn->handles->ended) || turn->sought->waiter.is_gone(turn->sought->waiter.user);
}

static void seek(struct bid_handles *handles, struct sought *sought)
{
	struct turn turn = { .handles = handles, .sought = sought };
	struct bid_node node = { 0 };
	int r = bid_seek_node(handles->seek, sought->number, is_over, &turn, &node);

	answer(sought, r, r == 0 ? &node : NULL);
	bid_node_release(&node);
}

static void *work(void *user)
{
	struct bid_handles *handles = user;
	struct sought *sought;

	pthread_mutex_lock(&handles->lock);
	while (!atomic_load(&handles->ended) || handles->first) {
		sought = handles->first;
		if (!sought) {
			pthread_cond_wait(&handles->more, &handles->lock);
			continue;
		}
		handles->first = sought->next;
		if (!handles->first)
			handles->last = &handles->first;
		pthread_mutex_unlock(&handles->lock);
		seek(handles, sought);
		pthread_mutex_lock(&handles->lock);
	}
	pthread_mutex_unlock(&handles->lock);
	return NULL;
}

int bid_handles_seek(struct bid_handles *handles, uint64_t number, const struct bid_handle_waiter *waiter)
{
	struct sought *sought = malloc(sizeof(*sought));
	int r = sought ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	*sought = (struct sought){ .number = number, .waiter = *waiter };
	pthread_mutex_lock(&handles->lock);
	if (!handles->started)
		r = bid_thread_start(&handles->thread, "bid-handles", work, handles);
	if (r == 0) {
		handles->started = true;
		*handles->last = sought;
		handles->last = &sought->next;
		pthread_cond_signal(&handles->more);
	}
	pthread_mutex_unlock(&handles->lock);
	if (r < 0)
		free(sought);
	return r;
}

void bid_handles_end(struct bid_handles *handles)
{
	if (!handles->started)
		return;
	pthread_mutex_lock(&handles->lock);
	atomic_store(&handles->ended, true);
	pthread_cond_signal(&handles->more);
	pthread_mutex_unlock(&handles->lock);
	pthread_join(handles->thread, NULL);
	handles->started = false;
}

/* What has an id */

struct search {
	uint64_t number;
	struct bid_node node; /* all of it but the id */
};

/* An id is found by perf's spellings of it, too: the first 20 bytes, and those of a short one with zeros behind them. */
static int try_id(void *user, const struct bid_id *id)
{
	struct search *search = user;

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

/* What is there whatever is in the store. */
static int resolve_path(uint64_t number, enum bid_node_type type, struct bid_node *ret_node)
{
	struct bid_node node = { .type = type };

	if (bid_inode_number(&node) == number) {
		*ret_node = node;
		return 0;
	}
	for (size_t i = 0; i < BID_COUNT(bid_names_fixed); i++) {
		node.path = (char *)bid_names_fixed[i].path;
		if (bid_names_fixed[i].type == BID_NODE_PATH && type == BID_NODE_PATH && bid_inode_number(&node) == number)
			return bid_node_copy(&node, ret_node);
	}
	for (int i = 0; i < 2; i++) {
		node.path = (char *)(i == 0 ? BID_STORE_NAMELESS : BID_KCORE_PATH);
		if (type == BID_NODE_PATH && bid_inode_number(&node) == number)
			return bid_node_copy(&node, ret_node);
	}
	return -ESTALE;
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

static int resolve(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node)
{
	struct bid_node node = { 0 };
	unsigned fan;

	bid_inode_take_apart(number, &node.type, &node.kind, &fan);
	if ((node.type == BID_NODE_FILE) != (node.kind != BID_KIND_NONE) || bid_kind_has_detail(node.kind))
		return -ESTALE;
	switch (node.type) {
	case BID_NODE_PATH:
	case BID_NODE_BY_PATH:
		return resolve_path(number, node.type, ret_node);
	case BID_NODE_ID:
	case BID_NODE_LINK:
	case BID_NODE_INFO:
	case BID_NODE_SECTIONS:
	case BID_NODE_SOURCES: /* but only the top */
	case BID_NODE_FILE:
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY: /* but only the one that is offered */
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
	case BID_NODE_IDS:
	case BID_NODE_LINKS:
	case BID_NODE_DEBUG:
	case BID_NODE_META:
	case BID_NODE_README:
		break;
	default: /* what has an id or a path cannot be made of its number alone, whatever that is */
		return -ESTALE;
	}
	if (bid_inode_number(&node) != number)
		return -ESTALE;
	*ret_node = node;
	return 0;
}

int bid_handles_resolve(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node)
{
	enum bid_node_type type;
	enum bid_kind kind;
	unsigned fan;
	int r = resolve(handles, number, ret_node);

	bid_inode_take_apart(number, &type, &kind, &fan);
	return r == -ESTALE && bid_seek_can(type, kind) ? -EINPROGRESS : r;
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
