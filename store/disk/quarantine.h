/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The quarantine: wrong files of the store and rejected downloads, moved there for people to examine. The store never reads it. */
#ifndef BID_DISK_QUARANTINE_H
#define BID_DISK_QUARANTINE_H

#include <limits.h>

#include "api/store.h"

/*
 * Move the file @path of @store, open at @fd, to the quarantine under the id and kind of @artifact. Returns 0 and its new path,
 * -ESTALE if another file has the name @path by now, which stays, or as renameat2(2).
 */
int bid_quarantine_move(struct bid_store *store, const char *path, int fd, const struct bid_artifact *artifact,
			char ret_path[static PATH_MAX]);

/* As bid_quarantine_move(), under the name "@what.@kind". */
int bid_quarantine_move_as(struct bid_store *store, const char *path, int fd, const char *what, const char *kind,
			   char ret_path[static PATH_MAX]);

/*
 * Open the quarantine for a rejected download of @artifact, and give it a name. Returns 0, the directory for the caller to close,
 * and the name, or -EDQUOT if the quarantine has 64 files: a server may send as many as it likes.
 */
int bid_quarantine_open(struct bid_store *store, const struct bid_artifact *artifact, int *ret_dir,
			char ret_name[static NAME_MAX + 1]);

/* Call @fn for each file in the quarantine with a name of bid_quarantine_move() or bid_quarantine_open(). Returns 0 or an errno. */
typedef void (*bid_quarantine_fn)(void *user, const char *name, int64_t time, uint64_t size);
int bid_quarantine_each(struct bid_store *store, bid_quarantine_fn fn, void *user);

/*
 * Remove the files that went to the quarantine before @before, by the time in their names, or with @dry_run only count them. Adds
 * to @left and @gone.
 */
int bid_quarantine_expire(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone);

#endif
