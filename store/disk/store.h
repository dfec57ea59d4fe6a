/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An open store, as the files of store/disk see it. open_store.c constructs it. */
#ifndef BID_DISK_STORE_H
#define BID_DISK_STORE_H

#include <dirent.h>
#include <stdatomic.h>

#include "api/store.h"
#include "disk/layout.h"

struct bid_space;
struct bid_check_cache;

/* The last source device (st_dev + 1, 0 for none) for whose files one of these ways into the store failed. */
struct bid_denied {
	atomic_ullong reflink, link;
	atomic_ullong link_of_others; /* than the caller */
};

/* Locking: owned objects have their own locks; open_store.c writes all other fields before threads share the store. */
struct bid_store {
	int root; /* O_DIRECTORY descriptor, to which all paths are relative; owned */
	unsigned flags; /* enum bid_store_flags */
	char *path; /* absolute; owned */
	struct bid_check_cache *check_cache; /* shared with the lower stores; owned by the upper one */
	struct bid_denied denied;
	long long dirty_for_s; /* age in seconds after which the kernel has written a file; 0: never */
	atomic_llong synced_s; /* time of the last bid_store_sync(): earlier changes are on disk */
	struct bid_space *space; /* owned; NULL without BID_STORE_WRITE */
	bool require_signed; /* see bid_store_require_signed(); of a lower store the upper one's counts */
	struct bid_store *lower; /* the next lower store, or NULL; owned */
	bool has_paths; /* lower store: see bid_store_has_paths() */
	const char *const *links; /* permitted targets of links of lower stores, NULL-terminated, or NULL; borrowed */
	atomic_bool left; /* lower store: a link to another target was reported */
	/* lower store: the store of bid_store_add_lower(), borrowed; else NULL */
	struct bid_store *upper;
};

/* Is @store a lower store? It may have a foreign layout. */
static inline bool bid_store_is_lower(const struct bid_store *store)
{
	return store->upper != NULL;
}

/* The store that a lower store was added to, or @store itself. */
static inline struct bid_store *bid_store_upper(struct bid_store *store)
{
	return store->upper ? store->upper : store;
}

/* Does @store serve no download without a signer? */
static inline bool bid_store_requires_signed(struct bid_store *store)
{
	return bid_store_upper(store)->require_signed;
}

/* Does @store have a tree of original paths, as perf's stores have? A lower store with a foreign layout has none. */
static inline bool bid_store_has_paths(const struct bid_store *store)
{
	return !bid_store_is_lower(store) || store->has_paths;
}

/* Has @store perf's layout? True of an empty one, too. May take as long as an enumeration of the fan-out directories. */
bool bid_has_paths_here(struct bid_store *store);

/*
 * May a power cut take the stored file with the attributes @st, or its name? perf syncs nothing; the kernel writes a file within a
 * minute, or bid_store_sync() does.
 */
bool bid_store_is_fresh(struct bid_store *store, const struct stat *st);

/*
 * Open the regular file @path of @store for reading, and set the descriptor and the attributes of @file. @linked follows links as
 * bid_store_open_linked(). Returns 0, -ENOENT for anything but a regular file, or as openat2(2); an error leaves @file as it is.
 */
int bid_store_open_file(struct bid_store *store, const char *path, bool linked, struct bid_file *file);

/*
 * Open the directory ".bidfs/FOLDER/xx" of @artifact in the private @folder, and set the name of its file there, "rest.KIND".
 * Creates the directory if @make. Returns 0, -ENOENT, or as openat2(2).
 */
int bid_store_open_fanout(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, bool make, int *ret_dir,
			  char ret_name[static BID_LAYOUT_MAX]);

/*
 * Call @fn for each existing directory "BASE/xx" of @store, in the order of the first byte xx of an id. A non-zero return ends the
 * enumeration and is returned.
 */
int bid_store_each_fanout(struct bid_store *store, const char *base, int (*fn)(void *user, DIR *dir, const char *first),
			  void *user);

/* As bid_beneath_open_linked() in @store. -ENOENT if a link leads out of it, which is logged once. */
int bid_store_open_linked(struct bid_store *store, const char *path, int flags, int *ret_fd);

#endif
