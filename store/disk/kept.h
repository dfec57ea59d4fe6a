/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was made of an artifact and is kept in a folder of ours, so that it is made once: "FOLDER/xx/rest". */
#ifndef BID_DISK_KEPT_H
#define BID_DISK_KEPT_H

#include <bid/id.h>

#include "disk/publish/temp.h"

/*
 * Keep what is in @temp, and was made of an artifact of @id, in @folder, in the place of what has that name. The bytes are on disk
 * on return. Returns 0 or a negative errno.
 */
int bid_kept_put(struct bid_store *store, const char *folder, const struct bid_id *id, struct bid_temp *temp);

#endif
