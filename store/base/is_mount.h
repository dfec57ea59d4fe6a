/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_IS_MOUNT_H
#define BID_BASE_IS_MOUNT_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is @path not a store, but a mount of bidfs, perhaps over the store itself? Blocks as long as its daemon does. */
bool bid_is_mount(const char *path);

/* Is the file open at @fd, with @st, in a mount of bidfs in this namespace? Reads the table of mounts for any file on FUSE. */
bool bid_is_in_mount(int fd, const struct stat *st);

#endif
