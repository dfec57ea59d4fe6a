/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What earlier scans of a tree found its files to be: ".bidfs/scan/HASH" (docs/FORMAT.md, "What was scanned"), one file per tree.
 * An entry stands for a name, who gets there, an inode, a size and times; a file that was changed has another. A file of the cache
 * that is missing, damaged or of another form is an empty one. Its modification time is that of the last scan, give or take a day.
 */
#ifndef BID_DISK_SCAN_CACHE_H
#define BID_DISK_SCAN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "api/store.h"

struct bid_scan_cache;

/* 96 bits of a hash over what the entry stands for. */
struct bid_scan_key {
	uint32_t words[3];
};

/* What the file was found to be. */
struct bid_scan_verdict {
	enum {
		BID_SCAN_UNKNOWN = 0,
		BID_SCAN_OTHER, /* not an ELF file */
		BID_SCAN_NAMELESS, /* an ELF file without a build-id */
		BID_SCAN_KNOWN, /* an ELF file with this id, which was in the store then */
	} what;
	enum bid_kind kind; /* with an id */
	struct bid_id id;
};

/* The key of the file @name in @dir_path, of which @st is the stat. @way is 0 if everybody gets to that directory. */
struct bid_scan_key bid_scan_key(const char *dir_path, uint64_t way, const char *name, const struct stat *st);

/* Read what is kept of the tree at @path; with @forget take it for empty. Returns 0 or -ENOMEM. */
int bid_scan_cache_load(struct bid_store *store, const char *path, bool forget, struct bid_scan_cache **ret_cache);

bool bid_scan_cache_is_empty(const struct bid_scan_cache *cache);

/* The verdict on @key, BID_SCAN_UNKNOWN if there is none. May be called by any number of threads. */
struct bid_scan_verdict bid_scan_cache_find(const struct bid_scan_cache *cache, const struct bid_scan_key *key);

/* The verdicts that one thread has reached or confirmed. Begin with a zeroed one. */
struct bid_scan_found {
	struct bid_scan_slot *slots; /* owned */
	size_t n, room;
	struct bid_scan_named *ids; /* owned */
	size_t n_ids, room_ids;
	size_t n_new; /* of which the cache did not know */
};

/* Returns 0 or -ENOMEM. */
int bid_scan_found_add(struct bid_scan_found *found, const struct bid_scan_key *key, const struct bid_scan_verdict *verdict,
		       bool is_new);

void bid_scan_found_release(struct bid_scan_found *found);

/* Write what @n threads found in the place of what was there before, or, if that says the same, note that a scan looked at it. */
int bid_scan_cache_save(struct bid_store *store, struct bid_scan_cache *cache, const struct bid_scan_found *found, size_t n);

/* Remove what no scan has looked at since @before, or with @dry_run only count it. Adds to @left and @gone. */
int bid_scan_caches_forget(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone);

/* @cache may be NULL. */
void bid_scan_cache_free(struct bid_scan_cache *cache);

#endif
