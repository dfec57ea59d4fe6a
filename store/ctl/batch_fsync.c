// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/batch_fsync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct ctl_batched {
	struct bid_added added;
	char *path; /* owned */
};

void ctl_batch_begin(struct ctl_batch *batch, struct ctl_add_stats *stats, struct bid_store *store)
{
	*batch = (struct ctl_batch){ .stats = stats, .store = store };
}

static void forget_files(struct ctl_batch *batch)
{
	for (size_t i = 0; i < batch->n; i++)
		free(batch->added[i].path);
	batch->n = 0;
}

void ctl_batch_release(struct ctl_batch *batch)
{
	forget_files(batch);
	free(batch->added);
	batch->added = NULL;
	batch->room = 0;
}

int ctl_batch_put(struct ctl_batch *batch, const char *path, const struct bid_added *added)
{
	char *copy;

	if (bid_array_grow(batch->added, batch->n, batch->room) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	batch->added[batch->n++] = (struct ctl_batched){ .added = *added, .path = copy };
	return 0;
}

int ctl_batch_commit(struct ctl_batch *batch)
{
	int r = batch->n > 0 ? bid_store_sync(batch->store) : 0;

	for (size_t i = 0; i < batch->n && r == 0; i++)
		ctl_add_stats_taken(batch->stats, batch->added[i].path, &batch->added[i].added);
	forget_files(batch);
	return r;
}
