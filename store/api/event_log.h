/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The events that a store still knows of. */
#ifndef BID_API_EVENT_LOG_H
#define BID_API_EVENT_LOG_H

#include "api/store.h"

/* One event. All of it dies when the callback returns. */
struct bid_event {
	const char *what; /* "fetched", "absent", "quarantined" or "evicted"; static */
	int64_t time; /* seconds since the epoch */
	struct bid_artifact artifact; /* without the subpath of an absent or quarantined source or section */
	uint64_t size; /* bytes; 0 if unknown */
	const char *text; /* server; name in the quarantine; reason of an eviction; "" without any */
};

typedef void (*bid_event_fn)(void *user, const struct bid_event *event);

/*
 * Call @fn, in no order, for each download that is in the store, negative cache entry, file in the quarantine, and recent eviction.
 * Lower stores have none. Returns 0 or a negative errno. May block on disk.
 */
int bid_store_each_event(struct bid_store *store, bid_event_fn fn, void *user);

#endif
