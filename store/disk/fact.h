/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts: what is known of a request in a few bytes, as the text of a symlink ".bidfs/FOLDER/xx/rest.KIND" that nothing follows
 * (docs/FORMAT.md, "Facts"). One system call reads or removes a fact whole, and one makes it, so any number of processes use the
 * same ones, and see each other's at once. No function takes a lock; each makes a few system calls, and blocks for the disk alone.
 * Nothing is synced. Something else in the place of a fact counts as none.
 *
 * @folder is one of BID_LAYOUT_FIRST and BID_LAYOUT_ABSENT. @more, which may be empty, tells facts of the same request apart.
 */
#ifndef BID_DISK_FACT_H
#define BID_DISK_FACT_H

#include "api/store.h"

enum {
	BID_FACT_MAX = 60, /* bytes of the text, with its end: so many lie in an inode of ext4 */
	BID_FACT_MORE_MAX = 24, /* of @more */
};

/* Returns 0; -ENOENT if there is no such fact; or why it cannot be read, which says nothing of whether there is one. */
int bid_fact_read(struct bid_store *store, const char *folder, const struct bid_request *request, const char *more,
		  char ret_text[static BID_FACT_MAX]);

/* Put @text in the place of an earlier one: a reader may find neither for a moment. -EROFS in a store that is only read. */
int bid_fact_write(struct bid_store *store, const char *folder, const struct bid_request *request, const char *more,
		   const char *text);

void bid_fact_drop(struct bid_store *store, const char *folder, const struct bid_request *request, const char *more);

/* Call @fn for each text. Returns 0 or a negative errno. */
int bid_fact_each(struct bid_store *store, const char *folder, void (*fn)(void *user, const char *text), void *user);

/*
 * Remove the facts that were written before @before, seconds since the epoch; and of those whose ids begin with the same byte the
 * older half, if they are more than a 256th of @max. Returns 0 or a negative errno.
 */
int bid_fact_trim(struct bid_store *store, const char *folder, size_t max, int64_t before);

#endif
