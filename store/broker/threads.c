// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Start and end of a broker, and its threads: commit workers, because a commit waits for the disk, and the thread of a server must
 * not; and the timer thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "api/download_lock.h"
#include "base/clock.h"
#include "base/thread.h"
#include "broker/download.h"
#include "broker/request_loop.h"

/* Poll the lock of @download, or start or end its fallback. Under the lock, which is released meanwhile. */
static void run_download(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	bool polls = download->lock_wait.polls;

	download->lock_wait.polls = false;
	if (polls)
		bid_timer_disarm(&download->start_timer);
	pthread_mutex_unlock(&broker->lock);
	if (polls)
		bid_download_poll(download);
	else
		bid_fallback_run(download);
	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

static void *run_worker(void *user)
{
	struct bid_commit_worker *worker = user;
	struct bid_broker *broker = worker->broker;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_job *job = bid_broker_next_job(worker);

		worker->idle = !job;
		if (!job) {
			pthread_cond_wait(&worker->has_job, &broker->lock);
			continue;
		}
		TAILQ_REMOVE(&broker->jobs, job, link);
		job->queued = false;
		if (job->attempt)
			bid_attempt_run(job->attempt);
		else
			run_download(job->download);
		/* the end of a commit may leave another one to a larger worker */
		bid_broker_wake_worker(broker);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_time, &broker->lock, &deadline);
}

static void *run_timers(void *user)
{
	struct bid_broker *broker = user;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_timer *timer = broker->timers.first;

		if (!timer)
			pthread_cond_wait(&broker->has_time, &broker->lock);
		else if (timer->at_ms > bid_clock_ms())
			sleep_until(broker, timer->at_ms);
		else {
			bid_timer_disarm(timer);
			timer->expire(timer->user);
		}
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}

static const uint64_t largest[BID_COMMIT_WORKERS] = { 0, 16 << 20, UINT64_MAX - 1, UINT64_MAX };

static void stop_threads(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->stopping = true;
	for (unsigned i = 0; i < BID_COMMIT_WORKERS; i++)
		pthread_cond_signal(&broker->workers[i].has_job);
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
		r = bid_thread_start(&worker->thread, "bid-commit", run_worker, worker);
		broker->n_workers += r == 0;
	}
	return r;
}

static int start_threads(struct bid_broker *broker)
{
	int r = start_workers(broker);

	if (r == 0)
		r = bid_thread_start(&broker->timer_thread, "bid-time", run_timers, broker);
	broker->has_timer_thread = r == 0;
	if (r < 0)
		stop_threads(broker);
	return r;
}

static void init_locks(struct bid_broker *broker)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&broker->lock, NULL);
	for (unsigned i = 0; i < BID_COMMIT_WORKERS; i++)
		pthread_cond_init(&broker->workers[i].has_job, NULL);
	pthread_cond_init(&broker->idle, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&broker->has_time, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Free the broker after its threads. */
static void release(struct bid_broker *broker)
{
	for (size_t i = 0; i < broker->n_servers; i++)
		broker->servers[i].server->ops->free(broker->servers[i].server);
	free(broker->servers);
	bid_recent_responses_release(&broker->responses);
	bid_negative_free(broker->negative);
	bid_download_locks_free(broker->download_locks);
	pthread_cond_destroy(&broker->has_time);
	pthread_cond_destroy(&broker->idle);
	for (unsigned i = 0; i < BID_COMMIT_WORKERS; i++)
		pthread_cond_destroy(&broker->workers[i].has_job);
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
	TAILQ_INIT(&broker->waiters);
	TAILQ_INIT(&broker->downloads);
	TAILQ_INIT(&broker->jobs);
	init_locks(broker);

	r = bid_negative_new(store, &broker->negative);
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

int bid_broker_add_server(struct bid_broker *broker, struct bid_server *server)
{
	bool full = broker->n_servers == BID_CANDIDATES_MAX;
	struct bid_server_state *state = full ? NULL : reallocarray(broker->servers, broker->n_servers + 1, sizeof(*state));
	int r = full ? -E2BIG : -ENOMEM;

	if (state) {
		broker->servers = state;
		state += broker->n_servers;
		*state = (struct bid_server_state){ .server = server, .stats = { .name = server->name } };
		r = bid_loop_init(&state->loop, broker->n_servers);
	}
	if (r < 0) {
		server->ops->free(server);
		return r;
	}
	broker->n_servers++;
	broker->servers_hash += bid_download_lock_server(server->name);
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
		bid_download_dismiss(download, BID_EVENT_CANCEL, -EINTR);
	while (broker->n_downloads > 0 || broker->n_attempts > 0)
		pthread_cond_wait(&broker->idle, &broker->lock);
	bid_download_expire_ended(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
}

/* Answer the waiters of unused request handles, too. */
static void end_handles(struct bid_broker *broker)
{
	struct bid_waiter *waiter;

	/* the other threads have ended */
	while ((waiter = TAILQ_FIRST(&broker->waiters))) {
		bid_waiter_detach(broker, waiter);
		bid_waiter_answer(broker, waiter, -EINTR, NULL, NULL);
	}
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
