/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is a file still what it was? */
#ifndef BID_BASE_STAMP_H
#define BID_BASE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

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

/* To be taken between fstat(2) and reading the content that is to be judged by it. */
struct bid_stamp bid_stamp_take(const struct stat *st);

/* Is a file with @st the one @stamp was taken of, and are its size and times the same? */
bool bid_stamp_is_of(const struct bid_stamp *stamp, const struct stat *st);

/* The same, unchanged as far as can be told: never, if it was racy. */
bool bid_stamp_holds(const struct bid_stamp *stamp, const struct stat *st);

#endif
