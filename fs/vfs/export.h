/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The node of an inode number that is not in the table: an NFS server keeps numbers in its file handles, beyond the daemon or
 * the cache of the kernel. Pure C: knows no FUSE.
 *
 *	bid_export_find()	LOOKUP of "."
 *	bid_export_parent()	LOOKUP of ".."
 */
#ifndef BID_FS_EXPORT_H
#define BID_FS_EXPORT_H

#include "vfs/tree.h"

/*
 * Find the node of @number among the nodes of stored ids, and of the mount itself. @ret_node owns nothing. May block on disk:
 * reads one fan-out directory. -ESTALE for any other number, -ENOMEM.
 */
int bid_export_find(const struct bid_tree *tree, uint64_t number, struct bid_node *ret_node);

/* Get the parent of the directory @node, for the caller to release. -ENOTDIR for other nodes, -ENOMEM. */
int bid_export_parent(const struct bid_node *node, struct bid_node *ret_parent);

#endif
