// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>

#include "base/log.h"
#include "broker/download.h"
#include "broker/scheduler.h"

bool bid_broker_is_offline(const struct bid_broker *broker)
{
	return atomic_load(&broker->offline);
}

/* Cancel all requests in the queues of sources. */
static void end_unsent(struct bid_broker *broker)
{
	struct bid_cancel_list *cancels;
	struct bid_download *download;
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	cancels = calloc(broker->n_downloads + 1, sizeof(*cancels));
	for (download = TAILQ_FIRST(&broker->downloads); download && cancels; download = TAILQ_NEXT(download, link))
		bid_scheduler_take(download, BID_EVENT_OFFLINE, BID_NO_CANDIDATE, &cancels[n++]);
	pthread_mutex_unlock(&broker->lock);

	if (!cancels)
		bid_warning("out of memory: requests in the queue of a server are sent");
	for (size_t i = 0; i < n; i++)
		bid_cancel_list_run(&cancels[i]);
	free(cancels);
}

/* Drop kept results: later readers must not get a result without a request. */
static void expire_ended(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	bid_download_expire_ended(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
}

void bid_broker_set_offline(struct bid_broker *broker, bool offline)
{
	atomic_store(&broker->offline, offline);
	if (offline)
		end_unsent(broker);
	else
		expire_ended(broker);
}
