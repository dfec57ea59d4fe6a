/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fetching from debuginfod servers into a store:
 *
 *   bid_store_open(path, BID_STORE_WRITE, &store)
 *     bid_fetcher_new(store, wait_ms, &fetcher)	after fork(2) or daemon(3): starts threads
 *       bid_fetcher_get()				any number of times, from any number of threads
 *         bid_file_release()
 *     bid_fetcher_free(fetcher)
 *   bid_store_free(store)
 *
 * The environment names the servers and sets limits, as for libdebuginfod: DEBUGINFOD_URLS, else the files *.urls in
 * /etc/debuginfod, and the other DEBUGINFOD_* variables. libcurl reads the proxies.
 */
#ifndef BID_FETCH_H
#define BID_FETCH_H

#include <bid/store.h>

struct bid_fetcher;

/*
 * Make a fetcher for @store, which outlives it. A get() waits at most @wait_ms for a download, or without limit with 0. The caller
 * frees @ret_fetcher with bid_fetcher_free(). Returns 0, -EROFS for a store without BID_STORE_WRITE, an error of reading
 * /etc/debuginfod or of a server's URL, or as pthread_create(3).
 */
int bid_fetcher_new(struct bid_store *store, unsigned wait_ms, struct bid_fetcher **ret_fetcher);

/* End every download and every wait (-EINTR). @fetcher may be NULL. */
void bid_fetcher_free(struct bid_fetcher *fetcher);

/*
 * Open the artifact that @artifact names from the store, or download it into the store first. Blocks. Calls for one artifact share
 * one download. Returns 0, or
 *   -ENOENT		absent in the store and on every server
 *   -EHOSTUNREACH	unknown: no server sent it, and at least one was unreachable
 *   -ETIMEDOUT		the wait is over; the download continues
 *   -EFBIG		larger than the limit of the environment
 *   other		as bid_store_find(), or why it cannot be written
 */
int bid_fetcher_get(struct bid_fetcher *fetcher, const struct bid_artifact *artifact, struct bid_file *ret_file);

#endif
