/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that one sync brings to disk together, before their report. */
#ifndef BID_CTL_SYNC_BATCH_H
#define BID_CTL_SYNC_BATCH_H

#include "ctl/add.h"

struct ctl_batch {
	struct ctl_add_stats *stats; /* borrowed */
	struct bid_store *store; /* borrowed */
	struct ctl_batched *added; /* files on disk with the next sync; owned */
	size_t n, room;
};

void ctl_batch_begin(struct ctl_batch *batch, struct ctl_add_stats *stats, struct bid_store *store);

/* Release the batch. Files without ctl_batch_commit() get neither a sync nor a report. */
void ctl_batch_release(struct ctl_batch *batch);

/* Put the file @path, added with bid_add.batch, into the batch. Returns 0 or -ENOMEM. */
int ctl_batch_put(struct ctl_batch *batch, const char *path, const struct bid_added *added);

/* Sync the files of the batch, report them after success, and empty the batch in either case. */
int ctl_batch_commit(struct ctl_batch *batch);

#endif
