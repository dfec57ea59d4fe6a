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

#endif
