// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/room.h"

#include <errno.h>

#include "disk/keeper.h"

int bid_room_expect(struct bid_room *room, uint64_t size, uint64_t *ret_left)
{
	int r;

	bid_room_release(room);
	r = size > 0 ? bid_keeper_promise(room->keeper, size, ret_left) : 0;
	if (r == 0)
		room->promised = size;
	return r;
}

void bid_room_took(struct bid_room *room, uint64_t len)
{
	/* more may come than was said */
	if (len > room->promised)
		len = room->promised;
	room->promised -= len;
	bid_keeper_settle(room->keeper, len);
}

bool bid_room_retry(struct bid_room *room, int r, uint64_t len)
{
	if ((r != -ENOSPC && r != -EDQUOT) || room->made)
		return false;
	room->made = true;
	return bid_keeper_make_room(room->keeper, 2 * len);
}

void bid_room_release(struct bid_room *room)
{
	bid_room_took(room, room->promised);
}
