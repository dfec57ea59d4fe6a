/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of ids whose name was unlinked through the mount, though no directory of the store has it: derived probe definitions,
 * and links of files in other layouts. The program that unlinked the name makes its own, and must not find the derived one. Pure
 * C: knows no FUSE.
 *
 *	bid_unlinked_init()
 *	bid_unlinked_add()	UNLINK
 *	bid_unlinked_drop()	a program makes the name again
 *	bid_unlinked_release()
 *
 * Locking: the set has one lock. Any thread may call.
 */
#ifndef BID_FS_UNLINKED_H
#define BID_FS_UNLINKED_H

#include <pthread.h>
#include <stdbool.h>

#include <bid/id.h>

struct bid_unlinked {
	pthread_mutex_t lock; /* guards the set */
	void *ids; /* tree of struct bid_id, tsearch(3); owned */
};

void bid_unlinked_init(struct bid_unlinked *unlinked);
void bid_unlinked_release(struct bid_unlinked *unlinked);

/* Add @id. -ENOMEM. */
int bid_unlinked_add(struct bid_unlinked *unlinked, const struct bid_id *id);

/* Remove @id. Returns whether the set had it. */
bool bid_unlinked_drop(struct bid_unlinked *unlinked, const struct bid_id *id);

bool bid_unlinked_has(struct bid_unlinked *unlinked, const struct bid_id *id);

#endif
