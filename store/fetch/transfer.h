/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One request to one server, in as many tries as it takes. Everything but new and free happens on the network thread. */
#ifndef BID_FETCH_TRANSFER_H
#define BID_FETCH_TRANSFER_H

#include <sys/queue.h>

#include <curl/curl.h>

#include "api/fetch.h"
#include "base/breaker.h"
#include "fetch/response.h"

#define BID_TRANSFER_PEER_MAX 64

struct bid_server;

/* The state says which queue a transfer is in. */
enum bid_transfer_state {
	BID_TRANSFER_ARRIVED = 0, /* in fetch->arrivals: the network thread has not seen it */
	BID_TRANSFER_QUEUED, /* in server->waiting: no request yet */
	/* in fetch->active */
	BID_TRANSFER_CONNECTING, /* from the name to the end of the TLS handshake */
	BID_TRANSFER_WAITING, /* request sent, header of the response not complete */
	BID_TRANSFER_LATE, /* the same, and counted as a failure of the server */
	BID_TRANSFER_BODY,
	BID_TRANSFER_BACKOFF, /* between two tries */
};

/* What other threads want of the network thread; a greater one takes the place of a lesser one. */
enum bid_transfer_order {
	BID_TRANSFER_NO_ORDER = 0,
	BID_TRANSFER_RESUME,
	BID_TRANSFER_CANCEL,
	BID_TRANSFER_DRAIN, /* cancel, and leave no request under way */
};

/* May another try end better? */
enum bid_retry {
	BID_RETRY_NEVER = 0,
	BID_RETRY_LATER, /* after a backoff; counted */
	BID_RETRY_AT_ONCE, /* the connection may be dead; not counted */
};

/* How a try ended. */
struct bid_try_result {
	enum bid_outcome outcome; /* BID_OUTCOME_NONE: not yet */
	enum bid_retry retry;
	enum bid_sign sign; /* what it says of the server */
	char text[256];
};

/* The rest of a body that broke off, to be asked for in place of all of it. */
struct bid_resume {
	uint64_t offset; /* bytes that the receiver has; 0: there is no rest to be asked for */
	uint64_t size; /* of the whole */
	char etag[BID_RESPONSE_ETAG_MAX];
};

struct bid_transfer {
	TAILQ_ENTRY(bid_transfer) live; /* under fetch->lock */
	TAILQ_ENTRY(bid_transfer) queue;
	enum bid_transfer_state state; /* of the network thread, from QUEUED on */
	uint64_t number;
	enum bid_transfer_order order; /* not carried out yet; under fetch->lock */

	struct bid_server *server;
	struct bid_receiver receiver;
	void *user;
	enum bid_kind kind;
	char *url;
	char *shown; /* the URL without user name and password */

	CURL *easy; /* NULL before the first try */
	struct curl_slist *headers; /* of the current request */
	char curl_error[CURL_ERROR_SIZE]; /* libcurl's own words */
	unsigned tries; /* begun; those that got on, or were on a dead connection, are not counted */
	unsigned begun; /* of them all */
	char before[256]; /* what the last one that was no answer came to, another having been begun or waited for; "" if none */
	bool probe; /* of the server's breaker */
	int64_t ends_at; /* all tries, in milliseconds of the monotonic clock */
	int64_t resume_until; /* for what there is of the body, to be continued; 0 if there was none yet */
	int64_t retry_after_s; /* what the last try's answer, or the breaker, asks for; 0 if nothing */

	/* of this try */
	unsigned hops; /* redirects followed */
	char *led_to; /* where to, without user name, password and query; owned, or NULL */
	int64_t deadline; /* of the state */
	struct bid_response response;
	char peer[BID_TRANSFER_PEER_MAX]; /* of the last connection, the server's or a proxy's: "ADDRESS:PORT"; "" for none */
	int64_t connect_at; /* when the name was asked for, or the connection */
	int64_t sent_at; /* when the request was sent */
	bool paused; /* by its receiver; it stays so over the end of a try */
	struct bid_resume resume; /* what was asked for */
	uint64_t received; /* bytes of body, with those of earlier tries that it continues */
	struct bid_try_result result;
};

int bid_transfer_new(struct bid_server *server, const struct bid_request *request, const struct bid_receiver *receiver, void *user,
		     struct bid_transfer **ret_transfer);
void bid_transfer_free(struct bid_transfer *transfer);

/* A try is over: see whether the next may ask for the rest of its body, and set `rest`. */
void bid_transfer_plan_resume(struct bid_transfer *transfer);

/* Begin a try. If even that fails, the judgement says so and the deadline is over. */
void bid_transfer_begin(struct bid_transfer *transfer);

/*
 * The request has ended: if its answer said where to go instead, go there. False if it did not, or if that is where we
 * do not go, which is judged.
 */
bool bid_transfer_follow(struct bid_transfer *transfer);

/* How long the server asks to be left alone, in seconds; 0 if it does not. */
int64_t bid_transfer_retry_after(const struct bid_transfer *transfer);

/* When the file was modified, as the server says, in seconds since the epoch; 0 if it does not. */
int64_t bid_transfer_modified(const struct bid_transfer *transfer);

/* End the try, whatever its state. */
void bid_transfer_stop(struct bid_transfer *transfer);

/* receive.c: let libcurl call us for what it receives. Returns 0 or -ENOMEM. */
int bid_transfer_set_callbacks(struct bid_transfer *transfer);

#endif
