/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A transfer: one artifact from one server, by one or several requests.
 *
 * bid_transfer_new()
 * bid_transfer_begin()		begin a request; callbacks follow
 * bid_classify_end()		when libcurl ends the request; bid_transfer_time_out() at a deadline
 * bid_transfer_stop()		end the request
 * bid_transfer_plan_resume()	before another bid_transfer_begin()
 * bid_transfer_free()
 *
 * All but new and free run on the network thread.
 */
#ifndef BID_FETCH_TRANSFER_H
#define BID_FETCH_TRANSFER_H

#include <sys/queue.h>

#include <curl/curl.h>

#include "api/fetch.h"
#include "base/breaker.h"
#include "base/timer.h"
#include "fetch/response.h"

#define BID_TRANSFER_PEER_MAX 64

struct bid_http_server;

/* State of a transfer. It determines the queue. */
enum bid_transfer_state {
	BID_TRANSFER_ARRIVED = 0, /* in no queue: unknown to the network thread */
	BID_TRANSFER_QUEUED, /* in server->waiting: no request yet */
	/* in fetch->active */
	BID_TRANSFER_CONNECTING, /* from the name to the end of the TLS handshake */
	BID_TRANSFER_WAITING, /* request sent, header of the response not complete */
	BID_TRANSFER_LATE, /* as WAITING, and counted as a failure of the server */
	BID_TRANSFER_BODY,
	BID_TRANSFER_BACKOFF, /* between two requests */
};

/* Order of another thread to the network thread. A greater one replaces a lesser one. */
enum bid_transfer_order {
	BID_TRANSFER_NO_ORDER = 0,
	BID_TRANSFER_START,
	BID_TRANSFER_RESUME,
	BID_TRANSFER_CANCEL,
};

/* The end of a request. */
struct bid_transfer_end {
	enum bid_outcome outcome; /* BID_OUTCOME_NONE while the request runs */
	bool retry; /* after a backoff */
	enum bid_health health; /* health signal of the server */
	char text[256];
};

/* Part of a body, requested in place of the whole. */
struct bid_resume {
	uint64_t offset; /* bytes that the receiver has; 0 for the whole */
	uint64_t size; /* size of the whole */
	char etag[BID_RESPONSE_ETAG_MAX];
};

struct bid_transfer {
	TAILQ_ENTRY(bid_transfer) live; /* under fetch->lock */
	TAILQ_ENTRY(bid_transfer) ordered; /* in fetch->orders, with an order; under fetch->lock */
	TAILQ_ENTRY(bid_transfer) queue;
	enum bid_transfer_state state; /* for the network thread, from QUEUED on */
	enum bid_transfer_order order; /* pending order; under fetch->lock */

	struct bid_http_server *server;
	struct bid_receiver receiver;
	void *user;
	struct bid_artifact artifact; /* kept */
	char *url;

	CURL *easy; /* NULL before the first request */
	struct curl_slist *headers; /* headers of the current request */
	int fd; /* socket of a file:// tree, else -1 */
	char curl_error[CURL_ERROR_SIZE]; /* CURLOPT_ERRORBUFFER */
	unsigned counted; /* requests that count against `retries`; not with progress */
	unsigned requests; /* all, with those of retries */
	char before[256]; /* text of the last failed request before the current one; or "" */
	bool trial; /* trial of the server's breaker */
	int64_t ends_at; /* end of all requests, in milliseconds of the monotonic clock */
	int64_t retry_after_s; /* Retry-After of the last request; 0 for none */

	/* state of the current request */
	unsigned redirects; /* redirects followed */
	struct bid_timer deadline; /* end of the state, while in fetch->active */
	struct bid_response response;
	size_t header_bytes; /* bytes in the headers of all its responses */
	char peer[BID_TRANSFER_PEER_MAX]; /* "ADDRESS:PORT" of the last connection, to the server or to a proxy; "" for none */
	int64_t sent_at; /* time of the request */
	bool paused; /* by its receiver, also beyond the end of the request */
	struct bid_resume resume; /* requested part */
	uint64_t received; /* bytes of the body, including the resumed part */
	struct bid_transfer_end end;
};

/* Make the handle whose copies the transfers use. @ret_template is set even after a failure. Returns 0 or -ENOMEM. */
int bid_transfer_make_template(const struct bid_fetch_config *config, CURL **ret_template);

int bid_transfer_new(struct bid_http_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
		     void *user, struct bid_transfer **ret_transfer);
void bid_transfer_free(struct bid_transfer *transfer);

/* Set `resume` for the next request. */
void bid_transfer_plan_resume(struct bid_transfer *transfer);

/* Begin a request. After a failure its end is set, and its deadline is over. */
void bid_transfer_begin(struct bid_transfer *transfer);

/* Returns the target of the last redirect, without user name, password and query, or NULL; the caller frees it. */
char *bid_transfer_redirect(const struct bid_transfer *transfer);

/* Returns Retry-After in seconds, or 0. */
int64_t bid_transfer_retry_after(const struct bid_transfer *transfer);

/* Take what a file:// tree has sent, if anything. Returns true after the request, with its end set. */
bool bid_transfer_read_tree(struct bid_transfer *transfer);

/* Act on the deadline of the state: set the end of the request, unless it has one, or another deadline. */
void bid_transfer_time_out(struct bid_transfer *transfer, int64_t now);

/* End the request in any state. */
void bid_transfer_stop(struct bid_transfer *transfer);

#endif
