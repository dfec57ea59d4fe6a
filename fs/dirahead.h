/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of an open directory, read ahead: while whoever lists it takes in one part, the next ones are read by another thread,
 * which is there from when somebody has listed one whole part of many names and goes on. Whoever may open directories may open
 * many: only a few have a thread at a time, and each of the others holds one part. Pure C: knows no FUSE.
 */
#ifndef BID_FS_DIRAHEAD_H
#define BID_FS_DIRAHEAD_H

#include <stdatomic.h>

#include "dirpart.h"

enum { BID_DIRAHEAD_THREADS = 8 }; /* at most, at a time */

struct bid_dirahead;

/*
 * The parts of @dir, whose number is @number; @tree, @dir and @threads are borrowed. The last one counts the threads, and is one
 * for all directories of a mount. Reads nothing. -ENOMEM.
 */
int bid_dirahead_new(const struct bid_tree *tree, const struct bid_node *dir, uint64_t number, atomic_uint *threads,
		     struct bid_dirahead **ret_ahead);

/*
 * Part @index of the directory, which lives until the next call. With @anew it is read now, and so are those after it: what was
 * read before is not good any more. May block on disk. Errors as of bid_dirpart_read(). For one thread at a time.
 */
int bid_dirahead_take(struct bid_dirahead *ahead, unsigned index, bool anew, const struct bid_dirpart **ret_part);

/* Blocks until what is being read has been. @ahead may be NULL. */
void bid_dirahead_free(struct bid_dirahead *ahead);

#endif
