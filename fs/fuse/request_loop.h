/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The request loop: the FUSE threads read requests from /dev/fuse and call the handlers.
 *
 * Most of the cost of a request is to sleep and to wake. Therefore after each request one thread polls the device for a while, as
 * sockets do (SO_BUSY_POLL in socket(7)), which halves the time of an open in a sequence of opens. The other threads sleep
 * meanwhile.
 */
#ifndef BID_FS_REQUEST_LOOP_H
#define BID_FS_REQUEST_LOOP_H

#include "fs.h"

/*
 * Run the FUSE threads of @fs until the session is over or a signal of libfuse's handlers ends it. Each minute the calling
 * thread drops idle descriptors, so that other processes can evict the files. Blocks. Returns 0 after an unmount, 1 after a signal,
 * or a negative errno after an error message.
 */
int bid_request_loop_run(struct bid_fs *fs);

#endif
