// SPDX-License-Identifier: LGPL-2.1-or-later
/* Start and end of a broker and its threads. */
#include <errno.h>
#include <stdlib.h>

#include "api/download_lock.h"
#include "base/thread.h"
#include "broker/source_cycle.h"
#include "broker/scheduler.h"

static const uint64_t largest[BID_COMMIT_WORKERS] = { 0, 16 << 20, UINT64_MAX - 1, UINT64_MAX };

static void stop_threads(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->stopping = true;
	pthread_cond_broadcast(&broker->has_job);
	pthread_cond_broadcast(&broker->has_time);
	pthread_mutex_unlock(&broker->lock);
	for (unsigned i = 0; i < broker->n_workers; i++)
		pthread_join(broker->workers[i].thread, NULL);
	if (broker->has_timer_thread)
		pthread_join(broker->timer_thread, NULL);
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
	pthread_condattr_destroy(&monotonic);
}

/* Free the broker after its threads. */
static void release(struct bid_broker *broker)
{
	for (size_t i = 0; i < broker->n_sources; i++)
		broker->sources[i].source->ops->free(broker->sources[i].source);
	free(broker->sources);
	bid_responses_release(&broker->responses);
	bid_handles_release(&broker->handles);
	bid_negative_release(&broker->negative);
	bid_download_locks_free(broker->download_locks);
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
	TAILQ_INIT(&broker->turns);
	init_locks(broker);

	r = bid_negative_init(&broker->negative, store);
	if (r == 0)
		r = bid_download_locks_new(store, &broker->download_locks);
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
	int r = full ? -E2BIG : -ENOMEM;

	if (state) {
		broker->sources = state;
		state += broker->n_sources;
		*state = (struct bid_source_state){ .source = source, .stats = { .name = source->name } };
		r = bid_cycle_init(&state->cycle, broker->n_sources);
	}
	if (r < 0) {
		source->ops->free(source);
		return r;
	}
	broker->n_sources++;
	broker->sources_hash += bid_download_lock_source(source->name);
	return 0;
}

/* Returns a download that bid_broker_free() has not ended, or NULL. Under the lock. */
static struct bid_download *still_wanted(struct bid_broker *broker)
{
	struct bid_download *download = TAILQ_FIRST(&broker->downloads);

	while (download && download->n_waiters == 0 && !bid_machine_is_cancellable(&download->machine))
		download = TAILQ_NEXT(download, link);
	return download;
}

/* Answer all waiters, cancel all transfers, and wait for their ends. */
static void end_downloads(struct bid_broker *broker)
{
	struct bid_download *download;

	pthread_mutex_lock(&broker->lock);
	broker->ending = true;
	while ((download = still_wanted(broker)))
		bid_scheduler_dismiss(download, BID_EVENT_CANCEL, -EINTR);
	while (broker->n_downloads > 0 || broker->n_attempts > 0)
		pthread_cond_wait(&broker->idle, &broker->lock);
	bid_download_expire_ended(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
}

/* Answer the waiters of unused request handles, too. */
static void end_handles(struct bid_broker *broker)
{
	struct bid_waiter *waiter;
	uint32_t cursor = 0;

	do {
		pthread_mutex_lock(&broker->lock);
		waiter = bid_handles_next(&broker->handles, &cursor);
		if (waiter)
			bid_handles_take(&broker->handles, waiter);
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
	end_handles(broker);
	release(broker);
}
