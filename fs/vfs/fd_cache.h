/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache of descriptors: files that were found and checked, by inode number, with the least recently used dropped first. In
 * no_open mode it replaces file handles. Pure C: knows no FUSE.
 *
 *	bid_fd_cache_get() or _keep(), bid_fd_open() or _number(), bid_fd_cache_put()
 *
 * Locking: the cache has one lock. Any thread may call.
 */
#ifndef BID_FS_FD_CACHE_H
#define BID_FS_FD_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/store.h"

struct bid_fd_cache;
struct bid_fd;

/* Make a cache of @max descriptors, beside those in use. */
int bid_fd_cache_new(unsigned max, struct bid_fd_cache **ret_cache);
void bid_fd_cache_free(struct bid_fd_cache *cache);

/*
 * Get the descriptor of the inode @number, an artifact @request, or NULL. Checks a changed or unlinked file again, and drops it
 * if it is no longer the artifact. @ret_same: the file did not change since the last use. Both outputs may be NULL, and stay as
 * they were without a descriptor. May block on disk.
 */
struct bid_fd *bid_fd_cache_get(struct bid_fd_cache *cache, struct bid_store *store, uint64_t number,
				const struct bid_request *request, struct stat *ret_stat, bool *ret_same);

/* Drop the descriptor of the inode @number if its file is not @st; with @made, of a file in memory, if size or time differ. */
void bid_fd_cache_drop_other(struct bid_fd_cache *cache, uint64_t number, const struct stat *st, bool made);

/* Drop the descriptor of the inode @number if its file has no name. For inodes that the kernel forgets. */
void bid_fd_cache_forget(struct bid_fd_cache *cache, uint64_t number);

/*
 * Cache @file for @number, and take it over. NULL without memory; then @file is released. As bid_fd_cache_get() otherwise. The
 * cache has probe definitions by an O_PATH descriptor, because an open one would prevent leases; @file stays the caller's then,
 * also with NULL.
 */
struct bid_fd *bid_fd_cache_keep(struct bid_fd_cache *cache, uint64_t number, struct bid_file *file);

/*
 * Drop the unused descriptors of the file @st, which the store is about to remove; with NULL all that are unused for a minute.
 * Inodes for which @is_held is true keep theirs, except idle files in memory: in no_open mode a reader may need it. Returns a
 * duplicate of such a descriptor of @st for the caller to close, or -1.
 */
int bid_fd_cache_drop(struct bid_fd_cache *cache, const struct stat *st, bool (*is_held)(void *user, uint64_t number), void *user);

/* Drop unused files in memory, which can be made again. Returns whether there were any. */
bool bid_fd_cache_drop_memory(struct bid_fd_cache *cache);

void bid_fd_cache_put(struct bid_fd_cache *cache, struct bid_fd *fd);

int bid_fd_number(const struct bid_fd *fd);

/*
 * Open the file for reading. Returns bid_fd_number(), or for probe definitions a new descriptor, which is also @ret_own, for the
 * caller to close. @ret_own is -1 otherwise. -EAGAIN while a writer has a lease (fcntl(2)).
 */
int bid_fd_open(const struct bid_fd *fd, int *ret_own);

#endif
