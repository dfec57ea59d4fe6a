/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Results of earlier scans: ".bidfs/scan/HASH" (docs/FORMAT.md, "What was scanned"), one file per tree, a sorted array of entries.
 * The key of an entry covers the name, the permissions of the way to it, inode, size and times; a changed file has another key. A
 * missing, damaged or foreign cache file counts as empty. Its modification time is that of the last scan, to the day.
 */
#ifndef BID_DISK_SCAN_CACHE_H
#define BID_DISK_SCAN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "api/store.h"

struct bid_scan_cache;

/* the result for a file, as it is on disk */
struct bid_scan_entry {
	uint64_t key;
	enum bid_scan_what {
		BID_SCAN_OTHER = 1, /* no ELF file */
		BID_SCAN_NO_ID, /* an ELF file without a build-id */
		BID_SCAN_KNOWN, /* an ELF file with this id, in the store at the time of the scan */
	} __attribute__((packed)) what;
	uint8_t kind; /* with an id */
	uint8_t id_len;
	uint8_t id[21];
};

/* Compute the key of the file @name in @dir_path with the stat @st. @way is 0 for a directory that all users can reach. */
uint64_t bid_scan_key(const char *dir_path, uint64_t way, const char *name, const struct stat *st);

/* Load the cache of the tree at @path. Returns 0 or -ENOMEM. */
int bid_scan_cache_load(struct bid_store *store, const char *path, struct bid_scan_cache **ret_cache);

bool bid_scan_cache_is_empty(const struct bid_scan_cache *cache);

/* Return the entry with @key, or NULL. Multithreading: any number of threads. */
const struct bid_scan_entry *bid_scan_cache_find(const struct bid_scan_cache *cache, uint64_t key);

/* results that one thread found or confirmed; the caller zeroes it first */
struct bid_scan_found {
	struct bid_scan_entry *entries; /* owned */
	size_t n, room;
	size_t n_new; /* number of results unknown to the cache */
};

/* Returns 0 or -ENOMEM. */
int bid_scan_found_add(struct bid_scan_found *found, const struct bid_scan_entry *entry, bool is_new);

/* Replace the saved cache by the results of @n threads. If they are equal, only update its time. */
int bid_scan_cache_save(struct bid_store *store, struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n);

/* Remove the caches without a scan since @before, or with @dry_run only count them. Adds to @left and @gone. */
int bid_scan_caches_forget(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone);

/* @cache may be NULL. */
void bid_scan_cache_free(struct bid_scan_cache *cache);

#endif
