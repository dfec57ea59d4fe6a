/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ids of which a name was unlinked through the mount that is in no directory of the store: probe definitions that are derived
 * when somebody looks, and links to what lies in a place that needs none. A program that unlinks such a name to make its own finds
 * none until it makes that. Any number of threads may use one. Pure C: knows no FUSE.
 */
#ifndef BID_FS_UNLINKED_H
#define BID_FS_UNLINKED_H

#include <pthread.h>
#include <stdbool.h>

#include <bid/id.h>

struct bid_unlinked {
	pthread_mutex_t lock; /* protects the set */
	void *ids; /* struct bid_id, see tsearch(3); owned */
};

void bid_unlinked_init(struct bid_unlinked *unlinked);
void bid_unlinked_release(struct bid_unlinked *unlinked);

/* Add @id. -ENOMEM. */
int bid_unlinked_add(struct bid_unlinked *unlinked, const struct bid_id *id);

/* Take @id out. Returns whether it was in. */
bool bid_unlinked_drop(struct bid_unlinked *unlinked, const struct bid_id *id);

bool bid_unlinked_has(struct bid_unlinked *unlinked, const struct bid_id *id);

#endif
