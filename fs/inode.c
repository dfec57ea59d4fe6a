// SPDX-License-Identifier: LGPL-2.1-or-later
#include "inode.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_BUCKETS = 1024 }; /* a power of two */

struct bid_inodes {
	pthread_mutex_t lock; /* protects all below */
	void (*detach)(const struct bid_inode *inode);
	struct bid_inode **buckets;
	uint64_t n_buckets; /* a power of two */
	uint64_t n;
};

_Static_assert(BID_NODE_STAGED < 32 && BID_KIND_END <= 8, "type and kind fit into 8 bits");

/* @attempt 0 is the number of a node; the next ones are for one whose number is taken by another. */
static uint64_t number_of(const struct bid_node *node, unsigned attempt)
{
	uint64_t class = (uint64_t)node->type << 3 | node->kind;
	uint64_t fan = node->id.len ? node->id.bytes[0] : node->fan;
	XXH64_hash_t hash;

	if (node->type == BID_NODE_PATH && !*bid_node_path(node))
		return BID_INODE_ROOT;
	if (node->serial)
		return class << 55 | node->serial;
	hash = XXH3_64bits_withSeed(node->id.bytes, node->id.len, attempt << 8 | (unsigned)node->type);
	hash = XXH3_64bits_withSeed(bid_node_path(node), strlen(bid_node_path(node)), hash);
	if (node->detail)
		hash = XXH3_64bits_withSeed(bid_detail_text(node->detail), strlen(bid_detail_text(node->detail)), hash);
	return class << 55 | fan << 47 | (hash & 0x7fffffffffffU);
}

uint64_t bid_inode_number(const struct bid_node *node)
{
	return number_of(node, 0);
}

void bid_inode_take_apart(uint64_t number, enum bid_node_type *ret_type, enum bid_kind *ret_kind, unsigned *ret_fan)
{
	uint64_t class = number >> 55;

	*ret_type = number == BID_INODE_ROOT	    ? BID_NODE_PATH
		    : class >> 3 <= BID_NODE_README ? (enum bid_node_type)(class >> 3)
						    : BID_NODE_NONE;
	*ret_kind = (enum bid_kind)(class & 7);
	*ret_fan = (unsigned)(number >> 47 & 0xff);
}

static struct bid_inode **bucket_of(const struct bid_inodes *inodes, uint64_t number)
{
	return &inodes->buckets[number * 0x9e3779b97f4a7c15U >> 32 & (inodes->n_buckets - 1)];
}

static struct bid_inode *find(const struct bid_inodes *inodes, uint64_t number)
{
	struct bid_inode *inode = *bucket_of(inodes, number);

	while (inode && inode->number != number)
		inode = inode->next;
	return inode;
}

static void resize(struct bid_inodes *inodes, uint64_t n_buckets)
{
	struct bid_inodes other = { .n_buckets = n_buckets };

	other.buckets = calloc(other.n_buckets, sizeof(*other.buckets));
	if (!other.buckets)
		return; /* slower, or larger, not wrong */
	for (uint64_t i = 0; i < inodes->n_buckets; i++) {
		struct bid_inode *inode, *next;

		for (inode = inodes->buckets[i]; inode; inode = next) {
			struct bid_inode **bucket = bucket_of(&other, inode->number);

			next = inode->next;
			inode->next = *bucket;
			*bucket = inode;
		}
	}
	free(inodes->buckets);
	inodes->buckets = other.buckets;
	inodes->n_buckets = other.n_buckets;
}

static struct bid_inode *insert(struct bid_inodes *inodes, uint64_t number, const struct bid_node *node)
{
	struct bid_inode *inode = calloc(1, sizeof(*inode));
	struct bid_inode **bucket;

	if (!inode || bid_node_copy(node, &inode->node) < 0) {
		free(inode);
		return NULL;
	}
	if (inodes->n >= inodes->n_buckets)
		resize(inodes, inodes->n_buckets * 2);
	bucket = bucket_of(inodes, number);
	inode->number = number;
	inode->next = *bucket;
	*bucket = inode;
	inodes->n++;
	return inode;
}

int bid_inodes_new(void (*detach)(const struct bid_inode *inode), struct bid_inodes **ret_inodes)
{
	struct bid_inodes *inodes = calloc(1, sizeof(*inodes));
	struct bid_node root = { .type = BID_NODE_PATH };
	struct bid_inode *inode;

	if (!inodes)
		return -ENOMEM;
	pthread_mutex_init(&inodes->lock, NULL);
	inodes->detach = detach;
	inodes->n_buckets = FIRST_BUCKETS;
	inodes->buckets = calloc(inodes->n_buckets, sizeof(*inodes->buckets));
	inode = inodes->buckets ? insert(inodes, BID_INODE_ROOT, &root) : NULL;
	if (!inode) {
		bid_inodes_free(inodes);
		return -ENOMEM;
	}
	inode->lookups = 1; /* never forgotten */
	*ret_inodes = inodes;
	return 0;
}

static void destroy(struct bid_inodes *inodes, struct bid_inode *inode)
{
	if (inode->attachment)
		inodes->detach(inode);
	bid_node_release(&inode->node);
	free(inode);
}

void bid_inodes_free(struct bid_inodes *inodes)
{
	if (!inodes)
		return;
	for (uint64_t i = 0; inodes->buckets && i < inodes->n_buckets; i++) {
		struct bid_inode *inode, *next;

		for (inode = inodes->buckets[i]; inode; inode = next) {
			next = inode->next;
			destroy(inodes, inode);
		}
	}
	free(inodes->buckets);
	pthread_mutex_destroy(&inodes->lock);
	free(inodes);
}

int bid_inodes_get(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode **ret_inode)
{
	struct bid_inode *inode;
	uint64_t number;

	pthread_mutex_lock(&inodes->lock);
	for (unsigned attempt = 0;; attempt++) {
		number = number_of(node, attempt);
		inode = find(inodes, number);
		if (!inode || bid_node_equal(&inode->node, node))
			break;
	}
	if (!inode)
		inode = insert(inodes, number, node);
	if (inode)
		inode->lookups++;
	pthread_mutex_unlock(&inodes->lock);
	if (!inode)
		return -ENOMEM;
	*ret_inode = inode;
	return 0;
}

struct bid_inode *bid_inodes_find(struct bid_inodes *inodes, uint64_t number)
{
	struct bid_inode *inode;

	pthread_mutex_lock(&inodes->lock);
	inode = find(inodes, number);
	pthread_mutex_unlock(&inodes->lock);
	return inode;
}

void bid_inodes_forget(struct bid_inodes *inodes, uint64_t number, uint64_t count)
{
	struct bid_inode *gone = NULL;
	struct bid_inode **at;
	bool many = false;

	pthread_mutex_lock(&inodes->lock);
	for (at = bucket_of(inodes, number); *at && (*at)->number != number; at = &(*at)->next)
		;
	if (*at && number != BID_INODE_ROOT) {
		(*at)->lookups -= count < (*at)->lookups ? count : (*at)->lookups;
		if ((*at)->lookups == 0) {
			gone = *at;
			*at = gone->next;
			inodes->n--;
			many = inodes->n_buckets > FIRST_BUCKETS && inodes->n < inodes->n_buckets / 8;
		}
	}
	if (many)
		resize(inodes, inodes->n_buckets / 4);
	pthread_mutex_unlock(&inodes->lock);
	if (gone)
		destroy(inodes, gone);
	/* a walk through a large store has come to its end: what it took is for others again, and malloc(3) would keep it */
	if (many)
		malloc_trim(0);
}

uint64_t bid_inodes_count(struct bid_inodes *inodes)
{
	uint64_t n;

	pthread_mutex_lock(&inodes->lock);
	n = inodes->n;
	pthread_mutex_unlock(&inodes->lock);
	return n;
}

uint64_t bid_inode_hash(const char *text)
{
	return XXH3_64bits(text, strlen(text)) | 1;
}
