/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lower stores that a user means; bid_store_default_path() of <bid/store.h> finds the store itself. */
#ifndef BID_API_DEFAULT_H
#define BID_API_DEFAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Names by which users mean the cache of libdebuginfod where they name lower stores, and that they want no other than they name. */
#define BID_LOWER_DEBUGINFOD "debuginfod"
#define BID_LOWER_NONE	     "none"

/*
 * The directory that a user means who names the lower store @name: @name, unless it is BID_LOWER_DEBUGINFOD. Then it is where
 * libdebuginfod keeps what it fetched (debuginfod_find_debuginfo(3), "Cache"): $DEBUGINFOD_CACHE_PATH, else
 * ~/.debuginfod_client_cache if that exists, else debuginfod_client in $XDG_CACHE_HOME or ~/.cache. Returns 1 and the path, or 0
 * for BID_LOWER_NONE, and for such a cache that does not exist: nothing was fetched yet; or as bid_store_default_path(). Of a root
 * or a profile without ".build-id" it is the tree in usr/lib/debug or lib/debug, and of ".build-id" itself the tree that it is in.
 */
int bid_store_lower_path(const char *name, char *ret_path, size_t size);

/*
 * Is the cache of libdebuginfod to be looked into besides the @n lower stores @names, before any server is asked for what it has?
 * If there is one that the caller may read, and the names are not against it: it is not among them, nor is BID_LOWER_NONE.
 */
bool bid_store_implies_cache(const char *const *names, size_t n);

#endif
