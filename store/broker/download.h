/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A flight: one request that is being asked of the sources, and everybody who waits for it. Whom it asks, and when, is decided by
 * race.c; what is asked of one source is an ask (ask.h).
 *
 *   FLYING    sources are asked, or are about to be
 *   AWAITING  another process fetches the same: nobody is asked (await.h)
 *   ENDING    one thread knows the result, and makes it known
 *   ENDED     the result is known; an unhappy one lingers a moment
 *
 * The wait. A kernel may look one name up for many callers one after the other, so waits are counted per flight and not per
 * caller: a window of wait_ms opens with the first waiter, and all who come before it ends are sent away when it ends. What has not
 * even been sent by then is given up: it would only take the turns of those that are waited for. Who comes
 * within BID_WINDOW_GRACE after it is sent away at once; who comes later opens a new window. For the same reason a flight that
 * ended without the artifact lingers for BID_FLIGHT_LINGER, so that 200 queued lookups do not become 200 tries.
 */
#ifndef BID_BROKER_DOWNLOAD_H
#define BID_BROKER_DOWNLOAD_H

#include "broker/attempt.h"
#include "broker/lock_waiter.h"
#include "broker/scheduler.h"

#define BID_WINDOW_GRACE  250 /* ms */
#define BID_FLIGHT_LINGER 250 /* ms */

enum bid_phase {
	BID_PHASE_FLYING,
	BID_PHASE_AWAITING,
	BID_PHASE_ENDING,
	BID_PHASE_ENDED,
};

enum bid_runner_state {
	BID_RUNNER_READY, /* can be asked */
	BID_RUNNER_ASKED,
	BID_RUNNER_OUT, /* has said something: a verdict */
};

/* A source in the race of one flight. */
struct bid_runner {
	size_t source;
	enum bid_runner_state state;
	bool overtaken; /* it was asked, and another one delivers */
	unsigned overtaken_ms; /* after how long */
	bool behind; /* and it was no faster: it is not asked again as long as anything comes */
	unsigned broken; /* bodies of it that broke off */
};

struct bid_flight {
	struct bid_broker *broker;
	struct bid_request request;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker, until the flight left its lists; one for whoever answers waiters */
	enum bid_phase phase;
	struct bid_asks asks; /* that are not over */
	unsigned n_racing; /* of them those that have not lost */
	unsigned n_begun; /* of those the ones whose headers came */
	unsigned width; /* how many may race */
	bool slow; /* all that comes is: another may be asked all the same */
	int64_t race_at_ms; /* when that is looked at, or width grows; while timed */
	bool timed; /* in the broker's list of races */
	bool decided_on; /* by a publisher: one at a time */
	bool joinable; /* in the broker's buckets */
	bool cancelled; /* nobody wants it: it ends with the next step, and nobody can join it */
	bool wanted; /* somebody has waited for it, at least for a while */
	bool timed_out; /* somebody was sent away, and may come back for it */
	bool given_up; /* everybody was, and nobody was even asked: it ends with the next step */
	bool no_room; /* a source has it, and there is no room for as much as it says */
	bool offline; /* a source was not asked because the broker was told to ask none */
	bool windowed; /* in the broker's list of windows */
	int error; /* when ENDED */
	int64_t until_ms; /* the end of the last window; when ENDED, of the lingering */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_flight *next; /* in its bucket */
	TAILQ_ENTRY(bid_flight) link; /* in the broker's flights */
	TAILQ_ENTRY(bid_flight) timer; /* in windows or lingering */
	TAILQ_ENTRY(bid_flight) race; /* in races */
	struct bid_awaiting awaiting;
	struct bid_runner *runners; /* in the order to ask; owned */
	size_t n_runners;
	char (*texts)[BID_TEXT_MAX]; /* of the verdicts; owned */
	/* for everybody */
	_Atomic size_t n_verdicts; /* entries below it do not change any more */
	struct bid_verdict verdicts[]; /* room for one per source; all strings but sources and texts are owned */
};

/*
 * What becomes of @waiter, who wants @request from the sources. Under the lock. Returns
 *   -EINPROGRESS	it waits and is not the caller's any more. With @ret_lead set, to a flight with a
 *			reference, he leads it: bid_flight_lead()
 *   other		its answer. @ret_seen is set to the flight whose verdicts belong to it, if any, with a reference
 */
int bid_flight_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		    struct bid_flight **ret_lead, struct bid_flight **ret_seen);

/*
 * Begin, unless another process fetches the same. Without the lock, by whom bid_flight_join() told to; takes the reference. With
 * @look it may have been published since he has looked.
 */
void bid_flight_lead(struct bid_flight *flight, bool look);

/* Ask; look into the store once more before, if @look. Without the lock, once it need not wait for others; takes the reference. */
void bid_flight_depart(struct bid_flight *flight, bool look);

/* Take @waiter out of its flight, and detach it. Under the lock. */
void bid_flight_leave(struct bid_waiter *waiter);

/* Move all waiters of @flight, and their tickets, to @waiters. Under the lock. */
void bid_flight_take_waiters(struct bid_flight *flight, struct bid_waiters *waiters);

/* Does nobody want @flight any more? Under the lock. */
bool bid_flight_abandoned(const struct bid_flight *flight);

/* Call and free all of @waiters, who waited for @flight, with @error or a copy of @file each. Without the lock. */
void bid_flight_answer(struct bid_flight *flight, struct bid_waiters *waiters, int error, struct bid_file *file);

/* The answer of @waiter is near: use up its ticket, unless it may have to ask for something else. Under the lock. */
void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter);

/*
 * Call and free one that was detached, or let it wait for something else. @flight may be NULL. The callee may take the descriptor
 * out of @file. Without the lock.
 */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_flight *flight);

/*
 * The result is known: nobody but the caller ends @flight from here on. By the publisher while the ask that it decides on is in the
 * race, or before the first source is asked; nobody else can end it then. Without the lock.
 */
void bid_flight_claim(struct bid_flight *flight);

/*
 * By the one who claimed it, or set the phase to ENDING: answer all, with @error or a copy of @file, and end what is still being
 * asked. Without the lock.
 */
void bid_flight_end(struct bid_flight *flight, int error, struct bid_file *file);

/* A window of @flight is over. Under the lock, which is released while the waiters are answered. */
void bid_flight_end_window(struct bid_flight *flight);

/* The wait of @waiter, who has an end of his own, is over. Under the lock, which is released while he is answered. */
void bid_flight_end_wait(struct bid_waiter *waiter);

/* The lingering is over. Under the lock. */
void bid_flight_end_linger(struct bid_flight *flight);

/* Both under the lock. */
void bid_flight_ref(struct bid_flight *flight);
void bid_flight_unref(struct bid_flight *flight);

/* bid_flight_unref() without the lock. */
void bid_flight_put(struct bid_flight *flight);

/* Can @flight be ended from outside: is nobody deciding on it, or has ended it already? Under the lock. */
bool bid_flight_cancellable(const struct bid_flight *flight);

/* Nobody wants @flight: if it can be ended, retire it, and end what it asks. Under the lock. */
void bid_flight_cancel(struct bid_flight *flight, struct bid_endings *endings);

/* along.c */

/* The dwz file @id is what the artifact of @flight, just published, cannot be read without: begin to fetch it. Without the lock. */
void bid_flight_fetch_along(const struct bid_flight *flight, const struct bid_id *id);

/* tally.c */

#define BID_NAME_MAX 512

/* What is asked for, for a message: "ID/elf", "ID/source/usr/src/a.c", as much as fits. Returns @buf. */
const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX]);

/* Note what the source of @ask said in the end, in the flight, the counters and the log. Without the lock. */
void bid_flight_verdict(struct bid_flight *flight, struct bid_ask *ask, enum bid_outcome outcome, const char *text);

/* The same of a source that was not asked, for a reason that is in @text. Not counted. Under the lock. */
void bid_flight_verdict_unasked(struct bid_flight *flight, size_t source, enum bid_outcome outcome, const char *text);

/*
 * @winner, an index into the broker's sources, has delivered: say so in place of those that were asked and got no further. By who
 * claimed the flight, without the lock.
 */
void bid_flight_verdict_overtaken(struct bid_flight *flight, size_t winner);

/* Count what came of @ask, which is not a verdict: it was cancelled. Without the lock. */
void bid_ask_count(const struct bid_ask *ask, enum bid_outcome outcome);

/* What all verdicts amount to, if none of them is "found". */
int bid_flight_conclusion(const struct bid_flight *flight);

/* Did each source say that it is too large there, or absent? */
bool bid_flight_is_too_large(const struct bid_flight *flight);

#endif
