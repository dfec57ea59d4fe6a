/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who keeps a store within its limits while it is in use, and remembers what is in use. */
#ifndef BID_DISK_KEEPER_H
#define BID_DISK_KEEPER_H

#include <bid/evict.h>

struct bid_keeper;

/* @store must outlive it. */
int bid_keeper_new(struct bid_store *store, struct bid_keeper **ret_keeper);

/* Ends its thread, if it has one. @keeper may be NULL. */
void bid_keeper_free(struct bid_keeper *keeper);

/* What bid_let_go_fn returns of @st. @keeper may be NULL. */
int bid_keeper_let_go(struct bid_keeper *keeper, const struct stat *st);

/* @bytes more were fetched: time to look at the limits, if there are any. Never blocks. */
void bid_keeper_published(struct bid_keeper *keeper, uint64_t bytes);

/*
 * A write met a full disk, or the end of a quota: evict @bytes and more. May block for long. True if there is a point in trying
 * once more.
 */
bool bid_keeper_make_room(struct bid_keeper *keeper, uint64_t bytes);

/*
 * @bytes are to be written. Returns 0 if there is room for them, beside what was promised to others and what is to stay free, and
 * then they are promised, until they are settled; or else -ENOSPC, and in @ret_left how many there is room for. If evicting is
 * enough for it, it is done with @evict, and may block for long; without, it is -EAGAIN if it may be enough. @keeper may be NULL,
 * that of a store to which nothing is written.
 */
int bid_keeper_promise(struct bid_keeper *keeper, uint64_t bytes, bool evict, uint64_t *ret_left);

/*
 * Nobody said how many bytes there are to be, and @written are: is there room for @bytes more, and is it no more than is to be kept
 * of all that was fetched? @evict, what is returned, and @keeper are as above.
 */
int bid_keeper_go_on(struct bid_keeper *keeper, uint64_t written, uint64_t bytes, bool evict);

/* Of what was promised, @bytes were written, or will not be. @keeper may be NULL. */
void bid_keeper_settle(struct bid_keeper *keeper, uint64_t bytes);

#endif
