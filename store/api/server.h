/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A server of artifacts that the store lacks, by HTTP or a file:// tree. The broker attempts servers in order. It checks all
 * they deliver: a server need not check, and is not trusted to.
 *
 * A server responds asynchronously. For each successful request() it calls
 *
 *   receiver->sent		when the request has left the queue
 *   receiver->header		at most once per body, before it
 *   receiver->body		any number of times
 *   receiver->broke_off	when the body broke off and the server retries: a header may follow, or the rest of the body
 *   receiver->done		exactly once, last
 *
 * from one thread at a time, but not from inside request(), cancel() or resume(), nor under a lock that these take.
 */
#ifndef BID_API_SERVER_H
#define BID_API_SERVER_H

#include <sys/types.h>

#include "api/artifact.h"

/* the outcome of an attempt */
enum bid_outcome {
	BID_OUTCOME_NONE = 0,
	BID_OUTCOME_FOUND, /* the body was delivered, complete as far as the transport can tell */
	BID_OUTCOME_ABSENT, /* a definite no */
	BID_OUTCOME_TOO_LARGE, /* the artifact exists, above the size limit */
	BID_OUTCOME_UNSUPPORTED, /* the server never offers this kind */
	BID_OUTCOME_REFUSED, /* a refusal: authorisation, rate limit, configuration */
	BID_OUTCOME_UNAVAILABLE, /* no artifact for now: DNS, connect, TLS, reset, 5xx, stall */
	BID_OUTCOME_REJECTED, /* delivered a wrong artifact; detected by the receiver, the broker or the server */
	BID_OUTCOME_FAILED, /* the receiver failed: a local error, such as a full disk */
	BID_OUTCOME_CANCELLED,
	BID_OUTCOME_COUNT
};

/* "found", "absent", … Static. */
const char *bid_outcome_name(enum bid_outcome outcome);

/* Does the outcome mean that the server lacks the artifact? */
bool bid_outcome_is_no(enum bid_outcome outcome);

/* Is the outcome a failure to report: neither delivered, nor absent, nor cancelled by the broker? */
bool bid_outcome_is_failure(enum bid_outcome outcome);

#define BID_SIZE_UNKNOWN UINT64_MAX

/* A server's report of a transfer, and of its body. The strings live until done() returns; they come from outside. */
struct bid_server_report {
	enum bid_outcome outcome;
	bool not_sent; /* no request was sent: the breaker is open, or the request was cancelled before */
	bool lasting; /* with BID_OUTCOME_REFUSED: the response to this request stays the same for a while */
	const char *text; /* in words, for people: "HTTP 404", "no connection: Connection refused" */
	const char *url; /* requested URL, without user name and password */
	const char *redirect; /* target of the redirection, also without the query, or NULL */
	unsigned requests; /* number of requests for it, with retries; 0 if unknown */
	const char *before; /* with several requests: the last failure before this report, in words; or NULL */
	const char *file; /* the file's name at the server, or NULL */
	const char *archive; /* the archive with the file, or NULL */
	const char *ima_signature; /* signature of the file from the server, or NULL: lower-case hex, whole bytes */
	int64_t modified; /* modification time of the file, in seconds since the epoch; 0 if unknown */
};

#define BID_IMA_SIGNATURE_MAX 4096 /* characters of an ima_signature, without its NUL */

struct bid_receiver {
	/* The request is sent, and a response may come. May be NULL. */
	void (*sent)(void *user);
	/*
	 * A body of @size bytes (or BID_SIZE_UNKNOWN) begins; drop any earlier one. Non-zero (a negative errno) ends the
	 * transfer.
	 */
	int (*header)(void *user, uint64_t size);
	/*
	 * Take bytes of the body. A non-zero return ends the transfer: -EBADMSG as BID_OUTCOME_REJECTED, others as
	 * BID_OUTCOME_FAILED. -EAGAIN pauses it until resume(): the same bytes come again afterwards.
	 */
	int (*body)(void *user, const void *data, size_t len);
	/* The body broke off, and the server retries later: the broker may attempt other servers. May be NULL. */
	void (*broke_off)(void *user);
	/*
	 * End the transfer. @report and its strings die when this returns. Must not block for long, nor call the server.
	 */
	void (*done)(void *user, const struct bid_server_report *report);
};

struct bid_signers;
struct bid_server;

/* state of a server's circuit breaker: while it is open the server gets no requests, so that an outage costs its time once */
enum bid_breaker_state {
	BID_BREAKER_CLOSED = 0, /* requests are sent */
	BID_BREAKER_OPEN, /* no requests until the next trial request; they end at once, as BID_OUTCOME_UNAVAILABLE */
	BID_BREAKER_HALF_OPEN, /* one trial request runs; others end at once */
};

/* "closed", "open", "half-open". Static. */
const char *bid_breaker_state_name(enum bid_breaker_state state);

/* health of a server, for people; the broker counts its reports */
struct bid_server_health {
	enum bid_breaker_state breaker;
	unsigned failures; /* in a row, up to now */
	unsigned next_trial_s; /* while open: seconds until the next trial request */
	unsigned latency_ms; /* moving average from the request to the header of the response; 0 without a response */
	const char *protocol; /* protocol of the last response, "HTTP/2"; static; NULL if unknown */
	char last_failure[128]; /* the last failure; "" if none */
};

/* The head of every server, and all that the broker uses of it. */
struct bid_server_ops {
	/*
	 * request(), cancel() and resume() do not block: the caller may hold a lock that the receiver takes. @user identifies a
	 * transfer until its done().
	 */
	/* Ask for @artifact. Returns 0, or a negative errno; then nothing of @receiver is called. */
	int (*request)(struct bid_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
		       void *user);
	/*
	 * Cancel the transfer of @user, if any: done() still comes, as BID_OUTCOME_CANCELLED unless the transfer ended by itself.
	 */
	void (*cancel)(struct bid_server *server, const void *user);
	/* Resume the transfer of @user, if body() paused it. */
	void (*resume)(struct bid_server *server, const void *user);
	/*
	 * Report the check of a delivered artifact: correct if @right, which closes a breaker, else wrong for the reason @text.
	 * From any thread, but not from inside a receiver; does not block.
	 */
	void (*note_check)(struct bid_server *server, bool right, const char *text);
	/* Free the server, after all transfers were cancelled and all done() have returned. */
	void (*free)(struct bid_server *server);
	/* Report the health. From any thread; does not block. */
	void (*health)(struct bid_server *server, struct bid_server_health *ret_health);
};

struct bid_server {
	const struct bid_server_ops *ops;
	const struct bid_signers *signers; /* one of these must have signed each file; NULL for any file; borrowed */
	const char *name; /* owned by the server; for messages. A server's URL without user name and password */
};

#endif
