// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads of a broker: disk workers, because a commit waits for the disk, and the thread of a server must not; and the timer
 * thread.
 */
#include <time.h>

#include "base/clock.h"
#include "base/process.h"
#include "broker/download.h"

void bid_broker_arm(struct bid_broker *broker, struct bid_timer *timer, int64_t at_ms)
{
	bid_timer_arm(&broker->timers, timer, at_ms);
	if (broker->timers.first == timer)
		pthread_cond_signal(&broker->has_time);
}

/* Returns the first job for @worker, or NULL: a download has one commit at a time. Under the lock. */
static struct bid_job *next_job(const struct bid_disk_worker *worker)
{
	struct bid_job *job;

	for (job = TAILQ_FIRST(&worker->broker->jobs); job; job = TAILQ_NEXT(job, link))
		if (job->size <= worker->max_size && !(job->commits && job->download->committing))
			return job;
	return NULL;
}

/* Wake the smallest idle worker with a job. Under the lock. */
static void wake_worker(struct bid_broker *broker)
{
	for (unsigned i = 0; i < BID_DISK_WORKERS; i++) {
		struct bid_disk_worker *worker = &broker->workers[i];

		if (!worker->idle || !next_job(worker))
			continue;
		worker->idle = false;
		pthread_cond_signal(&worker->has_job);
		return;
	}
}

void bid_broker_queue(struct bid_broker *broker, struct bid_job *job, uint64_t size)
{
	job->size = size;
	if (!job->queued)
		TAILQ_INSERT_TAIL(&broker->jobs, job, link);
	job->queued = true;
	wake_worker(broker);
}

static void *run_worker(void *user)
{
	struct bid_disk_worker *worker = user;
	struct bid_broker *broker = worker->broker;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_job *job = next_job(worker);

		worker->idle = !job;
		if (!job) {
			pthread_cond_wait(&worker->has_job, &broker->lock);
			continue;
		}
		TAILQ_REMOVE(&broker->jobs, job, link);
		job->queued = false;
		job->run(job);
		/* the end of a commit may leave another one to a larger worker */
		wake_worker(broker);
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

/* largest job of each worker */
static const uint64_t max_sizes[BID_DISK_WORKERS] = { 0, 16 << 20, BID_JOB_DERIVATION, BID_JOB_EVICTION };

void bid_broker_stop_threads(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	broker->stopping = true;
	for (unsigned i = 0; i < BID_DISK_WORKERS; i++)
		pthread_cond_signal(&broker->workers[i].has_job);
	pthread_cond_broadcast(&broker->has_time);
	pthread_mutex_unlock(&broker->lock);
	for (unsigned i = 0; i < broker->n_workers; i++)
		pthread_join(broker->workers[i].thread, NULL);
	pthread_join(broker->timer_thread, NULL);
}

int bid_broker_start_threads(struct bid_broker *broker)
{
	int r = bid_thread_start(&broker->timer_thread, "bid-timer", run_timers, broker);

	if (r < 0)
		return r;
	while (r == 0 && broker->n_workers < BID_DISK_WORKERS) {
		struct bid_disk_worker *worker = &broker->workers[broker->n_workers];

		worker->broker = broker;
		worker->max_size = max_sizes[broker->n_workers];
		r = bid_thread_start(&worker->thread, "bid-disk", run_worker, worker);
		broker->n_workers += r == 0;
	}
	if (r < 0)
		bid_broker_stop_threads(broker);
	return r;
}
