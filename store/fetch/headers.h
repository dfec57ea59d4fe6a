/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The header of a request: what we say ourselves, and the secret lines of DEBUGINFOD_HEADERS_FILE. */
#ifndef BID_FETCH_HEADERS_H
#define BID_FETCH_HEADERS_H

#include "fetch/transfer.h"

/*
 * The lines of the file at @path, which may be NULL, as far as each is a header. A file that cannot be read, or that others may
 * write, is ignored with a warning: what it is to prove is then not proven. Returns 0 or -ENOMEM.
 */
int bid_headers_read(const char *path, struct curl_slist **ret_headers);

/* The header of the next request of @transfer. The secret lines are in it if @home: they are for the server itself alone. */
int bid_headers_make(const struct bid_transfer *transfer, bool home, struct curl_slist **ret_headers);

#endif
