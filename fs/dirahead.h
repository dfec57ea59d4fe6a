/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of an open directory, read ahead: while whoever lists it takes in one part, the next ones are read by another thread,
 * which is there from when somebody has listed one whole part of many names and goes on. Pure C: knows no FUSE.
 */
#ifndef BID_FS_DIRAHEAD_H
#define BID_FS_DIRAHEAD_H

#include "dirpart.h"

struct bid_dirahead;

/* The parts of @dir, whose number is @number; both @tree and @dir are borrowed. Reads nothing. -ENOMEM. */
int bid_dirahead_new(const struct bid_tree *tree, const struct bid_node *dir, uint64_t number, struct bid_dirahead **ret_ahead);

/*
 * Part @index of the directory, which lives until the next call. With @anew it is read now, and so are those after it: what was
 * read before is not good any more. May block on disk. Errors as of bid_dirpart_read(). For one thread at a time.
 */
int bid_dirahead_take(struct bid_dirahead *ahead, unsigned index, bool anew, const struct bid_dirpart **ret_part);

/* Blocks until what is being read has been. @ahead may be NULL. */
void bid_dirahead_free(struct bid_dirahead *ahead);

#endif
