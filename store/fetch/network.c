// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/network.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "fetch/judge.h"

#define BACKOFF_MS     200
#define BACKOFF_MAX_MS 2000
#define LOOK_AGAIN_MS  50 /* for what became of the one that tries again for others */

/* Tell the receiver the end of @transfer, which is in no queue any more. False if the server may be gone: it was its last. */
static bool finish(struct bid_transfer *transfer)
{
	struct bid_server *server = transfer->server;
	struct bid_fetch *fetch = server->fetch;
	const struct bid_response *response = &transfer->response;
	struct bid_answer answer = {
		.outcome = transfer->judgement.outcome,
		.text = transfer->judgement.text,
		.url = transfer->shown,
		.file = response->file[0] ? response->file : NULL,
		.archive = response->archive[0] ? response->archive : NULL,
		.size = bid_response_has_artifact(response) ? bid_response_size(response) : BID_SIZE_UNKNOWN,
		.ima_signature = response->ima_signature[0] ? response->ima_signature : NULL,
		.modified = bid_transfer_modified(transfer),
		.retry_after_s = (unsigned)transfer->retry_after_s,
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
	return !last;
}

/* Give the free turns of @server to those that wait for one. */
static void dispatch(struct bid_server *server)
{
	struct bid_fetch *fetch = server->fetch;
	int64_t now = bid_clock_ms();
	struct bid_transfer *transfer;

	while (server->running < fetch->config.parallel && now >= server->rest_until) {
		bool admitted;

		transfer = TAILQ_FIRST(&server->waiting);
		if (!transfer)
			return;
		admitted = bid_server_admits(server, transfer, now);
		if (!admitted && transfer->judgement.outcome == BID_OUTCOME_NONE)
			return;
		TAILQ_REMOVE(&server->waiting, transfer, queue);
		if (admitted) {
			TAILQ_INSERT_TAIL(&fetch->active, transfer, queue);
			transfer->place = BID_PLACE_ACTIVE;
			server->running++;
			bid_transfer_begin(transfer);
		} else if (!finish(transfer)) {
			return;
		}
	}
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

/* Let @transfer rest before another try. False if there is to be none. */
static bool rest(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	int64_t at = bid_clock_ms() + backoff(fetch, transfer, transfer->retry_after_s);

	/* a probe is one request, and no more */
	if (!transfer->judgement.retry || transfer->probe || transfer->tries > fetch->config.retries)
		return false;
	if (transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S || at >= transfer->ends_at)
		return false;
	/* it keeps its turn: a server in trouble is not to be asked more, and one that asks for a rest not at all */
	if (transfer->retry_after_s > 0)
		transfer->server->rest_until = at;
	transfer->phase = BID_PHASE_RESTING;
	transfer->deadline = at;
	return true;
}

/* There will be no more tries of @transfer. */
static void end(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_server *server = transfer->server;

	TAILQ_REMOVE(&fetch->active, transfer, queue);
	server->running--;
	if (finish(transfer))
		dispatch(server);
}

/* A try of @transfer is over and judged. */
static void conclude(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_judgement *judgement = &transfer->judgement;
	struct bid_server *server = transfer->server;

	bid_server_note_try(server, transfer);
	transfer->retry_after_s = judgement->sign == BID_SIGN_BAD ? bid_transfer_retry_after(transfer) : 0;
	bid_transfer_stop(transfer);
	if (rest(fetch, transfer))
		return;
	bid_server_note_end(server, transfer, bid_clock_ms());
	if (transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S) {
		size_t len = strlen(judgement->text);

		snprintf(judgement->text + len, sizeof(judgement->text) - len, " (it wants to be left alone for %lld s)",
			 (long long)transfer->retry_after_s);
	}
	end(fetch, transfer);
}

/* The rest of @transfer is over. */
static void try_again(struct bid_fetch *fetch, struct bid_transfer *transfer, int64_t now)
{
	struct bid_server *server = transfer->server;

	/* what else there is to it is for the next try to know */
	transfer->judgement.outcome = BID_OUTCOME_NONE;
	if (now >= transfer->ends_at) {
		bid_judge_deadline(transfer, now);
		conclude(fetch, transfer);
		return;
	}
	if (bid_server_readmits(server, transfer, now)) {
		bid_transfer_begin(transfer);
		dispatch(server);
	} else if (transfer->judgement.outcome != BID_OUTCOME_NONE) {
		end(fetch, transfer);
	} else {
		transfer->deadline = now + LOOK_AGAIN_MS;
	}
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
		if (bid_transfer_follow(transfer))
			continue;
		bid_judge_end(transfer, code);
		conclude(fetch, transfer);
	}
}

static void expire(struct bid_fetch *fetch)
{
	int64_t now = bid_clock_ms();
	struct bid_transfer *transfer, *next;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, queue);
		if (transfer->deadline > now)
			continue;
		if (transfer->phase == BID_PHASE_RESTING) {
			try_again(fetch, transfer, now);
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
			/* whose end of the rest would have been noticed by this one */
			if (transfer->phase == BID_PHASE_RESTING)
				transfer->server->rest_until = 0;
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
		struct bid_server *server = transfer->server;

		TAILQ_REMOVE(&cancelled, transfer, queue);
		bid_transfer_stop(transfer);
		transfer->judgement = (struct bid_judgement){ .outcome = BID_OUTCOME_CANCELLED, .text = "cancelled" };
		bid_server_note_end(server, transfer, bid_clock_ms());
		if (finish(transfer))
			dispatch(server);
	}
}

static int wait_ms(const struct bid_fetch *fetch)
{
	int64_t now = bid_clock_ms(), wait = INT_MAX;
	const struct bid_transfer *transfer;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer; transfer = TAILQ_NEXT(transfer, queue))
		if (transfer->deadline - now < wait)
			wait = transfer->deadline - now;
	return wait > 0 ? (int)wait : 0;
}

void *bid_network_main(void *argument)
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
