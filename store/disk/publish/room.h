/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room that a transaction needs on the disk. If it is known how much that is, it is looked for beforehand: a disk that is
 * filled to the end is everybody's trouble, and nobody is helped by the beginning of a file. What is missing all the same is made
 * once.
 *
 * Of what comes without a size, or beyond it, BID_ROOM_STEP is taken as it comes, and then there is to be room for as much again
 * each time; what was fetched is evicted for BID_TXN_UNSAID_MAX of it, lest one server without an end cost all of that.
 */
#ifndef BID_DISK_ROOM_H
#define BID_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include <bid/store.h>

#define BID_ROOM_STEP (64ULL << 20)

struct bid_keeper;

struct bid_room {
	struct bid_keeper *keeper; /* borrowed */
	uint64_t promised; /* bytes that are still to come */
	uint64_t unsaid; /* bytes that came without being expected */
	bool made; /* the disk was full, and something was evicted for this */
};

/*
 * @size bytes are to come, and nothing that was expected before. Returns 0; -ENOSPC if there is no room for them, also not after
 * evicting; or without @evict -EAGAIN, if there may be after that. Then @ret_left is the bytes that there is room for. With @evict
 * it may block for long.
 */
int bid_room_expect(struct bid_room *room, uint64_t size, bool evict, uint64_t *ret_left);

/*
 * @len bytes are written. Returns 0, or -ENOSPC if more may come that was not expected, and there is no room for that. May block
 * for long, if that is so.
 */
int bid_room_took(struct bid_room *room, uint64_t len);

/* Writing @len bytes came to @r: may it be tried again? Once for each transaction, if the disk is full, and anything could go. */
bool bid_room_retry(struct bid_room *room, int r, uint64_t len);

/* Nothing more is to come. */
void bid_room_release(struct bid_room *room);

#endif
