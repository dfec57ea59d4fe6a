/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sources said of an id is forgotten at a user's wish. */
#ifndef BID_REFRESH_H
#define BID_REFRESH_H

#include "fs.h"

/*
 * Have the sources asked anew for what @text names as below "buildid": "ID", "ID/debuginfo", "ID/source/usr/src/a.c" or
 * "ID/section/.text"; with @accept, other bytes than were fetched first are taken. The kernel is told to forget its names, and
 * waited for for a moment. Returns 0, -EINVAL or -ENOMEM.
 */
int bid_refresh(struct bid_fs *fs, const char *text, bool accept);

#endif
