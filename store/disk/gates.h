/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whom the directories inside a store let through. They are looked at for each file that is found, by one call each, or it would
 * not be seen that somebody closed one. Whether one has an access control list is remembered until something changes in it.
 */
#ifndef BID_DISK_GATES_H
#define BID_DISK_GATES_H

#include <bid/store.h>

struct bid_gates;

int bid_gates_new(struct bid_gates **ret_gates);

/* @gates may be NULL. */
void bid_gates_free(struct bid_gates *gates);

/*
 * Leave in @st, of the file @path of @store, which is open at @fd, those readers whom the directories between it and the store's
 * own let through: see bid_way_narrow_opened().
 */
void bid_gates_narrow(struct bid_store *store, const char *path, int fd, struct stat *st);

/*
 * Open the regular file @path of @store for reading: its descriptor, which is @file's then, and its stat, with those readers alone.
 * With @linked it may be reached by links inside the store. Returns 0, -ENOENT for anything else than a regular file, or as
 * openat2(2); @file is changed only if it is 0.
 */
int bid_gates_open(struct bid_store *store, const char *path, bool linked, struct bid_file *file);

#endif
