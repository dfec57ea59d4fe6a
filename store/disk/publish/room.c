// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/room.h"

#include <errno.h>

#include "disk/keeper.h"

static int need(struct bid_room *room, enum bid_room_need what, uint64_t wanted)
{
	room->need = what;
	room->wanted = wanted;
	return -EAGAIN;
}

static int promise(struct bid_room *room, uint64_t size, bool evict, uint64_t *ret_left)
{
	int r = size > 0 ? bid_keeper_promise(room->keeper, size, evict, ret_left) : 0;

	if (r == 0)
		room->promised = size;
	return r;
}

int bid_room_expect(struct bid_room *room, uint64_t size, uint64_t *ret_left)
{
	int r;

	bid_room_release(room);
	r = promise(room, size, false, ret_left);
	return r == -EAGAIN ? need(room, BID_ROOM_EXPECTED, size) : r;
}

int bid_room_took(struct bid_room *room, uint64_t len)
{
	uint64_t promised = len < room->promised ? len : room->promised;
	uint64_t steps = room->unsaid / BID_ROOM_STEP;
	int r;

	room->promised -= promised;
	bid_keeper_settle(room->keeper, promised);
	room->unsaid += len - promised;
	if (room->unsaid / BID_ROOM_STEP == steps)
		return 0;
	r = bid_keeper_go_on(room->keeper, room->unsaid, BID_ROOM_STEP, false);
	if (r == -EAGAIN)
		r = room->unsaid <= BID_TXN_UNSAID_MAX ? need(room, BID_ROOM_NEXT_STEP, 0) : -ENOSPC;
	return r;
}

int bid_room_full(struct bid_room *room, int r, uint64_t len)
{
	if ((r != -ENOSPC && r != -EDQUOT) || room->made)
		return r;
	room->made = true;
	len *= 2;
	if (room->unsaid > 0 && len > BID_TXN_UNSAID_MAX)
		len = BID_TXN_UNSAID_MAX;
	return need(room, BID_ROOM_DISK_FULL, len);
}

int bid_room_make(struct bid_room *room, uint64_t *ret_left)
{
	enum bid_room_need what = room->need;

	room->need = BID_ROOM_ENOUGH;
	switch (what) {
	case BID_ROOM_ENOUGH:
		break;
	case BID_ROOM_EXPECTED:
		return promise(room, room->wanted, true, ret_left);
	case BID_ROOM_NEXT_STEP:
		return bid_keeper_go_on(room->keeper, room->unsaid, BID_ROOM_STEP, true);
	case BID_ROOM_DISK_FULL:
		return bid_keeper_make_room(room->keeper, room->wanted) ? 0 : -ENOSPC;
	}
	return 0;
}

void bid_room_release(struct bid_room *room)
{
	bid_keeper_settle(room->keeper, room->promised);
	room->promised = room->unsaid = 0;
	room->need = BID_ROOM_ENOUGH;
}
