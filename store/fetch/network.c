// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/network.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "fetch/judge.h"

#define CONNECT_MS		5000
#define FIRST_BYTE_MS		30000
#define STALL_MS		5000
#define PARALLEL		6
#define IDLE_CONNECTIONS	16L
#define BACKOFF_MS		200
#define BACKOFF_MAX_MS		2000
#define RETRY_AFTER_MAX_S	10	/* whoever wants to be left alone for longer is, and the request ends */

static void dispatch(struct bid_server *server)
{
	struct bid_fetch *fetch = server->fetch;

	while (server->running < fetch->config.parallel) {
		struct bid_transfer *transfer = TAILQ_FIRST(&server->waiting);

		if (!transfer)
			return;
		TAILQ_REMOVE(&server->waiting, transfer, queue);
		TAILQ_INSERT_TAIL(&fetch->active, transfer, queue);
		transfer->place = BID_PLACE_ACTIVE;
		server->running++;
		bid_transfer_begin(transfer);
	}
}

/* Tell the receiver the end of @transfer, which is in no queue any more. */
static void finish(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_server *server = transfer->server;
	const struct bid_response *response = &transfer->response;
	struct bid_answer answer = {
		.outcome = transfer->judgement.outcome,
		.text = transfer->judgement.text,
		.url = transfer->shown,
		.file = response->file[0] ? response->file : NULL,
		.archive = response->archive[0] ? response->archive : NULL,
		.size = response->status == 200 ? bid_response_size(response) : BID_SIZE_UNKNOWN,
		.ima_signature = response->ima_signature[0] ? response->ima_signature : NULL,
		.modified = bid_transfer_modified(transfer),
	};
	bool last;

	transfer->receiver.done(transfer->user, &answer);

	pthread_mutex_lock(&fetch->lock);
	TAILQ_REMOVE(&fetch->live, transfer, live);
	last = --server->live == 0;
	if (last)
		pthread_cond_broadcast(&fetch->settled);
	pthread_mutex_unlock(&fetch->lock);

	bid_transfer_free(transfer);
	/* after its last transfer the server may be gone */
	if (!last)
		dispatch(server);
}

static int64_t backoff(struct bid_fetch *fetch, const struct bid_transfer *transfer, int64_t retry_after)
{
	int64_t base = BACKOFF_MS, delay;

	for (unsigned try = 1; try < transfer->tries && base < BACKOFF_MAX_MS; try++)
		base *= 2;
	/* between one and one and a half of it, so that clients who failed together do not come back together */
	delay = base + rand_r(&fetch->seed) % (base / 2);
	if (delay > BACKOFF_MAX_MS)
		delay = BACKOFF_MAX_MS;
	return delay > retry_after * 1000 ? delay : retry_after * 1000;
}

/* A try of @transfer is over and judged. */
static void conclude(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_judgement *judgement = &transfer->judgement;
	int64_t retry_after = judgement->retry ? bid_transfer_retry_after(transfer) : 0;

	bid_transfer_stop(transfer);
	if (judgement->retry && transfer->tries <= fetch->config.retries && retry_after <= RETRY_AFTER_MAX_S) {
		/* it keeps its turn: a server in trouble is not to be asked more */
		transfer->phase = BID_PHASE_RESTING;
		transfer->deadline = bid_transfer_clock() + backoff(fetch, transfer, retry_after);
		return;
	}
	if (retry_after > RETRY_AFTER_MAX_S) {
		size_t len = strlen(judgement->text);

		snprintf(judgement->text + len, sizeof(judgement->text) - len, " (to be asked again in %lld s)",
			 (long long)retry_after);
	}
	TAILQ_REMOVE(&fetch->active, transfer, queue);
	transfer->server->running--;
	finish(fetch, transfer);
}

/* The transfers that libcurl has ended. */
static void reap(struct bid_fetch *fetch)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(fetch->multi, &left))) {
		CURLcode code = message->data.result;
		struct bid_transfer *transfer;
		char *private;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		transfer = (void *)private;
		bid_judge_end(transfer, code);
		conclude(fetch, transfer);
	}
}

static void expire(struct bid_fetch *fetch)
{
	int64_t now = bid_transfer_clock();
	struct bid_transfer *transfer, *next;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, queue);
		if (transfer->deadline > now)
			continue;
		if (transfer->phase == BID_PHASE_RESTING) {
			bid_transfer_begin(transfer);
			continue;
		}
		bid_judge_deadline(transfer, now);
		if (transfer->judgement.outcome != BID_OUTCOME_NONE)
			conclude(fetch, transfer);
	}
}

/* Put the transfers that other threads have started in line. False if it is time to stop. */
static bool collect(struct bid_fetch *fetch)
{
	struct bid_transfer_list arrivals = TAILQ_HEAD_INITIALIZER(arrivals);
	struct bid_transfer *transfer;
	bool stopping;

	pthread_mutex_lock(&fetch->lock);
	TAILQ_CONCAT(&arrivals, &fetch->arrivals, queue);
	stopping = fetch->stopping;
	pthread_mutex_unlock(&fetch->lock);

	while ((transfer = TAILQ_FIRST(&arrivals))) {
		TAILQ_REMOVE(&arrivals, transfer, queue);
		TAILQ_INSERT_TAIL(&transfer->server->waiting, transfer, queue);
		transfer->place = BID_PLACE_WAITING;
		dispatch(transfer->server);
	}
	return !stopping;
}

/* Move those that are marked to @cancelled. Under the lock. */
static void take_cancelled(struct bid_fetch *fetch, struct bid_transfer_list *cancelled)
{
	struct bid_transfer *transfer;

	if (!fetch->cancelling)
		return;
	fetch->cancelling = false;
	for (transfer = TAILQ_FIRST(&fetch->live); transfer; transfer = TAILQ_NEXT(transfer, live)) {
		if (!transfer->cancelled)
			continue;
		if (transfer->place == BID_PLACE_ARRIVED) {
			/* since collect(): the next round is for it */
			fetch->cancelling = true;
			continue;
		}
		if (transfer->place == BID_PLACE_ACTIVE) {
			TAILQ_REMOVE(&fetch->active, transfer, queue);
			transfer->server->running--;
		} else {
			TAILQ_REMOVE(&transfer->server->waiting, transfer, queue);
		}
		TAILQ_INSERT_TAIL(cancelled, transfer, queue);
	}
}

static void cancel(struct bid_fetch *fetch)
{
	struct bid_transfer_list cancelled = TAILQ_HEAD_INITIALIZER(cancelled);
	struct bid_transfer *transfer;

	pthread_mutex_lock(&fetch->lock);
	take_cancelled(fetch, &cancelled);
	pthread_mutex_unlock(&fetch->lock);

	while ((transfer = TAILQ_FIRST(&cancelled))) {
		TAILQ_REMOVE(&cancelled, transfer, queue);
		bid_transfer_stop(transfer);
		transfer->judgement = (struct bid_judgement){ .outcome = BID_OUTCOME_CANCELLED, .text = "cancelled" };
		finish(fetch, transfer);
	}
}

static int wait_ms(const struct bid_fetch *fetch)
{
	int64_t now = bid_transfer_clock(), wait = INT_MAX;
	const struct bid_transfer *transfer;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer; transfer = TAILQ_NEXT(transfer, queue))
		if (transfer->deadline - now < wait)
			wait = transfer->deadline - now;
	return wait > 0 ? (int)wait : 0;
}

static void *network_main(void *argument)
{
	struct bid_fetch *fetch = argument;
	int running;

	while (collect(fetch)) {
		cancel(fetch);
		curl_multi_perform(fetch->multi, &running);
		reap(fetch);
		expire(fetch);
		/* whatever came meanwhile has left a wake-up, so this does not sleep over it */
		curl_multi_poll(fetch->multi, NULL, 0, wait_ms(fetch), NULL);
	}
	return NULL;
}

void bid_network_submit(struct bid_fetch *fetch, struct bid_transfer *transfer, uint64_t *ret_number)
{
	pthread_mutex_lock(&fetch->lock);
	transfer->number = ++fetch->last_number;
	*ret_number = transfer->number;
	transfer->server->live++;
	TAILQ_INSERT_TAIL(&fetch->live, transfer, live);
	TAILQ_INSERT_TAIL(&fetch->arrivals, transfer, queue);
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
}

/* Under the lock. */
static void mark_cancelled(struct bid_server *server, uint64_t number)
{
	struct bid_transfer *transfer;

	for (transfer = TAILQ_FIRST(&server->fetch->live); transfer; transfer = TAILQ_NEXT(transfer, live)) {
		if (transfer->server != server || (number && transfer->number != number))
			continue;
		transfer->cancelled = true;
		server->fetch->cancelling = true;
		if (number)
			return;
	}
}

void bid_network_cancel(struct bid_server *server, uint64_t number)
{
	struct bid_fetch *fetch = server->fetch;

	pthread_mutex_lock(&fetch->lock);
	mark_cancelled(server, number);
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
}

void bid_network_drain(struct bid_server *server)
{
	struct bid_fetch *fetch = server->fetch;

	pthread_mutex_lock(&fetch->lock);
	mark_cancelled(server, 0);
	curl_multi_wakeup(fetch->multi);
	while (server->live)
		pthread_cond_wait(&fetch->settled, &fetch->lock);
	pthread_mutex_unlock(&fetch->lock);
}

static void apply_defaults(struct bid_fetch_config *config)
{
	if (!config->connect_ms)
		config->connect_ms = CONNECT_MS;
	if (!config->first_byte_ms)
		config->first_byte_ms = FIRST_BYTE_MS;
	if (!config->stall_ms)
		config->stall_ms = STALL_MS;
	if (!config->parallel)
		config->parallel = PARALLEL;
}

/* Signals are for the threads of the program: one that ended up here would interrupt nothing that anybody waits for. */
static int start_thread(struct bid_fetch *fetch)
{
	sigset_t all, saved;
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &saved);
	if (r)
		return -r;
	r = pthread_create(&fetch->thread, NULL, network_main, fetch);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	if (r)
		return -r;
	pthread_setname_np(fetch->thread, "bid-network");
	return 0;
}

static void release(struct bid_fetch *fetch)
{
	curl_multi_cleanup(fetch->multi);
	pthread_cond_destroy(&fetch->settled);
	pthread_mutex_destroy(&fetch->lock);
	free(fetch);
	curl_global_cleanup();
}

int bid_fetch_new(const struct bid_fetch_config *config, struct bid_fetch **ret_fetch)
{
	struct bid_fetch *fetch;
	int r;

	/* counted by libcurl, which since 7.84 takes a lock of its own for it; what it initialises below, OpenSSL, is as careful */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	fetch->config = *config;
	apply_defaults(&fetch->config);
	fetch->seed = (unsigned)bid_transfer_clock() ^ (unsigned)getpid();
	pthread_mutex_init(&fetch->lock, NULL);
	pthread_cond_init(&fetch->settled, NULL);
	TAILQ_INIT(&fetch->arrivals);
	TAILQ_INIT(&fetch->live);
	TAILQ_INIT(&fetch->active);

	fetch->multi = curl_multi_init();
	r = fetch->multi ? 0 : -ENOMEM;
	if (r == 0) {
		curl_multi_setopt(fetch->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
		curl_multi_setopt(fetch->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
		r = start_thread(fetch);
	}
	if (r < 0) {
		release(fetch);
		return r;
	}
	*ret_fetch = fetch;
	return 0;
}

void bid_fetch_free(struct bid_fetch *fetch)
{
	if (!fetch)
		return;
	pthread_mutex_lock(&fetch->lock);
	fetch->stopping = true;
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
	pthread_join(fetch->thread, NULL);
	release(fetch);
}
