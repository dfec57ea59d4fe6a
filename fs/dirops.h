/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_FS_DIROPS_H
#define BID_FS_DIROPS_H

#include "fs.h"

/*
 * Make sure that lookups in one directory run in parallel, so that a miss that waits does not hold up the hits beside it. libfuse
 * before 3.17 wants the capability by default, but leaves its bit out of the answer to the kernel; there, the bit is set on the
 * way out. To be called between mounting and the loop. Returns 0 or a negative errno.
 */
int bid_dirops_parallel(struct fuse_session *session);

#endif
