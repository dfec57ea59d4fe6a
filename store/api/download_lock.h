/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cross-process locks of downloads (docs/FORMAT.md, "Who fetches what"): among the processes with one store and the same servers,
 * one downloads an artifact, and the others wait. A lock ends with its process at the latest.
 *
 *   bid_download_locks_try()
 *     the download
 *   bid_download_locks_unlock()
 *
 * Any number of threads may use a struct bid_download_locks. All functions may block on disk for a moment. If a lock service hangs,
 * one thread waits for it, and the others a second at most.
 */
#ifndef BID_API_DOWNLOAD_LOCK_H
#define BID_API_DOWNLOAD_LOCK_H

#include "api/store.h"

struct bid_download_locks;

/* @store is writable and outlives @ret_locks. Returns 0 or -ENOMEM. */
int bid_download_locks_new(struct bid_store *store, struct bid_download_locks **ret_locks);

/* Release every lock. @locks may be NULL. */
void bid_download_locks_free(struct bid_download_locks *locks);

/* Hash the server @name; the hash of several servers is the sum of their hashes. */
uint64_t bid_download_lock_server(const char *name);

/* The key of @artifact to the servers with the hash @servers. Requests with one key share a lock. */
uint64_t bid_download_lock_key(const struct bid_artifact *artifact, uint64_t servers);

/*
 * Take the lock of @key without waiting. Returns 0, also if @locks already has it: the first unlock then releases it. Returns
 * -EBUSY if another process has it, or another negative errno on a file system without locks, or with locks that hang.
 */
int bid_download_locks_try(struct bid_download_locks *locks, uint64_t key);

/* Release the lock of @key. */
void bid_download_locks_unlock(struct bid_download_locks *locks, uint64_t key);

#endif
