/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The negative cache: reasons against requests to a server, and their TTL (docs/SERVERS.md). An entry belongs to one server and one
 * artifact. A reason is an outcome of the server. "Absent" is on disk (docs/FORMAT.md, "Facts"): it outlives a restart, and serves
 * all programs with the store. "Unsupported", "refused", "rejected" and "too large" are in memory, as "absent" is for a store that
 * cannot be written.
 *
 * Locking: any number of threads. All functions may block on the disk for a moment.
 */
#ifndef BID_API_NEGATIVE_H
#define BID_API_NEGATIVE_H

#include "api/server.h"
#include "api/store.h"

#define BID_NEGATIVE_ALL "" /* in place of a server: all of them; for "too large" */

#define BID_NEGATIVE_ENTRIES 16384 /* in memory; a new entry may replace one with the same hash */

struct bid_negative;

/* Open the negative cache of @store. The caller frees @ret_negative before the store. Returns 0 or -ENOMEM. */
int bid_negative_new(struct bid_store *store, struct bid_negative **ret_negative);

/* @negative may be NULL. */
void bid_negative_free(struct bid_negative *negative);

/*
 * Add an entry with @reason, one of those above, as of now. Keeps @server. A still valid entry begins its TTL anew without a longer
 * one: frequent requests must not prolong it.
 */
void bid_negative_add(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server,
		      enum bid_outcome reason);

/*
 * Returns the reason against @artifact to @server, or BID_OUTCOME_NONE; @ret_ttl is its remaining TTL in seconds. A server without
 * debuginfo and ELF file of a build has no source file and no section of it.
 */
enum bid_outcome bid_negative_lookup(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server,
				     unsigned *ret_ttl);

/* Drop the entry, and begin with the first TTL again. */
void bid_negative_forget(struct bid_negative *negative, const struct bid_artifact *artifact, const char *server);

/* Returns the number of valid entries for absent or too large artifacts. */
size_t bid_negative_count(struct bid_negative *negative);

/*
 * Call @fn for each entry on the disk of @store, valid or not, with the time of the response in seconds since the epoch. @artifact
 * has no subpath. Returns 0 or a negative errno.
 */
typedef void (*bid_negative_fn)(void *user, const struct bid_artifact *artifact, int64_t time);
int bid_negative_each(struct bid_store *store, bid_negative_fn fn, void *user);

#endif
