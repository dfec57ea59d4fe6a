/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An attempt: one source that is being asked for the request of one download. It has a transaction of its own, so that two
 * sources that answer at once never write to one file.
 *
 * Its state is that of its candidate (machine.h). While room is made for its body by a commit worker, the source waits for its
 * resume().
 */
#ifndef BID_BROKER_ATTEMPT_H
#define BID_BROKER_ATTEMPT_H

#include <errno.h>

#include "broker/broker.h"

#define BID_TEXT_MAX 256 /* of a verdict, with its NUL */
#define BID_HEAD_MAX (64 * 1024) /* how much of a body must be there for the early check of its id */

enum bid_attempt_room {
	BID_ATTEMPT_ROOM_ENOUGH,
	BID_ATTEMPT_ROOM_WANTED, /* it is in the broker's jobs for that */
	BID_ATTEMPT_ROOM_MAKING, /* a commit worker evicts */
	BID_ATTEMPT_ROOM_MADE, /* while it starts: nobody knows yet whom to resume */
};

/* What a source's done() said, kept for the commit worker. Strings are owned and may be NULL. */
struct bid_source_response {
	enum bid_outcome outcome;
	bool not_sent;
	bool lasting;
	int64_t modified;
	char text[BID_TEXT_MAX];
	unsigned tries;
	char *url;
	char *led_to;
	char *before;
	char *file;
	char *archive;
	char *ima_signature;
};

struct bid_attempt {
	struct bid_download *download; /* with a reference */
	size_t candidate; /* an index into the download's */
	size_t source; /* an index into the broker's */
	int64_t started_ms;

	/* under the broker's lock */
	bool starting; /* its starter is inside the source's start() */
	enum bid_attempt_room room;
	uint64_t transfer; /* the source's number for it, once started */
	bool answered; /* the source was done before start() returned */
	bool looped; /* cancelled because its source leads back here */
	TAILQ_ENTRY(bid_attempt) job; /* in the broker's jobs */

	/*
	 * of the thread whose turn it is: the starter, then the source's, then the commit worker; and the commit worker that
	 * makes room
	 */
	struct bid_txn *txn; /* begun with the body */
	uint8_t *head; /* the beginning of the body, until it was checked */
	size_t head_len;
	bool head_checked;
	bool size_unknown; /* there is no room for more than came, and nothing told how much there is */
	bool endless; /* and it is more than any is made for */
	bool changed; /* it carries the id, but has other bytes than were fetched first */
	bool leads; /* the others were told to end */
	bool broke_off; /* and nothing came since */
	uint64_t delivered; /* bytes from this source, repeated ones too */
	int receive_error; /* why the receiver ended the transfer: a negative errno */
	char reason[BID_TEXT_MAX]; /* the same in words */
	struct bid_source_response response;

	/* for everybody */
	_Atomic uint64_t received; /* of the current body */
	_Atomic uint64_t size; /* as announced, or BID_SIZE_UNKNOWN */
};

/* Was it refused because it is more than there is room for, which another source's need not be? By the one whose turn it is. */
static inline bool bid_attempt_has_no_room(const struct bid_attempt *attempt)
{
	return attempt->receive_error == -ENOSPC && (attempt->received == 0 || attempt->size_unknown);
}

/*
 * Evict for what is to come of the body, and let it come. Under the lock, which is released meanwhile; @attempt may be gone
 * then.
 */
void bid_attempt_make_room(struct bid_attempt *attempt);

/* Drop what came of a body so far, to begin one of @size bytes or BID_SIZE_UNKNOWN. By the one whose turn it is. */
int bid_attempt_begin_body(struct bid_attempt *attempt, uint64_t size);

/* What sources call for attempts. */
extern const struct bid_receiver bid_attempt_receiver;

/*
 * A trouble of our own store as a result: -ENOENT, from a directory that went away, must not be taken for a proof of absence, nor
 * what kept us from writing for what keeps the caller from reading.
 */
static inline int bid_local_error(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM ? -EIO : error;
}

#endif
