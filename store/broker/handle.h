/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tickets and whom they belong to. A ticket is a slot and the slot's generation, so a number that was used up is never taken for a
 * newer one. Under the broker's lock.
 */
#ifndef BID_BROKER_HANDLE_H
#define BID_BROKER_HANDLE_H

#include <sys/queue.h>

#include "api/broker.h"
#include "base/timer.h"

struct bid_download;
struct bid_fallback;

enum bid_waiter_state {
	BID_WAITER_NEW, /* has not asked for anything yet */
	BID_WAITER_BUSY, /* some thread will answer or queue it: of its bid_broker_fetch(), or of the download it waited for */
	BID_WAITER_QUEUED, /* waits for @download */
};

/*
 * Somebody who is owed one call of @fn; or nobody, with that NULL, and something is fetched all the same. Whoever takes it out of
 * the table owns it, and makes the call.
 */
struct bid_waiter {
	bid_broker_fn fn;
	void *user;
	uint64_t ticket;
	enum bid_waiter_state state;
	bool cancelled; /* given up while NEW or BUSY */
	struct bid_download *download; /* while QUEUED; it stays as long as it has waiters */
	/* In place of @fn: takes what it waited for, and answers or lets it wait for something else. NULL if it is @fn alone. */
	void (*answer)(struct bid_broker *broker, struct bid_waiter *waiter, struct bid_result *result,
		       struct bid_download *download);
	struct bid_fallback *fallback; /* of who waits for a section: what is asked for in its place; owned, else NULL */
	int64_t until_ms; /* the end of its wait, however much is asked for in it; 0 if it ends with its download's window */
	struct bid_timer limit; /* armed while QUEUED, with an end of its own */
	TAILQ_ENTRY(bid_waiter) link; /* in its download, or in the list of those who are being answered */
};

TAILQ_HEAD(bid_waiters, bid_waiter);

struct bid_tickets {
	struct bid_ticket_slot *slots; /* owned; their waiters too */
	uint32_t n_slots;
	uint32_t first_free; /* an index; n_slots if none */
};

/* Give @waiter a ticket, in @waiter->ticket. Returns 0, -ENOMEM, or -EMFILE for an absurd number of them. */
int bid_tickets_add(struct bid_tickets *tickets, struct bid_waiter *waiter);

/* The one @ticket belongs to, or NULL if it was used up or never given. */
struct bid_waiter *bid_tickets_get(const struct bid_tickets *tickets, uint64_t ticket);

/* The table's next one, from the slot *@cursor on (at first 0), or NULL after the last. */
struct bid_waiter *bid_tickets_next(const struct bid_tickets *tickets, uint32_t *cursor);

/* Use up the ticket of @waiter, which is the caller's now. */
void bid_tickets_take(struct bid_tickets *tickets, struct bid_waiter *waiter);

/* Only when every ticket was used up. */
void bid_tickets_release(struct bid_tickets *tickets);

#endif
