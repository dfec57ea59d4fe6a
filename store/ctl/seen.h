/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that were looked at, so that none is twice. Memory is bounded: of more files than CTL_SEEN_MAX, those that were not asked
 * for again for the longest time are forgotten.
 */
#ifndef BID_CTL_SEEN_H
#define BID_CTL_SEEN_H

#include <stddef.h>

#include "base/stamp.h"

enum { CTL_SEEN_MAX = 1 << 14 };

struct ctl_seen_file {
	dev_t dev;
	ino_t ino; /* never 0 */
	unsigned pass; /* the caller's: when it was looked at last */
	bool unread; /* it could not be opened, and has no stamp */
	struct bid_stamp stamp;
};

struct ctl_seen_table {
	struct ctl_seen_file *slots; /* owned; an inode of 0 is a free one */
	size_t n, size; /* used; all, a power of two */
};

/* Begin with a zeroed one. For one thread at a time. */
struct ctl_seen {
	struct ctl_seen_table young, old;
};

void ctl_seen_release(struct ctl_seen *seen);

/* What is remembered of that file, for the caller to change; NULL if nothing is. Dies with the next call of any of these. */
struct ctl_seen_file *ctl_seen_find(struct ctl_seen *seen, dev_t dev, ino_t ino);

/* Remember @file, or that of it from now on. Returns 0 or -ENOMEM. */
int ctl_seen_put(struct ctl_seen *seen, const struct ctl_seen_file *file);

#endif
