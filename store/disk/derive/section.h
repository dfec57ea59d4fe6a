/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_SECTION_H
#define BID_DISK_SECTION_H

#include "api/store.h"

/* What a section's record says if it was cut out of a file of the store. */
#define BID_SLICED "sliced"

/* bid_store_find() of a section. */
int bid_section_find(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file);

/*
 * Are the bytes of the file @fd those of the section of @request in the file that is here and carries the id? 1 if they are, 0 if
 * not, -ENOENT or -ENODATA if no such file has the section.
 */
int bid_section_compare(struct bid_store *store, const struct bid_request *request, int fd);

#endif
