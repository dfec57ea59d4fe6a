/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Debug information that dwz(1) has shrunk is of no use without the file that it refers to. */
#ifndef BID_CTL_DWZ_H
#define BID_CTL_DWZ_H

#include "api/store.h"

/*
 * The build-id of the dwz file that the debug information of @id in @store refers to, by .gnu_debugaltlink; len 0 if there is none,
 * or no debug information. May block on disk.
 */
struct bid_id ctl_dwz_of(struct bid_store *store, const struct bid_id *id);

#endif
