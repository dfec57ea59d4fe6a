/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content keys, for ELF files without a build-id. A recording names such a file by its path alone. The store keeps the file under a
 * key of its path, size, modification time and digest. The folder of these files is invisible to perf and the mount. A match is a
 * guess: it may not be the file that ran.
 */
#ifndef BID_API_CONTENT_KEY_H
#define BID_API_CONTENT_KEY_H

#include <limits.h>

#include "api/store.h"

#define BID_CONTENT_KEY_NAME_MAX 96

struct bid_content_key {
	char path[PATH_MAX]; /* original path, absolute */
	uint64_t size; /* bytes */
	int64_t mtime; /* in seconds since the epoch */
	char name[BID_CONTENT_KEY_NAME_MAX]; /* "SIZE-MTIME-DIGEST", the latter XXH3-128 in 32 hex digits */
	char stored[PATH_MAX]; /* path relative to the store */
	bool known; /* for bid_store_keep_content_key(): the store already had it */
};

/*
 * Store the ELF file without a build-id at @path as a copy or reflink: through a hard link, a later change would go unnoticed. The
 * file is on disk on return of 0. Returns additionally -EROFS, -ENOEXEC for no ELF file, -EEXIST for a file with a build-id,
 * -EAGAIN while a process writes it, and -EINVAL for anything but a regular file.
 */
int bid_store_keep_content_key(struct bid_store *store, const char *path, struct bid_content_key *ret_key);

/*
 * Call @fn for every content key, in no order, without reading the files. A non-zero return ends the enumeration and is returned.
 * @fn may remove the file. Returns 0 or a negative errno otherwise.
 */
int bid_store_each_content_key(struct bid_store *store, int (*fn)(void *user, const struct bid_content_key *key), void *user);

/* Has @text the form of a content key? */
bool bid_content_key_is_name(const char *text);

/* Remove the file @key->stored and its empty parents. Returns 0, -EROFS, -ENOENT, or as unlink(2). */
int bid_store_remove_content_key(struct bid_store *store, const struct bid_content_key *key);

#endif
