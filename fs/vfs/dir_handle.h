/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open directory: its names, with stable offsets. Pure C: knows the namespace, not FUSE.
 *
 *	bid_dir_handle_open()	OPENDIR: reads the directory; a listing is a snapshot
 *	bid_dir_handle_at()	READDIR: reads a part of all ids
 *	bid_dir_handle_close()	RELEASEDIR
 *
 * The directory of all ids has 256 parts, and may have a million names; one part is in memory. An offset comes from the inode
 * number, and so has the same meaning at any time and in any handle. Offset 0 reads anew.
 */
#ifndef BID_FS_DIR_HANDLE_H
#define BID_FS_DIR_HANDLE_H

#include "vfs/tree.h"

struct bid_dir_handle;

/* A name, and the offset behind it. */
struct bid_dirname {
	uint64_t number;
	uint64_t next; /* offset */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
	const char *name; /* valid until the next call */
};

/*
 * Open a listing of @node, whose number is @number. Borrows @tree. May block on disk. Errors as of bid_tree_list(), and -ENOMEM:
 * for a large listing also while all those of @tree together are above BID_LIMIT_LISTINGS.
 */
int bid_dir_handle_open(struct bid_tree *tree, const struct bid_node *node, uint64_t number, struct bid_dir_handle **ret_handle);

/*
 * Get the first name at or behind @offset, which is 0 or the .next of a name. Returns 1, 0 at the end, or a negative errno. May
 * block on disk. For one thread at a time.
 */
int bid_dir_handle_at(struct bid_dir_handle *handle, uint64_t offset, struct bid_dirname *ret_name);

void bid_dir_handle_close(struct bid_dir_handle *handle);

#endif
