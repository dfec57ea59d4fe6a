/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The threads that read requests from /dev/fuse and call their handlers. To sleep and be woken is most of what a request costs, so
 * after each one a thread looks for the next for a moment before it sleeps, as sockets do (SO_BUSY_POLL in socket(7)): who opens
 * one file after another waits about half as long for each. Only one thread looks, and as long as it does the others are not woken.
 */
#ifndef BID_FS_LOOP_H
#define BID_FS_LOOP_H

#include <fuse_lowlevel.h>

/*
 * Answer what comes from the kernel by @n threads, each looking for @busy_poll_us microseconds, until the session is over or was
 * ended by one of the signals for which libfuse has handlers. Blocks. Returns 0 when it was unmounted, 1 after a signal, or a
 * negative errno.
 */
int bid_loop_run(struct fuse_session *session, unsigned busy_poll_us, unsigned n);

#endif
