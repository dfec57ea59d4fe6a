/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * States of a download and of its candidates: a pure function from an event to actions, without a thread, lock, clock or network.
 *
 * bid_machine_step()	for each event, under the broker's lock; download.c runs the actions
 *
 *   NEW        no request yet; another process may be downloading the same
 *   RUNNING    requests in flight, or the download of a whole file: a file that may have the section
 *   CANCELLED  no waiter left: ends as interrupted, after its attempts
 *   TIMED_OUT  no request sent within the wait: ends as timed out, after its attempts
 *   ENDED      result known; attempts may still end
 *
 * RUNNING starts the first candidate at once, and one more each hedge_ms, until one is chosen: the first with bytes of the right
 * id. The others are then cancelled; they start again if the chosen one fails.
 * If the chosen body breaks off, its server retries, and the next candidate starts at once. Again the first with bytes is chosen. A
 * server whose broken body was overtaken does not start again: two such servers could overtake each other for ever.
 */
#ifndef BID_BROKER_MACHINE_H
#define BID_BROKER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BID_CANDIDATES_MAX 64 /* servers of a broker; bits of bid_actions.cancel */
#define BID_NO_CANDIDATE   SIZE_MAX

enum bid_download_state {
	BID_DOWNLOAD_NEW,
	BID_DOWNLOAD_RUNNING,
	BID_DOWNLOAD_CANCELLED,
	BID_DOWNLOAD_TIMED_OUT,
	BID_DOWNLOAD_ENDED,
	BID_DOWNLOAD_STATES
};

/*
 * The order counts: an attempt is under way from QUEUED to CHOSEN. One may start while IDLE or IDLE_AGAIN, unless a body broke off.
 */
enum bid_candidate_state {
	BID_CANDIDATE_IDLE, /* no attempt, but one may start */
	BID_CANDIDATE_IDLE_AGAIN, /* likewise, after a cancelled attempt */
	BID_CANDIDATE_QUEUED, /* in the queue of the server */
	BID_CANDIDATE_SENT, /* sent, no header yet */
	BID_CANDIDATE_BODY, /* header received; or the server retries after its body broke off */
	BID_CANDIDATE_CHOSEN, /* its first bytes carry the right id, and the others are stopped */
	BID_CANDIDATE_DECIDING, /* the server is done, a disk worker decides */
	BID_CANDIDATE_STOPPED, /* cancelled, and the server is not done yet */
	BID_CANDIDATE_DROPPING, /* cancelled, and the server is done; a disk worker drops it */
	BID_CANDIDATE_DONE, /* report made, no further attempt */
	BID_CANDIDATE_STATES
};

enum bid_machine_event {
	/* events of the download */
	BID_EVENT_START, /* start a candidate, unless an attempt is in flight */
	BID_EVENT_TIMER, /* hedge_ms is over */
	BID_EVENT_CANCEL, /* no waiter left */
	BID_EVENT_TIMEOUT, /* the wait of all waiters is over */
	BID_EVENT_OFFLINE, /* no request may be sent */
	BID_EVENT_RESULT, /* the result is known */
	BID_EVENT_WHOLE_FILE_FAILED, /* the whole file has no result */
	/* events of one candidate */
	BID_EVENT_SENT,
	BID_EVENT_HEADER,
	BID_EVENT_CHECKED, /* 64 KiB carry no other id; of an artifact without an id, the first bytes */
	BID_EVENT_BROKE_OFF,
	BID_EVENT_LOOP, /* the server requests from this broker */
	BID_EVENT_DONE, /* the server is done */
	BID_EVENT_DONE_CANCELLED, /* likewise, because the attempt was cancelled */
	BID_EVENT_REPORTED, /* report made, perhaps without a request */
	BID_EVENT_DROPPED, /* attempt dropped without a report */
	BID_EVENTS
};

struct bid_candidate {
	struct bid_server_state *from; /* download.c's */
	enum bid_candidate_state state;
	bool broken; /* a body broke off: no attempt after this one */
	struct bid_attempt *attempt; /* download.c's; NULL for none */
	unsigned stopped_ms; /* download.c's: age of the attempt when it was cancelled */
};

struct bid_machine {
	enum bid_download_state state;
	bool unwanted; /* no waiter is left, and no earlier one may return */
	unsigned whole_files; /* whole files to wait for, after the last candidate */
	unsigned whole_files_tried; /* those waited for, with the present one */
	bool awaits_whole_file; /* the download of a whole file is in flight */
	struct bid_candidate *candidates; /* in the order of starts */
	size_t n;
};

enum bid_hedge {
	BID_HEDGE_STOP, /* no TIMER */
	BID_HEDGE_KEEP, /* TIMER as before, or as after a start */
	BID_HEDGE_AFTER_START, /* TIMER after hedge_ms */
	BID_HEDGE_AFTER_HEADER, /* TIMER after BID_HEADER_HEDGES times hedge_ms: a connection starts slowly */
};

#define BID_HEADER_HEDGES 3

struct bid_actions {
	size_t start; /* candidate to start, now QUEUED; or BID_NO_CANDIDATE */
	uint64_t cancel; /* bits of candidates to cancel */
	bool whole_file; /* wait for the next whole file */
	bool cancel_whole_file; /* end the wait for the whole file */
	bool end; /* end the download, now ENDED */
	enum bid_download_state ended_as; /* RUNNING: by its reports; CANCELLED; TIMED_OUT */
	enum bid_hedge hedge;
};

/* Returns the actions of @event, of @candidate or BID_NO_CANDIDATE. */
struct bid_actions bid_machine_step(struct bid_machine *machine, enum bid_machine_event event, size_t candidate);

/* Can the download still be cancelled? */
bool bid_machine_is_cancellable(const struct bid_machine *machine);

/* Does the report of the attempt of @candidate count, once its server is done? Otherwise the attempt is dropped. */
bool bid_machine_wants_report(const struct bid_machine *machine, size_t candidate);

#endif
