/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The space of a store on its disk, and its limits. gc_thread.c evicts when they require it. */
#ifndef BID_DISK_SPACE_H
#define BID_DISK_SPACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/evict.h"
#include "api/store.h"

enum { BID_SPACE_USES = 4096 }; /* a power of two; 64 KiB */

/* the last use of an artifact; artifacts with one hash share a slot, at the cost of a system call */
struct bid_use {
	uint64_t hash;
	int64_t noted_s; /* time of the last look at its record */
};

/* bid_evict() */
typedef int (*bid_space_evict_fn)(struct bid_store *store, const struct bid_evict_config *config, uint64_t at_least, bool slack,
				  struct bid_evict_stats *ret_stats);

struct bid_space {
	struct bid_store *store; /* borrowed */
	bid_space_evict_fn evict;
	pthread_mutex_t lock; /* protects all below; not held during I/O */
	pthread_cond_t kick;
	pthread_t thread;
	bool running; /* the thread runs; written before its start and after its end */
	bool stopping, kicked;
	struct bid_limits limits; /* written before the thread starts */
	uint64_t pending; /* bytes published since the thread looked */
	uint64_t evictable; /* bytes that could still be evicted after the last search for room, at this time */
	int64_t searched_s;
	struct bid_use uses[BID_SPACE_USES];
	pthread_mutex_t drop_fd_lock; /* protects the two fields below; held during the callback */
	bid_drop_fd_fn drop_fd; /* may be NULL */
	void *drop_fd_user;
};

/* @store outlives @ret_space. */
int bid_space_new(struct bid_store *store, bid_space_evict_fn evict, struct bid_space **ret_space);

/* End the thread, if any. @space may be NULL. */
void bid_space_free(struct bid_space *space);

/* Call the bid_drop_fd_fn for @st. @space may be NULL. */
int bid_space_drop_fd(struct bid_space *space, const struct stat *st);

/* As bid_evict(); logs each eviction, or the error. */
int bid_space_evict(struct bid_space *space, const struct bid_evict_config *config, uint64_t at_least, bool slack,
		    struct bid_evict_stats *ret_stats);

/* The bytes to evict until @needed are free. 0 if statvfs(3) fails: a write will show. */
uint64_t bid_space_missing(struct bid_space *space, uint64_t needed);

/* Add @bytes of a download, and wake the gc thread if there are limits. Never blocks. */
void bid_space_published(struct bid_space *space, uint64_t bytes);

/*
 * Do @bytes fit beside the bytes to keep free? Returns 0; -EAGAIN if an eviction may help; or -ENOSPC. The latter two set
 * @ret_left to the available bytes. @space may be NULL.
 */
int bid_space_check(struct bid_space *space, uint64_t bytes, uint64_t *ret_left);

/*
 * Evict, and return whether anything was evicted. With @all_or_nothing evict only if @bytes fit afterwards: a server with a false
 * size would otherwise cost all downloads. Without, after ENOSPC or EDQUOT, evict @bytes at least. May block for long. @space may
 * be NULL.
 */
bool bid_space_make_room(struct bid_space *space, uint64_t bytes, bool all_or_nothing);

#endif
