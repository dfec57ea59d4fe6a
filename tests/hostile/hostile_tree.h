/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hostile store, made from a seed: each kind of harm in one store, and all of them in one. */
#ifndef BID_TEST_HOSTILE_TREE_H
#define BID_TEST_HOSTILE_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of files made, for comparison. */
struct hostile_counts {
	unsigned spots;
	unsigned good; /* builds with their link */
	unsigned wrong; /* files with another id than their name */
	unsigned dangling; /* links to nothing */
};

/*
 * Make @directory/store, and @directory/outside with "elf" and directories "ID/elf", the targets of its links. The same for the
 * same @seed. It also has @crowd meaningless names.
 */
struct hostile_counts hostile_tree_make(const char *directory, uint64_t seed, unsigned crowd);

#endif
