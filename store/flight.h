/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A flight: one request that is being asked of the sources, and everybody who waits for it.
 *
 *   ASKING    one thread looks for a source that takes the request
 *   RUNNING   a source is at work; its thread calls the receiver
 *   DECIDING  the source is done; the publisher commits, or moves on to ASKING
 *   ENDED     the result is known; an unhappy one lingers a moment
 *
 * The wait. A kernel may look one name up for many callers one after the other, so waits are counted per flight and not per
 * caller: a window of wait_ms opens with the first waiter, and all who come before it ends are sent away when it ends. Who comes
 * within BID_WINDOW_GRACE after it is sent away at once; who comes later opens a new window. For the same reason a flight that
 * ended without the artifact lingers for BID_FLIGHT_LINGER, so that 200 queued lookups do not become 200 tries.
 */
#ifndef BID_FLIGHT_H
#define BID_FLIGHT_H

#include <errno.h>

#include "broker.h"

#define BID_WINDOW_GRACE  250 /* ms */
#define BID_FLIGHT_LINGER 250 /* ms */
#define BID_TEXT_MAX	  256 /* of a verdict, with its NUL */
#define BID_HEAD_MAX	  (64 * 1024) /* how much of a body must be there for the early check of its id */

enum bid_phase {
	BID_PHASE_ASKING,
	BID_PHASE_RUNNING,
	BID_PHASE_DECIDING,
	BID_PHASE_ENDED,
};

/* What a source's done() said, kept for the publisher. Strings are owned and may be NULL. */
struct bid_said {
	enum bid_outcome outcome;
	char text[BID_TEXT_MAX];
	char *url;
	char *file;
	char *archive;
};

struct bid_flight {
	struct bid_broker *broker;
	struct bid_request request;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker, until the flight left its lists; one for whoever answers waiters */
	enum bid_phase phase;
	size_t source; /* the index of the one that is asked */
	uint64_t transfer; /* while RUNNING: the source's number for it */
	bool answered; /* while ASKING: the source was done before start() returned */
	bool joinable; /* in the broker's buckets */
	bool cancelled; /* nobody wants it: it ends with the next step, and nobody can join it */
	bool timed_out; /* somebody was sent away, and may come back for it */
	bool windowed; /* in the broker's list of windows */
	int error; /* when ENDED */
	int64_t until_ms; /* the end of the last window; when ENDED, of the lingering */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_flight *next; /* in its bucket */
	TAILQ_ENTRY(bid_flight) link; /* in the broker's flights */
	TAILQ_ENTRY(bid_flight) job;
	TAILQ_ENTRY(bid_flight) timer; /* in windows or lingering */

	/* of the thread whose turn it is: the one that asks, then the source's, then the publisher */
	struct bid_txn *txn; /* begun with the body of the source that is asked */
	uint8_t *head; /* the beginning of the body, until it was checked */
	size_t head_len;
	bool head_checked;
	int64_t asked_ms; /* when this source was asked */
	uint64_t delivered; /* bytes from this source, repeated ones too */
	int receive_error; /* why the receiver ended the transfer: a negative errno */
	char reason[BID_TEXT_MAX]; /* the same in words */
	struct bid_said said;

	/* for everybody */
	_Atomic uint64_t received; /* of the current body */
	_Atomic uint64_t size; /* as announced, or BID_SIZE_UNKNOWN */
	char (*texts)[BID_TEXT_MAX]; /* of the verdicts */
	_Atomic size_t n_verdicts; /* entries below it do not change any more */
	struct bid_verdict verdicts[]; /* room for one per source; their URLs are owned */
};

/*
 * What becomes of @waiter, who wants @request from the sources. Under the lock. Returns
 *   -EINPROGRESS	it waits and is not the caller's any more. If @ret_lead is set, he leads that flight: bid_flight_lead()
 *   other		its answer. @ret_seen is set to the flight whose verdicts belong to it, if any, with a reference
 */
int bid_flight_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		    struct bid_flight **ret_lead, struct bid_flight **ret_seen);

/* Look once more into the store, then ask the first source. Without the lock, by whom bid_flight_join() told to. */
void bid_flight_lead(struct bid_flight *flight);

/* Take @waiter out of its flight. Under the lock. */
void bid_flight_leave(struct bid_waiter *waiter);

/* Move all waiters of @flight, and their tickets, to @waiters. Under the lock. */
void bid_flight_take_waiters(struct bid_flight *flight, struct bid_waiters *waiters);

/* Does nobody want @flight any more? Under the lock. */
bool bid_flight_abandoned(const struct bid_flight *flight);

/* Let nobody join @flight from here on: the next who comes starts another. Under the lock. */
void bid_flight_retire(struct bid_flight *flight);

/* Call and free all of @waiters, who waited for @flight, with @error or a copy of @file each. Without the lock. */
void bid_flight_answer(struct bid_flight *flight, struct bid_waiters *waiters, int error, struct bid_file *file);

/* Call and free one. @flight may be NULL. The callee may take the descriptor out of @file. Without the lock. */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       const struct bid_flight *flight);

/* The result is known: answer all, with @error or a copy of @file. The flight is not the caller's any more. Without the lock. */
void bid_flight_end(struct bid_flight *flight, int error, struct bid_file *file);

/* A window of @flight is over. Under the lock, which is released while the waiters are answered. */
void bid_flight_end_window(struct bid_flight *flight);

/* The lingering is over. Under the lock. */
void bid_flight_end_linger(struct bid_flight *flight);

void bid_flight_ref(struct bid_flight *flight);

/* Both under the lock. */
void bid_flight_unref(struct bid_flight *flight);

/* ask.c */

/* Ask the sources from @flight->source on, until one takes the request. Without the lock, by the one who is ASKING. */
void bid_flight_ask(struct bid_flight *flight);

/*
 * Go on to the next source. Returns 0 if there is one to ask, or the error the flight must be ended with. Without the lock.
 */
int bid_flight_next(struct bid_flight *flight);

/*
 * A trouble of our own store as a result: -ENOENT, from a directory that went away, must not be taken for a proof of absence, nor
 * what kept us from writing for what keeps the caller from reading.
 */
static inline int bid_local_error(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM ? -EIO : error;
}

/* Drop what came of a body so far, to begin one of @size bytes or BID_SIZE_UNKNOWN. By the one whose turn it is. */
int bid_flight_begin_body(struct bid_flight *flight, uint64_t size);

/* How to end a transfer of a source; both NULL and 0 if there is nothing to end. */
struct bid_ending {
	struct bid_source *source;
	uint64_t transfer;
};

/* Mark @flight as cancelled, if a source is at work on it. Under the lock; bid_ending_cancel() the result without it. */
struct bid_ending bid_flight_cancel(struct bid_flight *flight);

void bid_ending_cancel(const struct bid_ending *ending);

void bid_said_release(struct bid_said *said);

/* tally.c */

/* Note what the source that is asked said in the end, in the flight, the counters and the log. Without the lock. */
void bid_flight_verdict(struct bid_flight *flight, enum bid_outcome outcome, const char *text);

/* What all verdicts amount to, if none of them is "found". */
int bid_flight_conclusion(const struct bid_flight *flight);

#endif
