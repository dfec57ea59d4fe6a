// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trouble.h"
#include "broker/fallback.h"
#include "broker/request.h"

/* Flights are few and short-lived: nobody can fill a chain for long, so no seed. */
static struct bid_flight **bucket(struct bid_broker *broker, const struct bid_request *request)
{
	return &broker->buckets[bid_request_hash(request, 0) % BID_FLIGHT_BUCKETS];
}

static struct bid_flight *find(struct bid_broker *broker, const struct bid_request *request)
{
	struct bid_flight *flight = *bucket(broker, request);

	while (flight && !bid_request_equal(&flight->request, request))
		flight = flight->next;
	return flight;
}

static void flight_free(struct bid_flight *flight)
{
	for (size_t i = 0; i < flight->n_verdicts; i++) {
		free((char *)flight->verdicts[i].url);
		free((char *)flight->verdicts[i].led_to);
		free((char *)flight->verdicts[i].before);
	}
	bid_request_release(&flight->request);
	free(flight->texts);
	free(flight->runners);
	free(flight);
}

static struct bid_flight *flight_new(struct bid_broker *broker, const struct bid_request *request)
{
	struct bid_flight *flight = calloc(1, sizeof(*flight) + broker->n_sources * sizeof(*flight->verdicts));
	struct bid_flight **at = bucket(broker, request);

	if (!flight)
		return NULL;
	flight->texts = calloc(broker->n_sources, sizeof(*flight->texts));
	flight->runners = calloc(broker->n_sources, sizeof(*flight->runners));
	if (!flight->texts || !flight->runners) {
		flight_free(flight);
		return NULL;
	}
	flight->broker = broker;
	flight->request = bid_request_keep(request);
	flight->started_ms = bid_clock_ms();
	flight->width = 1;
	flight->refs = 1;
	TAILQ_INIT(&flight->waiters);
	TAILQ_INIT(&flight->asks);

	flight->next = *at;
	*at = flight;
	flight->joinable = true;
	TAILQ_INSERT_TAIL(&broker->flights, flight, link);
	broker->n_flights++;
	return flight;
}

void bid_flight_ref(struct bid_flight *flight)
{
	flight->refs++;
}

void bid_flight_unref(struct bid_flight *flight)
{
	if (--flight->refs > 0)
		return;
	flight_free(flight);
}

void bid_flight_put(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	pthread_mutex_lock(&broker->lock);
	bid_flight_unref(flight);
	pthread_mutex_unlock(&broker->lock);
}

/* Let nobody join @flight from here on: the next who comes starts another. Under the lock. */
static void retire(struct bid_flight *flight)
{
	struct bid_flight **at = bucket(flight->broker, &flight->request);

	if (!flight->joinable)
		return;
	while (*at != flight)
		at = &(*at)->next;
	*at = flight->next;
	flight->joinable = false;
}

bool bid_flight_cancellable(const struct bid_flight *flight)
{
	const struct bid_ask *ask;

	/* what a source has delivered is decided on: it may be kept, for who comes next */
	for (ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		if (ask->phase == BID_ASK_DECIDING)
			return false;
	return (flight->phase == BID_PHASE_FLYING || flight->phase == BID_PHASE_AWAITING) && !flight->cancelled;
}

void bid_flight_cancel(struct bid_flight *flight, struct bid_endings *endings)
{
	if (!bid_flight_cancellable(flight))
		return;
	flight->cancelled = true;
	retire(flight);
	bid_race_stop(flight, NULL, endings);
}

bool bid_flight_abandoned(const struct bid_flight *flight)
{
	return flight->n_waiters == 0 && !flight->timed_out;
}

static void close_window(struct bid_flight *flight)
{
	if (flight->windowed)
		TAILQ_REMOVE(&flight->broker->windows, flight, timer);
	flight->windowed = false;
}

static void open_window(struct bid_flight *flight, int64_t now)
{
	struct bid_broker *broker = flight->broker;

	close_window(flight);
	flight->until_ms = now + broker->config.wait_ms;
	flight->windowed = true;
	TAILQ_INSERT_TAIL(&broker->windows, flight, timer);
	if (TAILQ_FIRST(&broker->windows) == flight)
		pthread_cond_signal(&broker->has_time);
}

/* May somebody who comes now wait for @flight? */
static bool admit(struct bid_flight *flight, int64_t now)
{
	if (flight->broker->config.wait_ms == 0)
		return true;
	if (now < flight->until_ms)
		return true;
	/* waiters of a window that is over, but not yet sent away, must not be kept by a new one */
	if (flight->n_waiters > 0 || now < flight->until_ms + BID_WINDOW_GRACE)
		return false;
	open_window(flight, now);
	return true;
}

static void limit(struct bid_broker *broker, struct bid_waiter *waiter)
{
	struct bid_waiter *before = TAILQ_LAST(&broker->limited, bid_waiters);

	while (before && before->until_ms > waiter->until_ms)
		before = TAILQ_PREV(before, bid_waiters, limit);
	if (before)
		TAILQ_INSERT_AFTER(&broker->limited, before, waiter, limit);
	else
		TAILQ_INSERT_HEAD(&broker->limited, waiter, limit);
	if (TAILQ_FIRST(&broker->limited) == waiter)
		pthread_cond_signal(&broker->has_time);
}

static void queue(struct bid_flight *flight, struct bid_waiter *waiter)
{
	waiter->state = BID_WAITER_QUEUED;
	waiter->flight = flight;
	flight->wanted |= waiter->fn != NULL;
	TAILQ_INSERT_TAIL(&flight->waiters, waiter, link);
	flight->n_waiters++;
	flight->broker->n_waiting++;
	if (waiter->until_ms)
		limit(flight->broker, waiter);
}

int bid_flight_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		    struct bid_flight **ret_lead, struct bid_flight **ret_seen)
{
	int64_t now = bid_clock_ms();
	struct bid_flight *flight = find(broker, request);
	int error;

	if (flight && flight->phase == BID_PHASE_ENDED && now >= flight->until_ms) {
		bid_flight_end_linger(flight);
		flight = NULL;
	}
	if (!flight) {
		flight = flight_new(broker, request);
		if (!flight)
			return -ENOMEM;
		if (broker->config.wait_ms > 0)
			open_window(flight, now);
		queue(flight, waiter);
		bid_flight_ref(flight);
		*ret_lead = flight;
		return -EINPROGRESS;
	}

	if (flight->phase == BID_PHASE_ENDED) {
		error = flight->error;
	} else if (admit(flight, now)) {
		queue(flight, waiter);
		return -EINPROGRESS;
	} else {
		flight->timed_out = true;
		error = -ETIMEDOUT;
	}
	bid_flight_ref(flight);
	*ret_seen = flight;
	return error;
}

void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter)
{
	if (waiter->instead)
		waiter->state = BID_WAITER_BUSY;
	else
		bid_tickets_take(&broker->tickets, waiter);
}

void bid_flight_leave(struct bid_waiter *waiter)
{
	struct bid_flight *flight = waiter->flight;

	TAILQ_REMOVE(&flight->waiters, waiter, link);
	if (waiter->until_ms)
		TAILQ_REMOVE(&flight->broker->limited, waiter, limit);
	waiter->flight = NULL;
	flight->n_waiters--;
	flight->broker->n_waiting--;
	bid_waiter_detach(flight->broker, waiter);
}

void bid_flight_take_waiters(struct bid_flight *flight, struct bid_waiters *waiters)
{
	struct bid_waiter *waiter;

	while ((waiter = TAILQ_FIRST(&flight->waiters))) {
		bid_flight_leave(waiter);
		TAILQ_INSERT_TAIL(waiters, waiter, link);
	}
}

static void count_answer(struct bid_broker *broker, int error)
{
	switch (error) {
	case 0:
		break;
	case -ENOENT:
		atomic_fetch_add(&broker->counts.absent, 1);
		break;
	case -EINTR:
		atomic_fetch_add(&broker->counts.interrupted, 1);
		break;
	default:
		atomic_fetch_add(&broker->counts.unknown, 1);
		break;
	}
}

void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_flight *flight)
{
	bid_cleanup(bid_file_release) struct bid_file section = BID_FILE_NONE;
	struct bid_result result = {
		.verdicts = flight ? flight->verdicts : NULL,
		.n_verdicts = flight ? flight->n_verdicts : 0,
		.waited_ms = flight ? flight->awaiting.waited_ms : 0,
	};

	if (waiter->instead) {
		error = bid_instead_step(broker, waiter, error, flight, &section);
		if (error == -EINPROGRESS)
			return;
		bid_instead_tell(waiter->instead, &result);
	}
	if (waiter->fn) {
		count_answer(broker, error);
		result.error = error;
		result.file = error ? NULL : section.fd >= 0 ? &section : file;
		waiter->fn(waiter->user, &result);
	}
	bid_instead_free(waiter->instead);
	free(waiter);
}

void bid_flight_answer(struct bid_flight *flight, struct bid_waiters *waiters, int error, struct bid_file *file)
{
	struct bid_waiter *waiter;

	while ((waiter = TAILQ_FIRST(waiters))) {
		bid_cleanup(bid_file_release) struct bid_file own = BID_FILE_NONE;
		int r = error;

		TAILQ_REMOVE(waiters, waiter, link);
		if (r == 0) {
			own = *file;
			own.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
			if (own.fd < 0)
				r = -errno;
		}
		bid_waiter_answer(flight->broker, waiter, r, &own, flight);
	}
}

static void settle(struct bid_flight *flight, int error, struct bid_waiters *waiters)
{
	struct bid_broker *broker = flight->broker;

	close_window(flight);
	bid_flight_take_waiters(flight, waiters);
	TAILQ_REMOVE(&broker->flights, flight, link);
	broker->n_flights--;
	flight->phase = BID_PHASE_ENDED;
	flight->error = error;

	if (error == 0 || !flight->joinable || broker->ending) {
		retire(flight);
		bid_flight_unref(flight);
	} else {
		flight->until_ms = bid_clock_ms() + BID_FLIGHT_LINGER;
		TAILQ_INSERT_TAIL(&broker->lingering, flight, timer);
		if (TAILQ_FIRST(&broker->lingering) == flight)
			pthread_cond_signal(&broker->has_time);
	}
	if (broker->n_flights == 0)
		pthread_cond_broadcast(&broker->idle);
}

void bid_flight_end(struct bid_flight *flight, int error, struct bid_file *file)
{
	struct bid_broker *broker = flight->broker;
	struct bid_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
	struct bid_endings endings = { 0 };
	bool held;

	/* sizes are announced by servers, which may be wrong: one that could not be asked may have it smaller */
	if (error == -EFBIG && bid_flight_is_too_large(flight) && bid_absences_add(broker->too_large, &flight->request, "") < 0)
		bid_warning("out of memory: what is too large is not remembered as that");

	pthread_mutex_lock(&broker->lock);
	bid_flight_ref(flight);
	bid_race_stop(flight, NULL, &endings);
	settle(flight, error, &waiters);
	held = bid_await_end(flight);
	pthread_mutex_unlock(&broker->lock);

	if (held)
		bid_await_drop(flight);
	bid_flight_answer(flight, &waiters, error, file);
	bid_endings_cancel(&endings);

	bid_flight_put(flight);
}

void bid_flight_claim(struct bid_flight *flight)
{
	pthread_mutex_lock(&flight->broker->lock);
	flight->phase = BID_PHASE_ENDING;
	pthread_mutex_unlock(&flight->broker->lock);
}

/* Under the lock. */
static bool is_sent(const struct bid_flight *flight)
{
	const struct bid_ask *ask = TAILQ_FIRST(&flight->asks);

	while (ask && !ask->sent)
		ask = TAILQ_NEXT(ask, link);
	return ask;
}

/* If the last who waited has gone, what was not even sent has no turn to wait for any more. Under the lock. */
static void give_up_unsent(struct bid_flight *flight, struct bid_endings *endings)
{
	if (flight->n_waiters > 0 || !bid_flight_cancellable(flight) || is_sent(flight))
		return;
	flight->given_up = true;
	bid_race_stop(flight, NULL, endings);
}

void bid_flight_end_window(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	struct bid_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
	struct bid_endings endings = { 0 };

	close_window(flight);
	flight->timed_out |= flight->n_waiters > 0;
	bid_flight_take_waiters(flight, &waiters);
	give_up_unsent(flight, &endings);
	bid_flight_ref(flight);
	pthread_mutex_unlock(&broker->lock);

	bid_flight_answer(flight, &waiters, -ETIMEDOUT, NULL);
	bid_endings_cancel(&endings);

	pthread_mutex_lock(&broker->lock);
	bid_flight_unref(flight);
}

void bid_flight_end_wait(struct bid_waiter *waiter)
{
	struct bid_flight *flight = waiter->flight;
	struct bid_broker *broker = flight->broker;
	struct bid_endings endings = { 0 };

	bid_flight_leave(waiter);
	flight->timed_out = true;
	give_up_unsent(flight, &endings);
	/* the window is still open: who comes in it may wait, but for another */
	if (flight->given_up)
		retire(flight);
	bid_flight_ref(flight);
	pthread_mutex_unlock(&broker->lock);

	bid_waiter_answer(broker, waiter, -ETIMEDOUT, NULL, flight);
	bid_endings_cancel(&endings);

	pthread_mutex_lock(&broker->lock);
	bid_flight_unref(flight);
}

void bid_flight_end_linger(struct bid_flight *flight)
{
	TAILQ_REMOVE(&flight->broker->lingering, flight, timer);
	retire(flight);
	bid_flight_unref(flight);
}

void bid_flight_depart(struct bid_flight *flight, bool look)
{
	struct bid_broker *broker = flight->broker;
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	int r = look ? bid_store_find(broker->store, &flight->request, &file) : -ENOENT;

	if (r == -ENOENT || bid_is_unusable(r) || file.stripped) {
		bid_race_line_up(flight);
		bid_race_step(flight);
	} else {
		/* the files that came meanwhile prove that there is no such section anywhere */
		if (r == -ENODATA)
			r = -ENOENT;
		if (r == 0)
			atomic_fetch_add(&broker->counts.hits, 1);
		bid_flight_claim(flight);
		bid_flight_end(flight, r, &file);
	}
	bid_flight_put(flight);
}

void bid_flight_lead(struct bid_flight *flight, bool look)
{
	if (bid_await(flight))
		bid_flight_depart(flight, look || flight->awaiting.holds);
}
