/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An HTTP server: the calls of the broker ("api/server.h"), its queue, its circuit breaker, its latency.
 *
 * bid_http_server_refuses(), bid_http_server_note_start()	before the first request of a transfer, and before a retry
 * bid_http_server_note_response()			at the header of a response
 * bid_http_server_note_late()			when a response is late
 * bid_http_server_note_end()			after the last request
 *
 * These functions are for the network thread; the broker's calls order transfers of it.
 */
#ifndef BID_FETCH_HTTP_SERVER_H
#define BID_FETCH_HTTP_SERVER_H

#include <sys/queue.h>

#include "api/fetch.h"
#include "base/breaker.h"
#include "base/timer.h"

#define BID_RETRY_AFTER_WAIT_S 10 /* longest Retry-After that a request waits for */

struct bid_file_tree;
struct bid_transfer;
TAILQ_HEAD(bid_transfer_list, bid_transfer);

struct bid_http_server {
	struct bid_server base; /* first member */
	struct bid_fetch *fetch;
	char *url; /* with user name and password; constant */
	char *name; /* without them; constant */
	struct bid_file_tree *tree; /* NULL without a file:// URL; owned */
	unsigned live; /* transfers; under fetch->lock */

	struct bid_breaker breaker; /* under fetch->lock */

	/* written by the network thread under fetch->lock, read by it without */
	unsigned latency_ms; /* moving average; 0 before the first response */
	const char *protocol; /* HTTP version of the last response; NULL before the first */

	/* for the network thread */
	struct bid_transfer_list waiting; /* unsent transfers, first come first served */
	unsigned running; /* in fetch->active */
	bool understands; /* it has sent an artifact, or a 404 */
	int64_t responded_at; /* time of the last response header; 0 before the first */
	bool late; /* a request since then is late */
	int64_t retry_after_until; /* end of a short Retry-After */
	struct bid_timer alarm; /* another look at the queue, after retry_after_until */
};

/* Is the breaker open, or its trial in flight? Then sets the end of @transfer, and returns true. */
bool bid_http_server_refuses(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now);

/* Note a request of @transfer, not refused @now. With an open breaker it is the trial. */
void bid_http_server_note_start(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now);

/* Note the header of a response to @transfer @now, before the state is BODY. */
void bid_http_server_note_response(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now);

/*
 * Count the late response to @transfer, unless the server responds to other requests. A known server may be unpacking the artifact,
 * but not twice in a row.
 */
void bid_http_server_note_late(struct bid_http_server *server, struct bid_transfer *transfer, int64_t now);

/* Note the end of the last request of @transfer. */
void bid_http_server_note_end(struct bid_http_server *server, const struct bid_transfer *transfer, int64_t now);

#endif
