// SPDX-License-Identifier: LGPL-2.1-or-later
/* The timekeeper: sends waiters away when their window is over, and forgets lingering results. */
#include "flight.h"

#include <time.h>

int64_t bid_broker_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_time, &broker->lock, &deadline);
}

void *bid_broker_keep_time(void *user)
{
	struct bid_broker *broker = user;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_flight *window = TAILQ_FIRST(&broker->windows);
		struct bid_flight *linger = TAILQ_FIRST(&broker->lingering);
		int64_t now = bid_broker_now();

		if (window && window->until_ms <= now)
			bid_flight_end_window(window);
		else if (linger && linger->until_ms <= now)
			bid_flight_end_linger(linger);
		else if (window && (!linger || window->until_ms <= linger->until_ms))
			sleep_until(broker, window->until_ms);
		else if (linger)
			sleep_until(broker, linger->until_ms);
		else
			pthread_cond_wait(&broker->has_time, &broker->lock);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
