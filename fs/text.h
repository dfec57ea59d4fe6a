/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that are made when they are looked at: what the mount says of itself, and what is known of an id. */
#ifndef BID_FS_TEXT_H
#define BID_FS_TEXT_H

#include "fs.h"

/*
 * The text of @node, for the caller to free; -ENOENT if it has none, -ENOMEM. Texts that change are padded with newlines to a
 * multiple of BID_TEXT_BLOCK, because in no_open mode the kernel reads them with the size that it saw last: a little growth must
 * not cut them off.
 */
int bid_text_make(const struct bid_fs *fs, const struct bid_node *node, char **ret_text, size_t *ret_size);

enum { BID_TEXT_BLOCK = 4096 };

/* Its size, and in @ret_time when it changed last. Zero if it has none. */
size_t bid_text_size(const struct bid_fs *fs, const struct bid_node *node, struct timespec *ret_time);

/* The pieces; strings for the caller to free, NULL for want of memory. */
char *bid_status_json(const struct bid_fs *fs);
char *bid_metrics_text(const struct bid_fs *fs);

/* "passthrough", "no_open", … Static. */
const char *bid_mode_name(enum bid_mode mode);

#endif
