/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeping a store within bounds. What was fetched can be fetched again, and what was made of other files that are here (an unpacked
 * module, a kernel's symbol table, a section) can be made again: both are evicted, longest unused first. What anybody added, and
 * what has no record of where it came from, never is. Nor is a file that somebody has open or mapped: it would not give its
 * room back before he closes it. The kernel tells of that by a lease (fcntl(2), F_SETLEASE), to the owner of the file or with
 * CAP_LEASE, on local file systems; where it does not, and in the very moment that it is opened, a file only loses its name, and
 * stays readable to whoever has it open.
 */
#ifndef BID_API_EVICT_H
#define BID_API_EVICT_H

#include "api/store.h"

struct bid_limits {
	uint64_t cache_size; /* bytes on disk of what was fetched or made; 0: any number */
	uint64_t min_free; /* bytes that the file system is to have left for its other users; 0: any number */
};

/* One artifact that is evicted. Dies when the callback returns. */
struct bid_eviction {
	struct bid_request request;
	const char *path; /* of its file, relative to the store */
	bool made; /* of another that is here, and not fetched */
	uint64_t size; /* bytes on disk */
	int64_t last_use; /* seconds since the epoch */
};

struct bid_evict_config {
	struct bid_limits limits;
	bool dry_run; /* evict nothing, but tell all that would be */
	/* Called for each artifact that goes. May be NULL. */
	void (*evicted)(void *user, const struct bid_eviction *eviction);
	void *user;
};

struct bid_evict_stats {
	uint64_t artifacts; /* that may be evicted, before it began */
	uint64_t size; /* of these, bytes on disk */
	uint64_t made, made_size; /* of these, what was not fetched */
	uint64_t evicted;
	uint64_t evicted_size;
	uint64_t in_use; /* that were to go, but are open */
	uint64_t in_use_size;
	uint64_t free; /* bytes that the file system had left before */
};

/*
 * Evict, until the limits are kept or nothing more may be evicted. Other processes may use, fetch and evict meanwhile. Returns 0
 * and what was done, -EROFS for a store that is open for reading unless it is only asked what would be, or a negative errno if the
 * store could not be looked through.
 */
int bid_store_evict(struct bid_store *store, const struct bid_evict_config *config, struct bid_evict_stats *ret_stats);

/*
 * Of the file with the attributes @st, close what this process keeps open for nobody but the next reader, or, with NULL, of all
 * files what was not used for a minute: it is not to count as open, in this process and others. Returns -1, or a descriptor that
 * stays the process's own too, and shares its file description with all that it has of this file: whether anybody reads by that
 * cannot be told, and it does not count. The caller closes it. Called by any thread that writes to the store.
 */
typedef int (*bid_let_go_fn)(void *user, const struct stat *st);

/* Have @let_go asked, or nobody with NULL, and then not any more after the return. Does nothing in a store that is only read. */
void bid_store_on_let_go(struct bid_store *store, bid_let_go_fn let_go, void *user);

/*
 * Keep these limits from now on: once at the beginning, after each artifact that is published through @store, and every hour for
 * what other processes do; without limits, there is nothing but bid_let_go_fn, every minute, and bid_store_forget(), every hour.
 * Starts a thread, which does all of it, and which bid_store_free() ends: call it after daemonising, and once. Then a little more
 * than needed is evicted at a time.
 * Without this, and with it, a transaction that meets a full disk evicts once before it fails. Returns 0, -EROFS, or as
 * pthread_create(3).
 */
int bid_store_keep_limits(struct bid_store *store, const struct bid_limits *limits);

/* What age alone makes useless, or nobody asks for any more. */
struct bid_forgotten {
	unsigned quarantined; /* files in ".bidfs/quarantine", by the time in their names */
	unsigned scans; /* results of scans, by the time of the last scan of the tree */
};

/* After so many seconds nobody looks into either. */
enum { BID_FORGET_S = 30 * 24 * 60 * 60 };

/*
 * Forget what is older than @before, seconds since the epoch, or with @dry_run only count it. Returns 0 and how many there are left
 * and gone; -EROFS for a store that is open for reading, unless it is only counted.
 */
int bid_store_forget(struct bid_store *store, int64_t before, bool dry_run, struct bid_forgotten *ret_left,
		     struct bid_forgotten *ret_gone);

/*
 * Mark the artifact of @request, which bid_store_find() has found, as the user's: its record goes, if it was downloaded, and
 * nothing evicts it from now on. Returns 0; as bid_store_find() if it is not there any more; or why its record cannot be removed.
 * Locking: takes the store's lock exclusively if there is a record.
 */
int bid_store_claim(struct bid_store *store, const struct bid_request *request);

/*
 * The artifact was served: remember that it is in use, for the order of eviction. Costs next to nothing but once an hour for each.
 */
void bid_store_used(struct bid_store *store, const struct bid_request *request);

#endif
