// SPDX-License-Identifier: LGPL-2.1-or-later
/* The timer thread: sends waiters away when their window is over, forgets lingering results, and lets another
 * source join a race. */
#include "broker/download.h"

#include <time.h>

#include "base/clock.h"

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_time, &broker->lock, &deadline);
}

void *bid_broker_run_timers(void *user)
{
	struct bid_broker *broker = user;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_download *window = TAILQ_FIRST(&broker->windows);
		struct bid_waiter *limited = TAILQ_FIRST(&broker->limited);
		struct bid_download *linger = TAILQ_FIRST(&broker->lingering);
		struct bid_download *hedge = TAILQ_FIRST(&broker->hedges);
		int64_t now = bid_clock_ms(), next = INT64_MAX;

		if (window)
			next = window->until_ms;
		if (limited && limited->until_ms < next)
			next = limited->until_ms;
		if (linger && linger->until_ms < next)
			next = linger->until_ms;
		if (hedge && hedge->hedge_at_ms < next)
			next = hedge->hedge_at_ms;

		if (window && window->until_ms <= now)
			bid_download_end_window(window);
		else if (limited && limited->until_ms <= now)
			bid_download_end_wait(limited);
		else if (linger && linger->until_ms <= now)
			bid_download_end_linger(linger);
		else if (hedge && hedge->hedge_at_ms <= now)
			bid_scheduler_time_out(hedge);
		else if (next != INT64_MAX)
			sleep_until(broker, next);
		else
			pthread_cond_wait(&broker->has_time, &broker->lock);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
