/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "api/content_key.h", with functions for the verification of a store. */
#ifndef BID_DISK_CONTENT_KEY_H
#define BID_DISK_CONTENT_KEY_H

#include "api/content_key.h"

/* Move the file under @key, open at @fd, to the quarantine. Returns 0 and its new path, or as bid_quarantine_move(). */
int bid_content_key_quarantine(struct bid_store *store, const struct bid_content_key *key, int fd, char *ret_path, size_t size);

#endif
