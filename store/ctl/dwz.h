/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Debug information shrunk by dwz(1) is useless without the file that it refers to. */
#ifndef BID_CTL_DWZ_H
#define BID_CTL_DWZ_H

#include "api/store.h"

/*
 * Return the build-id of the dwz file in the .gnu_debugaltlink of the debug information of @id in @store. Its len is 0 without a
 * dwz file or without debug information. May block on disk.
 */
struct bid_id ctl_dwz_of(struct bid_store *store, const struct bid_id *id);

#endif
