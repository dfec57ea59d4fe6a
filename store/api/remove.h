/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Taking things out of a store: a build, or one of the names of it; and putting a file in the place of an older one. */
#ifndef BID_API_REMOVE_H
#define BID_API_REMOVE_H

#include "api/store.h"

/* One thing to remove. */
struct bid_removal {
	struct bid_id id; /* by any spelling of bid_id_answers() */
	const char *path; /* the original path, "/usr/bin/ls" or "[vdso]": only this name of it; NULL: all its names */
	/* what came of it */
	int error; /* 0, -ENOENT if there is nothing of that name, or why it could not be removed as a whole */
	unsigned names; /* that were removed */
	unsigned left; /* names that the build still has */
	uint64_t size; /* bytes of the files that had no other name in the store */
};

/*
 * Do the @n @removals, looking at the store once for all of them. As long as a build has a name, nothing of it is lost: what lay
 * only under a name that is removed goes to one that stays, and perf's link leads there. The last name takes all with it: objects,
 * link, records. Directories that are empty then are removed. Files that are not of the layout stay. Returns 0 and what came of
 * each in it; -EROFS; or a negative errno if the store could not be looked at.
 */
int bid_store_remove(struct bid_store *store, struct bid_removal *removals, size_t n);

/*
 * Add the file at @path, and let it take the place of what the store has of its kind and build-id, under all names of that: as a
 * reflink or a copy, in one step, so that readers have one or the other; what is a hard link to it everywhere stays that. If it
 * cannot be added, the store stays as it is. Returns as bid_store_add(), and whether there was one to replace.
 */
int bid_store_update(struct bid_store *store, const char *path, struct bid_added *ret_added, bool *ret_replaced);

#endif
