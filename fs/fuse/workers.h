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

#include "fs.h"

/*
 * Run the workers of @fs until the session is over or a signal of libfuse's handlers ends it. Each minute the calling thread drops
 * idle descriptors, so that other processes can evict the files. Blocks. Returns 0 after an unmount, 1 after a signal, or a
 * negative errno after an error message.
 */
int bid_workers_run(struct bid_fs *fs);

#endif
