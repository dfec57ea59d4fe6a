// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/idset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "disk/layout.h"

static int compare_ids(const struct bid_id *a, const struct bid_id *b)
{
	int r = memcmp(a->bytes, b->bytes, sizeof(a->bytes));

	return r ? r : a->len - b->len;
}

static int compare_members(const void *a, const void *b)
{
	const struct bid_idset_member *one = a, *other = b;
	int r = compare_ids(&one->disk_id, &other->disk_id);

	return r ? r : (one->index > other->index) - (one->index < other->index);
}

int bid_idset_init(struct bid_idset *set, const struct bid_id *ids, size_t n)
{
	struct bid_idset made = { 0 };
	size_t room = 0;

	for (size_t i = 0; i < n; i++) {
		struct bid_alias_iter alias = { 0 };
		struct bid_id disk_id;

		while (bid_alias_next(&alias, &ids[i], &disk_id)) {
			if (bid_array_grow(made.members, made.n, room) < 0) {
				bid_idset_release(&made);
				return -ENOMEM;
			}
			made.members[made.n++] = (struct bid_idset_member){ .disk_id = disk_id, .index = i };
		}
	}
	if (made.n > 0)
		qsort(made.members, made.n, sizeof(*made.members), compare_members);
	*set = made;
	return 0;
}

void bid_idset_release(struct bid_idset *set)
{
	free(set->members);
	*set = (struct bid_idset){ 0 };
}

const struct bid_idset_member *bid_idset_find(const struct bid_idset *set, const struct bid_id *disk_id)
{
	size_t low = 0, high = set->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_ids(&set->members[middle].disk_id, disk_id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->n && bid_id_equal(&set->members[low].disk_id, disk_id) ? &set->members[low] : NULL;
}

const struct bid_idset_member *bid_idset_next(const struct bid_idset *set, const struct bid_idset_member *member)
{
	const struct bid_idset_member *next = member + 1;

	return next < set->members + set->n && bid_id_equal(&next->disk_id, &member->disk_id) ? next : NULL;
}
