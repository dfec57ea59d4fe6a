// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfs/whiteouts.h"

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

void bid_whiteouts_init(struct bid_whiteouts *whiteouts)
{
	*whiteouts = (struct bid_whiteouts){ 0 };
	pthread_mutex_init(&whiteouts->lock, NULL);
}

void bid_whiteouts_release(struct bid_whiteouts *whiteouts)
{
	while (whiteouts->ids)
		bid_whiteouts_remove(whiteouts, *(struct bid_id **)whiteouts->ids);
	pthread_mutex_destroy(&whiteouts->lock);
}

int bid_whiteouts_add(struct bid_whiteouts *whiteouts, const struct bid_id *id)
{
	bid_auto_free struct bid_id *copy = malloc(sizeof(*copy));
	struct bid_id **added;

	if (!copy)
		return -ENOMEM;
	*copy = *id;
	pthread_mutex_lock(&whiteouts->lock);
	added = tsearch(copy, &whiteouts->ids, compare_ids);
	if (added && *added == copy)
		bid_steal(copy);
	pthread_mutex_unlock(&whiteouts->lock);
	return added ? 0 : -ENOMEM;
}

bool bid_whiteouts_remove(struct bid_whiteouts *whiteouts, const struct bid_id *id)
{
	struct bid_id **found, *dropped;

	pthread_mutex_lock(&whiteouts->lock);
	found = tfind(id, &whiteouts->ids, compare_ids);
	dropped = found ? *found : NULL;
	if (dropped)
		tdelete(dropped, &whiteouts->ids, compare_ids);
	pthread_mutex_unlock(&whiteouts->lock);
	free(dropped);
	return dropped;
}

bool bid_whiteouts_has(struct bid_whiteouts *whiteouts, const struct bid_id *id)
{
	bool has;

	pthread_mutex_lock(&whiteouts->lock);
	has = tfind(id, &whiteouts->ids, compare_ids);
	pthread_mutex_unlock(&whiteouts->lock);
	return has;
}
