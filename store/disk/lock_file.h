/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of our part of the store that are there to be locked. Who may open a file, also to read it, can hold a lock on it for ever:
 * so only those can open these who may write what they guard.
 */
#ifndef BID_DISK_LOCK_FILE_H
#define BID_DISK_LOCK_FILE_H

#include "disk/store.h"

/*
 * Open @path, a file right below BID_LAYOUT_PRIVATE, for reading and writing. If it is missing it is made, for whoever may write
 * the directory @guarded, which is made as well.
 */
int bid_lock_file_open(struct bid_store *store, const char *path, const char *guarded, int *ret_fd);

/*
 * Lock what the store has and what is recorded of it, by flock(2) of BID_LAYOUT_LOCK. Whoever publishes a download with its record
 * holds it shared; who marks an artifact as added, evicts, removes or repairs holds it exclusively. Each holds it for milliseconds,
 * looks again with the lock, and takes no lock inside another. Returns a descriptor that holds it until it is closed, or -1: the
 * file cannot be had, as on a file system without locks, or somebody who was stopped has held the lock for five seconds. The
 * caller goes on all the same.
 */
int bid_store_lock(struct bid_store *store, bool exclusive);

#endif
