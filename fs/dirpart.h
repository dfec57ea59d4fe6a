/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of a directory in memory: its names in the order of the offsets at which a listing finds them. Pure C: knows no FUSE.
 *
 * A directory of one part is read as it comes, with offsets that count. The one with all ids has a part for each first byte of
 * them, and offsets that are made of the inode numbers: they mean the same at every time and in every handle.
 */
#ifndef BID_FS_DIRPART_H
#define BID_FS_DIRPART_H

#include "tree.h"

enum {
	BID_DIRPART_DOTS = 2, /* "." and "..", which are before all parts */
	BID_DIRPART_BITS = 47, /* of the numbers in one part: see inode.h */
};

struct bid_direntry {
	uint64_t number;
	uint64_t offset; /* at which it is found; ascending */
	uint32_t name; /* where it begins in names */
	mode_t format; /* S_IFDIR, S_IFLNK or S_IFREG */
};

/* Begins as zeros, and may be read again and again. */
struct bid_dirpart {
	struct bid_direntry *entries; /* owned */
	size_t n, room;
	char *names; /* NUL-terminated each; owned */
	size_t names_len, names_room;
};

/* In which part an entry at @offset is, of a directory with more than one. */
static inline uint64_t bid_dirpart_of(uint64_t offset)
{
	return offset < BID_DIRPART_DOTS ? 0 : (offset - BID_DIRPART_DOTS) >> BID_DIRPART_BITS;
}

/*
 * Read part @index of the directory @dir, whose number is @number, in place of what was in @part. Part 0 begins with the dots.
 * May block on disk. Errors as of bid_tree_list(), and -ENOMEM; then @part is empty.
 */
int bid_dirpart_read(struct bid_dirpart *part, const struct bid_tree *tree, const struct bid_node *dir, uint64_t number,
		     unsigned index);

/* The index of the first entry at or behind @offset, which is probably @guess; the number of entries if there is none. */
size_t bid_dirpart_find(const struct bid_dirpart *part, uint64_t offset, size_t guess);

void bid_dirpart_release(struct bid_dirpart *part);

#endif
