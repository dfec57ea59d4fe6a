// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/lock_waiter.h"

#include <errno.h>
#include <time.h>

#include "api/hold.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/scheduler.h"

#define LOOK_MS 50 /* between two attempts at all locks */
#define REST	10 /* or this many times the duration of an attempt, if longer */
#define WAIT_MS 30000 /* limit, after which both processes download: the holder may be stopped */

/* Take the lock. Any error but -EBUSY starts the download without the lock. */
static int take(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	int r;

	download->lock_wait.key = bid_hold_key(&download->request, broker->sources_hold);
	r = bid_holds_take(broker->holds, download->lock_wait.key);
	if (r < 0)
		return r;
	pthread_mutex_lock(&broker->lock);
	download->lock_wait.holds = true;
	pthread_mutex_unlock(&broker->lock);
	return 0;
}

static bool may_start(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;

	if (take(download) != -EBUSY)
		return true;
	download->lock_wait.since_ms = bid_clock_ms();
	pthread_mutex_lock(&broker->lock);
	TAILQ_INSERT_TAIL(&broker->lock_waits, download, lock_wait.link);
	broker->n_lock_waits++;
	pthread_cond_signal(&broker->has_lock_wait);
	pthread_mutex_unlock(&broker->lock);
	return false;
}

void bid_download_lead(struct bid_download *download, bool look)
{
	if (may_start(download))
		bid_scheduler_start(download, look || download->lock_wait.holds);
}

/* Returns the limit of the wait: a part of the readers' wait, because the download needs the rest. */
static int64_t limit_of(const struct bid_broker *broker)
{
	unsigned half = broker->config.wait_ms / 2;

	return half > 0 && half < WAIT_MS ? half : WAIT_MS;
}

static bool still_busy(struct bid_download *download)
{
	char name[BID_NAME_MAX];

	if (take(download) != -EBUSY)
		return false;
	if (bid_clock_ms() - download->lock_wait.since_ms < limit_of(download->broker))
		return true;
	bid_info("another process has not fetched it in time, fetched here too: '%s'", bid_request_name(&download->request, name));
	return false;
}

/* Under the lock, which is released meanwhile. */
static void try(struct bid_broker *broker, struct bid_download *download)
{
	bool over = download->machine.state != BID_DOWNLOAD_NEW || broker->ending || bid_download_abandoned(download);

	TAILQ_REMOVE(&broker->lock_waits, download, lock_wait.link);
	pthread_mutex_unlock(&broker->lock);
	over = over || !still_busy(download);
	pthread_mutex_lock(&broker->lock);
	if (!over) {
		TAILQ_INSERT_TAIL(&broker->lock_waits, download, lock_wait.link);
		return;
	}
	download->lock_wait.waited_ms = (unsigned)(bid_clock_ms() - download->lock_wait.since_ms);
	broker->n_lock_waits--;
	pthread_mutex_unlock(&broker->lock);
	bid_scheduler_start(download, true);
	pthread_mutex_lock(&broker->lock);
}

/* Try all locks. Returns the time of the next call. */
static int64_t try_all(struct bid_broker *broker)
{
	int64_t begun = bid_clock_ms(), now, pause;

	for (size_t left = broker->n_lock_waits; left > 0 && !TAILQ_EMPTY(&broker->lock_waits); left--)
		try(broker, TAILQ_FIRST(&broker->lock_waits));
	now = bid_clock_ms();
	pause = (now - begun) * REST;
	return now + (pause > LOOK_MS ? pause : LOOK_MS);
}

static void sleep_until(struct bid_broker *broker, int64_t ms)
{
	struct timespec deadline = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	pthread_cond_timedwait(&broker->has_lock_wait, &broker->lock, &deadline);
}

void *bid_broker_run_lock_waiter(void *user)
{
	struct bid_broker *broker = user;
	int64_t try_at = 0;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		if (TAILQ_EMPTY(&broker->lock_waits))
			pthread_cond_wait(&broker->has_lock_wait, &broker->lock);
		else if (try_at <= bid_clock_ms())
			try_at = try_all(broker);
		else
			sleep_until(broker, try_at);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
