/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files seen before, which need no second look. Memory is bounded: above CTL_SEEN_MAX files the least recently used ones are
 * evicted.
 */
#ifndef BID_CTL_SEEN_FILES_H
#define BID_CTL_SEEN_FILES_H

#include <stddef.h>

#include "base/stat_data.h"

enum { CTL_SEEN_MAX = 1 << 14 };

struct ctl_seen_file {
	dev_t dev;
	ino_t ino; /* never 0 */
	unsigned pass; /* the caller's pass of the last look */
	bool unread; /* the file could not be opened, and has no stat data */
	struct bid_stat_data stat_data;
};

struct ctl_seen_table {
	struct ctl_seen_file *slots; /* owned; an inode of 0 is a free one */
	size_t n, size; /* used; all, a power of two */
};

/* Start with a zeroed struct. For one thread at a time. */
struct ctl_seen {
	struct ctl_seen_table young, old;
};

void ctl_seen_release(struct ctl_seen *seen);

/* Return the record of that file, for the caller to change, or NULL. The next call of any of these invalidates it. */
struct ctl_seen_file *ctl_seen_find(struct ctl_seen *seen, dev_t dev, ino_t ino);

/* Remember @file, in place of an older record. Returns 0 or -ENOMEM. */
int ctl_seen_put(struct ctl_seen *seen, const struct ctl_seen_file *file);

#endif
