/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an inode number back to its node, for a number that an earlier daemon gave out or that the kernel has forgotten: an NFS
 * server keeps such numbers in its file handles. Pure C: knows no FUSE.
 */
#ifndef BID_FS_EXPORT_H
#define BID_FS_EXPORT_H

#include "vfs/tree.h"

/*
 * Find the node of @number among those of an id of the store alone and those that are in every store. @ret_node owns nothing.
 * May block on disk: reads the names of one 256th of the ids. -ESTALE for any other number, -ENOMEM.
 */
int bid_export_find(const struct bid_tree *tree, uint64_t number, struct bid_node *ret_node);

/* The directory that the directory @node is in, for the caller to release. -ENOTDIR for what is none, -ENOMEM. */
int bid_export_parent(const struct bid_node *node, struct bid_node *ret_parent);

#endif
