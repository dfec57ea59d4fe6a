/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last responses of the servers for an id: why is a file absent? GETXATTR and LISTXATTR show them (ops_xattr.c). */
#ifndef BID_FS_LAST_RESPONSE_H
#define BID_FS_LAST_RESPONSE_H

#include "fs.h"

/* Is there a response for @id? */
bool bid_last_response_any(struct bid_fs *fs, const struct bid_id *id);

/*
 * The last response of each server for @id, newest first, as a JSON array (docs/FORMAT.md). The end is left out when the array is
 * too long for the value of an attribute. The caller frees it. NULL without a response, or without memory.
 */
char *bid_last_response_json(struct bid_fs *fs, const struct bid_id *id);

#endif
