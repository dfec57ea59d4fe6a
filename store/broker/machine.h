/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * States of a download and of its attempts, as a pure function from an event to actions. The function uses no thread, lock, clock
 * or network: scheduler.c feeds the events under the broker's lock, and runs the actions without it.
 *
 *   NEW        no request yet; another process may be downloading the same
 *   RUNNING    requests under way
 *   CANCELLED  no waiter left: ends as interrupted, after its attempts
 *   GIVEN_UP   no request sent within the wait: ends as timed out, after its attempts
 *   ENDING     result known; the waiters get it
 *   ENDED
 *
 * RUNNING starts the first candidate at once, and the next one hedge_ms after the one before, until one leads. The first candidate
 * whose bytes carry the id leads. Its rivals are cancelled, and start again if the leader fails. A candidate whose body broke off
 * rests while its source retries; meanwhile the next one starts, and leads once it has more bytes.
 */
#ifndef BID_BROKER_MACHINE_H
#define BID_BROKER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BID_CANDIDATES_MAX 64 /* sources of a broker: as many bits has bid_actions.cancel */
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
	BID_ATTEMPT_NONE, /* can be asked, for the first time or again */
	BID_ATTEMPT_QUEUED, /* the source keeps it in line */
	BID_ATTEMPT_SENT, /* and has sent it: no headers came */
	BID_ATTEMPT_BACKOFF, /* its body broke off */
	BID_ATTEMPT_BODY, /* its headers came */
	BID_ATTEMPT_LEADING, /* and bytes that carry the id */
	BID_ATTEMPT_DECIDING, /* the source is done: a commit worker decides */
	BID_ATTEMPT_STOPPED, /* told to end, and has not yet */
	BID_ATTEMPT_OVER, /* it has a report, and is not asked again */
	BID_ATTEMPT_STATES
};

enum bid_event {
	/* of the download */
	BID_EVENT_START, /* ask, or see whether to ask */
	BID_EVENT_TIMER, /* it is time for another one */
	BID_EVENT_CANCEL, /* nobody wants it */
	BID_EVENT_GIVE_UP, /* all waits are over */
	BID_EVENT_OFFLINE, /* nothing is to be sent any more */
	BID_EVENT_CLAIM, /* the result is known */
	/* of one candidate */
	BID_EVENT_SENT,
	BID_EVENT_HEAD, /* or bytes of a body that had broken off */
	BID_EVENT_VERIFIED, /* the bytes carry the id */
	BID_EVENT_BROKE_OFF,
	BID_EVENT_LOOPED, /* its source asks this broker for the same */
	BID_EVENT_DONE, /* the source is done */
	BID_EVENT_REPORTED, /* it has a report */
	BID_EVENT_LEFT, /* it has none: it was told to end */
	BID_EVENT_SKIPPED, /* it was to be asked, and has a report without */
	BID_EVENTS
};

struct bid_candidate {
	size_t source; /* an index into the broker's */
	enum bid_attempt_state state;
	bool overtaken; /* the last attempt was told to end for another, or with the download */
	unsigned broken; /* bodies that broke off */
	uint64_t received; /* of the body; up to date with VERIFIED */
	struct bid_attempt *attempt; /* the scheduler's, while there is one */
	unsigned overtaken_ms; /* the scheduler's: after how long it was overtaken */
};

struct bid_machine {
	enum bid_download_state state;
	bool hedges; /* further ones are asked beside those that do not lead yet */
	bool unwanted; /* nobody waits, and nobody will come back */
	unsigned max_parallel; /* attempts under way */
	struct bid_candidate *candidates; /* in the order of probing */
	size_t n;
};

struct bid_actions {
	size_t start; /* the candidate to ask, or BID_NO_CANDIDATE; it is QUEUED from here on */
	uint64_t cancel; /* bits of candidates whose transfers are to be cancelled */
	bool end; /* the download is to be ended, which is ENDING from here on ... */
	enum bid_download_state ended_as; /* ... as RUNNING (by its reports), CANCELLED or GIVEN_UP */
	bool timer; /* TIMER is wanted, some time after the last start or headers */
};

/* Take @event, of @candidate unless it is one of the download. */
struct bid_actions bid_machine_take(struct bid_machine *machine, enum bid_event event, size_t candidate);

/* Can it still be cancelled? */
bool bid_machine_is_cancellable(const struct bid_machine *machine);

#endif
