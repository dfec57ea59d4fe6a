// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/unlinked.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int compare_ids(const void *a, const void *b)
{
	const struct bid_id *left = a, *right = b;

	return left->len == right->len ? memcmp(left->bytes, right->bytes, left->len) : left->len - right->len;
}

void bid_unlinked_init(struct bid_unlinked *unlinked)
{
	*unlinked = (struct bid_unlinked){ 0 };
	pthread_mutex_init(&unlinked->lock, NULL);
}

void bid_unlinked_release(struct bid_unlinked *unlinked)
{
	while (unlinked->ids)
		bid_unlinked_drop(unlinked, *(struct bid_id **)unlinked->ids);
	pthread_mutex_destroy(&unlinked->lock);
}

int bid_unlinked_add(struct bid_unlinked *unlinked, const struct bid_id *id)
{
	bid_auto_free struct bid_id *copy = malloc(sizeof(*copy));
	struct bid_id **added;

	if (!copy)
		return -ENOMEM;
	*copy = *id;
	pthread_mutex_lock(&unlinked->lock);
	added = tsearch(copy, &unlinked->ids, compare_ids);
	if (added && *added == copy)
		bid_steal(copy);
	pthread_mutex_unlock(&unlinked->lock);
	return added ? 0 : -ENOMEM;
}

bool bid_unlinked_drop(struct bid_unlinked *unlinked, const struct bid_id *id)
{
	struct bid_id **found, *dropped;

	pthread_mutex_lock(&unlinked->lock);
	found = tfind(id, &unlinked->ids, compare_ids);
	dropped = found ? *found : NULL;
	if (dropped)
		tdelete(dropped, &unlinked->ids, compare_ids);
	pthread_mutex_unlock(&unlinked->lock);
	free(dropped);
	return dropped;
}

bool bid_unlinked_has(struct bid_unlinked *unlinked, const struct bid_id *id)
{
	bool has;

	pthread_mutex_lock(&unlinked->lock);
	has = tfind(id, &unlinked->ids, compare_ids);
	pthread_mutex_unlock(&unlinked->lock);
	return has;
}
