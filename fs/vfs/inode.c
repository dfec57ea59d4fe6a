// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/inode.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
	KIND_BITS = 4,
	HASH_BITS = 46,
	KEY_BITS = 8 + HASH_BITS,
	FEWEST_BUCKETS = 1024, /* a power of two */
	ATTEMPTS = 4096, /* inodes of one name at a time */
};

_Static_assert(BID_NODE_TMPFILE < 32 && BID_KIND_END <= 1 << KIND_BITS, "type and kind fit into 9 bits");

struct inode {
	struct inode *next; /* in its bucket; owned by the table */
	uint64_t number;
	uint64_t refs; /* lookup count of the kernel */
	struct bid_node node; /* owned */
	bool removed; /* a directory without its name */
};

struct bid_inodes {
	pthread_mutex_t lock; /* guards all below */
	struct inode **buckets; /* owned */
	size_t n_buckets; /* a power of two */
	size_t n; /* without the root */
	struct bid_inode root; /* never in the table */
};

static bool is_root(const struct bid_node *node)
{
	return node->type == BID_NODE_PATH && !*bid_node_path(node);
}

static uint64_t hash_of(const struct bid_node *node, unsigned attempt)
{
	const char *path = bid_node_path(node), *subpath = node->subpath ? bid_subpath_text(node->subpath) : "";
	XXH64_hash_t hash = XXH3_64bits_withSeed(node->id.bytes, node->id.len, attempt);

	if (*path)
		hash = XXH3_64bits_withSeed(path, strlen(path), hash);
	if (*subpath)
		hash = XXH3_64bits_withSeed(subpath, strlen(subpath), hash);
	return hash & ((1ULL << HASH_BITS) - 1);
}

/* The number of @node for @attempt: 0, or more if another inode has that number. */
static uint64_t number_of(const struct bid_node *node, unsigned attempt)
{
	uint64_t type = (uint64_t)node->type << KIND_BITS | node->kind, fanout = node->id.len ? node->id.bytes[0] : node->fanout;

	if (node->version && !bid_node_has_versions(node))
		return type << KEY_BITS | node->version;
	return type << KEY_BITS | fanout << HASH_BITS | hash_of(node, attempt);
}

uint64_t bid_inode_number(const struct bid_node *node)
{
	return is_root(node) ? BID_INODE_ROOT : number_of(node, 0);
}

void bid_inode_split(uint64_t number, enum bid_node_type *ret_type, enum bid_kind *ret_kind, unsigned *ret_fanout)
{
	enum bid_node_type type = (enum bid_node_type)(number >> (KEY_BITS + KIND_BITS));

	*ret_type = number == BID_INODE_ROOT ? BID_NODE_PATH : type <= BID_NODE_README ? type : BID_NODE_NONE;
	*ret_kind = (enum bid_kind)(number >> KEY_BITS & ((1 << KIND_BITS) - 1));
	*ret_fanout = (unsigned)(number >> HASH_BITS & 0xff);
}

uint32_t bid_inode_text_version(const char *text)
{
	uint32_t version = (uint32_t)XXH3_64bits(text, strlen(text));

	return version ? version : 1;
}

/* Locking: the functions from here to bid_inodes_new() need the lock. */

static struct inode **bucket_of(const struct bid_inodes *inodes, uint64_t number)
{
	return &inodes->buckets[number * 0x9e3779b97f4a7c15U >> 32 & (inodes->n_buckets - 1)];
}

/* The link to the inode @number, or to the NULL at the end of its bucket. */
static struct inode **link_to(const struct bid_inodes *inodes, uint64_t number)
{
	struct inode **link = bucket_of(inodes, number);

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

static struct inode *find_inode(const struct bid_inodes *inodes, uint64_t number)
{
	return *link_to(inodes, number);
}

/* Resize the table. Without memory it keeps its buckets. */
static void resize_table(struct bid_inodes *inodes, size_t n_buckets)
{
	struct inode **before = inodes->buckets, **buckets = calloc(n_buckets, sizeof(struct inode *)), *next;
	size_t n_before = inodes->n_buckets;

	if (!buckets)
		return;
	inodes->buckets = buckets;
	inodes->n_buckets = n_buckets;
	for (size_t i = 0; i < n_before; i++)
		for (struct inode *inode = before[i]; inode; inode = next) {
			struct inode **bucket = bucket_of(inodes, inode->number);

			next = inode->next;
			inode->next = *bucket;
			*bucket = inode;
		}
	free(before);
}

static void inode_free(struct inode *inode)
{
	bid_node_release(&inode->node);
	free(inode);
}

/* Insert an inode of @node, without a reference. NULL without memory. */
static struct inode *insert_inode(struct bid_inodes *inodes, const struct bid_node *node, uint64_t number)
{
	struct inode *inode = calloc(1, sizeof(*inode)), **bucket;

	if (!inode || bid_node_copy(node, &inode->node) < 0) {
		free(inode);
		return NULL;
	}
	if (inodes->n == inodes->n_buckets)
		resize_table(inodes, inodes->n_buckets * 2);
	bucket = bucket_of(inodes, number);
	inode->number = number;
	inode->next = *bucket;
	*bucket = inode;
	inodes->n++;
	return inode;
}

/* Is @inode one of @node? Version 0 is any version. */
static bool is_of(const struct inode *inode, const struct bid_node *node)
{
	struct bid_node other = inode->node;

	if (bid_node_has_versions(node) && (!other.version || !node->version))
		other.version = node->version;
	return !inode->removed && bid_node_equal(&other, node);
}

static struct inode *find_or_insert(struct bid_inodes *inodes, const struct bid_node *node)
{
	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t number = number_of(node, attempt);
		struct inode *inode = find_inode(inodes, number);

		if (!inode)
			return insert_inode(inodes, node, number);
		if (!is_of(inode, node))
			continue;
		if (!inode->node.version)
			inode->node.version = node->version;
		return inode;
	}
	return NULL;
}

int bid_inodes_new(const char *root, struct bid_inodes **ret_inodes)
{
	struct bid_inodes *inodes = calloc(1, sizeof(*inodes));

	if (!inodes)
		return -ENOMEM;
	inodes->root = (struct bid_inode){ .number = BID_INODE_ROOT, .node = { .type = BID_NODE_PATH, .path = (char *)root } };
	pthread_mutex_init(&inodes->lock, NULL);
	resize_table(inodes, FEWEST_BUCKETS);
	if (!inodes->buckets) {
		bid_inodes_free(inodes);
		return -ENOMEM;
	}
	*ret_inodes = inodes;
	return 0;
}

void bid_inodes_free(struct bid_inodes *inodes)
{
	struct inode *next;

	if (!inodes)
		return;
	for (size_t i = 0; i < inodes->n_buckets; i++)
		for (struct inode *inode = inodes->buckets[i]; inode; inode = next) {
			next = inode->next;
			inode_free(inode);
		}
	free(inodes->buckets);
	pthread_mutex_destroy(&inodes->lock);
	free(inodes);
}

int bid_inodes_lookup(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode *ret_inode)
{
	struct inode *inode;

	/* no directory is above the root */
	if (is_root(node) || bid_node_equal(node, &inodes->root.node)) {
		*ret_inode = inodes->root;
		return 0;
	}
	pthread_mutex_lock(&inodes->lock);
	inode = find_or_insert(inodes, node);
	if (inode) {
		inode->refs++;
		*ret_inode = (struct bid_inode){ .number = inode->number, .node = inode->node };
	}
	pthread_mutex_unlock(&inodes->lock);
	return inode ? 0 : -ENOMEM;
}

void bid_inodes_set_version(struct bid_inodes *inodes, uint64_t number, uint32_t version)
{
	struct inode *inode;

	pthread_mutex_lock(&inodes->lock);
	inode = find_inode(inodes, number);
	if (inode)
		inode->node.version = version;
	pthread_mutex_unlock(&inodes->lock);
}

struct bid_inode *bid_inodes_find(struct bid_inodes *inodes, uint64_t number, struct bid_inode *buffer)
{
	const struct inode *inode;

	if (number == BID_INODE_ROOT) {
		*buffer = inodes->root;
		return buffer;
	}
	pthread_mutex_lock(&inodes->lock);
	inode = find_inode(inodes, number);
	if (inode)
		*buffer = (struct bid_inode){ .number = number, .node = inode->node };
	pthread_mutex_unlock(&inodes->lock);
	return inode ? buffer : NULL;
}

bool bid_inodes_forget(struct bid_inodes *inodes, uint64_t number, uint64_t count)
{
	struct inode **link, *inode, *gone = NULL;
	bool many = false;

	pthread_mutex_lock(&inodes->lock);
	link = link_to(inodes, number);
	inode = *link;
	if (inode)
		inode->refs -= count < inode->refs ? count : inode->refs;
	if (inode && inode->refs == 0) {
		gone = inode;
		*link = gone->next;
		inodes->n--;
		many = inodes->n_buckets > FEWEST_BUCKETS && inodes->n < inodes->n_buckets / 8;
	}
	if (many)
		resize_table(inodes, inodes->n_buckets / 4);
	pthread_mutex_unlock(&inodes->lock);
	if (!gone)
		return false;
	inode_free(gone);
	/* after a walk through a large store, malloc(3) would keep the memory */
	if (many)
		malloc_trim(0);
	return true;
}

void bid_inodes_remove(struct bid_inodes *inodes, const struct bid_node *node)
{
	struct inode *inode;

	pthread_mutex_lock(&inodes->lock);
	for (unsigned attempt = 0; (inode = find_inode(inodes, number_of(node, attempt))) && attempt < ATTEMPTS; attempt++)
		if (is_of(inode, node)) {
			inode->removed = true;
			break;
		}
	pthread_mutex_unlock(&inodes->lock);
}

uint64_t bid_inodes_count(struct bid_inodes *inodes)
{
	uint64_t n;

	pthread_mutex_lock(&inodes->lock);
	n = inodes->n + 1;
	pthread_mutex_unlock(&inodes->lock);
	return n;
}
