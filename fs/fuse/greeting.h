/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_FS_GREETING_H
#define BID_FS_GREETING_H

#include <fuse_lowlevel.h>

/*
 * libfuse before 3.17 wants lookups in one directory to run in parallel, so that a miss that waits does not hold up the hits beside
 * it, but leaves the bit for that out of the answer to FUSE_INIT. Have it set there. To be called between mounting and the loop.
 */
void bid_greeting_mend(struct fuse_session *session);

#endif
