/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of store/disk share of an open store. */
#ifndef BID_DISK_STORE_H
#define BID_DISK_STORE_H

#include <stdatomic.h>

#include <bid/store.h>

struct bid_dirs;
struct bid_keeper;
struct bid_modules;
struct bid_packs;
struct bid_pins;
struct bid_verdicts;

/*
 * A flag of a lower store, beside those of enum bid_store_flags: it may have the layouts of others, and has no lower ones
 * itself.
 */
#define BID_STORE_LOWER (1U << 31)

/*
 * The lower store after @store, which is the store itself or one of its lower ones; NULL if it is the last. Lives as long as
 * the store.
 */
struct bid_store *bid_store_lower(const struct bid_store *store);

/* The store that @store is a lower one of, or @store itself. */
struct bid_store *bid_store_upper(struct bid_store *store);

/*
 * Does @store have a tree of original paths, as perf's have? Not so a lower one in the layout of others, when it was added: then
 * its directories say nothing of builds.
 */
bool bid_store_has_paths(const struct bid_store *store);

/* The directory all paths are relative to. Lives as long as the store. */
int bid_store_root(const struct bid_store *store);

unsigned bid_store_flags(const struct bid_store *store);

/* Who keeps the limits of this store; NULL if it is only read. */
struct bid_keeper *bid_store_keeper(struct bid_store *store);

/* Its directories that are kept open. */
struct bid_dirs *bid_store_dirs(struct bid_store *store);

/* What was read last of a kernel's modules. */
struct bid_modules *bid_store_last_modules(struct bid_store *store);

/* Its packs of records. */
struct bid_packs *bid_store_packs(struct bid_store *store);

/* The digests of what was fetched first; NULL if the store is only read. */
struct bid_pins *bid_store_pins(struct bid_store *store);

/* The verdicts that were reached on files of this store. */
struct bid_verdicts *bid_store_verdicts(struct bid_store *store);

/*
 * Of which device, plus one, it is known that its files cannot be had in this store in one of these ways; 0 if of none. Lives as
 * long as the store.
 */
struct bid_denied {
	atomic_ullong reflink, link;
	atomic_ullong link_of_others; /* than the caller */
};
struct bid_denied *bid_store_denied(struct bid_store *store);

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
