/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The choice and the check of the mount point.
 *
 *	bid_mountpoint_default()	if the user names none
 *	bid_mountpoint_check(), bid_mountpoint_device()		before the mount
 */
#ifndef BID_FS_MOUNTPOINT_H
#define BID_FS_MOUNTPOINT_H

#include <limits.h>
#include <stdbool.h>

/* /run/bidfs if the caller may mount there, else $XDG_RUNTIME_DIR/bid, which the function makes. 0, or -ENOENT without either. */
int bid_mountpoint_default(char ret_path[static PATH_MAX]);

/*
 * Make @path absolute and check it: a directory, empty unless @nonempty, not mounted on, not too short for perf, neither above
 * nor below the absolute path @store. Returns 0, or -1 after an error message.
 */
int bid_mountpoint_check(const char *path, const char *store, bool nonempty, char ret_path[static PATH_MAX]);

/* May this process open the FUSE device? 0, or -1 after an error message. */
int bid_mountpoint_device(void);

#endif
