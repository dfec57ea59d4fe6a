/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content keys, for ELF files without a build-id. A recording names such a file by its path alone; the store keeps the file of that
 * path under a key of its path, size, modification time and digest, in a folder that neither perf nor the mount read. The file is a
 * guess: it may not be the one that ran.
 */
#ifndef BID_API_COOKIE_H
#define BID_API_COOKIE_H

#include <limits.h>

#include "api/store.h"

#define BID_COOKIE_NAME_MAX 96

struct bid_cookie {
	char path[PATH_MAX]; /* original path, absolute */
	uint64_t size;
	int64_t mtime; /* in seconds since the epoch */
	char name[BID_COOKIE_NAME_MAX]; /* "SIZE-MTIME-DIGEST", the latter XXH3-128 in 32 hex digits */
	char stored[PATH_MAX]; /* path relative to the store */
	bool known; /* bid_store_keep_cookie(): the store had it */
};

/*
 * Store the ELF file without a build-id at @path as a copy or reflink: a change in place of a hard link would go unnoticed. On
 * return of 0 it is on disk. Returns additionally -EROFS, -ENOEXEC if it is no ELF file, -EEXIST if it has a build-id, -EAGAIN if a
 * process writes it, and -EINVAL for anything but a regular file.
 */
int bid_store_keep_cookie(struct bid_store *store, const char *path, struct bid_cookie *ret_cookie);

/*
 * Call @fn for every content key, in no order, without reading the files. A non-zero return ends the enumeration and is returned.
 * @fn may remove the file. Returns 0 or a negative errno otherwise.
 */
int bid_store_each_cookie(struct bid_store *store, int (*fn)(void *user, const struct bid_cookie *cookie), void *user);

/* Has @text the form of a content key? */
bool bid_cookie_is_name(const char *text);

/* Remove the file @cookie->stored and its empty parents. Returns 0, -EROFS, -ENOENT, or as unlink(2). */
int bid_store_remove_cookie(struct bid_store *store, const struct bid_cookie *cookie);

#endif
