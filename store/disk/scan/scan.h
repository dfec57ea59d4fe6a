/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared state of a scan. */
#ifndef BID_DISK_SCAN_H
#define BID_DISK_SCAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/trouble.h"
#include "disk/scan/scan_cache.h"
#include "disk/scan/settle.h"
#include "disk/walk.h"

struct bid_scan_worker {
	struct bid_scan *scan;
	pthread_t thread;
	struct bid_scan_found found;
	atomic_ullong seen, recalled; /* read by the calling thread */
} __attribute__((aligned(64)));

struct bid_scan {
	struct bid_store *store;
	const struct bid_scan_config *config;
	struct bid_scan_cache *cache; /* owned; constant while workers run */
	struct bid_settle *settle; /* owned */
	struct bid_walk *walk; /* owned */
	dev_t dev; /* device of the tree's root */
	dev_t store_dev;
	ino_t store_ino;
	dev_t *mounts; /* owned; devices of mounts of bidfs */
	size_t n_mounts;
	struct bid_scan_worker *workers; /* owned */
	unsigned jobs;
	bool privileged; /* may do without atime */
	struct bid_scan_found settled; /* results of the calling thread */
	struct bid_scan_counts counts; /* counts of the calling thread */
	pthread_mutex_t clean_lock; /* protects the fields below */
	bool is_clean;
	struct timespec clean_before; /* our sync covers all files unchanged since this time */
};

/* Does the error end a scan? A failure of the store or the machine does; an unreadable file does not. */
static inline bool bid_scan_is_fatal(int r)
{
	return bid_is_trouble(r) && r != -EIO;
}

/* Handle one file of the tree; @user is the worker. Returns 0, or an error that ends the scan. */
int bid_scan_one(void *user, const struct bid_walk_file *file);

#endif
