/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room that a transaction needs on the disk. If it is known how much that is, it is looked for beforehand: a disk that is
 * filled to the end is everybody's trouble, and nobody is helped by the beginning of a file. What is missing all the same is made
 * once.
 *
 * Of what comes without a size, or beyond it, BID_ROOM_STEP is taken as it comes, and then there is to be room for as much again
 * each time; what was fetched is evicted for BID_TXN_UNSAID_MAX of it, lest one server without an end cost all of that.
 *
 * Nothing but bid_room_make() evicts: the others return -EAGAIN, and keep what it has to make.
 */
#ifndef BID_DISK_ROOM_H
#define BID_DISK_ROOM_H

#include <stdint.h>

#include <bid/store.h>

#define BID_ROOM_STEP (64ULL << 20)

struct bid_keeper;

enum bid_room_need {
	BID_ROOM_ENOUGH = 0,
	BID_ROOM_EXPECTED, /* bid_room_expect() */
	BID_ROOM_NEXT_STEP, /* bid_room_took() */
	BID_ROOM_DISK_FULL, /* bid_room_full() */
};

struct bid_room {
	struct bid_keeper *keeper; /* borrowed */
	uint64_t promised; /* bytes that are still to come */
	uint64_t unsaid; /* bytes that came without being expected */
	enum bid_room_need need; /* what bid_room_make() has to make */
	uint64_t wanted; /* bytes, for BID_ROOM_EXPECTED and BID_ROOM_DISK_FULL */
	bool made; /* the disk was full, and something was evicted for this */
};

/*
 * @size bytes are to come, and nothing that was expected before. Returns 0; -EAGAIN; or -ENOSPC if there is no room for them, also
 * not after evicting. Unless it is 0, @ret_left is the bytes that there is room for.
 */
int bid_room_expect(struct bid_room *room, uint64_t size, uint64_t *ret_left);

/* @len bytes are written. Returns 0; -EAGAIN or -ENOSPC if more may come that was not expected, and there is no room for that. */
int bid_room_took(struct bid_room *room, uint64_t len);

/* Writing @len bytes came to @r. Returns -EAGAIN, once for each transaction, if the disk is full; else @r. */
int bid_room_full(struct bid_room *room, int r, uint64_t len);

/* Evict for what is needed. Blocks. Returns 0, or -ENOSPC and, of BID_ROOM_EXPECTED, in @ret_left the bytes there is room for. */
int bid_room_make(struct bid_room *room, uint64_t *ret_left);

/* Nothing more is to come. */
void bid_room_release(struct bid_room *room);

#endif
