/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room that a transaction needs on the disk. If it is known how much that is, it is looked for beforehand: a disk that is
 * filled to the end is everybody's trouble, and nobody is helped by the beginning of a file. What is missing all the same is made
 * once.
 */
#ifndef BID_DISK_ROOM_H
#define BID_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct bid_keeper;

struct bid_room {
	struct bid_keeper *keeper; /* borrowed */
	uint64_t promised; /* bytes that are still to come */
	bool made; /* the disk was full, and something was evicted for this */
};

/*
 * @size bytes are to come, and nothing that was expected before. Returns 0, or -ENOSPC if there is no room for them, also not after
 * evicting, and in @ret_left the bytes that there is room for.
 */
int bid_room_expect(struct bid_room *room, uint64_t size, uint64_t *ret_left);

/* @len of them are written. */
void bid_room_took(struct bid_room *room, uint64_t len);

/* Writing @len bytes came to @r: may it be tried again? Once for each transaction, if the disk is full, and anything could go. */
bool bid_room_retry(struct bid_room *room, int r, uint64_t len);

/* Nothing more is to come. */
void bid_room_release(struct bid_room *room);

#endif
