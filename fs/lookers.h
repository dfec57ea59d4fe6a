/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who looks at perf's links after having listed them, as perf does with all of them: such a one is told of the links with their
 * names. Others, as find(1), want the names alone, and to make a node of each link would cost more than all else. Any thread may
 * call.
 */
#ifndef BID_FS_LOOKERS_H
#define BID_FS_LOOKERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { BID_LOOKERS_MAX = 8 }; /* at a time; which of more it remembers is of no matter */

/* All zero is nobody. */
struct bid_lookers {
	atomic_int pids[BID_LOOKERS_MAX];
	atomic_uint next; /* which one is forgotten next */
};

/* @pid looked at a link. 0, a process that is not seen from here, is nobody. */
void bid_lookers_add(struct bid_lookers *lookers, pid_t pid);

/* Has @pid looked at a link, not long ago? */
bool bid_lookers_has(struct bid_lookers *lookers, pid_t pid);

#endif
