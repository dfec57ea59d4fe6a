/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The log of evictions, for people: ".bidfs/evicted" (docs/FORMAT.md). Its loss costs nothing but the history. */
#ifndef BID_DISK_EVICTION_LOG_H
#define BID_DISK_EVICTION_LOG_H

#include "api/store.h"

/*
 * Append a line for the eviction of @artifact, @size bytes, because of @why. A full log loses its older half. Reports no error.
 * Locking: the caller holds bid_store_lock() exclusively.
 */
void bid_eviction_log_add(struct bid_store *store, const struct bid_artifact *artifact, uint64_t size, const char *why);

#endif
