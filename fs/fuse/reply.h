/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers to the kernel: entries, attributes (attr.h) and errors.
 *
 *	bid_reply_node(), or bid_entry_make() and bid_reply_entry()	LOOKUP: the kernel gets a reference to the inode
 *	bid_forget()		FORGET
 */
#ifndef BID_FS_REPLY_H
#define BID_FS_REPLY_H

#include "fuse/ops.h"

/*
 * Make the entry of @node, and take one reference of the kernel to its inode. @found has the stat of the file of an artifact; of
 * a directory or a link it spares a second look, as of bid_tree_lookup(). NULL for neither. -ENOMEM.
 */
int bid_entry_make(struct bid_fs *fs, const struct bid_node *node, const struct bid_found *found,
		   struct fuse_entry_param *ret_entry);

/* Answer LOOKUP with @node. @found as above. */
void bid_reply_node(fuse_req_t req, const struct bid_node *node, const struct bid_found *found);

/* Answer with the entry of bid_entry_make(). */
void bid_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry);

/* Answer with the attributes of @inode, for @timeout seconds. @st is of the file of an artifact, or NULL. */
void bid_reply_attr(fuse_req_t req, const struct bid_inode *inode, const struct stat *st, double timeout);

/* Answer that there is no such name. @dir and @error as of bid_negative_timeout(). */
void bid_reply_negative(fuse_req_t req, const struct bid_node *dir, int error);

/* Give back @count references of the kernel to the inode @number. */
void bid_forget(struct bid_fs *fs, uint64_t number, uint64_t count);

/* The positive errno for a program, of @error of the broker and errors=. */
int bid_visible_error(const struct bid_fs *fs, int error);

#endif
