// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trouble.h"
#include "broker/request.h"

/* no seed: downloads are few and short-lived */
static struct bid_download **bucket(struct bid_broker *broker, const struct bid_request *request)
{
	return &broker->buckets[bid_request_hash(request, 0) % BID_DOWNLOAD_BUCKETS];
}

static struct bid_download *find(struct bid_broker *broker, const struct bid_request *request)
{
	struct bid_download *download = *bucket(broker, request);

	while (download && !bid_request_equal(&download->request, request))
		download = download->next;
	return download;
}

static void download_free(struct bid_download *download)
{
	for (size_t i = 0; i < download->n_reports; i++)
		if (download->responses[i])
			bid_response_unref(download->responses[i]);
	bid_request_release(&download->request);
	free(download->responses);
	free(download->machine.candidates);
	free(download);
}

static struct bid_download *download_new(struct bid_broker *broker, const struct bid_request *request)
{
	size_t max_reports = broker->n_sources * (1 + BID_FALLBACKS_MAX);
	struct bid_download *download = calloc(1, sizeof(*download) + max_reports * sizeof(*download->reports));
	struct bid_download **at = bucket(broker, request);

	if (!download)
		return NULL;
	download->max_reports = max_reports;
	download->winner = BID_NO_CANDIDATE;
	download->responses = calloc(max_reports, sizeof(struct bid_kept_response *));
	download->machine.candidates = calloc(broker->n_sources, sizeof(*download->machine.candidates));
	if (!download->responses || !download->machine.candidates) {
		download_free(download);
		return NULL;
	}
	download->broker = broker;
	download->request = bid_request_keep(request);
	download->started_ms = bid_clock_ms();
	download->machine.max_parallel = 1;
	download->timer = (struct bid_timer){ .kind = BID_TIMER_DOWNLOAD, .user = download };
	download->hedge = (struct bid_timer){ .kind = BID_TIMER_HEDGE, .user = download };
	download->refs = 1;
	TAILQ_INIT(&download->waiters);

	download->next = *at;
	*at = download;
	download->joinable = true;
	TAILQ_INSERT_TAIL(&broker->downloads, download, link);
	broker->n_downloads++;
	return download;
}

void bid_download_ref(struct bid_download *download)
{
	download->refs++;
}

void bid_download_unref(struct bid_download *download)
{
	if (--download->refs > 0)
		return;
	download_free(download);
}

void bid_download_put(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
	pthread_mutex_unlock(&broker->lock);
}

void bid_download_retire(struct bid_download *download)
{
	struct bid_download **at = bucket(download->broker, &download->request);

	if (!download->joinable)
		return;
	while (*at != download)
		at = &(*at)->next;
	*at = download->next;
	download->joinable = false;
}

bool bid_download_abandoned(const struct bid_download *download)
{
	return download->n_waiters == 0 && !download->timed_out;
}

void bid_broker_arm(struct bid_broker *broker, struct bid_timer *timer, int64_t at_ms)
{
	bid_timer_arm(&broker->timers, timer, at_ms);
	if (broker->timers.first == timer)
		pthread_cond_signal(&broker->has_time);
}

static void open_window(struct bid_download *download, int64_t now)
{
	struct bid_broker *broker = download->broker;

	download->until_ms = now + broker->config.wait_ms;
	bid_broker_arm(broker, &download->timer, download->until_ms);
}

/* May a new waiter wait for @download? */
static bool admit(struct bid_download *download, int64_t now)
{
	if (download->broker->config.wait_ms == 0)
		return true;
	if (now < download->until_ms)
		return true;
	/* the waiters of an ended window must not wait for a new one */
	if (download->n_waiters > 0 || now < download->until_ms + BID_WINDOW_GRACE)
		return false;
	open_window(download, now);
	return true;
}

void bid_download_queue(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;

	if (download->has_turn)
		return;
	download->has_turn = true;
	bid_download_ref(download);
	TAILQ_INSERT_TAIL(&broker->turns, download, turn);
	pthread_cond_broadcast(&broker->has_job);
}

void bid_fallback_answer(struct bid_download *download, int answer, const struct bid_download *whole)
{
	struct bid_fallback *fallback = &download->fallback;

	fallback->first_report = download->n_reports;
	if (whole)
		bid_download_take_reports(download, whole);
	fallback->answered = true;
	fallback->answer = answer;
	bid_download_queue(download);
}

static void queue(struct bid_download *download, struct bid_waiter *waiter)
{
	waiter->state = BID_WAITER_QUEUED;
	waiter->download = download;
	download->had_waiter |= waiter->fn || waiter->fallback_of;
	TAILQ_INSERT_TAIL(&download->waiters, waiter, link);
	download->n_waiters++;
	*(waiter->fallback_of ? &download->broker->n_fallbacks : &download->broker->n_waiting) += 1;
}

int bid_download_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		      struct bid_download **ret_new, struct bid_download **ret_seen)
{
	int64_t now = bid_clock_ms();
	struct bid_download *download = find(broker, request);
	int error;

	if (download && download->machine.state == BID_DOWNLOAD_ENDED && now >= download->until_ms) {
		bid_download_expire(download);
		download = NULL;
	}
	/* no attempt is left to start, but one may end late */
	if (download && download->machine.state == BID_DOWNLOAD_GIVEN_UP && now >= download->until_ms + BID_WINDOW_GRACE) {
		bid_download_retire(download);
		download = NULL;
	}
	if (!download) {
		download = download_new(broker, request);
		if (!download)
			return -ENOMEM;
		if (broker->config.wait_ms > 0)
			open_window(download, now);
		queue(download, waiter);
		bid_download_ref(download);
		*ret_new = download;
		return -EINPROGRESS;
	}

	if (download->machine.state == BID_DOWNLOAD_ENDED) {
		error = download->error;
	} else if (admit(download, now)) {
		queue(download, waiter);
		return -EINPROGRESS;
	} else {
		download->timed_out = true;
		error = -ETIMEDOUT;
	}
	bid_download_ref(download);
	*ret_seen = download;
	return error;
}

void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter)
{
	if (waiter->handle)
		bid_handles_take(&broker->handles, waiter);
}

void bid_download_leave(struct bid_waiter *waiter)
{
	struct bid_download *download = waiter->download;

	TAILQ_REMOVE(&download->waiters, waiter, link);
	waiter->download = NULL;
	download->n_waiters--;
	*(waiter->fallback_of ? &download->broker->n_fallbacks : &download->broker->n_waiting) -= 1;
	bid_waiter_detach(download->broker, waiter);
}

void bid_download_take_waiters(struct bid_download *download, struct bid_waiters *waiters)
{
	struct bid_waiter *waiter;

	while ((waiter = TAILQ_FIRST(&download->waiters))) {
		bid_download_leave(waiter);
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

static void report(struct bid_broker *broker, struct bid_waiter *waiter, struct bid_result *result)
{
	if (waiter->fn) {
		count_answer(broker, result->error);
		if (result->error)
			result->file = NULL;
		waiter->fn(waiter->user, result);
	}
	bid_file_release(&waiter->stripped);
	free(waiter);
}

void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download)
{
	struct bid_result result = { .error = error, .file = file };

	/* no source delivered */
	if (error < 0 && error != -EINTR && waiter->stripped.fd >= 0)
		result = (struct bid_result){ .file = &waiter->stripped };
	if (waiter->fallback_of) {
		pthread_mutex_lock(&broker->lock);
		bid_fallback_answer(waiter->fallback_of, error, download);
		pthread_mutex_unlock(&broker->lock);
		return;
	}
	if (download) {
		result.reports = download->reports;
		result.n_reports = download->n_reports;
		result.waited_ms = download->lock_wait.waited_ms;
	}
	report(broker, waiter, &result);
}

void bid_download_answer(struct bid_download *download, struct bid_waiters *waiters, int error, struct bid_file *file)
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
		bid_waiter_answer(download->broker, waiter, r, &own, download);
	}
}

void bid_download_finish(struct bid_download *download, int error, struct bid_waiters *waiters)
{
	struct bid_broker *broker = download->broker;

	bid_timer_disarm(&download->timer);
	bid_download_take_waiters(download, waiters);
	TAILQ_REMOVE(&broker->downloads, download, link);
	broker->n_downloads--;
	download->machine.state = BID_DOWNLOAD_ENDED;
	download->error = error;

	if (error == 0 || !download->joinable || broker->ending) {
		bid_download_retire(download);
		bid_download_unref(download);
	} else {
		download->until_ms = bid_clock_ms() + BID_DOWNLOAD_TTL_MS;
		bid_broker_arm(broker, &download->timer, download->until_ms);
	}
	if (broker->n_downloads == 0)
		pthread_cond_broadcast(&broker->idle);
}

void bid_download_expire(struct bid_download *download)
{
	bid_timer_disarm(&download->timer);
	bid_download_retire(download);
	bid_download_unref(download);
}

void bid_download_expire_ended(struct bid_broker *broker, const struct bid_request *request)
{
	struct bid_download *download, *next;

	for (size_t i = 0; i < BID_DOWNLOAD_BUCKETS; i++)
		for (download = broker->buckets[i]; download; download = next) {
			next = download->next;
			if (download->machine.state == BID_DOWNLOAD_ENDED &&
			    (!request || bid_request_equal(&download->request, request)))
				bid_download_expire(download);
		}
}
