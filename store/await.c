// SPDX-License-Identifier: LGPL-2.1-or-later
#include "flight.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <bid/hold.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define LOOK_MS 50 /* between two tries for what others hold */
#define REST	10 /* but not before this many times what the tries took */
#define BEAT_MS 1000
#define LOST_MS 5000 /* without a beat: the holder is stopped, or gets nowhere */

#define STUCK_MS 30000 /* of a flight that stands still: or as long as a source may take to answer, if that is longer */

/* Something that changes as long as @flight gets on. Under the lock. */
static uint64_t progress_of(const struct bid_flight *flight)
{
	uint64_t progress = flight->n_verdicts;
	const struct bid_ask *ask;

	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		progress += 1 + ask->sent + ask->begun + ask->received;
	return progress;
}

static int64_t stuck_after(const struct bid_broker *broker, int64_t now)
{
	return now + (broker->limit_ms > STUCK_MS ? broker->limit_ms : STUCK_MS);
}

/* Under the lock. */
static void begin_holding(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	flight->awaiting.holds = true;
	flight->awaiting.stuck_at_ms = stuck_after(broker, bid_clock_ms());
	TAILQ_INSERT_TAIL(&broker->holders, flight, awaiting.holder);
	if (TAILQ_FIRST(&broker->holders) == flight)
		pthread_cond_signal(&broker->has_holds);
}

/* The hold, in this turn. -EBUSY, or whatever else keeps it from holding; then it goes on without. */
static int take(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	int r;

	flight->awaiting.key = bid_hold_key(&flight->request, broker->sources_hold, flight->awaiting.turn);
	r = bid_holds_take(broker->holds, flight->awaiting.key);
	if (r < 0)
		return r;
	pthread_mutex_lock(&broker->lock);
	begin_holding(flight);
	pthread_mutex_unlock(&broker->lock);
	return 0;
}

/* Nothing of the holder is known yet: its beat from now on, and how it ends. */
static void begin_listening(struct bid_flight *flight)
{
	unsigned limit_ms;

	flight->awaiting.pulse = bid_holds_pulse(flight->broker->holds, flight->awaiting.key);
	flight->awaiting.lost_at_ms = bid_clock_ms() + LOST_MS;
	flight->awaiting.failure = bid_holds_failure(flight->broker->holds, flight->awaiting.key, &limit_ms);
}

/* Did a holder that was waited for get no answer, and was no less patient than this one would be? */
static bool is_in_vain(const struct bid_flight *flight)
{
	unsigned limit_ms;
	uint64_t failure = bid_holds_failure(flight->broker->holds, flight->awaiting.key, &limit_ms);

	return failure && failure != flight->awaiting.failure && limit_ms >= flight->broker->limit_ms;
}

/* Did no source answer but with "no"? What one refuses, or is wrong, or cannot be kept, is between it and this process. */
static bool is_outage(const struct bid_flight *flight)
{
	if (flight->error != -EHOSTUNREACH || flight->offline)
		return false;
	for (size_t i = 0; i < flight->n_verdicts; i++)
		if (flight->verdicts[i].outcome != BID_OUTCOME_UNREACHABLE && !bid_outcome_is_no(flight->verdicts[i].outcome))
			return false;
	return true;
}

bool bid_await(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	if (take(flight) != -EBUSY)
		return true;
	begin_listening(flight);
	flight->awaiting.since_ms = bid_clock_ms();
	pthread_mutex_lock(&broker->lock);
	flight->phase = BID_PHASE_AWAITING;
	TAILQ_INSERT_TAIL(&broker->awaiting, flight, awaiting.link);
	broker->n_awaiting++;
	pthread_cond_signal(&broker->has_holds);
	pthread_mutex_unlock(&broker->lock);
	return false;
}

bool bid_await_end(struct bid_flight *flight)
{
	bool held = flight->awaiting.holds;

	if (held)
		TAILQ_REMOVE(&flight->broker->holders, flight, awaiting.holder);
	flight->awaiting.holds = false;
	return held;
}

void bid_await_drop(struct bid_flight *flight)
{
	if (is_outage(flight))
		bid_holds_fail(flight->broker->holds, flight->awaiting.key, flight->broker->limit_ms);
	bid_holds_drop(flight->broker->holds, flight->awaiting.key);
}

/* Is the holder's heart still beating? */
static bool hears(struct bid_flight *flight)
{
	uint64_t pulse = bid_holds_pulse(flight->broker->holds, flight->awaiting.key);
	int64_t now = bid_clock_ms();

	if (pulse != flight->awaiting.pulse) {
		flight->awaiting.pulse = pulse;
		flight->awaiting.lost_at_ms = now + LOST_MS;
	}
	return now < flight->awaiting.lost_at_ms;
}

/* Is there still something to wait for? If the holder is given up, the next turn is tried, as long as there is one. */
static bool still_busy(struct bid_flight *flight)
{
	char name[BID_NAME_MAX];
	int r;

	/* not once it is held: others who have waited as well would have to wait for that */
	flight->awaiting.in_vain = is_in_vain(flight);
	if (flight->awaiting.in_vain) {
		bid_info("who fetched it got no answer, not asked again: '%s'", bid_request_name(&flight->request, name));
		return false;
	}
	r = take(flight);
	while (r == -EBUSY && !hears(flight)) {
		bid_info("who fetches it gets nowhere, not waited for any longer: '%s'", bid_request_name(&flight->request, name));
		if (++flight->awaiting.turn == BID_HOLD_TURNS)
			return false;
		r = take(flight);
		if (r == -EBUSY)
			begin_listening(flight);
	}
	return r == -EBUSY;
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

/* Does it get on, or will be by what another thread does? Under the lock. */
static bool gets_on(struct bid_flight *flight, int64_t now)
{
	uint64_t progress = progress_of(flight);

	if (progress != flight->awaiting.progress || flight->decided_on) {
		flight->awaiting.progress = progress;
		flight->awaiting.stuck_at_ms = stuck_after(flight->broker, now);
	}
	return now < flight->awaiting.stuck_at_ms;
}

/* For all that get on. Under the lock, which is released meanwhile. Returns when to do it again. */
static int64_t beat_all(struct bid_broker *broker)
{
	bid_auto_free uint64_t *keys = calloc(broker->n_flights + 1, sizeof(*keys));
	int64_t now = bid_clock_ms();
	struct bid_flight *flight;
	size_t n = 0;

	for (flight = TAILQ_FIRST(&broker->holders); keys && flight; flight = TAILQ_NEXT(flight, awaiting.holder))
		if (gets_on(flight, now))
			keys[n++] = flight->awaiting.key;
	pthread_mutex_unlock(&broker->lock);
	/* one that was dropped meanwhile beats once more, for nobody or for the next */
	for (size_t i = 0; i < n; i++)
		bid_holds_beat(broker->holds, keys[i]);
	pthread_mutex_lock(&broker->lock);
	return now + BEAT_MS;
}

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_holds, &broker->lock, &deadline);
}

void *bid_broker_await(void *user)
{
	struct bid_broker *broker = user;
	int64_t try_at = 0, beat_at = 0;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		bool tries = !TAILQ_EMPTY(&broker->awaiting), beats = !TAILQ_EMPTY(&broker->holders);
		int64_t now = bid_clock_ms();

		if (tries && try_at <= now)
			try_at = try_all(broker);
		else if (beats && beat_at <= now)
			beat_at = beat_all(broker);
		else if (tries && (!beats || try_at < beat_at))
			sleep_until(broker, try_at);
		else if (beats)
			sleep_until(broker, beat_at);
		else
			pthread_cond_wait(&broker->has_holds, &broker->lock);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
