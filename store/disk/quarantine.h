/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The quarantine: where files go that are not what the name says under which they lay. Nothing reads it; people may. */
#ifndef BID_DISK_QUARANTINE_H
#define BID_DISK_QUARANTINE_H

#include "api/store.h"

/*
 * Move the file @path of @store, which is open at @fd, to the quarantine as what lay there for @request. If something else has that
 * name by now, that stays. Returns 0 and where it is, or -ESTALE (something else has the name), or as renameat2(2).
 */
int bid_quarantine_move(struct bid_store *store, const char *path, int fd, const struct bid_request *request, char *ret_path,
			size_t size);

/* The same for what lay there under no id, but as the @kind of @what. */
int bid_quarantine_move_as(struct bid_store *store, const char *path, int fd, const char *what, const char *kind, char *ret_path,
			   size_t size);

/*
 * Remove the files that went to the quarantine before @before, by the time in their names, or with @dry_run only count them. Adds
 * to @left and @gone.
 */
int bid_quarantine_expire(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone);

/* Remove the empty directory @name in @dir, or move it to the quarantine if it is not empty. */
int bid_quarantine_clear(struct bid_store *store, int dir, const char *name);

#endif
