/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flights and what other processes fetch: whose request another one holds (<bid/hold.h>) asks nobody, but waits until it can be
 * held, and looks into the store then. Waiting takes neither a thread nor a place at a source: one thread tries for all of them.
 */
#ifndef BID_AWAIT_H
#define BID_AWAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct bid_broker;
struct bid_flight;

/* What a flight has to do with it. */
struct bid_awaiting {
	unsigned turn;
	uint64_t key;

	/* of whoever waits: of the thread */
	uint64_t pulse; /* of the holder, when it was looked at last */
	int64_t lost_at_ms; /* when that is given up, unless there is another by then */
	uint64_t failure; /* the last one, of an earlier holder */
	int64_t since_ms;
	bool in_vain; /* the holder got no answer: nobody is to be asked */
	TAILQ_ENTRY(bid_flight) link; /* in the broker's list of those; under its lock */

	/* for everybody */
	_Atomic unsigned waited_ms; /* until it went on */

	/* of the holder; under the broker's lock */
	bool holds;
	uint64_t progress; /* when it was looked at last */
	int64_t stuck_at_ms; /* when the beats end, unless there is another by then */
	TAILQ_ENTRY(bid_flight) holder; /* in the broker's list of those */
};

/*
 * May @flight, which asks nobody yet, go on? If not, it is gone on with later, and its reference with it. Without the broker's
 * lock.
 */
bool bid_await(struct bid_flight *flight);

/* @flight ended: it is no holder any more. Under the lock. Returns whether it was, and bid_await_drop() is due. */
bool bid_await_end(struct bid_flight *flight);

/* Let others have what it held, and those who have waited for it know if nobody answered. Without the lock. */
void bid_await_drop(struct bid_flight *flight);

/* The body of the thread; of a struct bid_broker. */
void *bid_broker_await(void *broker);

#endif
