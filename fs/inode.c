// SPDX-License-Identifier: LGPL-2.1-or-later
#include "inode.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "slot.h"

enum {
	FIRST_ROOM = 1024, /* a power of two */
	REMOVED = 1, /* the serial of a directory that has lost its name */
};

/* What is attached to an inode: few have something. */
struct attached {
	uint64_t number;
	void *attachment;
};

/*
 * Slots are in no order and without gaps: when one goes, the last one takes its place, and when there are more of them all may
 * move. So nobody keeps a pointer to one.
 */
struct bid_inodes {
	void (*detach)(enum bid_node_type type, void *attachment);
	pthread_mutex_t lock; /* protects all below */
	struct bid_slot *slots; /* owned; .next is the index + 1 of the next one in the bucket, or 0 */
	uint32_t *buckets; /* by key: index + 1 of the first, or 0; owned */
	uint32_t n, room; /* slots, and how many there is room for: the number of buckets, a power of two */
	uint64_t count; /* nodes */
	void *attachments; /* struct attached by number, see tsearch(3); owned */
};

/* A place of a slot. */
struct place {
	int64_t index; /* -1: none */
	unsigned at;
};

static bool is_root(const struct bid_node *node)
{
	return node->type == BID_NODE_PATH && !*bid_node_path(node);
}

static uint64_t number_of(unsigned class, uint64_t key)
{
	return (uint64_t) class << BID_KEY_BITS | key;
}

static unsigned class_of(uint64_t number)
{
	return (unsigned)(number >> BID_KEY_BITS);
}

static uint64_t key_of(uint64_t number)
{
	return number & ((1ULL << BID_KEY_BITS) - 1);
}

uint64_t bid_inode_number(const struct bid_node *node)
{
	return is_root(node) ? BID_INODE_ROOT : number_of(bid_class(node), bid_key(node, 0));
}

void bid_inode_take_apart(uint64_t number, enum bid_node_type *ret_type, enum bid_kind *ret_kind, unsigned *ret_fan)
{
	enum bid_node_type type = bid_class_type(class_of(number));

	*ret_type = number == BID_INODE_ROOT ? BID_NODE_PATH : type <= BID_NODE_README ? type : BID_NODE_NONE;
	*ret_kind = bid_class_kind(class_of(number));
	*ret_fan = (unsigned)(number >> 47 & 0xff);
}

/* Down to bid_inodes_new(), with the lock held */

static uint32_t *bucket_of(const struct bid_inodes *inodes, uint64_t key)
{
	return &inodes->buckets[key * 0x9e3779b97f4a7c15U >> 32 & (inodes->room - 1)];
}

static struct place find(const struct bid_inodes *inodes, unsigned class, uint64_t key)
{
	for (uint32_t next = *bucket_of(inodes, key); next; next = inodes->slots[next - 1].next) {
		const struct bid_slot *slot = &inodes->slots[next - 1];

		for (unsigned at = 0; at < BID_SLOT_PLACES; at++)
			if (slot->classes[at] == class && bid_slot_key(slot) == key)
				return (struct place){ next - 1, at };
	}
	return (struct place){ .index = -1 };
}

static struct place find_number(const struct bid_inodes *inodes, uint64_t number)
{
	if (bid_class_type(class_of(number)) == BID_NODE_NONE)
		return (struct place){ .index = -1 };
	return find(inodes, class_of(number), key_of(number));
}

static void chain(struct bid_inodes *inodes, uint32_t index)
{
	uint32_t *bucket = bucket_of(inodes, bid_slot_key(&inodes->slots[index]));

	inodes->slots[index].next = *bucket;
	*bucket = index + 1;
}

/* Where the index of that slot is written. */
static uint32_t *link_to(struct bid_inodes *inodes, uint32_t index)
{
	uint32_t *link = bucket_of(inodes, bid_slot_key(&inodes->slots[index]));

	while (*link != index + 1)
		link = &inodes->slots[*link - 1].next;
	return link;
}

static int resize(struct bid_inodes *inodes, uint32_t room)
{
	uint32_t *buckets = calloc(room, sizeof(*buckets));
	struct bid_slot *slots = buckets ? reallocarray(inodes->slots, room, sizeof(*slots)) : NULL;

	if (!slots) {
		free(buckets);
		return -ENOMEM;
	}
	free(inodes->buckets);
	inodes->buckets = buckets;
	inodes->slots = slots;
	inodes->room = room;
	for (uint32_t i = 0; i < inodes->n; i++)
		chain(inodes, i);
	return 0;
}

/* A place in a slot like @wanted that has a free one. */
static struct place find_free(const struct bid_inodes *inodes, const struct bid_slot *wanted, uint64_t key)
{
	for (uint32_t next = *bucket_of(inodes, key); next; next = inodes->slots[next - 1].next) {
		const struct bid_slot *slot = &inodes->slots[next - 1];
		unsigned at = bid_slot_free_place(slot);

		if (at < BID_SLOT_PLACES && bid_slot_is_like(slot, wanted))
			return (struct place){ next - 1, at };
	}
	return (struct place){ .index = -1 };
}

/* Take a place for @class, in a slot like @wanted or in @wanted itself, which is the table's then. -ENOMEM. */
static int insert(struct bid_inodes *inodes, const struct bid_slot *wanted, uint64_t key, unsigned class, struct place *ret_place)
{
	struct place place = find_free(inodes, wanted, key);

	if (place.index < 0) {
		if (inodes->n == inodes->room && (inodes->room > UINT32_MAX / 4 || resize(inodes, inodes->room * 2) < 0))
			return -ENOMEM;
		place.index = inodes->n++;
		inodes->slots[place.index] = *wanted;
		chain(inodes, (uint32_t)place.index);
	}
	inodes->slots[place.index].classes[place.at] = (uint8_t) class;
	inodes->slots[place.index].refs[place.at] = 0;
	inodes->slots[place.index].serials[place.at] = 0;
	*ret_place = place;
	return 0;
}

/* Free that place. Returns whether the table has become much too large. */
static bool drop(struct bid_inodes *inodes, struct place place)
{
	uint32_t index = (uint32_t)place.index, last = inodes->n - 1;
	struct bid_slot *slot = &inodes->slots[index];

	slot->classes[place.at] = BID_CLASS_FREE;
	for (unsigned at = 0; at < BID_SLOT_PLACES; at++)
		if (slot->classes[at] != BID_CLASS_FREE)
			return false;
	*link_to(inodes, index) = slot->next;
	bid_slot_release(slot);
	if (index != last) {
		*link_to(inodes, last) = index + 1;
		*slot = inodes->slots[last];
	}
	inodes->n--;
	return inodes->room > FIRST_ROOM && inodes->n < inodes->room / 8;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = ((const struct attached *)a)->number, right = ((const struct attached *)b)->number;

	return left < right ? -1 : left > right;
}

/* The attachment of that number, which is not attached any more. */
static void *take_attachment(struct bid_inodes *inodes, uint64_t number)
{
	const struct attached wanted = { .number = number };
	struct attached **found = tfind(&wanted, &inodes->attachments, compare), *attached = found ? *found : NULL;
	void *attachment = attached ? attached->attachment : NULL;

	tdelete(&wanted, &inodes->attachments, compare);
	free(attached);
	return attachment;
}

/* The place of @node, a new one if it has none. -ENOMEM. */
static int place_of(struct bid_inodes *inodes, const struct bid_node *node, struct place *ret_place, uint64_t *ret_key)
{
	unsigned class = bid_class(node), attempt = 0;
	struct bid_slot wanted;
	struct place place;
	uint64_t key;
	int r;

	for (;; attempt++) {
		struct bid_node taken;

		if (attempt == BID_SLOT_ATTEMPTS)
			return -ENOMEM;
		key = bid_key(node, attempt);
		place = find(inodes, class, key);
		if (place.index < 0)
			break;
		taken = bid_slot_node(&inodes->slots[place.index], place.at);
		/* the serial of a directory says that it was removed */
		if (bid_node_has_versions(&taken) && inodes->slots[place.index].serials[place.at])
			taken.serial = 0;
		if (bid_node_equal(&taken, node))
			break;
	}
	if (place.index < 0) {
		r = bid_slot_init(&wanted, node, key, attempt);
		if (r < 0)
			return r;
		r = insert(inodes, &wanted, key, class, &place);
		if (r < 0) {
			bid_slot_release(&wanted);
			return r;
		}
		inodes->count++;
	}
	*ret_place = place;
	*ret_key = key;
	return 0;
}

static int get(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode *ret_inode)
{
	struct bid_node plain = *node;
	struct place place;
	uint32_t *refs, *serial;
	uint64_t key;
	int r;

	if (bid_node_has_versions(node))
		plain.serial = 0;
	r = place_of(inodes, &plain, &place, &key);
	if (r == 0 && node->serial != plain.serial) {
		serial = &inodes->slots[place.index].serials[place.at];
		if (*serial == 0)
			*serial = node->serial;
		else if (*serial != node->serial)
			r = place_of(inodes, node, &place, &key);
	}
	if (r < 0)
		return r;
	refs = &inodes->slots[place.index].refs[place.at];
	if (*refs < UINT32_MAX)
		++*refs;
	ret_inode->number = number_of(bid_class(node), key);
	ret_inode->node = bid_slot_node(&inodes->slots[place.index], place.at);
	return 0;
}

/* Nobody holds it any more. Returns its attachment, and whether the table has become much too large. */
static void *forget(struct bid_inodes *inodes, uint64_t number, struct place place, bool *ret_many)
{
	struct bid_slot *slot = &inodes->slots[place.index];
	uint8_t mask = (uint8_t)(1 << place.at);
	void *attachment = slot->attached & mask ? take_attachment(inodes, number) : NULL;

	slot->attached &= (uint8_t)~mask;
	*ret_many = drop(inodes, place);
	inodes->count--;
	return attachment;
}

int bid_inodes_new(void (*detach)(enum bid_node_type type, void *attachment), struct bid_inodes **ret_inodes)
{
	struct bid_inodes *inodes = calloc(1, sizeof(*inodes));

	if (!inodes)
		return -ENOMEM;
	pthread_mutex_init(&inodes->lock, NULL);
	inodes->detach = detach;
	if (resize(inodes, FIRST_ROOM) < 0) {
		bid_inodes_free(inodes);
		return -ENOMEM;
	}
	*ret_inodes = inodes;
	return 0;
}

void bid_inodes_free(struct bid_inodes *inodes)
{
	if (!inodes)
		return;
	for (uint32_t i = 0; i < inodes->n; i++) {
		struct bid_slot *slot = &inodes->slots[i];

		for (unsigned at = 0; at < BID_SLOT_PLACES; at++)
			if (slot->attached & 1 << at)
				inodes->detach(bid_class_type(slot->classes[at]),
					       take_attachment(inodes, number_of(slot->classes[at], bid_slot_key(slot))));
		bid_slot_release(slot);
	}
	free(inodes->slots);
	free(inodes->buckets);
	pthread_mutex_destroy(&inodes->lock);
	free(inodes);
}

/* The root is not in the table: it is always there. */
static const struct bid_inode root = { .number = BID_INODE_ROOT, .node = { .type = BID_NODE_PATH } };

int bid_inodes_get(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode *ret_inode)
{
	int r;

	if (is_root(node)) {
		*ret_inode = root;
		return 0;
	}
	pthread_mutex_lock(&inodes->lock);
	r = get(inodes, node, ret_inode);
	pthread_mutex_unlock(&inodes->lock);
	return r;
}

void bid_inodes_set_serial(struct bid_inodes *inodes, uint64_t number, uint32_t serial)
{
	struct place place;

	pthread_mutex_lock(&inodes->lock);
	place = find_number(inodes, number);
	if (place.index >= 0)
		inodes->slots[place.index].serials[place.at] = serial;
	pthread_mutex_unlock(&inodes->lock);
}

struct bid_inode *bid_inodes_find(struct bid_inodes *inodes, uint64_t number, struct bid_inode *buffer)
{
	struct place place;

	if (number == BID_INODE_ROOT) {
		*buffer = root;
		return buffer;
	}
	pthread_mutex_lock(&inodes->lock);
	place = find_number(inodes, number);
	if (place.index >= 0) {
		buffer->number = number;
		buffer->node = bid_slot_node(&inodes->slots[place.index], place.at);
	}
	pthread_mutex_unlock(&inodes->lock);
	return place.index >= 0 ? buffer : NULL;
}

bool bid_inodes_forget(struct bid_inodes *inodes, uint64_t number, uint64_t count)
{
	void *attachment = NULL;
	bool gone = false, many = false;
	struct place place;
	uint32_t *refs;

	pthread_mutex_lock(&inodes->lock);
	place = find_number(inodes, number);
	if (place.index >= 0) {
		refs = &inodes->slots[place.index].refs[place.at];
		if (*refs < UINT32_MAX)
			*refs -= count < *refs ? (uint32_t)count : *refs;
		gone = *refs == 0;
		if (gone)
			attachment = forget(inodes, number, place, &many);
	}
	if (many)
		resize(inodes, inodes->room / 4); /* without memory it is larger, not wrong */
	pthread_mutex_unlock(&inodes->lock);
	if (attachment)
		inodes->detach(bid_class_type(class_of(number)), attachment);
	/* a walk through a large store has come to its end: what it took is for others again, and malloc(3) would keep it */
	if (many)
		malloc_trim(0);
	return gone;
}

int bid_inodes_attach(struct bid_inodes *inodes, uint64_t number, void *attachment)
{
	bid_auto_free struct attached *attached = malloc(sizeof(*attached));
	struct attached **added;
	struct place place;
	int r = 0;

	if (!attached)
		return -ENOMEM;
	*attached = (struct attached){ .number = number, .attachment = attachment };
	pthread_mutex_lock(&inodes->lock);
	place = find_number(inodes, number);
	added = place.index >= 0 ? tsearch(attached, &inodes->attachments, compare) : NULL;
	if (!added) {
		r = place.index >= 0 ? -ENOMEM : -ESTALE;
	} else if (*added != attached) {
		r = -EEXIST;
	} else {
		inodes->slots[place.index].attached |= (uint8_t)(1 << place.at);
		bid_steal(attached);
	}
	pthread_mutex_unlock(&inodes->lock);
	return r;
}

void *bid_inodes_attached(struct bid_inodes *inodes, uint64_t number)
{
	const struct attached wanted = { .number = number };
	struct attached **found;
	void *attachment = NULL;

	pthread_mutex_lock(&inodes->lock);
	found = tfind(&wanted, &inodes->attachments, compare);
	if (found)
		attachment = (*found)->attachment;
	pthread_mutex_unlock(&inodes->lock);
	return attachment;
}

void bid_inodes_remove(struct bid_inodes *inodes, const struct bid_node *node)
{
	pthread_mutex_lock(&inodes->lock);
	for (unsigned attempt = 0; attempt < BID_SLOT_ATTEMPTS; attempt++) {
		struct place place = find(inodes, bid_class(node), bid_key(node, attempt));
		struct bid_node taken;

		if (place.index < 0)
			break;
		taken = bid_slot_node(&inodes->slots[place.index], place.at);
		if (bid_node_equal(&taken, node)) {
			inodes->slots[place.index].serials[place.at] = REMOVED;
			break;
		}
	}
	pthread_mutex_unlock(&inodes->lock);
}

uint64_t bid_inodes_count(struct bid_inodes *inodes)
{
	uint64_t count;

	pthread_mutex_lock(&inodes->lock);
	count = inodes->count + 1;
	pthread_mutex_unlock(&inodes->lock);
	return count;
}

uint32_t bid_inode_text_serial(const char *text)
{
	uint32_t serial = (uint32_t)XXH3_64bits(text, strlen(text));

	return serial ? serial : 1;
}
