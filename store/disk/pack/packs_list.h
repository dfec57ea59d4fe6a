/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What who finds records in the packs of a store and who writes and merges them share: the packs that are open. */
#ifndef BID_DISK_PACKS_LIST_H
#define BID_DISK_PACKS_LIST_H

#include <stdatomic.h>

#include "disk/pack/packs.h"

enum { BID_PACKS_NAME = 17 }; /* bytes of a name with its end: 16 hex digits */

/* One that is open. */
struct bid_packs_held {
	atomic_uint refs;
	struct bid_pack pack;
	char name[BID_PACKS_NAME];
};

/* Those that the store had at some time; constant. */
struct bid_packs_list {
	atomic_uint refs;
	struct bid_packs_held **packs; /* owned, each a reference */
	size_t n, room;
	bool whole; /* none that is there was passed over because it could not be read */
};

/* Those that @store has now, for bid_packs_list_release(); NULL if there are none or they cannot be read. */
struct bid_packs_list *bid_packs_list(struct bid_store *store);

/* *@list may be NULL. */
void bid_packs_list_release(struct bid_packs_list **list);

#define bid_auto_packs bid_cleanup(bid_packs_list_release)

/* Is @name that of a pack? */
bool bid_packs_is_name(const char *name);

#endif
