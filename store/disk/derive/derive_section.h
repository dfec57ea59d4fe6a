/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_DERIVE_SECTION_H
#define BID_DISK_DERIVE_SECTION_H

#include "api/store.h"

/* bid_store_find() of a section. */
int bid_section_find(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/*
 * Does the file @fd have the bytes of the section of @request in the stored file with the id? Returns 1, 0, or -ENOENT or -ENODATA
 * if no such file has the section.
 */
int bid_section_compare(struct bid_store *store, const struct bid_request *request, int fd);

#endif
