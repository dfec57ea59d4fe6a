/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Eviction. It removes downloads and derived artifacts (an unpacked module, a kernel's symbol table, a section), least recently
 * used first, because bidfs can get them again. It never removes an added or pinned file, a file without a record, or an open or
 * mapped file, whose space would not become free. A lease shows whether a file is open (fcntl(2), F_SETLEASE). Where there are no
 * leases, an open file loses its name, and its readers keep it.
 */
#ifndef BID_API_EVICT_H
#define BID_API_EVICT_H

#include "api/store.h"

struct bid_limits {
	uint64_t cache_size; /* bytes on disk of downloads and derived artifacts; 0: no limit */
	uint64_t min_free; /* free bytes of the file system; 0: no limit */
};

/* One eviction. Dies when the callback returns. */
struct bid_eviction {
	struct bid_artifact artifact;
	const char *path; /* path of its file, relative to the store */
	bool made; /* derived, not downloaded */
	uint64_t size; /* bytes on disk */
	int64_t last_use; /* seconds since the epoch */
};

struct bid_evict_config {
	struct bid_limits limits;
	bool dry_run; /* evict nothing, but call @evicted for each artifact that would go */
	/* Called for each eviction. May be NULL. */
	void (*evicted)(void *user, const struct bid_eviction *eviction);
	void *user;
};

struct bid_evict_stats {
	uint64_t artifacts; /* candidates at the beginning */
	uint64_t size; /* their bytes on disk */
	uint64_t made, made_size; /* number and bytes of the derived ones among them */
	uint64_t evicted;
	uint64_t evicted_size;
	uint64_t in_use; /* number of open files, which were skipped */
	uint64_t in_use_size;
	uint64_t free; /* free bytes of the file system at the beginning */
};

/*
 * Evict until the store is within the limits or no candidate is left. Other processes may use, download and evict meanwhile.
 * Returns 0 and the counts; -EROFS without BID_STORE_WRITE, unless with @dry_run; or a negative errno if the store could not be
 * read.
 */
int bid_store_evict(struct bid_store *store, const struct bid_evict_config *config, struct bid_evict_stats *ret_stats);

/*
 * Drop the cached descriptors of the file with the attributes @st. A cached descriptor must not count as open. Returns -1, or a
 * copy of the descriptor that the process keeps for readers of this file; the eviction does not count this file description as
 * open. The caller closes it. Any thread that writes to the store calls this.
 */
typedef int (*bid_drop_fd_fn)(void *user, const struct stat *st);

/* Set the callback, or remove it with NULL; no call runs after the return. No effect without BID_STORE_WRITE. */
void bid_store_on_drop_fd(struct bid_store *store, bid_drop_fd_fn drop_fd, void *user);

/*
 * Start the gc thread. It evicts at the start, after each artifact published through @store, and every hour for other processes,
 * each time a little more than the limits require. It calls bid_store_forget() every hour.
 * bid_store_free() ends the thread. Call it once, after daemonising. Without this thread too, a transaction that meets a full disk
 * evicts once before it fails. Returns 0, -EROFS, or as pthread_create(3).
 */
int bid_store_keep_limits(struct bid_store *store, const struct bid_limits *limits);

/* counts of files that expire by their age */
struct bid_forgotten {
	unsigned quarantined; /* files in ".bidfs/quarantine", by the time in their names */
	unsigned scans; /* results of scans, by the time of the last scan of the tree */
};

/* age of expiry, in seconds */
enum { BID_FORGET_S = 30 * 24 * 60 * 60 };

/*
 * Expire the files older than @before, in seconds since the epoch, or with @dry_run only count them. Returns 0 and both counts;
 * -EROFS without BID_STORE_WRITE, unless with @dry_run.
 */
int bid_store_forget(struct bid_store *store, int64_t before, bool dry_run, struct bid_forgotten *ret_left,
		     struct bid_forgotten *ret_gone);

/* Is @artifact a download, or perhaps one? Yes if its record cannot be read, no without a record. */
bool bid_store_is_download(struct bid_store *store, const struct bid_artifact *artifact);

/*
 * Mark @artifact, found by bid_store_find(), as added by the user in the record of a download, so that no eviction
 * removes the artifact. The user has the same bytes. Returns 0; as bid_store_find() if it no longer exists; or the error of writing
 * the record. Locking: takes the store's lock exclusively for a download.
 */
int bid_store_mark_added(struct bid_store *store, const struct bid_artifact *artifact);

/*
 * Keep a download from eviction, or no longer. No effect on other artifacts. Returns and locks as bid_store_mark_added().
 */
int bid_store_pin(struct bid_store *store, const struct bid_artifact *artifact, bool pin);

/* Note the use of the artifact, for the order of eviction: a few system calls, at most once an hour for each artifact. */
void bid_store_used(struct bid_store *store, const struct bid_artifact *artifact);

#endif
