/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of the paths that are watched, as a tree; each is found by its parent and name, and by the kernel's watch. */
#ifndef BID_DISK_WATCH_PARTS_H
#define BID_DISK_WATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/stamp.h"

struct bid_part {
	struct bid_part *parent; /* NULL for the root, and for files */
	struct bid_part *children;
	struct bid_part *sibling, **at; /* among the children of the parent */
	struct bid_part *next_by_name, *next_by_wd; /* in their buckets */
	struct bid_hold *holds;
	unsigned busy; /* not to be freed, though nobody holds it */
	int wd; /* the kernel's watch; -1 if it is no directory, and no file */
	bool unseen; /* nobody has looked whether it is a directory */
	struct bid_stamp stamp; /* of a file */
	char name[];
};

struct bid_parts_table {
	struct bid_part **buckets;
	size_t n_buckets, n;
};

struct bid_parts {
	struct bid_parts_table names; /* by parent and name */
	struct bid_parts_table wds;
};

/* -ENOMEM, and then @parts is to be released, too. */
int bid_parts_init(struct bid_parts *parts);

/* After all parts were freed. */
void bid_parts_release(struct bid_parts *parts);

/* A new part @name of @parent, or (NULL) of nothing; without a watch. NULL without memory. */
struct bid_part *bid_part_new(struct bid_parts *parts, struct bid_part *parent, const char *name);

/* @part has no children. It is taken from wherever it is. */
void bid_part_free(struct bid_parts *parts, struct bid_part *part);

/* @part, which has none, is watched as @wd. */
void bid_part_watched(struct bid_parts *parts, struct bid_part *part, int wd);

/* @part is not watched any more, if it was. */
void bid_part_unwatched(struct bid_parts *parts, struct bid_part *part);

/* NULL if there is none. */
struct bid_part *bid_part_below(const struct bid_parts *parts, const struct bid_part *parent, const char *name);
struct bid_part *bid_part_of_watch(const struct bid_parts *parts, int wd);

#endif
