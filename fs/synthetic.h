/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Synthetic files, as in proc(5): status, metrics and README of the mount, and the info and modules of an id.
 *
 *	bid_synthetic_make()	LOOKUP and GETATTR, for the attributes; OPEN, or READ in no_open mode, for the text
 */
#ifndef BID_FS_SYNTHETIC_H
#define BID_FS_SYNTHETIC_H

#include "fs.h"

/*
 * Make the text of @node, for the caller to free, and set size, modification time, owner and mode in @st. -ENOENT if the node has
 * none, -ENOMEM.
 *
 * A text may change at any time. An open file keeps its text. The kernel in no_open mode, and a server that exports the mount, read
 * with the size of the last stat, and the text may have grown since: in no_open mode and with allow_other, info and status end with
 * tabs up to a multiple of BID_SYNTHETIC_BLOCK.
 */
int bid_synthetic_make(const struct bid_fs *fs, const struct bid_node *node, char **ret_text, struct stat *st);

enum { BID_SYNTHETIC_BLOCK = 4096 };

/* Make the texts. The caller frees them. NULL without memory. */
char *bid_status_json(const struct bid_fs *fs);
char *bid_metrics_text(const struct bid_fs *fs);

/*
 * The last response of each server for @id, newest first, as a JSON array. The end is left out when the array is too long for the
 * value of an attribute. The caller frees it. NULL without a response, or without memory.
 */
char *bid_responses_json(const struct bid_fs *fs, const struct bid_id *id);

#endif
