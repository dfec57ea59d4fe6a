/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scheduler lets the state machine of a download (machine.h) take events, and runs the actions that it asks for. The first
 * candidate is the source that delivered last.
 */
#ifndef BID_BROKER_SCHEDULER_H
#define BID_BROKER_SCHEDULER_H

#include "broker/attempt.h"
#include "broker/download.h"

/* Transfers to end, collected under the lock and ended without it. */
struct bid_cancel_list {
	struct {
		struct bid_source *source;
		uint64_t transfer;
	} of[BID_CANDIDATES_MAX];
	unsigned n;
};

/* Without the lock. */
void bid_cancel_list_run(const struct bid_cancel_list *cancels);

/*
 * Let @download take @event, of @candidate or BID_NO_CANDIDATE. Adds the transfers to end to @cancels; what else is to be done, as
 * for events that may start or end something, is for bid_scheduler_step(). Under the lock.
 */
struct bid_actions bid_scheduler_take(struct bid_download *download, enum bid_event event, size_t candidate,
				      struct bid_cancel_list *cancels);

/*
 * Let @download take @event, and do all that is to be done then: start attempts, cancel others, end the download. Without the lock,
 * by someone who has a reference.
 */
void bid_scheduler_step(struct bid_download *download, enum bid_event event, size_t candidate);

/* Let @attempt take @event, which starts and ends nothing. Returns its state then. Without the lock, by the source's thread. */
enum bid_attempt_state bid_scheduler_note(struct bid_attempt *attempt, enum bid_event event);

/*
 * @attempt is over: REPORTED, or LEFT, so that its source may be asked again. Frees it, and steps. Without the lock, by the commit
 * worker, who needs a reference of his own.
 */
void bid_scheduler_leave(struct bid_attempt *attempt, enum bid_event event);

/* The source of @attempt is done with it: a commit worker's turn, unless it is in line for one or with one. Under the lock. */
void bid_scheduler_done(struct bid_attempt *attempt);

/* Under the lock. */
enum bid_attempt_state bid_scheduler_state(const struct bid_attempt *attempt);

/* It is time for another source. Under the lock, which is released meanwhile. */
void bid_scheduler_hedge(struct bid_download *download);

/* The window or the lingering of @download is over. Under the lock, which may be released meanwhile. */
void bid_scheduler_end_time(struct bid_download *download);

/* The wait of @waiter, who has an end of his own, is over. Under the lock, which is released while he is answered. */
void bid_scheduler_end_wait(struct bid_waiter *waiter);

/* Ask; look into the store once more before, if @look. Without the lock, once it need not wait for others; takes the reference. */
void bid_scheduler_start(struct bid_download *download, bool look);

/*
 * The result is known: nobody but the caller ends @download from here on, and what else is being asked for it is cancelled. By the
 * commit worker while the attempt that it decides on is not over, or before the first source is asked. Without the lock.
 */
void bid_download_claim(struct bid_download *download);

/*
 * By the one who claimed it, or set the phase to ENDING: answer all, with @error or a copy of @file, and end what is still being
 * asked. Without the lock.
 */
void bid_download_end(struct bid_download *download, int error, struct bid_file *file);

/*
 * Answer all waiters of @download with @error, and feed it @event. Locking: under the broker's lock, which is released while the
 * waiters are answered.
 */
void bid_scheduler_dismiss(struct bid_download *download, enum bid_event event, int error);

/* Nobody wants @download: if it can be ended, let nobody join it, and end what it asks. Under the lock. */
void bid_download_cancel(struct bid_download *download, struct bid_cancel_list *cancels);

#endif
