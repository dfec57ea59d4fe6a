/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that are made when they are looked at: what the mount says of itself, and what is known of an id. */
#ifndef BID_FS_SYNTHETIC_H
#define BID_FS_SYNTHETIC_H

#include "fs.h"

/*
 * The text of @inode, for the caller to free; -ENOENT if it has none, -ENOMEM. What is known of an id is made anew each time.
 * That and status are padded with tabs to a multiple of BID_SYNTHETIC_BLOCK, because in no_open mode the kernel reads with the
 * size that it saw last, and so does an NFS server: a little growth must not cut them off.
 */
int bid_synthetic_make(struct bid_fs *fs, const struct bid_inode *inode, char **ret_text, size_t *ret_size);

enum { BID_SYNTHETIC_BLOCK = 4096 };

/* Set what is its own in @st: its size, when it changed last, and who may read it. A node without text is an empty file. */
void bid_synthetic_stat(const struct bid_fs *fs, const struct bid_inode *inode, struct stat *st);

/*
 * Status and metrics change all the time, and a reader must not get half of one and half of another. So each look at their name is
 * a node of its own (snapshot), whose text is made then and stays: in no_open mode the kernel, which opens without asking, always
 * asks for the name, as its timeout is zero.
 *
 * Make @node that of a new look, if it is of this sort. Its number in stat(2) is that of the name still.
 */
void bid_synthetic_new_snapshot(struct bid_fs *fs, struct bid_node *node);

/* Give @inode its text, if its node is of this sort and it has none. 0 or -ENOMEM. */
int bid_synthetic_fill_snapshot(struct bid_fs *fs, const struct bid_inode *inode);

/* An inode with such a text goes. */
void bid_synthetic_detach(void *attachment);

/* The pieces; strings for the caller to free, NULL for want of memory. */
char *bid_status_json(const struct bid_fs *fs);
char *bid_metrics_text(const struct bid_fs *fs);

#endif
