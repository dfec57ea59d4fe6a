/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A store that a mount of bidfs covers: what its path leads to is the mount. */
#ifndef BID_CTL_COVER_H
#define BID_CTL_COVER_H

#include <stdbool.h>

/* Is @path not a store, but a mount, perhaps over the store itself? What looks for builds goes well through it. */
bool ctl_is_covered(const char *path);

#endif
