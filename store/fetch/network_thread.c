// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/network_thread.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/signature.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "fetch/classify.h"

#define IDLE_CONNECTIONS 16L

#define BACKOFF_MS	  200
#define BACKOFF_MAX_MS	  2000
#define PROGRESS_MIN	  (64 * 1024) /* bytes of a request that count as progress, or this fraction of the whole: */
#define PROGRESS_ATTEMPTS 64
#define LOOK_AGAIN_MS	  50 /* between two looks at the end of a pause */
#define TREE_SOCKETS_MAX  256 /* the ready ones of others wait for the next wake-up */

/* Report the end of @transfer to its receiver. */
static void report_end(struct bid_transfer *transfer)
{
	const struct bid_response *response = &transfer->response;
	/* other statuses may be temporary */
	bool lasting = response->status == 400 || response->status == 403;
	bid_auto_free char *url = bid_fetch_url_shown(transfer->url), *redirect = bid_transfer_redirect(transfer);
	struct bid_server_report final = {
		.outcome = transfer->end.outcome,
		.not_sent = transfer->requests == 0,
		.lasting = lasting,
		.text = transfer->end.text,
		.url = url,
		.redirect = redirect,
		.requests = transfer->requests,
		.before = transfer->before[0] ? transfer->before : NULL,
		.file = response->file[0] ? response->file : NULL,
		.archive = response->archive[0] ? response->archive : NULL,
		.ima_signature = response->ima_signature[0] ? response->ima_signature : NULL,
		.modified = response->modified,
	};

	transfer->receiver.done(transfer->user, &final);
}

/*
 * Report the end of @transfer, and free it. @transfer is in no queue. Returns false for the last transfer of its server, because
 * the server may be freed then.
 */
static bool finish_transfer(struct bid_transfer *transfer)
{
	struct bid_http_server *server = transfer->server;
	struct bid_fetch *fetch = server->fetch;
	bool last;

	report_end(transfer);
	pthread_mutex_lock(&fetch->lock);
	TAILQ_REMOVE(&fetch->live, transfer, live);
	if (transfer->order != BID_TRANSFER_NO_ORDER)
		TAILQ_REMOVE(&fetch->orders, transfer, ordered);
	last = --server->live == 0;
	if (last) {
		bid_timer_disarm(&server->alarm);
		pthread_cond_broadcast(&fetch->drained);
	}
	pthread_mutex_unlock(&fetch->lock);

	bid_transfer_free(transfer);
	return !last;
}

static void begin_transfer(struct bid_transfer *transfer)
{
	struct bid_http_server *server = transfer->server;

	TAILQ_INSERT_TAIL(&server->fetch->active, transfer, queue);
	server->running++;
	bid_http_server_note_start(server, transfer, bid_clock_ms());
	if (transfer->receiver.sent)
		transfer->receiver.sent(transfer->user);
	bid_transfer_begin(transfer);
}

/* Begin or refuse the queued transfers of a server, up to its limit or its Retry-After. */
static void dispatch_queue(void *user)
{
	struct bid_http_server *server = user;
	int64_t now = bid_clock_ms();
	struct bid_transfer *transfer;

	bid_timer_disarm(&server->alarm);
	server->alarm = (struct bid_timer){ .expire = dispatch_queue, .user = server };
	while ((transfer = TAILQ_FIRST(&server->waiting))) {
		bool refused = bid_http_server_refuses(server, transfer, now);

		if (!refused && server->running >= server->fetch->config.parallel)
			return;
		if (!refused && server->retry_after_until > now) {
			bid_timer_arm(&server->fetch->timers, &server->alarm, server->retry_after_until);
			return;
		}
		TAILQ_REMOVE(&server->waiting, transfer, queue);
		if (!refused)
			begin_transfer(transfer);
		else if (!finish_transfer(transfer))
			return;
	}
}

static int64_t backoff_ms(struct bid_fetch *fetch, const struct bid_transfer *transfer, int64_t retry_after)
{
	int64_t base = BACKOFF_MS, delay;

	for (unsigned n = 1; n < transfer->counted && base < BACKOFF_MAX_MS; n++)
		base *= 2;
	/* leave room for jitter, also for the longest backoff */
	if (base > BACKOFF_MAX_MS * 2 / 3)
		base = BACKOFF_MAX_MS * 2 / 3;
	/* jitter up to one half: clients that failed together retry apart */
	delay = base + rand_r(&fetch->seed) % (base / 2);
	if (delay > BACKOFF_MAX_MS)
		delay = BACKOFF_MAX_MS;
	return delay > retry_after * 1000 ? delay : retry_after * 1000;
}

/*
 * Did the request add to a resumed body? The sum of such requests is complete in the end, even from a server that cuts every
 * connection.
 */
static bool has_progress(const struct bid_transfer *transfer)
{
	uint64_t offset = transfer->resume.offset, size = transfer->resume.size;

	if (offset == 0 || transfer->response.status != 206 || transfer->received <= offset)
		return false;
	return transfer->received - offset >= PROGRESS_MIN || transfer->received - offset >= size / PROGRESS_ATTEMPTS;
}

/* Back off before a retry of @transfer. Returns false without one. */
static bool plan_retry(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	int64_t now = bid_clock_ms(), at = now + backoff_ms(fetch, transfer, transfer->retry_after_s);

	/* a request with progress does not count */
	if (has_progress(transfer))
		transfer->counted = 1;
	bid_transfer_plan_resume(transfer);
	/* a trial is one request, without a retry */
	if (!transfer->end.retry || transfer->trial || transfer->counted > fetch->config.retries)
		return false;
	if (transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S || at >= transfer->ends_at)
		return false;
	/* the transfer still counts against `parallel`, and Retry-After delays all other requests to the server */
	if (transfer->retry_after_s > 0 && transfer->server->retry_after_until < at)
		transfer->server->retry_after_until = at;
	/* an error page is no part of the body */
	if (transfer->state == BID_TRANSFER_BODY && bid_response_has_artifact(&transfer->response) && transfer->receiver.broke_off)
		transfer->receiver.broke_off(transfer->user);
	memcpy(transfer->before, transfer->end.text, sizeof(transfer->before));
	transfer->state = BID_TRANSFER_BACKOFF;
	bid_transfer_set_deadline(transfer, at);
	return true;
}

/* End @transfer after its last request. */
static void end_transfer(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_http_server *server = transfer->server;

	TAILQ_REMOVE(&fetch->active, transfer, queue);
	server->running--;
	if (finish_transfer(transfer))
		dispatch_queue(server);
}

/* Act on the end of a request. */
static void end_request(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_transfer_end *end = &transfer->end;
	struct bid_http_server *server = transfer->server;

	transfer->retry_after_s = end->health == BID_HEALTH_BAD ? bid_transfer_retry_after(transfer) : 0;
	bid_transfer_stop(transfer);
	if (plan_retry(fetch, transfer))
		return;
	bid_http_server_note_end(server, transfer, bid_clock_ms());
	if (transfer->retry_after_s > BID_RETRY_AFTER_WAIT_S) {
		size_t len = strlen(end->text);

		snprintf(end->text + len, sizeof(end->text) - len, " (Retry-After: %lld s)", (long long)transfer->retry_after_s);
	}
	end_transfer(fetch, transfer);
}

/* Retry @transfer after its backoff. */
static void retry_transfer(struct bid_fetch *fetch, struct bid_transfer *transfer, int64_t now)
{
	struct bid_http_server *server = transfer->server;

	/* clear the outcome alone: the next request needs the other fields */
	transfer->end.outcome = BID_OUTCOME_NONE;
	if (now >= transfer->ends_at) {
		bid_classify_deadline(transfer, now);
		end_request(fetch, transfer);
		return;
	}
	if (transfer->paused) {
		/* the receiver gets no call before it resumes the transfer */
		bid_transfer_set_deadline(transfer, now + LOOK_AGAIN_MS);
	} else if (now < server->retry_after_until) {
		/* another transfer got a Retry-After in the meantime */
		bid_transfer_set_deadline(transfer, server->retry_after_until);
	} else if (bid_http_server_refuses(server, transfer, now)) {
		end_transfer(fetch, transfer);
	} else {
		bid_http_server_note_start(server, transfer, now);
		bid_transfer_begin(transfer);
	}
}

/* Continue a body that its receiver paused. */
static void resume_body(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	CURLcode code;

	transfer->paused = false;
	if (transfer->state != BID_TRANSFER_BODY)
		return;
	bid_transfer_set_deadline(transfer, bid_clock_ms() + fetch->config.stall_ms);
	if (!transfer->easy)
		return;
	code = curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
	if (code == CURLE_OK && transfer->end.outcome == BID_OUTCOME_NONE)
		return;
	bid_classify_end(transfer, code);
	end_request(fetch, transfer);
}

static void cancel_transfer(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	struct bid_http_server *server = transfer->server;

	if (transfer->state == BID_TRANSFER_QUEUED) {
		TAILQ_REMOVE(&server->waiting, transfer, queue);
	} else if (transfer->state != BID_TRANSFER_ARRIVED) {
		TAILQ_REMOVE(&fetch->active, transfer, queue);
		server->running--;
	}
	bid_transfer_stop(transfer);
	transfer->end = (struct bid_transfer_end){ .outcome = BID_OUTCOME_CANCELLED, .text = "cancelled" };
	bid_http_server_note_end(server, transfer, bid_clock_ms());
	if (finish_transfer(transfer))
		dispatch_queue(server);
}

/* Handle the transfers that libcurl has ended. */
static void reap_transfers(struct bid_fetch *fetch)
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
		bid_classify_end(transfer, code);
		end_request(fetch, transfer);
	}
}

/* Take what the file:// trees have sent. */
static void read_trees(struct bid_fetch *fetch)
{
	struct bid_transfer *transfer, *next;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer; transfer = next) {
		next = TAILQ_NEXT(transfer, queue);
		if (bid_transfer_read_tree(transfer))
			end_request(fetch, transfer);
	}
}

static int wait_ms(const struct bid_fetch *fetch)
{
	int64_t wait = fetch->timers.first ? fetch->timers.first->at_ms - bid_clock_ms() : INT_MAX;

	return wait < 0 ? 0 : wait < INT_MAX ? (int)wait : INT_MAX;
}

/* Sleep until something is to do. A wake-up by another thread lasts. */
static void sleep_until_ready(struct bid_fetch *fetch)
{
	struct curl_waitfd fds[TREE_SOCKETS_MAX];
	const struct bid_transfer *transfer;
	unsigned n = 0;

	for (transfer = TAILQ_FIRST(&fetch->active); transfer && n < TREE_SOCKETS_MAX; transfer = TAILQ_NEXT(transfer, queue))
		if (transfer->fd >= 0 && !transfer->paused)
			fds[n++] = (struct curl_waitfd){ .fd = transfer->fd, .events = CURL_WAIT_POLLIN };
	curl_multi_poll(fetch->multi, fds, n, wait_ms(fetch), NULL);
}

/* Act on the deadline of a transfer. */
static void expire_transfer(void *user)
{
	struct bid_transfer *transfer = user;
	struct bid_fetch *fetch = transfer->server->fetch;
	int64_t now = bid_clock_ms();

	if (transfer->state == BID_TRANSFER_BACKOFF) {
		retry_transfer(fetch, transfer, now);
		return;
	}
	bid_transfer_time_out(transfer, now);
	/* a late transfer continues, but the breaker may refuse queued ones */
	if (transfer->end.outcome != BID_OUTCOME_NONE)
		end_request(fetch, transfer);
	else
		dispatch_queue(transfer->server);
}

/* Handle the deadlines and alarms before @now. */
static void expire_deadlines(struct bid_fetch *fetch, int64_t now)
{
	struct bid_timer *timer;

	while ((timer = fetch->timers.first) && timer->at_ms <= now) {
		bid_timer_disarm(timer);
		timer->expire(timer->user);
	}
}

static void queue_transfer(struct bid_transfer *transfer)
{
	TAILQ_INSERT_TAIL(&transfer->server->waiting, transfer, queue);
	transfer->state = BID_TRANSFER_QUEUED;
	transfer->deadline = (struct bid_timer){ .expire = expire_transfer, .user = transfer };
	dispatch_queue(transfer->server);
}

/* Take the next order. Returns its transfer, or NULL without one. */
static struct bid_transfer *take_order(struct bid_fetch *fetch, enum bid_transfer_order *ret_order)
{
	struct bid_transfer *transfer;

	pthread_mutex_lock(&fetch->lock);
	transfer = TAILQ_FIRST(&fetch->orders);
	if (transfer) {
		TAILQ_REMOVE(&fetch->orders, transfer, ordered);
		*ret_order = transfer->order;
		transfer->order = BID_TRANSFER_NO_ORDER;
	}
	pthread_mutex_unlock(&fetch->lock);
	return transfer;
}

static void carry_out_orders(struct bid_fetch *fetch)
{
	enum bid_transfer_order order;
	struct bid_transfer *transfer;

	while ((transfer = take_order(fetch, &order))) {
		if (order == BID_TRANSFER_CANCEL)
			cancel_transfer(fetch, transfer);
		else if (order == BID_TRANSFER_RESUME)
			resume_body(fetch, transfer);
		else
			queue_transfer(transfer);
	}
}

/* Run the network thread of @argument, a struct bid_fetch, until fetch->stopping. */
static void *run_network(void *argument)
{
	struct bid_fetch *fetch = argument;
	int running;

	while (!fetch->stopping) {
		int64_t now;

		carry_out_orders(fetch);
		/* a receiver may have blocked on its disk: bytes that arrived in that time are read before a deadline counts */
		now = bid_clock_ms();
		curl_multi_perform(fetch->multi, &running);
		reap_transfers(fetch);
		read_trees(fetch);
		expire_deadlines(fetch, now);
		sleep_until_ready(fetch);
	}
	return NULL;
}

static void fetch_free(struct bid_fetch *fetch)
{
	curl_multi_cleanup(fetch->multi);
	curl_easy_cleanup(fetch->template);
	curl_slist_free_all(fetch->secrets);
	bid_signers_free(fetch->signers);
	pthread_cond_destroy(&fetch->drained);
	pthread_mutex_destroy(&fetch->lock);
	free(fetch);
	curl_global_cleanup();
}

static int start_fetch(struct bid_fetch *fetch)
{
	int r;

	bid_fetch_apply_defaults(&fetch->config);
	r = bid_fetch_read_headers(fetch->config.headers_file, &fetch->secrets);
	if (r == 0)
		r = bid_transfer_make_template(&fetch->config, &fetch->template);
	if (r < 0)
		return r;
	fetch->multi = curl_multi_init();
	if (!fetch->multi)
		return -ENOMEM;
	curl_multi_setopt(fetch->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	return bid_thread_start(&fetch->thread, "bid-network", run_network, fetch);
}

int bid_fetch_new(const struct bid_fetch_config *config, struct bid_fetch **ret_fetch)
{
	struct bid_fetch *fetch;
	int r;

	/* libcurl counts the calls, and locks since 7.84 */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	fetch->seed = (unsigned)bid_clock_ms() ^ (unsigned)getpid();
	pthread_mutex_init(&fetch->lock, NULL);
	pthread_cond_init(&fetch->drained, NULL);
	TAILQ_INIT(&fetch->orders);
	TAILQ_INIT(&fetch->live);
	TAILQ_INIT(&fetch->active);

	fetch->config = *config;
	r = start_fetch(fetch);
	if (r < 0) {
		fetch_free(fetch);
		return r;
	}
	*ret_fetch = fetch;
	return 0;
}

void bid_fetch_free(struct bid_fetch *fetch)
{
	if (!fetch)
		return;
	fetch->stopping = true;
	curl_multi_wakeup(fetch->multi);
	pthread_join(fetch->thread, NULL);
	fetch_free(fetch);
}
