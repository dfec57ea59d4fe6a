/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_FIND_H
#define BID_DISK_FIND_H

#include <bid/store.h>

/* bid_store_find() of what is stored, and nothing that would be made from it. @request is valid and has no detail. */
int bid_find_stored(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/* Might @store, or a lower one, have an ELF file or a debug file of @id? 1, 0, or as bid_store_has(). */
int bid_find_has_image(struct bid_store *store, const struct bid_id *id);

#endif
