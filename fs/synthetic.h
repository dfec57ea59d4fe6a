/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Synthetic files, as in proc(5): status, metrics and README of the mount, and the info and modules of an id. */
#ifndef BID_FS_SYNTHETIC_H
#define BID_FS_SYNTHETIC_H

#include "fs.h"

/*
 * Make the text of @inode, for the caller to free. -ENOENT if the node has none, -ENOMEM.
 *
 * In no_open mode info and status end with tabs up to a multiple of BID_SYNTHETIC_BLOCK: the kernel reads with the size of the last
 * stat, and the text may have grown since.
 */
int bid_synthetic_make(struct bid_fs *fs, const struct bid_inode *inode, char **ret_text, size_t *ret_size);

enum { BID_SYNTHETIC_BLOCK = 4096 };

/* Set size, modification time, owner and mode in @st. A node without a text is an empty file. */
void bid_synthetic_stat(const struct bid_fs *fs, const struct bid_inode *inode, struct stat *st);

/*
 * Status and metrics change all the time, and a reader must not get parts of two texts. Each LOOKUP of the name makes a node of
 * its own, a snapshot, with a text that stays. The entry has a timeout of 0, so that an open is a LOOKUP in each mode.
 *
 * Make @node a new snapshot if it is of status or metrics. stat(2) shows the inode number of the name.
 */
void bid_synthetic_new_snapshot(struct bid_fs *fs, struct bid_node *node);

/* Attach the text to @inode if its node is a snapshot without one. 0 or -ENOMEM. */
int bid_synthetic_fill_snapshot(struct bid_fs *fs, const struct bid_inode *inode);

/* Free the text of an inode that goes. */
void bid_synthetic_detach(void *attachment);

/* Make the texts. The caller frees them. NULL without memory. */
char *bid_status_json(const struct bid_fs *fs);
char *bid_metrics_text(const struct bid_fs *fs);

#endif
