/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where to mount, and whether that can be done. */
#ifndef BID_FS_MOUNTPOINT_H
#define BID_FS_MOUNTPOINT_H

#include <limits.h>
#include <stdbool.h>

/*
 * /run/bidfs if it is there and the caller may mount on it, else $XDG_RUNTIME_DIR/bid, which is made. 0, or -ENOENT if there is
 * neither.
 */
int bid_mountpoint_default(char ret_path[static PATH_MAX]);

/*
 * Make @path absolute and check it: a directory, empty unless @nonempty, not mounted on, not too short for perf, neither above
 * nor below the store at @store (absolute). Returns 0, or -1 after an error message that says what to do.
 */
int bid_mountpoint_check(const char *path, const char *store, bool nonempty, char ret_path[static PATH_MAX]);

/* Is there a FUSE device this process may open? 0, or -1 after an error message. */
int bid_mountpoint_device(void);

#endif
