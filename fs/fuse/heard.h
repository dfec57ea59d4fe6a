/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What servers said of an id, for who wants to know why a file is not there. */
#ifndef BID_FS_HEARD_H
#define BID_FS_HEARD_H

#include "fs.h"

/* Has any said anything of @id? */
bool bid_heard_any(struct bid_fs *fs, const struct bid_id *id);

/*
 * What each said last of @id, newest first, as a JSON array, of which the end is left out if it is too long for the value of an
 * attribute; for the caller to free. NULL if none said anything, or for want of memory. See docs/FORMAT.md.
 */
char *bid_heard_json(struct bid_fs *fs, const struct bid_id *id);

#endif
