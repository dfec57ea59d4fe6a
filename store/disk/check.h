/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_CHECK_H
#define BID_DISK_CHECK_H

#include "api/store.h"

/*
 * Open the regular file @path of @store as the artifact that @request names, after its own id was read and answers the one asked
 * for. A compressed module is unpacked. Errors as of bid_store_find(); -ENOENT also for anything that is no regular file.
 */
int bid_check_open(struct bid_store *store, const char *path, const struct bid_request *request, struct bid_file *ret_file);

/*
 * Is the file @path right by the id that the one of @request is filed under, and of another build than that? Perf's layout has room
 * for one of those that begin alike.
 */
bool bid_check_anothers(struct bid_store *store, const char *path, const struct bid_request *request);

#endif
