// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/room.h"

#include <errno.h>

#include "disk/keeper.h"

int bid_room_expect(struct bid_room *room, uint64_t size, bool evict, uint64_t *ret_left)
{
	int r;

	bid_room_release(room);
	r = size > 0 ? bid_keeper_promise(room->keeper, size, evict, ret_left) : 0;
	if (r == 0)
		room->promised = size;
	return r;
}

int bid_room_took(struct bid_room *room, uint64_t len)
{
	uint64_t promised = len < room->promised ? len : room->promised;
	uint64_t steps = room->unsaid / BID_ROOM_STEP;

	room->promised -= promised;
	bid_keeper_settle(room->keeper, promised);
	room->unsaid += len - promised;
	if (room->unsaid / BID_ROOM_STEP == steps)
		return 0;
	return bid_keeper_go_on(room->keeper, room->unsaid, BID_ROOM_STEP, room->unsaid <= BID_TXN_UNSAID_MAX);
}

bool bid_room_retry(struct bid_room *room, int r, uint64_t len)
{
	if ((r != -ENOSPC && r != -EDQUOT) || room->made)
		return false;
	room->made = true;
	len *= 2;
	if (room->unsaid > 0 && len > BID_TXN_UNSAID_MAX)
		len = BID_TXN_UNSAID_MAX;
	return bid_keeper_make_room(room->keeper, len);
}

void bid_room_release(struct bid_room *room)
{
	bid_keeper_settle(room->keeper, room->promised);
	room->promised = room->unsaid = 0;
}
