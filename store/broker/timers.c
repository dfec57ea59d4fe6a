// SPDX-License-Identifier: LGPL-2.1-or-later
/* Timer thread. */
#include "broker/scheduler.h"

#include <time.h>

#include "base/clock.h"
#include "broker/download.h"

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_time, &broker->lock, &deadline);
}

/* Run @timer. Under the lock, which may be released meanwhile. */
static void end(struct bid_timer *timer)
{
	bid_timer_disarm(timer);
	switch ((enum bid_timer_kind)timer->kind) {
	case BID_TIMER_DOWNLOAD:
		bid_scheduler_end_time(timer->user);
		break;
	case BID_TIMER_HEDGE:
		bid_scheduler_hedge(timer->user);
		break;
	}
}

void *bid_broker_run_timers(void *user)
{
	struct bid_broker *broker = user;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_timer *timer = broker->timers.first;

		if (!timer)
			pthread_cond_wait(&broker->has_time, &broker->lock);
		else if (timer->at_ms > bid_clock_ms())
			sleep_until(broker, timer->at_ms);
		else
			end(timer);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
