/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room of a store on its disk: the limits, what is reserved for writers, and when it is worth while to evict. gc_thread.c
 * evicts by it, open.c says how.
 */
#ifndef BID_DISK_SPACE_H
#define BID_DISK_SPACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "api/evict.h"
#include "api/store.h"

enum { BID_SPACE_USES = 4096 }; /* a power of two; 64 KiB, of which pages never used are never touched */

/* An artifact that was used; those that hash alike push each other out, which costs a system call or two. */
struct bid_use {
	uint64_t hash;
	int64_t noted_s; /* the clock when its record was looked at last */
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
	bool running; /* there is a thread; written before it starts and after it ended */
	bool stopping, kicked;
	struct bid_limits limits; /* written before the thread starts */
	uint64_t pending; /* bytes published since the thread looked */
	uint64_t evictable; /* bytes that could still be evicted after the last search for room, at this time */
	int64_t searched_s;
	struct bid_use uses[BID_SPACE_USES];
	pthread_mutex_t let_go_lock; /* protects the two below, and is held while it is called */
	bid_let_go_fn let_go; /* may be NULL */
	void *let_go_user;
	_Atomic uint64_t reserved; /* bytes that are to be written; has no need of the lock */
};

/* @store must outlive it. */
int bid_space_new(struct bid_store *store, bid_space_evict_fn evict, struct bid_space **ret_space);

/* Ends its thread, if it has one. @space may be NULL. */
void bid_space_free(struct bid_space *space);

/* What bid_let_go_fn returns of @st. @space may be NULL. */
int bid_space_let_go(struct bid_space *space, const struct stat *st);

/* bid_evict(), with what is evicted, or why it failed, in the log. */
int bid_space_evict(struct bid_space *space, const struct bid_evict_config *config, uint64_t at_least, bool slack,
		    struct bid_evict_stats *ret_stats);

/* How many bytes are missing until @needed are free? 0 on a disk that does not tell: that is found out by writing. */
uint64_t bid_space_missing(struct bid_space *space, uint64_t needed);

/* @bytes more were fetched: time to look at the limits, if there are any. Never blocks. */
void bid_space_published(struct bid_space *space, uint64_t bytes);

/*
 * A write met a full disk, or the end of a quota: evict @bytes and more. May block for long. True if there is a point in trying
 * once more. @space may be NULL.
 */
bool bid_space_make_room(struct bid_space *space, uint64_t bytes);

/*
 * The room that one transaction needs. If it is known how much that is, it is looked for beforehand: a disk that is filled to the
 * end is everybody's trouble, and nobody is helped by the beginning of a file. What is missing all the same is made once.
 *
 * Of what comes without a size, or beyond it, BID_RESERVE_STEP is taken as it comes, and then there is to be room for as much again
 * each time; what was fetched is evicted for BID_TXN_UNSAID_MAX of it, lest one server without an end cost all of that.
 *
 * Nothing but bid_reservation_make() evicts: the others return -EAGAIN, and keep what it has to make.
 */
#define BID_RESERVE_STEP (64ULL << 20)

enum bid_reserve_need {
	BID_RESERVE_ENOUGH = 0,
	BID_RESERVE_EXPECTED, /* bid_reservation_expect() */
	BID_RESERVE_NEXT_STEP, /* bid_reservation_took() */
	BID_RESERVE_DISK_FULL, /* bid_reservation_full() */
};

struct bid_reservation {
	struct bid_space *space; /* borrowed; NULL for a store to which nothing is written */
	uint64_t reserved; /* bytes that are still to come */
	uint64_t unsaid; /* bytes that came without being expected */
	enum bid_reserve_need need; /* what bid_reservation_make() has to make */
	uint64_t wanted; /* bytes, for BID_RESERVE_EXPECTED and BID_RESERVE_DISK_FULL */
	bool made; /* the disk was full, and something was evicted for this */
};

/*
 * @size bytes are to come, and nothing that was expected before. Returns 0; -EAGAIN; or -ENOSPC if there is no room for them, also
 * not after evicting. Unless it is 0, @ret_left is the bytes that there is room for.
 */
int bid_reservation_expect(struct bid_reservation *reservation, uint64_t size, uint64_t *ret_left);

/* @len bytes are written. Returns 0; -EAGAIN or -ENOSPC if more may come that was not expected, and there is no room for that. */
int bid_reservation_took(struct bid_reservation *reservation, uint64_t len);

/* Writing @len bytes came to @r. Returns -EAGAIN, once for each transaction, if the disk is full; else @r. */
int bid_reservation_full(struct bid_reservation *reservation, int r, uint64_t len);

/*
 * Evict for what is needed. Blocks. Returns 0, or -ENOSPC and, of BID_RESERVE_EXPECTED, in @ret_left the bytes there is room for.
 */
int bid_reservation_make(struct bid_reservation *reservation, uint64_t *ret_left);

/* Nothing more is to come. */
void bid_reservation_release(struct bid_reservation *reservation);

#endif
