/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file to be added that the store has already, and who may read that, and what it gives them. */
#ifndef BID_DISK_KNOWN_H
#define BID_DISK_KNOWN_H

#include "disk/publish/add.h"

/*
 * @file was found in the store in the place of what @adding is to add. If it is one that gives rights, or if it is a link of the
 * file and that is hidden by now, by this name and by the one that perf's link tells of, or if it was and no file of these bytes is
 * any more, put a copy there that is as it should be.
 */
void bid_known_mend(struct bid_store *store, const struct bid_adding *adding, const struct bid_file *file);

#endif
