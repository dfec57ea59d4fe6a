/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers: a pairing heap with embedded nodes, the earliest at the top. Arming allocates nothing, so it never fails. The heap has no
 * lock, clock or thread: its owner sleeps until the earliest timer.
 */
#ifndef BID_BASE_TIMER_H
#define BID_BASE_TIMER_H

#include <stdint.h>

struct bid_timer {
	int64_t at_ms; /* on the monotonic clock, while armed */
	void (*expire)(void *user); /* for the owner of the heap to call */
	void *user;
	struct bid_timers *timers; /* NULL if not armed */
	struct bid_timer *child, *next, *before; /* in the heap; before is the parent of a first child */
};

/* All zero is empty. */
struct bid_timers {
	struct bid_timer *first;
};

/* Arm @timer for @at_ms, in place of an earlier time. */
void bid_timer_arm(struct bid_timers *timers, struct bid_timer *timer, int64_t at_ms);

/* Disarm @timer, if it is armed. */
void bid_timer_disarm(struct bid_timer *timer);

#endif
