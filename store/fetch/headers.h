/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Header of a request, with the secret lines of DEBUGINFOD_HEADERS_FILE. */
#ifndef BID_FETCH_HEADERS_H
#define BID_FETCH_HEADERS_H

#include "fetch/transfer.h"

/*
 * Read the header lines of the file at @path (may be NULL). Ignores a file that is unreadable or writable for others, with a
 * warning. Returns 0 or -ENOMEM.
 */
int bid_headers_read(const char *path, struct curl_slist **ret_headers);

/* Set the header of the next request of @transfer, with the secret lines for the server itself alone. Returns 0 or -ENOMEM. */
int bid_headers_set(struct bid_transfer *transfer);

#endif
