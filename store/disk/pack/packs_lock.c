// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who merges packs does so alone. */
#include "disk/pack/packs.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "disk/layout.h"
#include "disk/lock_file.h"

enum { AGAIN_AFTER_NS = 20 * 1000 * 1000 };

static int lock(int fd, int wait_ms)
{
	int64_t until = bid_clock_ms() + wait_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -EOPNOTSUPP;
		if (errno == EWOULDBLOCK && bid_clock_ms() >= until)
			return -EBUSY;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = AGAIN_AFTER_NS }, NULL);
	}
	return 0;
}

int bid_packs_hold(struct bid_store *store, int wait_ms, int *ret_hold)
{
	bid_auto_fd int fd = -1;
	int r = bid_lock_file_open(store, BID_LAYOUT_PACKS_LOCK, BID_LAYOUT_PACKS, &fd);

	if (r == 0)
		r = lock(fd, wait_ms);
	if (r < 0 && r != -EOPNOTSUPP && wait_ms > 0)
		bid_warning("%s: '%s/" BID_LAYOUT_PACKS_LOCK "' cannot be locked; packs of records stay as they are", strerror(-r),
			    bid_store_path(store));
	if (r == 0)
		*ret_hold = bid_steal_fd(&fd);
	return r;
}
