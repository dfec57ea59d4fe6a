/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of a scan share. */
#ifndef BID_DISK_SCAN_H
#define BID_DISK_SCAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/trouble.h"
#include "disk/scan/scan_cache.h"
#include "disk/scan/settle.h"
#include "disk/scan/walk.h"

struct bid_scan_worker {
	struct bid_scan *scan;
	unsigned number;
	pthread_t thread;
	struct bid_scan_found found;
	atomic_ullong seen, recalled; /* read by the thread that reports */
} __attribute__((aligned(64)));

struct bid_scan {
	struct bid_store *store;
	const struct bid_scan_config *config;
	struct bid_scan_cache *cache; /* owned; constant while workers run */
	struct bid_settle *settle; /* owned */
	struct bid_walk *walk; /* owned */
	dev_t dev; /* of the tree's root */
	dev_t store_dev;
	ino_t store_ino;
	dev_t *mounts; /* of bidfs; owned */
	size_t n_mounts;
	struct bid_scan_worker *workers; /* owned */
	unsigned jobs;
	bool privileged; /* may do without atime */
	struct bid_scan_found settled; /* of the thread that reports */
	struct bid_scan_counts counts; /* of the same */
	pthread_mutex_t clean_lock; /* protects what follows */
	bool is_clean;
	struct timespec clean_before; /* what was not changed since then was synced by us */
};

/* Does this end a scan? Trouble of the store or the machine does, but not what cannot be read. */
static inline bool bid_scan_is_fatal(int r)
{
	return bid_is_trouble(r) && r != -EIO;
}

/* Come to an end with one file of the tree. Returns 0, or what the scan cannot go on after. */
int bid_scan_one(struct bid_scan *scan, struct bid_scan_worker *worker, const struct bid_walk_file *file);

#endif
