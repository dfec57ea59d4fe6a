/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Descriptors of files that were found and checked lately, kept for the next reader, the least recently used given up first. In
 * no_open mode the kernel just opens and reads, so there is no other place for them. Pure C: knows no FUSE.
 */
#ifndef BID_FS_FD_CACHE_H
#define BID_FS_FD_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/store.h"

struct bid_fd_cache;
struct bid_fd;

/* At most @max of them, plus those in use. */
int bid_fd_cache_new(unsigned max, struct bid_fd_cache **ret_fds);
void bid_fd_cache_free(struct bid_fd_cache *cache);

/*
 * The descriptor kept for the inode @number, which is that of @request; NULL if there is none. If its file was changed since it
 * was checked, or lost its name, it is checked again, and given up if it is not the artifact any more. The caller gives it back
 * with bid_fd_cache_put(). @ret_stat may be NULL; so may @ret_same: is it unchanged since it was asked for last? With NULL both
 * are left as they were. May block on disk.
 */
struct bid_fd *bid_fd_cache_get(struct bid_fd_cache *cache, struct bid_store *store, uint64_t number,
				const struct bid_request *request, struct stat *ret_stat, bool *ret_same);

/*
 * The file of the inode @number is now the one with the attributes @st: give up a descriptor of any other, or, with @made, of one
 * of another size or time.
 */
void bid_fd_cache_drop_other(struct bid_fd_cache *cache, uint64_t number, const struct stat *st, bool made);

/* The owner, group and mode of the inode @number are those of @st: of a descriptor alone nobody can tell who gets to its file. */
void bid_fd_cache_set_access(struct bid_fd_cache *cache, uint64_t number, const struct stat *st);

/* Nobody knows the inode @number any more: if its file has no name, give up the descriptor. */
void bid_fd_cache_forget(struct bid_fd_cache *cache, uint64_t number);

/*
 * Keep @file, which is taken over, for @number. The result is as of bid_fd_cache_get(); NULL if there is no memory, and @file is
 * released. Definitions of the store stay with the caller, to be read: they are kept by an O_PATH descriptor, as nobody is given
 * a lease on what others have open; NULL if there is none.
 */
struct bid_fd *bid_fd_cache_keep(struct bid_fd_cache *cache, uint64_t number, struct bid_file *file);

/*
 * The file with the attributes @st is to go from the store: give up its descriptors that nobody uses, or with @st NULL all that
 * were not used for a minute, but for those of inodes by which @is_held says that they may be read. Of such a one that is to go, a
 * descriptor is returned, of the same file description, which the caller closes; and it is the last to be given up to make place
 * for others. Otherwise -1.
 */
int bid_fd_cache_drop(struct bid_fd_cache *cache, const struct stat *st, bool (*is_held)(void *user, uint64_t number), void *user);

/* Give up sections in memory that nobody uses right now: they are made again. Returns whether there were any. */
bool bid_fd_cache_drop_memory(struct bid_fd_cache *cache);

void bid_fd_cache_put(struct bid_fd_cache *cache, struct bid_fd *fd);

int bid_fd_number(const struct bid_fd *fd);

/*
 * A descriptor to read the file by: bid_fd_number(), or for definitions @ret_own, which the caller closes, and which is -1
 * otherwise. -EAGAIN if somebody changes them right now under a lease (fcntl(2)).
 */
int bid_fd_open(const struct bid_fd *fd, int *ret_own);

#endif
