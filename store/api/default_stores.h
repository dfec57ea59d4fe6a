/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lower stores of a user. bid_store_default_path() of <bid/store.h> finds the store itself. */
#ifndef BID_API_DEFAULT_STORES_H
#define BID_API_DEFAULT_STORES_H

#include <stdbool.h>
#include <stddef.h>

/* Names among the lower stores: the cache of libdebuginfod, and no implied lower stores. */
#define BID_LOWER_DEBUGINFOD "debuginfod"
#define BID_LOWER_NONE	     "none"

/*
 * Resolve the lower store @name to a directory. BID_LOWER_DEBUGINFOD means the cache of libdebuginfod
 * (debuginfod_find_debuginfo(3), "Cache"): $DEBUGINFOD_CACHE_PATH, else ~/.debuginfod_client_cache if it exists, else
 * debuginfod_client in $XDG_CACHE_HOME or ~/.cache. A root or a profile without ".build-id" stands for the tree in its
 * usr/lib/debug or lib/debug, and ".build-id" for its parent. Returns 1 and the path; 0 for BID_LOWER_NONE and for a missing cache,
 * because libdebuginfod has downloaded nothing yet; or as bid_store_default_path().
 */
int bid_store_lower_path(const char *name, char *ret_path, size_t size);

/*
 * Is the cache of libdebuginfod an implied lower store, beside the @n lower stores @names and before any server? True if the caller
 * can read one, and @names has neither this cache nor BID_LOWER_NONE.
 */
bool bid_store_implies_cache(const char *const *names, size_t n);

#endif
