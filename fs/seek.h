/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an inode number back to a node that is not of an id alone: a directory of an original path, a source file, a section, a copy
 * of /proc/kcore. The store is searched for it. Pure C: knows no FUSE.
 *
 * Of what is searched for by its path nothing but hashes is kept, 8 bytes for each directory, by the first byte of the ids below.
 * So a directory is found by looking at one 256th of the ids, and what changed in the store is read anew alone.
 */
#ifndef BID_FS_SEEK_H
#define BID_FS_SEEK_H

#include "tree.h"

struct bid_seek;

/* @tree is borrowed. */
int bid_seek_new(const struct bid_tree *tree, struct bid_seek **ret_seek);
void bid_seek_free(struct bid_seek *seek);

/* May a node of that type and kind be found by searching? */
bool bid_seek_can(enum bid_node_type type, enum bid_kind kind);

/* A callback that is asked now and then whether the search is in vain. */
typedef bool (*bid_seek_over_fn)(void *user);

/*
 * The node that @number is of, for the caller to release: a directory of a path as far as perf's links lead through it, or the
 * noted names of a build; a piece if it is here. For one thread at a time. Blocks on disk: looks at one 256th of the ids; for a
 * directory of a path the first time at all of them, and later at what has changed. -ESTALE if there is none, -EINTR if @over was
 * true, -ENOMEM.
 */
int bid_seek_node(struct bid_seek *seek, uint64_t number, bid_seek_over_fn over, void *user, struct bid_node *ret_node);

#endif
