/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_FIND_H
#define BID_DISK_FIND_H

#include "api/store.h"

/* bid_store_find() of what is stored, and nothing that would be made from it. @request is valid and has no detail. */
int bid_find_stored(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/*
 * perf leaves an empty file of probe definitions in the place that it lists, and adds those of the kernel in another. So of such
 * files in several places, is the one with the attributes @st the one that counts, although @before comes before it? That is so if
 * it alone has any, and with neither having any if it was changed later: somebody is about to write it anew.
 */
bool bid_find_instead(const struct stat *st, const struct stat *before);

/* Might @store, or a lower one, have an ELF file or a debug file of @id? 1, 0, or as bid_store_has(). */
int bid_find_has_image(struct bid_store *store, const struct bid_id *id);

/* The stat of the artifact of @request, unchecked, if it has a directory in @store itself. Else -ENOENT. */
int bid_find_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat);

#endif
