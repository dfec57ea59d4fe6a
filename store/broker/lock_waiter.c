// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <time.h>

#include <bid/hold.h>

#include "base/clock.h"
#include "base/log.h"

#define LOOK_MS 50 /* between two tries for what others hold */
#define REST	10 /* but not before this many times what the tries took */
#define WAIT_MS 30000 /* then it is fetched here, too: the holder may be stopped */

/* The hold. -EBUSY, or whatever else keeps it from holding; then it goes on without. */
static int take(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	int r;

	flight->awaiting.key = bid_hold_key(&flight->request, broker->sources_hold);
	r = bid_holds_take(broker->holds, flight->awaiting.key);
	if (r < 0)
		return r;
	pthread_mutex_lock(&broker->lock);
	flight->awaiting.holds = true;
	pthread_mutex_unlock(&broker->lock);
	return 0;
}

bool bid_await(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	if (take(flight) != -EBUSY)
		return true;
	flight->awaiting.since_ms = bid_clock_ms();
	pthread_mutex_lock(&broker->lock);
	flight->phase = BID_PHASE_AWAITING;
	TAILQ_INSERT_TAIL(&broker->awaiting, flight, awaiting.link);
	broker->n_awaiting++;
	pthread_cond_signal(&broker->has_awaiting);
	pthread_mutex_unlock(&broker->lock);
	return false;
}

bool bid_await_end(struct bid_flight *flight)
{
	bool held = flight->awaiting.holds;

	flight->awaiting.holds = false;
	return held;
}

void bid_await_drop(struct bid_flight *flight)
{
	bid_holds_drop(flight->broker->holds, flight->awaiting.key);
}

/* Readers must have a part of their wait left. */
static int64_t limit_of(const struct bid_broker *broker)
{
	unsigned half = broker->config.wait_ms / 2;

	return half > 0 && half < WAIT_MS ? half : WAIT_MS;
}

static bool still_busy(struct bid_flight *flight)
{
	char name[BID_NAME_MAX];

	if (take(flight) != -EBUSY)
		return false;
	if (bid_clock_ms() - flight->awaiting.since_ms < limit_of(flight->broker))
		return true;
	bid_info("another process has not fetched it in time, fetched here too: '%s'", bid_request_name(&flight->request, name));
	return false;
}

/* Under the lock, which is released meanwhile. */
static void try(struct bid_broker *broker, struct bid_flight *flight)
{
	bool over = flight->cancelled || flight->given_up || broker->ending || bid_flight_abandoned(flight);

	TAILQ_REMOVE(&broker->awaiting, flight, awaiting.link);
	pthread_mutex_unlock(&broker->lock);
	over = over || !still_busy(flight);
	pthread_mutex_lock(&broker->lock);
	if (!over) {
		TAILQ_INSERT_TAIL(&broker->awaiting, flight, awaiting.link);
		return;
	}
	flight->phase = BID_PHASE_FLYING;
	flight->awaiting.waited_ms = (unsigned)(bid_clock_ms() - flight->awaiting.since_ms);
	broker->n_awaiting--;
	pthread_mutex_unlock(&broker->lock);
	bid_flight_depart(flight, true);
	pthread_mutex_lock(&broker->lock);
}

/* The same for all. Returns when to do it again. */
static int64_t try_all(struct bid_broker *broker)
{
	int64_t begun = bid_clock_ms(), now, pause;

	for (size_t left = broker->n_awaiting; left > 0 && !TAILQ_EMPTY(&broker->awaiting); left--)
		try(broker, TAILQ_FIRST(&broker->awaiting));
	now = bid_clock_ms();
	pause = (now - begun) * REST;
	return now + (pause > LOOK_MS ? pause : LOOK_MS);
}

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_awaiting, &broker->lock, &deadline);
}

void *bid_broker_await(void *user)
{
	struct bid_broker *broker = user;
	int64_t try_at = 0;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		if (TAILQ_EMPTY(&broker->awaiting))
			pthread_cond_wait(&broker->has_awaiting, &broker->lock);
		else if (try_at <= bid_clock_ms())
			try_at = try_all(broker);
		else
			sleep_until(broker, try_at);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
