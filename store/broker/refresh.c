// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "base/log.h"
#include "broker/download.h"

static void refresh(struct bid_broker *broker, const struct bid_request *request, bool accept)
{
	for (size_t i = 0; i < broker->n_sources; i++)
		bid_negative_forget(&broker->negative, request, broker->sources[i].source->name);
	bid_negative_forget(&broker->negative, request, BID_NEGATIVE_ALL);
	if (accept)
		bid_negative_add(&broker->negative, request, BID_NEGATIVE_ALL, BID_OUTCOME_FOUND);
	/* late readers must not get a kept result */
	pthread_mutex_lock(&broker->lock);
	bid_download_expire_ended(broker, request);
	pthread_mutex_unlock(&broker->lock);
}

int bid_broker_refresh(struct bid_broker *broker, const struct bid_request *request, bool accept)
{
	struct bid_request one = { .id = request->id };

	if (request->kind != BID_KIND_NONE) {
		if (!bid_request_valid(request) || !bid_kind_fetchable(request->kind))
			return -EINVAL;
		refresh(broker, request, accept);
		/* the absence of the build includes its parts */
		if (!bid_kind_has_detail(request->kind))
			return 0;
		accept = false;
	}
	if (request->id.len == 0)
		return -EINVAL;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		one.kind = (enum bid_kind)kind;
		if (bid_kind_fetchable(one.kind))
			refresh(broker, &one, accept);
	}
	return 0;
}
