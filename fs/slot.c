// SPDX-License-Identifier: LGPL-2.1-or-later
#include "slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
	LARGE = 0xff, /* not the length of an id */
	HASH_BITS = 47,
};

struct large {
	uint64_t key;
	struct bid_node node; /* owned */
};

_Static_assert(BID_NODE_STAGED < 32 && BID_KIND_END <= 8, "type and kind fit into 8 bits");

unsigned bid_class(const struct bid_node *node)
{
	return (unsigned)node->type << 3 | node->kind;
}

enum bid_node_type bid_class_type(unsigned class)
{
	return (enum bid_node_type)(class >> 3);
}

enum bid_kind bid_class_kind(unsigned class)
{
	return (enum bid_kind)(class & 7);
}

static uint64_t key_from(unsigned fan, XXH64_hash_t hash)
{
	return (uint64_t)fan << HASH_BITS | (hash & ((1ULL << HASH_BITS) - 1));
}

uint64_t bid_key(const struct bid_node *node, unsigned attempt)
{
	const char *path = bid_node_path(node), *detail = node->detail ? bid_detail_text(node->detail) : "";
	XXH64_hash_t hash;

	if (node->serial && !bid_node_has_versions(node))
		return node->serial;
	hash = XXH3_64bits_withSeed(node->id.bytes, node->id.len, attempt);
	if (node->serial)
		hash = XXH3_64bits_withSeed(&node->serial, sizeof(node->serial), hash);
	if (*path)
		hash = XXH3_64bits_withSeed(path, strlen(path), hash);
	if (*detail)
		hash = XXH3_64bits_withSeed(detail, strlen(detail), hash);
	return key_from(node->id.len ? node->id.bytes[0] : node->fan, hash);
}

static struct large *large_of(const struct bid_slot *slot)
{
	struct large *large;

	if (slot->len != LARGE)
		return NULL;
	memcpy(&large, slot->bytes, sizeof(large));
	return large;
}

static bool is_small(const struct bid_node *node)
{
	return node->id.len <= BID_SLOT_SMALL && !*bid_node_path(node) && !node->detail && !node->serial &&
	       !(node->id.len && node->fan);
}

int bid_slot_init(struct bid_slot *ret_slot, const struct bid_node *node, uint64_t key, unsigned attempt)
{
	struct bid_slot slot = { .attempt = attempt & (BID_SLOT_ATTEMPTS - 1), .len = node->id.len };
	struct large *large;

	if (is_small(node)) {
		memcpy(slot.bytes, node->id.bytes, BID_SLOT_SMALL);
		if (!slot.len)
			slot.bytes[0] = node->fan;
		*ret_slot = slot;
		return 0;
	}
	large = calloc(1, sizeof(*large));
	if (!large || bid_node_copy(node, &large->node) < 0) {
		free(large);
		return -ENOMEM;
	}
	large->key = key;
	slot.len = LARGE;
	memcpy(slot.bytes, &large, sizeof(large));
	*ret_slot = slot;
	return 0;
}

void bid_slot_release(struct bid_slot *slot)
{
	struct large *large = large_of(slot);

	if (large)
		bid_node_release(&large->node);
	free(large);
}

uint64_t bid_slot_key(const struct bid_slot *slot)
{
	const struct large *large = large_of(slot);

	return large ? large->key : key_from(slot->bytes[0], XXH3_64bits_withSeed(slot->bytes, slot->len, slot->attempt));
}

struct bid_node bid_slot_node(const struct bid_slot *slot, unsigned at)
{
	const struct large *large = large_of(slot);
	struct bid_node node = { .type = bid_class_type(slot->classes[at]), .kind = bid_class_kind(slot->classes[at]) };

	if (large)
		node = large->node;
	if (slot->serials[at])
		node.serial = slot->serials[at];
	if (large)
		return node;
	node.id.len = slot->len;
	if (slot->len)
		memcpy(node.id.bytes, slot->bytes, slot->len);
	else
		node.fan = slot->bytes[0];
	return node;
}

bool bid_slot_is_like(const struct bid_slot *a, const struct bid_slot *b)
{
	return a->len == b->len && a->attempt == b->attempt && a->len != LARGE && memcmp(a->bytes, b->bytes, BID_SLOT_SMALL) == 0;
}

unsigned bid_slot_free_place(const struct bid_slot *slot)
{
	unsigned at = 0;

	while (at < BID_SLOT_PLACES && slot->classes[at] != BID_CLASS_FREE)
		at++;
	return at;
}
