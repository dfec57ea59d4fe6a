/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A single backend: the functions of <bid/store.h> and "api/store.h" without lower stores. union.c merges the backends. */
#ifndef BID_DISK_ONE_H
#define BID_DISK_ONE_H

#include "api/store.h"

int bid_one_where(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size);
enum bid_entry bid_one_classify(struct bid_store *store, const char *path, struct stat *ret_stat);
int bid_one_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user);

/* In a lower store also the files of foreign layouts below ".build-id/xx". */
int bid_one_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user);

/* The ids of a cache of libdebuginfod: all, or those that begin with the byte @first if it is not negative. */
int bid_one_each_cached_id(struct bid_store *store, int first, bid_store_id_fn fn, void *user);

/* Do the two functions above enumerate @id itself, not an alias? */
bool bid_one_lists(struct bid_store *store, const struct bid_id *id);

/* Has @store perf's layout? True of an empty one, too. May take as long as an enumeration of the fan-out directories. */
bool bid_one_has_paths(struct bid_store *store);

/* The kinds of the files in the object directory @path, as a mask of 1 << enum bid_kind. */
int bid_place_kinds(struct bid_store *store, const char *path);

#endif
