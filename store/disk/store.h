/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An open store, for the files of store/disk: open.c makes it. */
#ifndef BID_DISK_STORE_H
#define BID_DISK_STORE_H

#include <stdatomic.h>

#include "api/store.h"

struct bid_dirs;
struct bid_space;
struct bid_modules;
struct bid_verdicts;

/*
 * A flag of a lower store, beside those of enum bid_store_flags: it may have the layouts of others, and has no lower ones
 * itself.
 */
#define BID_STORE_LOWER (1U << 31)

/* The last source device (st_dev + 1, 0 for none) for whose files one of these ways into the store failed. */
struct bid_denied {
	atomic_ullong reflink, link;
	atomic_ullong link_of_others; /* than the caller */
};

/* What is owned here has its own lock, and all else is written before the store is shared. */
struct bid_store {
	int root; /* O_DIRECTORY descriptor, to which all paths are relative; owned */
	unsigned flags; /* enum bid_store_flags */
	char *path; /* absolute; owned */
	struct bid_verdicts *verdicts; /* on the files of this store; owned */
	struct bid_dirs *dirs; /* that are kept open; owned */
	struct bid_modules *modules; /* those read last of a kernel; owned */
	struct bid_denied denied;
	long long dirty_for_s; /* age in seconds from which on the kernel has written a file; 0: none */
	atomic_llong synced_s; /* what was changed before this second is on disk, by bid_store_sync() */
	struct bid_space *space; /* on its disk, and its limits; owned; NULL for a store that is only read */
	struct bid_store *lower; /* the next one to look into, or NULL; owned */
	bool has_paths; /* of a lower one: see bid_store_has_paths() */
	const char *const *links; /* where links of lower ones may lead, NULL-terminated, or NULL; borrowed */
	atomic_bool left; /* of a lower one: a link that leads elsewhere was reported */
	struct bid_store *upper; /* of a lower one: the store it was added to; borrowed */
};

/* The lower store after @store, which is the store itself or one of its lower ones; NULL if it is the last. */
static inline struct bid_store *bid_store_lower(const struct bid_store *store)
{
	return store->lower;
}

/* The store that @store is a lower one of, or @store itself. */
static inline struct bid_store *bid_store_upper(struct bid_store *store)
{
	return store->upper ? store->upper : store;
}

/*
 * Does @store have a tree of original paths, as perf's have? Not so a lower one in the layout of others, when it was added: then
 * its directories say nothing of builds.
 */
static inline bool bid_store_has_paths(const struct bid_store *store)
{
	return !store->upper || store->has_paths;
}

static inline int bid_store_root(const struct bid_store *store)
{
	return store->root;
}

static inline unsigned bid_store_flags(const struct bid_store *store)
{
	return store->flags;
}

static inline struct bid_space *bid_store_space(struct bid_store *store)
{
	return store->space;
}

static inline struct bid_verdicts *bid_store_verdicts(struct bid_store *store)
{
	return store->verdicts;
}

/*
 * May a power cut take the file with @st, which is in the store, or a name of it? Who put it there, as perf does, may never sync
 * it: that is the kernel's, within the minute, if no bid_store_sync() came before.
 */
bool bid_store_is_fresh(struct bid_store *store, const struct stat *st);

/*
 * Open the regular file @path of @store for reading: its descriptor, which is @file's then, and its stat, by bid_fstat(). With
 * @linked it may be reached by links, as of bid_store_open_linked(). Returns 0, -ENOENT for anything else than a regular file, or
 * as openat2(2); @file is changed only if it is 0.
 */
int bid_store_open_file(struct bid_store *store, const char *path, bool linked, struct bid_file *file);

/* bid_root_open_linked() in @store, for what may be linked. -ENOENT where links lead out of it, which is reported once. */
int bid_store_open_linked(struct bid_store *store, const char *path, int flags, int *ret_fd);

#endif
