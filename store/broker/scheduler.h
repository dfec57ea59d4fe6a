/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The scheduler lets the state machine of a download (machine.h) take events, and runs the actions that it asks for. The first
 * candidate is the source that delivered last.
 */
#ifndef BID_BROKER_SCHEDULER_H
#define BID_BROKER_SCHEDULER_H

#include "broker/attempt.h"
#include "broker/machine.h"

/* Transfers to end, collected under the lock and ended without it. */
struct bid_cancel_list {
	struct {
		struct bid_source *source;
		uint64_t transfer;
	} of[BID_CANDIDATES_MAX];
	unsigned n;
};

/* @attempt was started, and is to be ended. Under the lock. */
void bid_cancel_list_add(struct bid_cancel_list *cancels, const struct bid_attempt *attempt);

/* Without the lock. */
void bid_cancel_list_run(const struct bid_cancel_list *cancels);

/* Choose the order of the sources for @download, which none was asked for yet. Without the lock. */
void bid_scheduler_line_up(struct bid_download *download);

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

/* hedge_ms are over. @download is a struct bid_download. Under the lock, which is released meanwhile. */
void bid_scheduler_time_out(void *download);

#endif
