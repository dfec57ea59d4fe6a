// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/broker.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <bid/evict.h>
#include <bid/hold.h>
#include <bid/piece.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/trouble.h"
#include "broker/download.h"
#include "broker/fallback.h"
#include "broker/loop.h"

static const uint64_t largest[BID_COMMIT_WORKERS] = { 0, 16 << 20, UINT64_MAX - 1, UINT64_MAX };

static void stop_threads(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->stopping = true;
	pthread_cond_broadcast(&broker->has_job);
	pthread_cond_broadcast(&broker->has_time);
	pthread_cond_broadcast(&broker->has_lock_wait);
	pthread_mutex_unlock(&broker->lock);
	for (unsigned i = 0; i < broker->n_workers; i++)
		pthread_join(broker->workers[i].thread, NULL);
	if (broker->has_timer_thread)
		pthread_join(broker->timer_thread, NULL);
	if (broker->has_lock_waiter)
		pthread_join(broker->lock_waiter, NULL);
}

static int start_workers(struct bid_broker *broker)
{
	int r = 0;

	while (r == 0 && broker->n_workers < BID_COMMIT_WORKERS) {
		struct bid_commit_worker *worker = &broker->workers[broker->n_workers];

		worker->broker = broker;
		worker->largest = largest[broker->n_workers];
		r = bid_thread_start(&worker->thread, "bid-publish", bid_broker_run_worker, worker);
		broker->n_workers += r == 0;
	}
	return r;
}

static int start_threads(struct bid_broker *broker)
{
	int r = start_workers(broker);

	if (r == 0)
		r = bid_thread_start(&broker->timer_thread, "bid-time", bid_broker_run_timers, broker);
	broker->has_timer_thread = r == 0;
	if (r == 0)
		r = bid_thread_start(&broker->lock_waiter, "bid-lock-wait", bid_broker_run_lock_waiter, broker);
	broker->has_lock_waiter = r == 0;
	if (r < 0)
		stop_threads(broker);
	return r;
}

static void init_locks(struct bid_broker *broker)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&broker->lock, NULL);
	pthread_cond_init(&broker->has_job, NULL);
	pthread_cond_init(&broker->idle, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&broker->has_time, &monotonic);
	pthread_cond_init(&broker->has_lock_wait, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Free what is left when no thread is. */
static void release(struct bid_broker *broker)
{
	for (size_t i = 0; i < broker->n_sources; i++)
		broker->sources[i].source->ops->free(broker->sources[i].source);
	free(broker->sources);
	bid_responses_release(&broker->responses);
	bid_tickets_release(&broker->tickets);
	bid_negative_release(&broker->negative);
	bid_holds_free(broker->holds);
	pthread_cond_destroy(&broker->has_lock_wait);
	pthread_cond_destroy(&broker->has_time);
	pthread_cond_destroy(&broker->idle);
	pthread_cond_destroy(&broker->has_job);
	pthread_mutex_destroy(&broker->lock);
	free(broker);
}

int bid_broker_new(struct bid_store *store, const struct bid_broker_config *config, struct bid_broker **ret_broker)
{
	struct bid_broker *broker = calloc(1, sizeof(*broker));
	int r;

	if (!broker)
		return -ENOMEM;
	broker->store = store;
	broker->config = *config;
	if (config->hedge_ms == 0)
		broker->config.hedge_ms = BID_HEDGE_MS;
	TAILQ_INIT(&broker->downloads);
	TAILQ_INIT(&broker->jobs);
	TAILQ_INIT(&broker->lock_waits);
	init_locks(broker);

	r = bid_negative_init(&broker->negative, store);
	if (r == 0)
		r = bid_holds_new(store, &broker->holds);
	if (r == 0)
		r = start_threads(broker);
	if (r < 0) {
		release(broker);
		return r;
	}
	*ret_broker = broker;
	return 0;
}

int bid_broker_add_source(struct bid_broker *broker, struct bid_source *source)
{
	bool full = broker->n_sources == BID_CANDIDATES_MAX;
	struct bid_source_state *state = full ? NULL : reallocarray(broker->sources, broker->n_sources + 1, sizeof(*state));
	int r;

	if (full)
		return -E2BIG;
	if (!state)
		return -ENOMEM;
	broker->sources = state;
	state += broker->n_sources;
	*state = (struct bid_source_state){ .source = source, .stats = { .name = source->name } };
	r = bid_loop_init(&state->loop, broker->n_sources);
	if (r < 0)
		return r;
	broker->n_sources++;
	broker->sources_hold += bid_hold_source(source->name);
	return 0;
}

bool bid_broker_has_sources(const struct bid_broker *broker)
{
	return broker->n_sources > 0;
}

/* May a source be asked for @request? Not if there is nowhere to put what it delivers. */
static bool can_fetch(const struct bid_broker *broker, const struct bid_request *request)
{
	return broker->n_sources > 0 && bid_kind_fetchable(request->kind) && bid_store_writable(broker->store);
}

enum bid_outcome bid_broker_negative(struct bid_broker *broker, const struct bid_request *request, size_t source, unsigned *ret_ttl)
{
	const char *name = broker->sources[source].source->name;
	enum bid_outcome reason = bid_negative_lookup(&broker->negative, request, name, ret_ttl);
	struct bid_request whole = { .id = request->id };
	unsigned shortest = UINT_MAX, ttl;

	if (reason != BID_OUTCOME_NONE || !bid_kind_has_detail(request->kind))
		return reason;
	for (size_t i = 0; (whole.kind = bid_section_whole(i)) != BID_KIND_NONE; i++) {
		if (bid_negative_lookup(&broker->negative, &whole, name, &ttl) != BID_OUTCOME_ABSENT)
			return BID_OUTCOME_NONE;
		shortest = ttl < shortest ? ttl : shortest;
	}
	*ret_ttl = shortest;
	return BID_OUTCOME_ABSENT;
}

static bool is_too_large(struct bid_broker *broker, const struct bid_request *request)
{
	return !broker->config.no_negative &&
	       bid_negative_lookup(&broker->negative, request, BID_NEGATIVE_ALL, NULL) == BID_OUTCOME_TOO_LARGE;
}

/* For how many seconds is @request absent everywhere? 0 if anybody is to be asked. */
static unsigned absent_for(struct bid_broker *broker, const struct bid_request *request)
{
	unsigned shortest = UINT_MAX, ttl;

	if (broker->config.no_negative)
		return 0;
	for (size_t i = 0; i < broker->n_sources; i++) {
		if (bid_broker_negative(broker, request, i, &ttl) != BID_OUTCOME_ABSENT)
			return 0;
		shortest = ttl < shortest ? ttl : shortest;
	}
	return shortest;
}

/* Is a source to be asked for better debuginfo than a stripped one? */
static bool may_improve(struct bid_broker *broker, const struct bid_request *request)
{
	return can_fetch(broker, request) && !bid_broker_is_offline(broker) && !is_too_large(broker, request) &&
	       absent_for(broker, request) == 0;
}

int bid_broker_lookup(struct bid_broker *broker, const struct bid_request *request, struct bid_file *ret_file, unsigned *ret_ttl)
{
	unsigned ttl = 0;
	int r;

	if (!bid_request_valid(request))
		return -EINVAL;
	r = bid_store_find(broker->store, request, ret_file);
	if (r == 0 && ret_file->stripped && may_improve(broker, request)) {
		bid_file_release(ret_file);
		return -EINPROGRESS;
	}
	if (r == 0) {
		atomic_fetch_add_explicit(&broker->counts.hits, 1, memory_order_relaxed);
		bid_store_used(broker->store,
			       &(struct bid_request){ .id = request->id, .kind = ret_file->kind, .detail = request->detail });
	}
	/* the files that are here prove that there is no such section anywhere */
	if (r == -ENODATA) {
		if (ret_ttl)
			*ret_ttl = 0;
		return -ENOENT;
	}
	if (r != -ENOENT && !bid_is_unusable(r))
		return r;
	if (bid_loop_hear(broker, &request->id))
		return -ENOENT;
	if (can_fetch(broker, request)) {
		if (is_too_large(broker, request))
			return -EFBIG;
		ttl = absent_for(broker, request);
		if (ttl == 0)
			return bid_broker_is_offline(broker) ? -EHOSTUNREACH : -EINPROGRESS;
		r = -ENOENT;
	}
	if (r == -ENOENT && ret_ttl)
		*ret_ttl = ttl;
	return r;
}

int bid_broker_find(struct bid_broker *broker, const struct bid_request *request, struct bid_file *ret_file, unsigned *ret_ttl)
{
	int r = bid_broker_lookup(broker, request, ret_file, ret_ttl);

	if (r == -ENOENT)
		atomic_fetch_add_explicit(&broker->counts.absent, 1, memory_order_relaxed);
	else if (r == -EHOSTUNREACH)
		atomic_fetch_add_explicit(&broker->counts.unknown, 1, memory_order_relaxed);
	return r;
}

int bid_broker_ticket(struct bid_broker *broker, bid_broker_fn fn, void *user, uint64_t *ret_ticket)
{
	bid_auto_free struct bid_waiter *waiter = calloc(1, sizeof(*waiter));
	int r;

	if (!waiter)
		return -ENOMEM;
	waiter->fn = fn;
	waiter->user = user;

	pthread_mutex_lock(&broker->lock);
	r = broker->ending ? -EINTR : bid_tickets_add(&broker->tickets, waiter);
	if (r == 0) {
		*ret_ticket = waiter->ticket;
		bid_steal(waiter);
	}
	pthread_mutex_unlock(&broker->lock);
	return r;
}

/* The new waiter of @ticket, for bid_broker_fetch(); NULL if the ticket was used already. */
static struct bid_waiter *claim(struct bid_broker *broker, uint64_t ticket)
{
	struct bid_waiter *waiter;

	pthread_mutex_lock(&broker->lock);
	waiter = bid_tickets_get(&broker->tickets, ticket);
	if (waiter && waiter->state == BID_WAITER_NEW)
		waiter->state = BID_WAITER_BUSY;
	else
		waiter = NULL;
	pthread_mutex_unlock(&broker->lock);
	return waiter;
}

void bid_broker_submit(struct bid_broker *broker, struct bid_waiter *waiter, const struct bid_request *request)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_download *lead = NULL, *seen = NULL;
	uint64_t fetched = atomic_load(&broker->counts.fetched);
	int r = bid_broker_lookup(broker, request, &file, NULL);
	bool stale;

	pthread_mutex_lock(&broker->lock);
	/* another download may have published it since the look, and be gone: each counts before it goes */
	stale = atomic_load(&broker->counts.fetched) != fetched;
	if (waiter->cancelled || broker->ending)
		r = -EINTR;
	else if (r == -EINPROGRESS)
		r = bid_download_join(broker, request, waiter, &lead, &seen);
	if (r != -EINPROGRESS)
		bid_waiter_detach(broker, waiter);
	pthread_mutex_unlock(&broker->lock);

	if (lead)
		bid_download_lead(lead, stale);
	if (r == -EINPROGRESS)
		return;
	bid_waiter_answer(broker, waiter, r, &file, seen);
	if (seen)
		bid_download_put(seen);
}

void bid_broker_fetch(struct bid_broker *broker, uint64_t ticket, const struct bid_request *request)
{
	struct bid_waiter *waiter = claim(broker, ticket);
	int r = 0;

	if (!waiter) {
		bid_error("ticket used twice: '%llu'", (unsigned long long)ticket);
		return;
	}
	if (request->kind == BID_KIND_SECTION)
		r = bid_fallback_new(request, &waiter->fallback);
	/* one after the other, three downloads could be waited for: all of it is one wait */
	if (waiter->fallback && broker->config.wait_ms > 0)
		waiter->until_ms = bid_clock_ms() + broker->config.wait_ms;
	if (r == 0) {
		bid_broker_submit(broker, waiter, request);
		return;
	}
	pthread_mutex_lock(&broker->lock);
	bid_waiter_detach(broker, waiter);
	pthread_mutex_unlock(&broker->lock);
	bid_waiter_answer(broker, waiter, r, NULL, NULL);
}

void bid_broker_cancel(struct bid_broker *broker, uint64_t ticket)
{
	struct bid_cancel_list cancels = { 0 };
	struct bid_waiter *waiter;

	pthread_mutex_lock(&broker->lock);
	waiter = bid_tickets_get(&broker->tickets, ticket);
	if (waiter && waiter->state != BID_WAITER_QUEUED) {
		waiter->cancelled = true;
		waiter = NULL;
	}
	if (waiter) {
		struct bid_download *download = waiter->download;

		bid_download_leave(waiter);
		if (bid_download_abandoned(download))
			bid_download_cancel(download, &cancels);
	}
	pthread_mutex_unlock(&broker->lock);

	if (waiter)
		bid_waiter_answer(broker, waiter, -EINTR, NULL, NULL);
	bid_cancel_list_run(&cancels);
}

/* The one whose bytes are coming, or else that was asked last. Under the lock. */
static const struct bid_attempt *foremost(const struct bid_download *download)
{
	const struct bid_machine *machine = &download->machine;
	const struct bid_attempt *best = NULL;

	for (size_t i = 0; i < machine->n; i++) {
		const struct bid_attempt *attempt = machine->candidates[i].attempt;

		if (attempt && (!best || attempt->received > best->received ||
				(attempt->received == best->received && attempt->started_ms >= best->started_ms)))
			best = attempt;
	}
	return best;
}

/* Under the lock. */
static void describe(const struct bid_download *download, int64_t now, struct bid_progress *ret_progress)
{
	const struct bid_attempt *attempt = foremost(download);

	*ret_progress = (struct bid_progress){
		.received = attempt ? attempt->received : 0,
		.size = attempt ? attempt->size : BID_SIZE_UNKNOWN,
		.request = download->request,
		.waiters = download->n_waiters,
		.age_ms = (unsigned)(now - download->started_ms),
	};
	/* the download may be gone when the copy is read */
	ret_progress->request.detail = NULL;
	snprintf(ret_progress->detail, sizeof(ret_progress->detail), "%s", bid_detail_text(download->request.detail));
	if (attempt)
		snprintf(ret_progress->source, sizeof(ret_progress->source), "%s",
			 download->broker->sources[attempt->source].source->name);
}

int bid_broker_progress(struct bid_broker *broker, uint64_t ticket, struct bid_progress *ret_progress)
{
	struct bid_waiter *waiter;
	int r = -ENOENT;

	pthread_mutex_lock(&broker->lock);
	waiter = bid_tickets_get(&broker->tickets, ticket);
	if (waiter && waiter->download) {
		describe(waiter->download, bid_clock_ms(), ret_progress);
		r = 0;
	}
	pthread_mutex_unlock(&broker->lock);
	return r;
}

void bid_broker_each_download(struct bid_broker *broker, int (*fn)(void *user, const struct bid_progress *progress), void *user)
{
	bid_auto_free struct bid_progress *copies = NULL;
	struct bid_download *download;
	int64_t now = bid_clock_ms();
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	copies = calloc(broker->n_downloads + 1, sizeof(*copies));
	for (download = TAILQ_FIRST(&broker->downloads); copies && download; download = TAILQ_NEXT(download, link))
		describe(download, now, &copies[n++]);
	pthread_mutex_unlock(&broker->lock);

	if (!copies)
		bid_warning("out of memory: downloads in flight are not listed");
	for (size_t i = 0; i < n; i++)
		if (fn(user, &copies[i]) != 0)
			return;
}

/* A download that bid_broker_free() has not ended yet, or NULL. Under the lock. */
static struct bid_download *still_wanted(struct bid_broker *broker)
{
	struct bid_download *download = TAILQ_FIRST(&broker->downloads);

	while (download && download->n_waiters == 0 && !bid_machine_is_cancellable(&download->machine))
		download = TAILQ_NEXT(download, link);
	return download;
}

/* Answer every waiter and cancel every transfer, then wait until the last has ended. */
static void end_downloads(struct bid_broker *broker)
{
	struct bid_download *download;

	pthread_mutex_lock(&broker->lock);
	broker->ending = true;
	while ((download = still_wanted(broker))) {
		struct bid_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
		struct bid_cancel_list cancels = { 0 };

		bid_download_take_waiters(download, &waiters);
		bid_download_cancel(download, &cancels);
		bid_download_ref(download);
		pthread_mutex_unlock(&broker->lock);

		bid_download_answer(download, &waiters, -EINTR, NULL);
		bid_cancel_list_run(&cancels);

		pthread_mutex_lock(&broker->lock);
		bid_download_unref(download);
	}
	while (broker->n_downloads > 0 || broker->n_attempts > 0)
		pthread_cond_wait(&broker->idle, &broker->lock);
	bid_download_end_lingering(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
}

/* Nobody may be left without an answer, also who never came to use his ticket. */
static void end_tickets(struct bid_broker *broker)
{
	struct bid_waiter *waiter;
	uint32_t cursor = 0;

	do {
		pthread_mutex_lock(&broker->lock);
		waiter = bid_tickets_next(&broker->tickets, &cursor);
		if (waiter)
			bid_tickets_take(&broker->tickets, waiter);
		pthread_mutex_unlock(&broker->lock);
		if (waiter)
			bid_waiter_answer(broker, waiter, -EINTR, NULL, NULL);
	} while (waiter);
}

void bid_broker_free(struct bid_broker *broker)
{
	if (!broker)
		return;
	end_downloads(broker);
	stop_threads(broker);
	end_tickets(broker);
	release(broker);
}
