/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "api/cookie.h", with functions for the verification of a store. */
#ifndef BID_DISK_COOKIE_H
#define BID_DISK_COOKIE_H

#include "api/cookie.h"

/* Move the file under @cookie, open at @fd, to the quarantine. Returns 0 and its new path, or as bid_quarantine_move(). */
int bid_cookie_quarantine(struct bid_store *store, const struct bid_cookie *cookie, int fd, char *ret_path, size_t size);

#endif
