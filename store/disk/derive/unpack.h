/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compressed modules: a lookup leaves them as they are, and cannot see their id. */
#ifndef BID_DISK_UNPACK_H
#define BID_DISK_UNPACK_H

#include "api/store.h"

/* As bid_find_stored(), but unpack a compressed module, once, and check its id. The content is a derived artifact (derived.h). */
int bid_find_unpacked(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/* Replace the compressed @file, found in @store for @request, by its content; release it on failure. Errors as bid_store_find(). */
int bid_unpack_file(struct bid_store *store, const struct bid_request *request, struct bid_file *file);

#endif
