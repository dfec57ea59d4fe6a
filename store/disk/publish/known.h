/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file to be added that the store has already, and who may read that, and what it gives them. */
#ifndef BID_DISK_KNOWN_H
#define BID_DISK_KNOWN_H

#include "disk/publish/add.h"

/*
 * @file was found in the store in the place of what @adding is to add. Put a copy in its place if it gives rights, or if only its
 * owner reads it and everybody reads @adding, which has the same bytes.
 */
void bid_known_mend(struct bid_store *store, const struct bid_adding *adding, const struct bid_file *file);

#endif
