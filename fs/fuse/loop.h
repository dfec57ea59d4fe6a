/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads that answer the kernel. */
#ifndef BID_FS_LOOP_H
#define BID_FS_LOOP_H

#include "fuse/channel.h"

/*
 * Answer what comes by @channel from @n threads, until the session is over or was ended by one of the signals for which libfuse has
 * handlers. Blocks. Returns 0 when it was unmounted, 1 after a signal, or a negative errno.
 */
int bid_loop_run(struct bid_channel *channel, unsigned n);

#endif
