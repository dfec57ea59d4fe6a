// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"
#include "broker/scheduler.h"

bool bid_broker_is_offline(const struct bid_broker *broker)
{
	return atomic_load(&broker->offline);
}

/* Cancel all requests in the queues of sources. */
static void end_unsent(struct bid_broker *broker)
{
	struct bid_download *download;

	pthread_mutex_lock(&broker->lock);
	for (download = TAILQ_FIRST(&broker->downloads); download; download = TAILQ_NEXT(download, link))
		bid_scheduler_take(download, BID_EVENT_OFFLINE, BID_NO_CANDIDATE);
	pthread_mutex_unlock(&broker->lock);
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
