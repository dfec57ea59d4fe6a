/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of ids by every spelling under which they may be filed, for those who walk a store and want only these. */
#ifndef BID_DISK_IDSET_H
#define BID_DISK_IDSET_H

#include <stdbool.h>

#include <bid/id.h>

struct bid_idset_member {
	struct bid_id filed;
	size_t index; /* of the id that is spelled so */
};

struct bid_idset {
	struct bid_idset_member *members; /* sorted; owned */
	size_t n;
};

/* Every spelling of the @n ids at @ids. Returns 0 or -ENOMEM. */
int bid_idset_init(struct bid_idset *set, const struct bid_id *ids, size_t n);

void bid_idset_release(struct bid_idset *set);

/* The first member that is filed as @filed, or NULL; further ones stand behind it, as long as they are equal. */
const struct bid_idset_member *bid_idset_find(const struct bid_idset *set, const struct bid_id *filed);

/* The next one that is filed alike, or NULL. */
const struct bid_idset_member *bid_idset_next(const struct bid_idset *set, const struct bid_idset_member *member);

#endif
