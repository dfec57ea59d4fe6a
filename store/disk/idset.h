/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of ids with all their on-disk aliases, for a dirwalk through a store. */
#ifndef BID_DISK_IDSET_H
#define BID_DISK_IDSET_H

#include <stdbool.h>

#include <bid/id.h>

struct bid_idset_member {
	struct bid_id disk_id; /* an on-disk id */
	size_t index; /* index of its id in the array of bid_idset_init() */
};

struct bid_idset {
	struct bid_idset_member *members; /* sorted; owned */
	size_t n;
};

/* Fill @set with the aliases of the @n ids at @ids. Returns 0 or -ENOMEM. */
int bid_idset_init(struct bid_idset *set, const struct bid_id *ids, size_t n);

void bid_idset_release(struct bid_idset *set);

/* The first member with the on-disk id @disk_id, or NULL. bid_idset_next() has the others. */
const struct bid_idset_member *bid_idset_find(const struct bid_idset *set, const struct bid_id *disk_id);

/* The next member with the on-disk id of @member, or NULL. */
const struct bid_idset_member *bid_idset_next(const struct bid_idset *set, const struct bid_idset_member *member);

#endif
