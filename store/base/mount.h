/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_MOUNT_H
#define BID_BASE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Is @path not a store, but a mount of bidfs, perhaps over the store itself? Blocks as long as its daemon does. */
bool bid_is_mount(const char *path);

/* The devices of the mounts of bidfs that are in this namespace. The caller frees @ret_devices. */
int bid_mount_devices(dev_t **ret_devices, size_t *ret_n);

/* Is the file open at @fd, with @st, in one of them? */
bool bid_is_in_mount(int fd, const struct stat *st);

#endif
