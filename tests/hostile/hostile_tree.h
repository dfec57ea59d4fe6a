/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A store that somebody made to do harm, from a seed: what may lie in one, at places of its own and everywhere at once. */
#ifndef BID_TEST_HOSTILE_TREE_H
#define BID_TEST_HOSTILE_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* What was made that can be counted again. */
struct hostile_counts {
	unsigned spots;
	unsigned good; /* builds with their link */
	unsigned wrong; /* files under an id that do not carry it */
	unsigned dangling; /* links to nothing */
};

/*
 * Make @directory/store, and @directory/outside with "elf" and directories "ID/elf", to which things in it lead. The same for the
 * same @seed. Beside that, there are @crowd names that mean nothing.
 */
struct hostile_counts hostile_tree_make(const char *directory, uint64_t seed, unsigned crowd);

#endif
