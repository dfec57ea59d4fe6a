/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that are added together: one sync brings them to disk, and only then they are reported. */
#ifndef BID_CTL_BATCH_H
#define BID_CTL_BATCH_H

#include "ctl/add.h"

struct ctl_batch {
	struct ctl_tally *tally; /* borrowed */
	struct bid_store *store; /* borrowed */
	struct ctl_batched *added; /* on disk with the next sync; owned */
	size_t n, room;
	size_t n_new; /* of them, that were not known */
	struct timespec clean_before; /* for struct bid_add */
};

void ctl_batch_begin(struct ctl_batch *batch, struct ctl_tally *tally, struct bid_store *store);

/* What is not settled is neither synced nor reported any more. */
void ctl_batch_release(struct ctl_batch *batch);

/* Bring to disk what was written before the first file of the batch: one sync, and not one for each file that is linked. */
int ctl_batch_clean(struct ctl_batch *batch);

/* The file @path was added, with bid_add.batch. Returns 0 or -ENOMEM. */
int ctl_batch_put(struct ctl_batch *batch, const char *path, const struct bid_added *added);

/* Bring to disk what was put there, and report it, if that was done. Whatever is returned, the batch is empty then. */
int ctl_batch_settle(struct ctl_batch *batch);

#endif
