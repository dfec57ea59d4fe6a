/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache of open directories of the store:
 *
 *   bid_dirs_keep()
 *     bid_dir_open()	any number of times
 *       bid_dir_release()
 *   bid_dirs_drop()
 *
 * Adding many files opens the same 256 fan-out directories again and again. Each cached directory costs a descriptor, so the cache
 * works between bid_dirs_keep() and bid_dirs_drop() alone. bid_dir_open() notices a removed directory and opens its successor.
 */
#ifndef BID_DISK_DIRS_H
#define BID_DISK_DIRS_H

#include <stdbool.h>

#include "api/store.h"
#include "disk/beneath.h"

struct bid_dirs;
struct bid_dirs_kept;

/* An open directory. */
struct bid_dir {
	int fd; /* -1 in a released one; owned by the cache if @kept is set */
	struct bid_dirs *dirs; /* the cache, if @kept is set; borrowed */
	struct bid_dirs_kept *kept; /* a reference, or NULL */
};

#define BID_DIR_NONE ((struct bid_dir){ .fd = -1 })

int bid_dirs_new(struct bid_dirs **ret_dirs);

/* Close all directories. @dirs may be NULL. */
void bid_dirs_free(struct bid_dirs *dirs);

/* Keep directories of @store open until as many calls of bid_dirs_drop(). */
void bid_dirs_keep(struct bid_store *store);
void bid_dirs_drop(struct bid_store *store);

/*
 * Open the directory @path of @store. With @make, create a missing one as bid_beneath_mkdirs_touching(); otherwise errors as of
 * bid_beneath_open().
 */
int bid_dir_open(struct bid_store *store, const char *path, bool make, struct bid_touched *touched, struct bid_dir *ret_dir);

/* As bid_dir_open(), for the directory of @path. @ret_name is the last component of @path. */
int bid_dir_open_parent(struct bid_store *store, const char *path, bool make, struct bid_touched *touched, struct bid_dir *ret_dir,
			const char **ret_name);

void bid_dir_release(struct bid_dir *dir);

#define bid_auto_kept __attribute__((cleanup(bid_dir_release)))

#endif
