/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Under which names a file on its way into the store (add.h) gets there, and what is recorded of it. */
#ifndef BID_DISK_PLACING_H
#define BID_DISK_PLACING_H

#include "disk/publish/add.h"

/*
 * Is what @adding->added names here already? Returns 1 if so, and then it has this file's name, too, and a record; 0; or a negative
 * errno.
 */
int bid_placing_recognise(struct bid_store *store, struct bid_adding *adding, enum bid_durability durability);

/* What is known was perhaps put there by somebody who syncs nothing, or has not done so yet. */
int bid_placing_sync_known(struct bid_store *store, const struct bid_adding *adding, enum bid_durability durability);

/*
 * Give it its names: @put, called with @adding, makes the file @name in the directory open at @dir, and may be called for more than
 * one. Somebody else may have put the same there meanwhile, which is then known. Returns 0; what @put returned; -EBADMSG if
 * what has its place is not it and stays; or -ENOTUNIQ if that is a build whose id begins alike.
 */
int bid_placing_publish(struct bid_store *store, struct bid_adding *adding, enum bid_durability durability,
			int (*put)(void *user, int dir, const char *name));

/* Does this errno only say that the file system, or the rules for links, do not have it? A deleted file is -ENOENT. */
bool bid_placing_is_unsupported(int r);

#endif
