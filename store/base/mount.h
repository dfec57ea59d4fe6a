/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_MOUNT_H
#define BID_BASE_MOUNT_H

#include <stdbool.h>

/* Is @path not a store, but a mount of bidfs, perhaps over the store itself? Blocks as long as its daemon does. */
bool bid_is_mount(const char *path);

#endif
