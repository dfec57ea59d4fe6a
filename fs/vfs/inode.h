/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inode numbers: a pure function of what a node is, so that they survive a remount, and the table of the nodes that the kernel
 * holds. Pure C: knows no FUSE.
 *
 * An id of 20 bytes does not fit into a number of 63 bits, and an id that is not stored cannot be found again by its number; so
 * the nodes that the kernel knows are kept until it forgets them. A number is [type and kind: 8 bits][first byte of the id:
 * 8][hash: 47]: of a stored id it can be resolved again without the table, by a look at one 256th of the store. Of status, metrics
 * and what is being written, it is [type: 8][snapshot or tmpfile].
 */
#ifndef BID_FS_INODE_H
#define BID_FS_INODE_H

#include <stdint.h>

#include "vfs/node.h"

#define BID_INODE_ROOT 1 /* what FUSE calls the root */

struct bid_inodes;

/* A node that the kernel holds. Its path and detail are the table's, and stay as long as the kernel holds it. */
struct bid_inode {
	uint64_t number;
	struct bid_node node;
};

/* The number of @node, as far as no other node has it. */
uint64_t bid_inode_number(const struct bid_node *node);

/*
 * What can be read off a number: the type and kind of its node, which may be none at all, and the first byte of the id. The root is
 * a BID_NODE_PATH.
 */
void bid_inode_split(uint64_t number, enum bid_node_type *ret_type, enum bid_kind *ret_kind, unsigned *ret_fanout);

/* A table with the root in it. @detach is called for every attachment whose inode goes, with the type of that. -ENOMEM. */
int bid_inodes_new(void (*detach)(enum bid_node_type type, void *attachment), struct bid_inodes **ret_inodes);
void bid_inodes_free(struct bid_inodes *inodes);

/*
 * The inode of @node, with one reference of the kernel more. @node is copied. The number of an artifact or a link does not depend
 * on its version, unless the kernel holds the inode with another: then it is one of its own. The inode stays until
 * bid_inodes_forget() took back its last reference; the kernel does that only after the requests on it were answered. -ENOMEM.
 */
int bid_inodes_get(struct bid_inodes *inodes, const struct bid_node *node, struct bid_inode *ret_inode);

/* The inode of that number, which the kernel holds and which is an artifact's, is of the file @version from now on. */
void bid_inodes_set_version(struct bid_inodes *inodes, uint64_t number, uint32_t version);

/* The inode of that number, in @buffer, or NULL. No reference is taken. */
struct bid_inode *bid_inodes_find(struct bid_inodes *inodes, uint64_t number, struct bid_inode *buffer);

/* Take back @count references. Returns true if that was the last of them. */
bool bid_inodes_forget(struct bid_inodes *inodes, uint64_t number, uint64_t count);

/*
 * Attach to the inode of that number, which the kernel holds, what goes with it, to be owned by the table. 0, or nothing happened:
 * -EEXIST if it has an attachment, -ESTALE.
 */
int bid_inodes_attach(struct bid_inodes *inodes, uint64_t number, void *attachment);

/* What is attached to the inode of that number, or NULL. */
void *bid_inodes_attached(struct bid_inodes *inodes, uint64_t number);

/*
 * The directory @node has lost its name: its inode keeps the number for as long as the kernel holds it, and a new directory of the
 * same name gets another number.
 */
void bid_inodes_remove(struct bid_inodes *inodes, const struct bid_node *node);

/* The version of a link with the text @text. */
uint32_t bid_inode_text_version(const char *text);

/* How many there are. */
uint64_t bid_inodes_count(struct bid_inodes *inodes);

#endif
