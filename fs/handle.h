/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * File handles: from an inode number back to its node, for a number that an earlier daemon gave out, or that the kernel has
 * forgotten. NFS servers ask so. Pure C: knows no FUSE.
 */
#ifndef BID_FS_HANDLE_H
#define BID_FS_HANDLE_H

#include "tree.h"

struct bid_handles;

int bid_handles_new(const struct bid_tree *tree, struct bid_handles **ret_handles);
void bid_handles_free(struct bid_handles *handles);

/*
 * The node that @number is of, for the caller to release; -ESTALE if there is none in the store, -ENOMEM. Reads one 256th of the
 * store's ids, or, for a directory of an original path, all such directories, but not more than a tenth of the time.
 */
int bid_handles_resolve(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node);

/* The directory that the directory @node is in, for the caller to release. -ENOTDIR for what is none, -ENOMEM. */
int bid_node_parent(const struct bid_node *node, struct bid_node *ret_parent);

#endif
