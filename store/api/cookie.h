/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that do not say which build they are. Where somebody saw such a file run, and knows nothing of it but its path, what is
 * there now can be kept; that it is what ran is a guess. It is kept under a cookie of its path, its size, the time of its last
 * change and a digest of its bytes: in a folder of its own, where neither perf nor the mount look, and never under a build-id.
 */
#ifndef BID_API_COOKIE_H
#define BID_API_COOKIE_H

#include <limits.h>

#include "api/store.h"

#define BID_COOKIE_NAME_MAX 96

struct bid_cookie {
	char path[PATH_MAX]; /* of the file that was kept, absolute */
	uint64_t size;
	int64_t mtime; /* in seconds since the epoch */
	char name[BID_COOKIE_NAME_MAX]; /* "SIZE-MTIME-DIGEST", the latter XXH3-128 in 32 hex digits */
	char stored[PATH_MAX]; /* where it lies, relative to the store */
	bool known; /* bid_store_keep_cookie(): it was kept before */
};

/*
 * Keep the ELF file without a build-id at @path. It is copied, or reflinked, because what is changed in place would not be found
 * out. On return of 0 it is on disk. Returns additionally -EROFS, -ENOEXEC if it is no ELF file, -EEXIST if it has a build-id,
 * -EAGAIN if it is being written, and -EINVAL for something that is not a regular file.
 */
int bid_store_keep_cookie(struct bid_store *store, const char *path, struct bid_cookie *ret_cookie);

/*
 * Call @fn for every cookie of the store, in no order; a non-zero return ends it and is returned. What is called for may be
 * removed. Nothing of the files is read. Returns 0 or a negative errno otherwise.
 */
int bid_store_each_cookie(struct bid_store *store, int (*fn)(void *user, const struct bid_cookie *cookie), void *user);

/* Has @text the form of a cookie's name? */
bool bid_cookie_is_name(const char *text);

/*
 * Remove what is kept under @cookie, of which only the place is looked at, and the directories that are empty then. Returns 0,
 * -EROFS, -ENOENT if it is not there, or as unlink(2).
 */
int bid_store_remove_cookie(struct bid_store *store, const struct bid_cookie *cookie);

#endif
