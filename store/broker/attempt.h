/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An attempt: the transfer of an artifact from one server, into a transaction.
 *
 * bid_attempt_receiver		called by the server: takes the body, checks its beginning
 * bid_attempt_run()		by a commit worker: makes room, or checks and publishes the body
 */
#ifndef BID_BROKER_ATTEMPT_H
#define BID_BROKER_ATTEMPT_H

#include <errno.h>

#include "broker/broker_types.h"

#define BID_TEXT_MAX 256 /* bytes of a report, with its NUL */
#define BID_HEAD_MAX (64 * 1024) /* bytes of a body before the early check of its id */

enum bid_attempt_room {
	BID_ATTEMPT_ROOM_ENOUGH,
	BID_ATTEMPT_ROOM_WANTED, /* in the broker's jobs */
	BID_ATTEMPT_ROOM_MAKING, /* a commit worker evicts */
};

struct bid_attempt {
	struct bid_download *download; /* a reference */
	size_t candidate; /* index in the download's */
	struct bid_server_state *from;
	int64_t started_ms;

	/* under the broker's lock */
	enum bid_attempt_room room;
	bool in_loop; /* cancelled: the server requests from this broker (request_loop.c) */
	struct bid_job job;

	/* owned by one thread at a time: starter, server, commit worker; by a commit worker while it makes room */
	struct bid_txn *txn; /* begun with the body */
	uint8_t *head; /* begin of the body, until its check */
	size_t head_len; /* BID_HEAD_MAX: checked */
	bool checked; /* the machine knows of the check; false after a break */
	uint64_t delivered; /* bytes from this server, with repeated ones */
	int error; /* negative errno that ended the transfer or the commit; -ESTALE: other bytes than the first download */
	char reason[BID_TEXT_MAX]; /* the same as a text */
	struct bid_server_response response; /* its strings are owned, or NULL */

	/* shared by all threads */
	_Atomic uint64_t received; /* bytes of the current body */
	_Atomic uint64_t size; /* announced size, or BID_SIZE_UNKNOWN */
};

/*
 * Did the body of this server not fit, while another server may have a smaller one? Nothing arrived, or the transaction has a
 * reason: no announced size. By the thread that has @attempt.
 */
static inline bool bid_attempt_has_no_room(const struct bid_attempt *attempt)
{
	return attempt->error == -ENOSPC && (attempt->received == 0 || (attempt->txn && *bid_txn_reason(attempt->txn)));
}

/* Callbacks of the servers, for their attempts. */
extern const struct bid_receiver bid_attempt_receiver;

/* Evict for the rest of the body, or check and publish it. Frees @attempt at its end. Under the lock, released meanwhile. */
void bid_attempt_run(struct bid_attempt *attempt);

#endif
