/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The FUSE workers: threads that read requests from /dev/fuse and call the handlers. bid_workers_run() starts and ends them.
 *
 * Most of the cost of a request is to sleep and to wake. Therefore after each request one worker polls the device for a while, as
 * sockets do (SO_BUSY_POLL in socket(7)), which halves the time of an open in a sequence of opens. The other workers sleep
 * meanwhile.
 */
#ifndef BID_FS_WORKERS_H
#define BID_FS_WORKERS_H

#include <fuse_lowlevel.h>

/*
 * Run @n workers, each with a busy poll of @busy_poll_us, until the session is over or a signal of libfuse's handlers ends it.
 * Calls @each_minute in the calling thread. Blocks. Returns 0 after an unmount, 1 after a signal, or a negative errno.
 */
int bid_workers_run(struct fuse_session *session, unsigned busy_poll_us, unsigned n, void (*each_minute)(void *user), void *user);

#endif
