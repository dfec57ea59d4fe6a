// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>

#include "base/log.h"
#include "broker/download.h"
#include "broker/scheduler.h"

bool bid_broker_is_offline(const struct bid_broker *broker)
{
	return atomic_load(&broker->offline);
}

/* What is in line at a source has not left this machine: nor shall it. */
static void end_unsent(struct bid_broker *broker)
{
	struct bid_endings *endings;
	struct bid_flight *flight;
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	endings = calloc(broker->n_flights + 1, sizeof(*endings));
	for (flight = TAILQ_FIRST(&broker->flights); flight && endings; flight = TAILQ_NEXT(flight, link))
		bid_race_stop_unsent(flight, &endings[n++]);
	pthread_mutex_unlock(&broker->lock);

	if (!endings)
		bid_warning("out of memory: what is in line for a server is asked for all the same");
	for (size_t i = 0; i < n; i++)
		bid_endings_cancel(&endings[i]);
	free(endings);
}

/* That nobody was asked is no answer to who comes from now on. */
static void end_lingering(struct bid_broker *broker)
{
	struct bid_flight *flight;

	pthread_mutex_lock(&broker->lock);
	while ((flight = TAILQ_FIRST(&broker->lingering)))
		bid_flight_end_linger(flight);
	pthread_mutex_unlock(&broker->lock);
}

void bid_broker_set_offline(struct bid_broker *broker, bool offline)
{
	atomic_store(&broker->offline, offline);
	if (offline)
		end_unsent(broker);
	else
		end_lingering(broker);
}
