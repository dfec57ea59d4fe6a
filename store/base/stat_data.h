/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stat data of a file, to notice a change. */
#ifndef BID_BASE_STAT_DATA_H
#define BID_BASE_STAT_DATA_H

#include <stdbool.h>
#include <sys/stat.h>

/* Are @a and @b stat data of one file? */
static inline bool bid_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

struct bid_stat_data {
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
struct bid_stat_data bid_stat_data_of(const struct stat *st);

/* Are file, size and times of @st those of @stat_data? */
bool bid_stat_data_matches(const struct bid_stat_data *stat_data, const struct stat *st);

/* As above, but false for racy @stat_data: a change may have left the same times. */
bool bid_stat_data_is_current(const struct bid_stat_data *stat_data, const struct stat *st);

#endif
