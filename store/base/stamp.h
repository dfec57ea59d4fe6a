/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stat data of a file, to notice a change. */
#ifndef BID_BASE_STAMP_H
#define BID_BASE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

/* Are @a and @b stat data of one file? */
static inline bool bid_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

struct bid_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, changed;
	/*
	 * The file was changed so shortly before that a further change could leave the same times (git calls this racily clean):
	 * within a tick of the clock, or within 2 seconds on a file system that counts whole ones.
	 */
	bool racy;
};

/* Take the stat data between fstat(2) and reading the content. */
struct bid_stamp bid_stamp_take(const struct stat *st);

/* Are file, size and times of @st those of @stamp? */
bool bid_stamp_is_of(const struct bid_stamp *stamp, const struct stat *st);

/* As above, but false for a racy @stamp: a change may have left the same times. */
bool bid_stamp_holds(const struct bid_stamp *stamp, const struct stat *st);

#endif
