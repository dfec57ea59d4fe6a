// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/timer.h"

#include <stddef.h>

static struct bid_timer *meld_heaps(struct bid_timer *a, struct bid_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->at_ms < a->at_ms) {
		struct bid_timer *other = a;

		a = b;
		b = other;
	}
	b->next = a->child;
	if (b->next)
		b->next->before = b;
	b->before = a;
	a->child = b;
	return a;
}

/* Make one heap of the list of heaps at @list. */
static struct bid_timer *meld_all(struct bid_timer *list)
{
	struct bid_timer *pairs = NULL, *all = NULL;

	while (list) {
		struct bid_timer *a = list, *b = a->next, *pair;

		list = b ? b->next : NULL;
		a->next = a->before = NULL;
		if (b)
			b->next = b->before = NULL;
		pair = meld_heaps(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct bid_timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		all = meld_heaps(all, pair);
	}
	return all;
}

void bid_timer_disarm(struct bid_timer *timer)
{
	struct bid_timers *timers = timer->timers;
	struct bid_timer *below;

	if (!timers)
		return;
	if (timer == timers->first)
		timers->first = NULL;
	else if (timer->before->child == timer)
		timer->before->child = timer->next;
	else
		timer->before->next = timer->next;
	if (timer->next)
		timer->next->before = timer->before;
	below = meld_all(timer->child);
	timers->first = meld_heaps(timers->first, below);
	timer->timers = NULL;
	timer->child = timer->next = timer->before = NULL;
}

void bid_timer_arm(struct bid_timers *timers, struct bid_timer *timer, int64_t at_ms)
{
	bid_timer_disarm(timer);
	timer->at_ms = at_ms;
	timer->timers = timers;
	timers->first = meld_heaps(timers->first, timer);
}
