/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A server: a source, its turns, and what was learned of it. */
#ifndef BID_FETCH_SERVER_H
#define BID_FETCH_SERVER_H

#include <sys/queue.h>

#include "api/fetch.h"
#include "base/breaker.h"

#define BID_RETRY_AFTER_WAIT_S 10 /* whoever wants to be left alone for longer is, and the request ends */

struct bid_transfer;
TAILQ_HEAD(bid_transfer_list, bid_transfer);
TAILQ_HEAD(bid_server_list, bid_server);

struct bid_server {
	struct bid_source source; /* first: the source is the server */
	struct bid_fetch *fetch;
	char *url; /* may carry a user name and a password; constant */
	char *name; /* the same without them; constant */
	unsigned live; /* transfers, also the detached one; under fetch->lock */

	struct bid_breaker breaker; /* under fetch->lock */

	/* changed by the network thread, under fetch->lock: so it reads them without, and others read them with the lock */
	uint64_t refused; /* requests that ended because of it */
	unsigned latency_ms; /* moving average; 0 before the first answer */
	const char *protocol; /* of its last answer; NULL before the first */
	enum bid_ranges ranges;
	int64_t unsupported_until[BID_KIND_END]; /* there is no use in asking for this kind */

	/* of the network thread */
	struct bid_transfer_list waiting; /* for a turn */
	unsigned running; /* in fetch->active */
	/*
	 * A cancelled request that shows whether the server is dead, or NULL. Without it a dead server costs each reader the time
	 * in which another server delivers.
	 */
	struct bid_transfer *detached;
	bool understands; /* it said once that it has something, or has not */
	int64_t answered_at; /* when the header of its last answer came */
	bool late; /* a request since then got none in time */
	int64_t backoff_until; /* it asked for a short rest: who waits in line waits so long */
	int64_t probe_awaited_until; /* while the probe is on its way: for so long others wait for what becomes of it */
	TAILQ_ENTRY(bid_server) alarm; /* in fetch->alarmed */
	int64_t alarm_at; /* when to look at those who wait in line; 0 if that is for another event to tell */
};

/* All of what follows is for the network thread. */

/* Is @transfer not to be sent at all? Then its judgement is what it ends with. Needs no turn. */
bool bid_server_refuses(struct bid_server *server, struct bid_transfer *transfer, int64_t now);

/*
 * May @transfer, which is not refused, be sent? If not, it has to wait until the probe, which is another transfer, has ended, or
 * until probe_awaited_until.
 */
bool bid_server_admits(struct bid_server *server, struct bid_transfer *transfer, int64_t now);

/* The header of the answer to @transfer, whose state is not BODY yet, has come @now. */
void bid_server_note_answer(struct bid_server *server, struct bid_transfer *transfer, int64_t now);

/*
 * What a request without an answer in time says of @server, which did not answer others meanwhile. A server that has answered
 * before may have to unpack the artifact first; but not twice in a row.
 */
enum bid_sign bid_server_late_sign(struct bid_server *server);

/* No answer to @transfer came in time, as it is judged; that is noted, though it goes on. */
void bid_server_note_late(struct bid_server *server, struct bid_transfer *transfer, int64_t now);

/* It was asked for the rest of a file that it had offered in parts, and sent that, or all of it. */
void bid_server_note_ranges(struct bid_server *server, bool honoured);

/*
 * May @transfer try again? If the breaker is open, it @waits for the end of the pause and is the probe then, or its judgement is
 * what it ends with.
 */
bool bid_server_readmits(struct bid_server *server, struct bid_transfer *transfer, bool waits, int64_t now);

/* The last try of @transfer is over and judged. */
void bid_server_note_end(struct bid_server *server, const struct bid_transfer *transfer, int64_t now);

#endif
