/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * States of a download and of its attempts, as a pure function from an event to actions, without a thread, lock, clock or network.
 *
 * bid_machine_take()	for each event, under the broker's lock; download.c runs the actions
 *
 *   NEW        no request yet; another process may be downloading the same
 *   RUNNING    requests in flight, or a fallback: the download of a file that may have the section
 *   CANCELLED  no waiter left: ends as interrupted, after its attempts
 *   GIVEN_UP   no request sent within the wait: ends as timed out, after its attempts
 *   ENDING     result known; the waiters get it
 *   ENDED
 *
 * RUNNING starts the first candidate at once. Further ones follow, each hedge_ms after the one before, until one is chosen: the
 * first with bytes of the right id. The others are cancelled, and start again if it fails. If its body breaks off, the next
 * candidate starts, while its source retries; again the first one is chosen. A cancelled source of a broken body starts no more.
 */
#ifndef BID_BROKER_MACHINE_H
#define BID_BROKER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BID_CANDIDATES_MAX 64 /* sources of a broker; bits of bid_actions.cancel */
#define BID_NO_CANDIDATE   SIZE_MAX

enum bid_download_state {
	BID_DOWNLOAD_NEW,
	BID_DOWNLOAD_RUNNING,
	BID_DOWNLOAD_CANCELLED,
	BID_DOWNLOAD_GIVEN_UP,
	BID_DOWNLOAD_ENDING,
	BID_DOWNLOAD_ENDED,
	BID_DOWNLOAD_STATES
};

enum bid_attempt_state {
	BID_ATTEMPT_NONE, /* no attempt, but one may start */
	BID_ATTEMPT_QUEUED, /* in the queue of the source */
	BID_ATTEMPT_SENT, /* sent, no header yet */
	BID_ATTEMPT_BODY, /* header received; or the source retries after its body broke off */
	BID_ATTEMPT_CHOSEN, /* bytes with the right id received */
	BID_ATTEMPT_DECIDING, /* the source is done, a commit worker decides */
	BID_ATTEMPT_STOPPED, /* cancelled, not ended yet */
	BID_ATTEMPT_OVER, /* report made, no further attempt */
	BID_ATTEMPT_STATES
};

enum bid_machine_event {
	/* events of the download */
	BID_EVENT_START, /* start the first candidate, or another */
	BID_EVENT_TIMER, /* hedge_ms is over */
	BID_EVENT_CANCEL, /* no waiter left */
	BID_EVENT_GIVE_UP, /* the wait of all waiters is over */
	BID_EVENT_OFFLINE, /* no request may be sent */
	BID_EVENT_CLAIM, /* the result is known */
	BID_EVENT_FALLBACK_LEFT, /* the fallback has no result */
	/* events of one candidate */
	BID_EVENT_SENT,
	BID_EVENT_HEAD, /* header, or bytes after a break */
	BID_EVENT_VERIFIED, /* the first bytes carry the id */
	BID_EVENT_BROKE_OFF,
	BID_EVENT_CYCLE, /* the source requests from this broker */
	BID_EVENT_DONE, /* the source is done */
	BID_EVENT_REPORTED, /* report made */
	BID_EVENT_LEFT, /* cancelled, no report */
	BID_EVENT_SKIPPED, /* report made without a request */
	BID_EVENTS
};

struct bid_candidate {
	struct bid_source_state *from; /* download.c's */
	enum bid_attempt_state state;
	bool overtaken; /* the last attempt was cancelled, for another one or with the download */
	bool broken; /* a body broke off */
	struct bid_attempt *attempt; /* download.c's; NULL for none */
	unsigned overtaken_ms; /* download.c's: age of the overtaken attempt */
};

/* Has @candidate been cancelled after a broken body? Without this limit, two such sources could overtake each other for ever. */
static inline bool bid_candidate_is_given_up(const struct bid_candidate *candidate)
{
	return candidate->state == BID_ATTEMPT_NONE && candidate->broken && candidate->overtaken;
}

struct bid_machine {
	enum bid_download_state state;
	bool hedges; /* further candidates start until one is chosen */
	bool unwanted; /* no waiter is left, and no earlier one may return */
	unsigned fallbacks; /* other downloads that may follow the last candidate */
	bool falls_back; /* a fallback is in flight */
	unsigned max_parallel; /* limit of attempts in flight */
	struct bid_candidate *candidates; /* in the order of starts */
	size_t n;
};

struct bid_actions {
	size_t start; /* candidate to start, now QUEUED; or BID_NO_CANDIDATE */
	uint64_t cancel; /* bits of candidates to cancel */
	bool fallback; /* start the next fallback */
	bool cancel_fallback; /* cancel the fallback in flight */
	bool end; /* end the download, now ENDING */
	enum bid_download_state ended_as; /* RUNNING: by its reports; CANCELLED; GIVEN_UP */
	bool timer; /* send TIMER hedge_ms after the last start or header */
};

/* Returns the actions of @event, of @candidate or BID_NO_CANDIDATE. */
struct bid_actions bid_machine_take(struct bid_machine *machine, enum bid_machine_event event, size_t candidate);

/* Can the download still be cancelled? */
bool bid_machine_is_cancellable(const struct bid_machine *machine);

#endif
