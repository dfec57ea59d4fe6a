// SPDX-License-Identifier: LGPL-2.1-or-later
/* The interface of the broker: start and end, waiters and their calls, progress, offline, refresh. lookup.c looks up. */
#include "broker/broker_types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/download_lock.h"
#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "broker/download.h"

static void init_locks(struct bid_broker *broker)
{
	pthread_mutex_init(&broker->lock, NULL);
	for (unsigned i = 0; i < BID_DISK_WORKERS; i++)
		pthread_cond_init(&broker->workers[i].has_job, NULL);
	pthread_cond_init(&broker->idle, NULL);
	bid_cond_init(&broker->has_time);
}

/* Free the broker after its threads. */
static void broker_free(struct bid_broker *broker)
{
	for (size_t i = 0; i < broker->n_servers; i++)
		broker->servers[i].server->ops->free(broker->servers[i].server);
	free(broker->servers);
	bid_broker_drop_reports(broker);
	bid_negative_free(broker->negative);
	bid_download_locks_free(broker->download_locks);
	pthread_cond_destroy(&broker->has_time);
	pthread_cond_destroy(&broker->idle);
	for (unsigned i = 0; i < BID_DISK_WORKERS; i++)
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
		r = bid_broker_start_threads(broker);
	if (r < 0) {
		broker_free(broker);
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
		r = bid_self_request_init(&state->loop);
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
		bid_download_answer_waiters(download, BID_EVENT_CANCEL, -EINTR);
	while (broker->n_downloads > 0 || broker->n_attempts > 0)
		pthread_cond_wait(&broker->idle, &broker->lock);
	bid_download_drop_kept(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
}

/* Answer the waiters that were never used, too. */
static void end_waiters(struct bid_broker *broker)
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
	bid_broker_stop_threads(broker);
	end_waiters(broker);
	broker_free(broker);
}

bool bid_broker_has_servers(const struct bid_broker *broker)
{
	return broker->n_servers > 0;
}

int bid_broker_new_waiter(struct bid_broker *broker, bid_broker_fn fn, void *user, uint64_t *ret_waiter_id)
{
	bid_auto_free struct bid_waiter *waiter = calloc(1, sizeof(*waiter));
	bool ending;

	if (!waiter)
		return -ENOMEM;
	waiter->fn = fn;
	waiter->user = user;

	pthread_mutex_lock(&broker->lock);
	ending = broker->ending;
	if (!ending) {
		waiter->id = *ret_waiter_id = ++broker->last_waiter_id;
		TAILQ_INSERT_TAIL(&broker->waiters, waiter, all);
		bid_steal(waiter);
	}
	pthread_mutex_unlock(&broker->lock);
	return ending ? -EINTR : 0;
}

/* Returns the waiter with the id @waiter_id, or NULL. Under the lock. */
static struct bid_waiter *find_waiter(struct bid_broker *broker, uint64_t waiter_id)
{
	/* from the newest: an id is used at once, and rarely cancelled */
	struct bid_waiter *waiter = TAILQ_LAST(&broker->waiters, bid_waiters);

	while (waiter && waiter->id > waiter_id)
		waiter = TAILQ_PREV(waiter, bid_waiters, all);
	return waiter && waiter->id == waiter_id ? waiter : NULL;
}

void bid_broker_cancel(struct bid_broker *broker, uint64_t waiter_id)
{
	struct bid_waiter *waiter;

	pthread_mutex_lock(&broker->lock);
	waiter = find_waiter(broker, waiter_id);
	if (waiter && waiter->state != BID_WAITER_QUEUED) {
		waiter->cancelled = true;
		waiter = NULL;
	}
	if (waiter)
		bid_waiter_leave(waiter, false);
	pthread_mutex_unlock(&broker->lock);

	if (waiter)
		bid_waiter_answer(broker, waiter, -EINTR, NULL, NULL);
}

/* Returns the new waiter with the id @waiter_id, or NULL for a used one. */
static struct bid_waiter *take_new_waiter(struct bid_broker *broker, uint64_t waiter_id)
{
	struct bid_waiter *waiter;

	pthread_mutex_lock(&broker->lock);
	waiter = find_waiter(broker, waiter_id);
	if (waiter && waiter->state == BID_WAITER_NEW)
		waiter->state = BID_WAITER_BUSY;
	else
		waiter = NULL;
	pthread_mutex_unlock(&broker->lock);
	return waiter;
}

void bid_broker_fetch(struct bid_broker *broker, uint64_t waiter_id, const struct bid_artifact *artifact)
{
	struct bid_waiter *waiter = take_new_waiter(broker, waiter_id);

	if (waiter)
		bid_broker_submit(broker, waiter, artifact);
	else
		bid_error("waiter id used twice: '%llu'", (unsigned long long)waiter_id);
}

/* Returns the attempt with a body, or the last one. Under the lock. */
static const struct bid_attempt *foremost_attempt(const struct bid_download *download)
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
static void describe_download(const struct bid_download *download, int64_t now, struct bid_progress *ret_progress)
{
	const struct bid_attempt *attempt = foremost_attempt(download);

	*ret_progress = (struct bid_progress){
		.received = attempt ? attempt->received : 0,
		.size = attempt ? attempt->size : BID_SIZE_UNKNOWN,
		.artifact = download->artifact,
		.waiters = download->n_waiters,
		.age_ms = (unsigned)(now - download->started_ms),
	};
	/* the download may be freed before the reader uses the copy */
	ret_progress->artifact.subpath = NULL;
	snprintf(ret_progress->subpath, sizeof(ret_progress->subpath), "%s", bid_subpath_text(download->artifact.subpath));
	if (attempt)
		snprintf(ret_progress->server, sizeof(ret_progress->server), "%s", attempt->from->server->name);
}

int bid_broker_progress(struct bid_broker *broker, uint64_t waiter_id, struct bid_progress *ret_progress)
{
	struct bid_waiter *waiter;
	int r = -ENOENT;

	pthread_mutex_lock(&broker->lock);
	waiter = find_waiter(broker, waiter_id);
	if (waiter && waiter->download) {
		const struct bid_download *whole = waiter->download->whole_file.waiter.download;

		describe_download(whole ? whole : waiter->download, bid_clock_ms(), ret_progress);
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
		if (!download->whole_file.waiter.download)
			describe_download(download, now, &copies[n++]);
	pthread_mutex_unlock(&broker->lock);

	if (!copies)
		bid_warning("out of memory: downloads in flight are not listed");
	for (size_t i = 0; i < n; i++)
		if (fn(user, &copies[i]) != 0)
			return;
}

bool bid_broker_is_offline(const struct bid_broker *broker)
{
	return atomic_load(&broker->offline);
}

/* Cancel all requests in the queues of servers. */
static void end_unsent(struct bid_broker *broker)
{
	struct bid_download *download;

	pthread_mutex_lock(&broker->lock);
	for (download = TAILQ_FIRST(&broker->downloads); download; download = TAILQ_NEXT(download, link))
		bid_download_step_locked(download, BID_EVENT_OFFLINE, BID_NO_CANDIDATE);
	pthread_mutex_unlock(&broker->lock);
}

/* Drop kept results, and close the breakers: earlier failures may be those of another network. */
static void start_anew(struct bid_broker *broker)
{
	pthread_mutex_lock(&broker->lock);
	bid_download_drop_kept(broker, NULL);
	pthread_mutex_unlock(&broker->lock);
	for (size_t i = 0; i < broker->n_servers; i++)
		broker->servers[i].server->ops->note_check(broker->servers[i].server, true, "");
}

void bid_broker_set_offline(struct bid_broker *broker, bool offline)
{
	atomic_store(&broker->offline, offline);
	if (offline)
		end_unsent(broker);
	else
		start_anew(broker);
}

static void refresh_artifact(struct bid_broker *broker, const struct bid_artifact *artifact, bool accept)
{
	for (size_t i = 0; i < broker->n_servers; i++)
		bid_negative_forget(broker->negative, artifact, broker->servers[i].server->name);
	bid_negative_forget(broker->negative, artifact, BID_NEGATIVE_ALL);
	if (accept)
		bid_store_forget_digest(broker->store, artifact);
	/* late readers must not get a kept result */
	pthread_mutex_lock(&broker->lock);
	bid_download_drop_kept(broker, artifact);
	pthread_mutex_unlock(&broker->lock);
}

int bid_broker_refresh(struct bid_broker *broker, const struct bid_artifact *artifact, bool accept)
{
	struct bid_artifact one = { .id = artifact->id };

	if (artifact->kind != BID_KIND_NONE && artifact->kind != BID_KIND_UNSTRIPPED) {
		if (!bid_artifact_valid(artifact) || !bid_kind_fetchable(artifact->kind))
			return -EINVAL;
		refresh_artifact(broker, artifact, accept);
		/* the absence of the build includes its parts */
		if (!bid_kind_has_subpath(artifact->kind))
			return 0;
		accept = false;
	}
	if (artifact->id.len == 0)
		return -EINVAL;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		one.kind = (enum bid_kind)kind;
		if (bid_kind_fetchable(one.kind))
			refresh_artifact(broker, &one, accept);
	}
	return 0;
}
