/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* BID_KIND_UNSTRIPPED: an ELF file and its debuginfo put together. bid_store_unstrip() makes it. */
#ifndef BID_DISK_UNSTRIP_H
#define BID_DISK_UNSTRIP_H

#include "api/store.h"

/*
 * bid_store_find() of BID_KIND_UNSTRIPPED: the kept file, or a stored file that is not stripped. Makes none, because that may take
 * seconds.
 */
int bid_find_unstripped(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

#endif
