/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one store has, without its lower ones: for those who write, and for union.c, which makes the whole of it. As the functions
 * of the same names in "api/store.h".
 */
#ifndef BID_DISK_ONE_H
#define BID_DISK_ONE_H

#include "api/store.h"

int bid_one_where(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size);
enum bid_entry bid_one_classify(struct bid_store *store, const char *path, struct stat *ret_stat);
int bid_one_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user);

/* Of a lower store also what others than perf file below ".build-id/xx". */
int bid_one_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user);

/* The ids of a lower store that is a cache of libdebuginfod: all, or (@first not negative) those that begin with this byte. */
int bid_one_each_cached_id(struct bid_store *store, int first, bid_store_id_fn fn, void *user);

/* Is @id, exactly so, among the ids of the two above? */
bool bid_one_lists(struct bid_store *store, const struct bid_id *id);

/* Does it look like a store of perf's? True of an empty one, too. May take as long as an enumeration of the directories of ids. */
bool bid_one_has_paths(struct bid_store *store);

/* The kinds whose files lie at @path, a place, as a mask of 1 << enum bid_kind. */
int bid_place_kinds(struct bid_store *store, const char *path);

#endif
