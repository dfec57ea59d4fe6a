/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inode numbers, and the table of nodes that the kernel holds. Pure C: knows no FUSE.
 *
 *	bid_inodes_lookup()	LOOKUP: one reference of the kernel
 *	bid_inodes_find()	any request
 *	bid_inodes_forget()	FORGET
 *
 * A number is a function of the node, and so survives a remount: [type and kind: 9 bits][first byte of the id: 8][hash: 46], or
 * for temporary files [type: 8][tmpfile]. The table exists because a number does not hold an id.
 * A search of one fan-out directory finds the node of a stored id again (export.h).
 *
 * Locking: the table has one lock. Any thread may call.
 */
#ifndef BID_FS_INODE_H
#define BID_FS_INODE_H

#include <stdint.h>

#include "vfs/node.h"

#define BID_INODE_ROOT 1 /* FUSE_ROOT_ID */

struct bid_inodes;

/* A node that the kernel holds. The table owns path and subpath, until the kernel forgets the inode. */
struct bid_inode {
	uint64_t number;
	struct bid_node node;
};

/* The number of @node, unless another node has it. */
uint64_t bid_inode_number(const struct bid_node *node);

/*
 * Split a number into the type and the kind of its node, perhaps of no node at all, and the first byte of the id. The root is a
 * BID_NODE_PATH.
 */
void bid_inode_split(uint64_t number, enum bid_node_type *ret_type, enum bid_kind *ret_kind, unsigned *ret_fanout);

/* Make a table. Its root is the directory @root, relative to the store, or NULL for "". @root is borrowed. -ENOMEM. */
int bid_inodes_new(const char *root, struct bid_inodes **ret_inodes);
void bid_inodes_free(struct bid_inodes *inodes);

/*
 * Look up the inode of @node, a copy, with one more reference of the kernel. An artifact or a link gets a number of its own while
 * the kernel holds another version. The kernel gives references back after the answers to all requests on the inode. -ENOMEM.
 */
int bid_inodes_lookup(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode *ret_inode);

/* Set the version of the inode @number, an artifact's. */
void bid_inodes_set_version(struct bid_inodes *inodes, uint64_t number, uint32_t version);

/* Find the inode @number, in @buffer; NULL if the kernel does not hold it. Takes no reference. */
struct bid_inode *bid_inodes_find(struct bid_inodes *inodes, uint64_t number, struct bid_inode *buffer);

/* Give back @count references. Returns true for the last one. */
bool bid_inodes_forget(struct bid_inodes *inodes, uint64_t number, uint64_t count);

/*
 * Remove the name of the directory @node. Its inode keeps the number while the kernel holds it; a new directory of the name gets
 * another number.
 */
void bid_inodes_remove(struct bid_inodes *inodes, const struct bid_node *node);

/* The version of a link with the text @text. */
uint32_t bid_inode_text_version(const char *text);

/* The number of inodes. */
uint64_t bid_inodes_count(struct bid_inodes *inodes);

#endif
