/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts: a few bytes about an artifact, in the text of a symlink ".bidfs/FOLDER/xx/rest.KIND" that nothing follows (docs/FORMAT.md,
 * "Facts"). One system call reads, creates or removes a fact as a whole, so any number of processes share facts without a lock.
 * Facts are never synced. Anything else in the place of a fact counts as none.
 *
 * @folder is BID_LAYOUT_FIRST or BID_LAYOUT_ABSENT. @more, which may be empty, distinguishes facts of one artifact.
 */
#ifndef BID_DISK_FACT_H
#define BID_DISK_FACT_H

#include "api/store.h"

enum {
	BID_FACT_MAX = 60, /* bytes of the text with its NUL; an inode of ext4 holds as many */
	BID_FACT_MORE_MAX = 24, /* of @more */
};

/* Returns 0; -ENOENT without such a fact; another error leaves open whether the fact exists. */
int bid_fact_read(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more,
		  char ret_text[static BID_FACT_MAX]);

/* Replace a fact by @text; between the two a reader finds none. -EROFS without BID_STORE_WRITE. */
int bid_fact_write(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more,
		   const char *text);

void bid_fact_remove(struct bid_store *store, const char *folder, const struct bid_artifact *artifact, const char *more);

/* Call @fn for each fact "xx/NAME", with xx in @first. Returns 0 or a negative errno. */
typedef void (*bid_fact_fn)(void *user, const char *first, const char *name, const char *text);
int bid_fact_each(struct bid_store *store, const char *folder, bid_fact_fn fn, void *user);

/*
 * Remove the facts older than @before, in seconds since the epoch. Each fan-out directory keeps at most a 256th of @max: above
 * that, remove the older half. Returns 0 or a negative errno.
 */
int bid_fact_trim(struct bid_store *store, const char *folder, size_t max, int64_t before);

#endif
