/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the system tells of changes, and of how many. */
#ifndef BID_DISK_WATCH_SYSTEM_H
#define BID_DISK_WATCH_SYSTEM_H

#include <stdbool.h>

/*
 * Do all changes of files on the file system of the directory @dir go through this kernel, so that inotify(7) tells of them? Not
 * those of network file systems and FUSE, which servers change, nor of overlays, which may be changed below.
 */
bool bid_watch_is_told(int dir);

/* How many ids to watch, @max at most: most of what the user may watch is left to other programs. */
unsigned bid_watch_limit(unsigned max);

#endif
