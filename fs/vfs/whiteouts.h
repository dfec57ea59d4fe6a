/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of ids whose name was unlinked through the mount, though no directory of the store has it: derived probe definitions,
 * and links of files in other layouts. The program that unlinked the name makes its own, and must not find the derived one. Pure
 * C: knows no FUSE.
 *
 *	bid_whiteouts_init()
 *	bid_whiteouts_add()	UNLINK
 *	bid_whiteouts_remove()	a program makes the name again
 *	bid_whiteouts_release()
 *
 * Locking: the set has one lock. Any thread may call.
 */
#ifndef BID_FS_WHITEOUTS_H
#define BID_FS_WHITEOUTS_H

#include <pthread.h>
#include <stdbool.h>

#include <bid/id.h>

struct bid_whiteouts {
	pthread_mutex_t lock; /* guards the set */
	void *ids; /* tree of struct bid_id, tsearch(3); owned */
};

void bid_whiteouts_init(struct bid_whiteouts *whiteouts);
void bid_whiteouts_release(struct bid_whiteouts *whiteouts);

/* Add @id. -ENOMEM. */
int bid_whiteouts_add(struct bid_whiteouts *whiteouts, const struct bid_id *id);

/* Remove @id. Returns whether the set had it. */
bool bid_whiteouts_remove(struct bid_whiteouts *whiteouts, const struct bid_id *id);

bool bid_whiteouts_has(struct bid_whiteouts *whiteouts, const struct bid_id *id);

#endif
