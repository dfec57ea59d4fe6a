/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds: of all processes that fetch into a store, one fetches an artifact, and the others wait for what comes of it. Who fetches
 * holds it, by a lock that ends with its process at the latest (docs/FORMAT.md, "Who fetches what"). Only those wait for each other
 * who ask the same sources.
 *
 * Any number of threads may use one. All functions may block on disk for a moment.
 */
#ifndef BID_API_HOLD_H
#define BID_API_HOLD_H

#include "api/store.h"

struct bid_holds;

/* @store, which can be written, must outlive it. Returns 0 or -ENOMEM. */
int bid_holds_new(struct bid_store *store, struct bid_holds **ret_holds);

/* Ends every hold. @holds may be NULL. */
void bid_holds_free(struct bid_holds *holds);

/* What stands for the source @name; for several the sum of theirs does. */
uint64_t bid_hold_source(const char *name);

/* What stands for @request to the @sources, as above. Two requests that share it wait for each other. */
uint64_t bid_hold_key(const struct bid_request *request, uint64_t sources);

/*
 * Returns 0, also if it is held by @holds already: it is then to be dropped as often. -EBUSY if another one has it, or another
 * negative errno if nothing can be held here, as in a file system without locks.
 */
int bid_holds_take(struct bid_holds *holds, uint64_t key);

/* The caller, who took @key, needs it no more. */
void bid_holds_drop(struct bid_holds *holds, uint64_t key);

#endif
