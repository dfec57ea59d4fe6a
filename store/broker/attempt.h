/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An attempt: a download's request to one source, with its own transaction, because two sources never write to one file.
 *
 * bid_attempt_receiver		callbacks of the source
 * bid_attempt_make_room()	commit worker, while the source waits for resume()
 * bid_scheduler_leave()	commit worker, at the end
 *
 * The attempt's candidate has its state (machine.h).
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
	size_t source; /* index in the broker's */
	int64_t started_ms;

	/* under the broker's lock */
	enum bid_attempt_room room;
	bool in_cycle; /* cancelled: the source requests from this broker (source_cycle.h) */
	TAILQ_ENTRY(bid_attempt) job; /* in the broker's jobs */

	/* owned by one thread at a time: starter, source, commit worker; by a commit worker while it makes room */
	struct bid_txn *txn; /* begun with the body */
	uint8_t *head; /* begin of the body, until its check */
	size_t head_len;
	bool head_checked;
	bool size_unknown; /* no room for more than arrived, and no announced size */
	bool endless; /* and above BID_TXN_UNSAID_MAX */
	bool changed; /* right id, but other bytes than the first download */
	bool chosen; /* the attempts of other sources are cancelled */
	uint64_t delivered; /* bytes from this source, with repeated ones */
	int receive_error; /* negative errno that ended the transfer */
	char reason[BID_TEXT_MAX]; /* the same as a text */
	struct bid_answer answer; /* answer of the source; its strings are owned, or NULL */

	/* shared by all threads */
	_Atomic uint64_t received; /* bytes of the current body */
	_Atomic uint64_t size; /* announced size, or BID_SIZE_UNKNOWN */
};

/* Did the body of this source not fit, while another source may have a smaller one? By the thread that has @attempt. */
static inline bool bid_attempt_has_no_room(const struct bid_attempt *attempt)
{
	return attempt->receive_error == -ENOSPC && (attempt->received == 0 || attempt->size_unknown);
}

/*
 * Evict for the rest of the body, and resume the transfer. Locking: under the broker's lock, released in between; the attempt may
 * be freed then.
 */
void bid_attempt_make_room(struct bid_attempt *attempt);

/* Begin a body of @size bytes or BID_SIZE_UNKNOWN, in place of an earlier one. By the thread that has @attempt. */
int bid_attempt_begin_body(struct bid_attempt *attempt, uint64_t size);

/* Callbacks of the sources. */
extern const struct bid_receiver bid_attempt_receiver;

/*
 * Returns @error of the store as a result: -ENOENT of a directory is no proof of absence, and -EACCES of a write is none of a
 * read.
 */
static inline int bid_local_error(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM ? -EIO : error;
}

#endif
