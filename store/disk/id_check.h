/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_ID_CHECK_H
#define BID_DISK_ID_CHECK_H

#include "api/store.h"

/*
 * Open the regular file @path of @store as the artifact that @request names. The id in the file must answer the requested one. The
 * id of a compressed module is inside: @ret_file->packed says that nothing was checked yet (derive/derive.h). Errors as of
 * bid_store_find(); -ENOENT also for anything but a regular file.
 */
int bid_id_check_open(struct bid_store *store, const char *path, const struct bid_request *request, struct bid_file *ret_file);

/*
 * Does the file @path belong to another build with the on-disk id of @request? perf's layout has room for one of several ids with
 * the same first 20 bytes.
 */
bool bid_id_check_anothers(struct bid_store *store, const char *path, const struct bid_request *request);

#endif
