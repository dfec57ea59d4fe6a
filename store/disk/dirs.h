/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Directories of the store by their names, and those that stay open while many files are added: of those that ids are filed in
 * there are 256 of a sort, and most files are added beside the one before. Each costs a descriptor, so a store keeps them only
 * while it is told to. One that was removed meanwhile is noticed and opened anew; one that was moved is the same directory at
 * another place.
 */
#ifndef BID_DISK_DIRS_H
#define BID_DISK_DIRS_H

#include <stdbool.h>

#include "api/store.h"
#include "disk/root.h"

struct bid_dirs;
struct bid_dirs_kept;

/* One that is open. */
struct bid_dir {
	int fd; /* -1 in a released one; owned unless it is kept */
	struct bid_dirs *dirs; /* with kept: of the store */
	struct bid_dirs_kept *kept; /* a reference, or NULL */
};

#define BID_DIR_NONE ((struct bid_dir){ .fd = -1 })

int bid_dirs_new(struct bid_dirs **ret_dirs);

/* @dirs may be NULL. None of its directories is open any more. */
void bid_dirs_free(struct bid_dirs *dirs);

/* Keep directories of @store open until bid_dirs_drop() was called as often as this. */
void bid_dirs_keep(struct bid_store *store);
void bid_dirs_drop(struct bid_store *store);

/*
 * Open the directory @path of @store, relative to it, to look names up in it and to make them. With @make it is made if it is not
 * there, as by bid_root_mkdirs_touching(); otherwise as bid_root_open().
 */
int bid_dir_open(struct bid_store *store, const char *path, bool make, struct bid_touched *touched, struct bid_dir *ret_dir);

void bid_dir_release(struct bid_dir *dir);

#define bid_auto_kept __attribute__((cleanup(bid_dir_release)))

#endif
