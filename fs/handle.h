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

/* Answer who waits, with an error, and search for no more. */
void bid_handles_end(struct bid_handles *handles);

/* After bid_handles_end(). @handles may be NULL. */
void bid_handles_free(struct bid_handles *handles);

/*
 * The node that @number is of, for the caller to release; -ESTALE if there is none in the store, -EINPROGRESS if it is for
 * bid_handles_seek() to tell, -ENOMEM. May block on disk: reads the names of one 256th of the store's ids.
 */
int bid_handles_resolve(struct bid_handles *handles, uint64_t number, struct bid_node *ret_node);

/* Who waits for a search. Both are called from any thread. */
struct bid_handle_waiter {
	/* Called once; with @error 0, the node lives until it returns. The errors are those of bid_seek_node(). */
	void (*answer)(void *user, int error, const struct bid_node *node);
	bool (*is_gone)(void *user); /* has he given up? Does not block */
	void *user;
};

/* Search the store for the node that @number is of, from a thread of its own. -ENOMEM, and then nobody is answered. */
int bid_handles_seek(struct bid_handles *handles, uint64_t number, const struct bid_handle_waiter *waiter);

/* The directory that the directory @node is in, for the caller to release. -ENOTDIR for what is none, -ENOMEM. */
int bid_node_parent(const struct bid_node *node, struct bid_node *ret_parent);

#endif
