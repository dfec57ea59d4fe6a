// SPDX-License-Identifier: LGPL-2.1-or-later
/* The making of an HTTP server, and the calls of the broker: other threads order, and the network thread carries out. */
#include "fetch/http_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <curl/curl.h>

#include "api/signature.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fetch/file_tree.h"
#include "fetch/network_thread.h"
#include "fetch/url.h"

static struct bid_http_server *http_of(struct bid_server *server)
{
	return (struct bid_http_server *)server;
}

/* Give @transfer an @order, unless it has a greater one. Under the lock; the network thread is to be woken. */
static void order_one(struct bid_transfer *transfer, enum bid_transfer_order order)
{
	if (transfer->order == BID_TRANSFER_NO_ORDER)
		TAILQ_INSERT_TAIL(&transfer->server->fetch->orders, transfer, ordered);
	if (transfer->order < order)
		transfer->order = order;
}

/* Hand @transfer over to the network thread. */
static void hand_over(struct bid_fetch *fetch, struct bid_transfer *transfer)
{
	pthread_mutex_lock(&fetch->lock);
	transfer->server->live++;
	TAILQ_INSERT_TAIL(&fetch->live, transfer, live);
	order_one(transfer, BID_TRANSFER_START);
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
}

/* Set the order of the transfer of @user, or of all with @user NULL. Under the lock. */
static void set_order(struct bid_http_server *http, const void *user, enum bid_transfer_order order)
{
	struct bid_transfer *transfer;

	/* an ended transfer may have had the same @user */
	for (transfer = TAILQ_FIRST(&http->fetch->live); transfer; transfer = TAILQ_NEXT(transfer, live))
		if (transfer->server == http && (!user || transfer->user == user))
			order_one(transfer, order);
}

/* Set the order of the transfer of @user. */
static void order_transfer(struct bid_http_server *http, const void *user, enum bid_transfer_order order)
{
	struct bid_fetch *fetch = http->fetch;

	pthread_mutex_lock(&fetch->lock);
	set_order(http, user, order);
	pthread_mutex_unlock(&fetch->lock);
	curl_multi_wakeup(fetch->multi);
}

/* Cancel all transfers of @http, and block until their done() have returned. Deadlocks on the network thread. */
static void drain_server(struct bid_http_server *http)
{
	struct bid_fetch *fetch = http->fetch;

	pthread_mutex_lock(&fetch->lock);
	set_order(http, NULL, BID_TRANSFER_CANCEL);
	curl_multi_wakeup(fetch->multi);
	while (http->live)
		pthread_cond_wait(&fetch->drained, &fetch->lock);
	pthread_mutex_unlock(&fetch->lock);
}

static int server_request(struct bid_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
			  void *user)
{
	struct bid_http_server *http = http_of(server);
	struct bid_transfer *transfer;
	int r;

	r = bid_transfer_new(http, artifact, receiver, user, &transfer);
	if (r < 0)
		return r;
	hand_over(http->fetch, transfer);
	return 0;
}

static void server_cancel(struct bid_server *server, const void *user)
{
	order_transfer(http_of(server), user, BID_TRANSFER_CANCEL);
}

static void server_resume(struct bid_server *server, const void *user)
{
	order_transfer(http_of(server), user, BID_TRANSFER_RESUME);
}

static void server_note_check(struct bid_server *server, bool right, const char *text)
{
	struct bid_http_server *http = http_of(server);

	pthread_mutex_lock(&http->fetch->lock);
	bid_breaker_note(&http->breaker, bid_clock_ms(), false, right ? BID_HEALTH_HEALTHY : BID_HEALTH_BAD, 0, text);
	pthread_mutex_unlock(&http->fetch->lock);
}

static void server_free(struct bid_server *server)
{
	struct bid_http_server *http = http_of(server);

	drain_server(http);
	bid_file_tree_free(http->tree);
	free(http->url);
	free(http->name);
	free(http);
}

static void server_health(struct bid_server *server, struct bid_server_health *ret_health)
{
	struct bid_http_server *http = http_of(server);
	const struct bid_breaker *breaker = &http->breaker;
	int64_t now = bid_clock_ms();

	pthread_mutex_lock(&http->fetch->lock);
	*ret_health = (struct bid_server_health){
		.breaker = !breaker->open      ? BID_BREAKER_CLOSED
			   : breaker->in_trial ? BID_BREAKER_HALF_OPEN
					       : BID_BREAKER_OPEN,
		.failures = breaker->failures,
		.next_trial_s = bid_breaker_remaining_s(breaker, now),
		.latency_ms = http->latency_ms,
		.protocol = http->protocol,
	};
	snprintf(ret_health->last_failure, sizeof(ret_health->last_failure), "%s", breaker->last_failure);
	pthread_mutex_unlock(&http->fetch->lock);
}

static const struct bid_server_ops server_ops = {
	.request = server_request,
	.cancel = server_cancel,
	.resume = server_resume,
	.note_check = server_note_check,
	.free = server_free,
	.health = server_health,
};

static int make_tree(const struct bid_fetch *fetch, const char *url, struct bid_file_tree **ret_tree)
{
	bid_auto_free char *path = NULL;
	int r = bid_url_tree_path(url, &path);

	return r < 0 ? r : bid_file_tree_new(path, &fetch->config, ret_tree);
}

/* Load the certificates, once. Returns -EOPNOTSUPP, after a warning, if the signatures of @url cannot be checked. */
static int load_signers(struct bid_fetch *fetch, const char *url)
{
	bid_auto_free char *path = bid_fetch_certificate_path(NULL);
	int r = fetch->signers ? 0 : path ? bid_signers_load(path, &fetch->signers) : -ENOMEM;
	const char *why = r == -EOPNOTSUPP	 ? "this build cannot check signatures"
			  : bid_url_is_tree(url) ? "a directory has no signatures"
						 : NULL;
	bid_auto_free char *shown = bid_fetch_url_shown(url);

	if (r == 0 && why)
		r = -EOPNOTSUPP;
	if (r == -EOPNOTSUPP)
		bid_warning("%s: bidfs ignores the server '%s', which has ima:enforcing", why, shown ? shown : "");
	return r;
}

int bid_fetch_server_new(struct bid_fetch *fetch, const char *url, struct bid_server **ret_server)
{
	bid_auto_free char *normal = NULL, *name = NULL;
	struct bid_http_server *http;
	bool enforcing;
	int r;

	r = bid_url_normalise(bid_url_behind_policy(url, &enforcing), &normal);
	enforcing |= fetch->config.enforce;
	if (r == 0 && enforcing)
		r = load_signers(fetch, normal);
	if (r < 0)
		return r;
	name = bid_fetch_url_shown(normal);
	if (!name)
		return -ENOMEM;
	http = calloc(1, sizeof(*http));
	if (!http)
		return -ENOMEM;
	r = bid_url_is_tree(normal) ? make_tree(fetch, normal, &http->tree) : 0;
	if (r < 0) {
		free(http);
		return r;
	}
	http->fetch = fetch;
	http->url = bid_steal(normal);
	http->name = bid_steal(name);
	bid_breaker_init(&http->breaker, (unsigned)bid_clock_ms() ^ (unsigned)getpid());
	http->base.ops = &server_ops;
	http->base.name = http->name;
	http->base.signers = enforcing ? fetch->signers : NULL;
	TAILQ_INIT(&http->waiting);
	*ret_server = &http->base;
	return 0;
}
