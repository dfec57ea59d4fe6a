/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache of checked files by inode: a descriptor, and with passthrough a backing id of the kernel. Files without a handle stay for
 * the next open; the least recently used goes first. In no_open mode the files replace handles. Pure C: knows no FUSE.
 *
 *	bid_fd_cache_find()		a reference, for bid_fd_cache_unref(); so does bid_fd_cache_insert()
 *	bid_fd_cache_open_handle()	OPEN: one handle
 *	bid_fd_cache_close_handle()	RELEASE
 *	bid_fd_cache_forget()		FORGET, before or after the last RELEASE
 *
 * All handles of an inode share one file, and are read the same way: by the kernel with one backing id, or by the daemon. Otherwise
 * the kernel answers EIO (Documentation/filesystems/fuse-passthrough.rst).
 *
 * Locking: the cache has one lock. Any thread may call.
 */
#ifndef BID_FS_FD_CACHE_H
#define BID_FS_FD_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/store.h"

struct bid_fd_cache;
struct bid_cached_fd;

/* The mount, as the cache calls it. */
struct bid_fd_cache_ops {
	int (*make_id)(void *user, int fd); /* with the lock held; returns a backing id, or a negative errno: the daemon reads */
	void (*drop_id)(void *user, int id);
	bool (*may_be_read)(void *user, uint64_t number); /* may a reader read the inode without a handle? With the lock held */
};

/* Make a cache of @max files of @store without a handle. Borrows @store, @ops, and @user for them. */
int bid_fd_cache_new(struct bid_store *store, unsigned max, const struct bid_fd_cache_ops *ops, void *user,
		     struct bid_fd_cache **ret_cache);

/* @cache may be NULL. Handles may still be open: after the session the kernel sends no RELEASE. */
void bid_fd_cache_free(struct bid_fd_cache *cache);

/*
 * Find the file of the inode @number, @artifact, with a reference, or NULL. Checks a changed or unlinked file again, and drops it
 * if it is no longer the artifact. @ret_same: the file did not change since the last use. Both outputs may be NULL, and stay as
 * they were without a file. May block on disk.
 */
struct bid_cached_fd *bid_fd_cache_find(struct bid_fd_cache *cache, uint64_t number, const struct bid_artifact *artifact,
					struct stat *ret_stat, bool *ret_same);

/* Drop the file of the inode @number if it is not @st, and no handle is open. Files in memory are equal if size and time are. */
void bid_fd_cache_drop_other(struct bid_fd_cache *cache, uint64_t number, const struct stat *st);

/* Drop the file of the inode @number, which the kernel forgets, if it has no name or a RELEASE is on its way. */
void bid_fd_cache_forget(struct bid_fd_cache *cache, uint64_t number);

/*
 * Cache @file for @number, and take it over. The cache has probe definitions by an O_PATH descriptor, because an open one would
 * prevent leases; @file stays the caller's then. Returns 0 and a reference; -ESTALE if handles of another file are open;
 * -ENOMEM, or as open(2). After an error @file is released, unless it is of probe definitions.
 */
int bid_fd_cache_insert(struct bid_fd_cache *cache, uint64_t number, struct bid_file *file, struct bid_cached_fd **ret_cached);

/*
 * Open a handle of @cached. @ret_id is the backing id, or 0 if the daemon reads. -ESTALE if handles of another file are open; the
 * kernel repeats the LOOKUP.
 */
int bid_fd_cache_open_handle(struct bid_fd_cache *cache, struct bid_cached_fd *cached, int *ret_id);
void bid_fd_cache_close_handle(struct bid_fd_cache *cache, struct bid_cached_fd *cached, bool by_kernel);

/* Get the attributes of the open file of the inode @number. False without a handle. */
bool bid_fd_cache_stat(struct bid_fd_cache *cache, uint64_t number, struct stat *ret_st);

/*
 * Drop the unused file @st, which the store is about to remove; with NULL all that are unused for a minute. Inodes that may be read
 * without a handle keep theirs, except idle files in memory. Returns a duplicate of such a descriptor of @st for the caller to
 * close, or -1.
 */
int bid_fd_cache_drop(struct bid_fd_cache *cache, const struct stat *st);

/* Drop unused files in memory, which can be made again. Returns whether there were any. */
bool bid_fd_cache_drop_memory(struct bid_fd_cache *cache);

/* @cached may be NULL. */
void bid_fd_cache_unref(struct bid_fd_cache *cache, struct bid_cached_fd *cached);

int bid_cached_fd_descriptor(const struct bid_cached_fd *cached);

/*
 * Open @cached for reading. Returns bid_cached_fd_descriptor(), or for probe definitions a new descriptor, which is also @ret_own,
 * for the caller to close. @ret_own is -1 otherwise. -EAGAIN while a writer has a lease (fcntl(2)).
 */
int bid_cached_fd_open(const struct bid_cached_fd *cached, int *ret_own);

#endif
