/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Remove a build, or one of its paths, from a store; replace a stored file. */
#ifndef BID_API_REMOVE_H
#define BID_API_REMOVE_H

#include "api/store.h"

/* One thing to remove. */
struct bid_removal {
	struct bid_id id; /* or an alias of bid_id_answers() */
	const char *path; /* the original path, "/usr/bin/ls" or "[vdso]", to remove; NULL: all of the build */
	/* results */
	int error; /* 0, -ENOENT without such a path, or the error of an incomplete removal */
	unsigned names; /* removed object directories */
	unsigned left; /* remaining object directories of the build */
	uint64_t size; /* freed bytes: files without another name in the store */
};

/*
 * Do the @n @removals in one dirwalk through the store. While a build has another path, its files move there, and perf's link
 * follows. The removal of the last path removes objects, link, records and empty directories. Files outside of the layout stay.
 * Returns 0 and the results in @removals; -EROFS; or a negative errno if the store could not be read.
 */
int bid_store_remove(struct bid_store *store, struct bid_removal *removals, size_t n);

/*
 * Add the file at @path and replace the stored file of its kind and build-id, atomically, by a copy: under the name to which perf's
 * link leads, and under all names that an addition has recorded. A stored file that is a hard link of @path stays. An error leaves
 * the store as it is. A new build is added by @link. Returns as bid_store_add(), and whether a file was replaced.
 */
int bid_store_update(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added,
		     bool *ret_replaced);

#endif
