/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records of many artifacts that are written together, as one pack, where each by itself costs a file. Only for what is added: what
 * can be evicted has a file of its own, with the time of its last use.
 */
#ifndef BID_DISK_RECORD_BATCH_H
#define BID_DISK_RECORD_BATCH_H

#include "disk/record.h"

struct bid_record_batch;

int bid_record_batch_new(struct bid_store *store, struct bid_record_batch **ret_batch);

/* Forgets what was not written. @batch may be NULL. */
void bid_record_batch_free(struct bid_record_batch *batch);

/*
 * Any thread may call it. @record is copied, and has no detail. It is not to be found before it is written, which with @missing it
 * is only if there is none by then, and none without @missing in the batch.
 */
int bid_record_batch_add(struct bid_record_batch *batch, const struct bid_record *record, bool missing);

/* How many were added since it was last written. */
size_t bid_record_batch_n(struct bid_record_batch *batch);

/*
 * Write what was added; whatever is returned, it is gone from the batch. On disk with the next bid_store_sync(). Others may add
 * meanwhile.
 */
int bid_record_batch_write(struct bid_record_batch *batch);

#endif
