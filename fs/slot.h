/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the table of inodes keeps nodes: two of one id in 44 bytes, because there may be millions of ids; and the numbers that
 * inodes have. Pure C, pure functions but for memory.
 */
#ifndef BID_FS_SLOT_H
#define BID_FS_SLOT_H

#include <stdint.h>

#include "node.h"

/*
 * A number is [class: 8 bits][key: 55]. The class is type and kind of a node, and this one is of none. All nodes of an id have
 * one key, which begins with the first byte of the id.
 */
enum { BID_CLASS_FREE = 0 };

#define BID_KEY_BITS 55

enum {
	BID_SLOT_PLACES = 2,
	BID_SLOT_SMALL = 20, /* bytes of an id */
	BID_SLOT_ATTEMPTS = 64,
};

/*
 * Two nodes of one id, or a "large" one, which is more than a type, a kind and a short id, and alone. Has no pointer to itself:
 * may be moved.
 */
struct bid_slot {
	uint32_t next; /* the owner's */
	uint32_t refs[BID_SLOT_PLACES]; /* of the kernel, which are not counted any more at UINT32_MAX */
	/* of artifacts and links, which are found without, and of removed directories; not that of a large node */
	uint32_t serials[BID_SLOT_PLACES];
	uint8_t classes[BID_SLOT_PLACES];
	uint8_t attempt : 6; /* see bid_key() */
	uint8_t attached : BID_SLOT_PLACES; /* the owner's: has an attachment, by place */
	uint8_t len; /* of the id, or that it is large */
	uint8_t bytes
		[BID_SLOT_SMALL]; /* the id, or the fan of a node without one, the rest is zero; or a pointer to what is large */
};

_Static_assert(sizeof(struct bid_slot) == 44, "there may be millions");

unsigned bid_class(const struct bid_node *node);
enum bid_node_type bid_class_type(unsigned class);
enum bid_kind bid_class_kind(unsigned class);

/* The key of @node. @attempt 0 is its own; the next ones are for one whose number is taken by another. */
uint64_t bid_key(const struct bid_node *node, unsigned attempt);

/* A slot for @node, with no place taken. @key is its key with @attempt. -ENOMEM. */
int bid_slot_init(struct bid_slot *ret_slot, const struct bid_node *node, uint64_t key, unsigned attempt);

/* What is owned by @slot goes. */
void bid_slot_release(struct bid_slot *slot);

uint64_t bid_slot_key(const struct bid_slot *slot);

/* The node in the place @at. Its path and detail are the slot's. */
struct bid_node bid_slot_node(const struct bid_slot *slot, unsigned at);

/* Can what has a place in @a have one in @b? They are of one id and key, and neither is large. */
bool bid_slot_is_like(const struct bid_slot *a, const struct bid_slot *b);

/* The first free place, or BID_SLOT_PLACES. */
unsigned bid_slot_free_place(const struct bid_slot *slot);

#endif
