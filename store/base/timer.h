/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers, the first to end at the top: a pairing heap whose nodes lie in what they belong to. Arming allocates nothing, so it never
 * fails. Has no lock, clock or thread: its owner sleeps until the first one ends.
 */
#ifndef BID_BASE_TIMER_H
#define BID_BASE_TIMER_H

#include <stdint.h>

struct bid_timer {
	int64_t at_ms; /* of the monotonic clock, while armed */
	unsigned kind; /* the owner's */
	void *user;
	struct bid_timers *timers; /* NULL if not armed */
	struct bid_timer *child, *next, *before; /* in the heap; before is the parent of a first child */
};

/* All zero is empty. */
struct bid_timers {
	struct bid_timer *first;
};

/* Let @timer end at @at_ms, and not when it was to before. */
void bid_timer_arm(struct bid_timers *timers, struct bid_timer *timer, int64_t at_ms);

/* Does nothing to a timer that is not armed. */
void bid_timer_disarm(struct bid_timer *timer);

#endif
