/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lock of a store. "api/download_lock.h" has the locks of downloads. */
#ifndef BID_DISK_LOCK_FILE_H
#define BID_DISK_LOCK_FILE_H

#include "disk/store.h"

/*
 * Lock the objects of the store and their records, by flock(2) of BID_LAYOUT_LOCK: shared to publish a download with its record;
 * exclusive to mark an artifact as added, to evict, remove or repair. The caller holds the lock for milliseconds, checks its
 * premises again under it, and takes no other lock inside. Returns a descriptor; closing it releases the lock. Returns -1 on a file
 * system without locks, or after five seconds, because the holder may be stopped; the caller continues in either case.
 */
int bid_store_lock(struct bid_store *store, bool exclusive);

#endif
