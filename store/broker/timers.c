// SPDX-License-Identifier: LGPL-2.1-or-later
/* The timer thread: it calls what has come to its time, under the broker's lock. */
#include <time.h>

#include "base/clock.h"
#include "broker/broker.h"

void bid_broker_arm(struct bid_broker *broker, struct bid_timer *timer, int64_t at_ms)
{
	bid_timer_arm(&broker->timers, timer, at_ms);
	if (broker->timers.first == timer)
		pthread_cond_signal(&broker->has_time);
}

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
		struct bid_timer *timer = broker->timers.first;

		if (!timer) {
			pthread_cond_wait(&broker->has_time, &broker->lock);
		} else if (timer->at_ms > bid_clock_ms()) {
			sleep_until(broker, timer->at_ms);
		} else {
			bid_timer_disarm(timer);
			timer->fn(timer->user);
		}
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
