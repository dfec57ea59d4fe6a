/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Request handles and their waiters.
 *
 * bid_handles_add()	at bid_broker_handle()
 * bid_handles_get()	while the handle is valid
 * bid_handles_take()	before the answer
 *
 * A handle is a slot and its generation: a used handle stays invalid. Locking: under the broker's lock.
 */
#ifndef BID_BROKER_REQUEST_HANDLE_H
#define BID_BROKER_REQUEST_HANDLE_H

#include <sys/queue.h>

#include "api/broker.h"

struct bid_download;

enum bid_waiter_state {
	BID_WAITER_NEW, /* before bid_broker_fetch() */
	BID_WAITER_BUSY, /* a thread answers or queues it */
	BID_WAITER_QUEUED, /* in the list of @download */
};

/*
 * A waiter: one call of @fn, or no call with NULL, as for a prefetch. The thread that takes the waiter out of the table owns it,
 * and calls @fn.
 */
struct bid_waiter {
	bid_broker_fn fn;
	void *user;
	uint64_t handle; /* 0 for none */
	struct bid_file stripped; /* debuginfo of the store, for want of a better one; or none */
	enum bid_waiter_state state;
	bool cancelled; /* cancelled while NEW or BUSY */
	struct bid_download *download; /* while QUEUED; a download with waiters is not freed */
	struct bid_download *fallback_of; /* download that waits with its fallback.waiter, which is this; else NULL */
	TAILQ_ENTRY(bid_waiter) link; /* in its download, or in a list of waiters to answer */
};

TAILQ_HEAD(bid_waiters, bid_waiter);

struct bid_handles {
	struct bid_handle_slot *slots; /* owned, with their waiters */
	uint32_t n_slots;
	uint32_t first_free; /* index, or n_slots */
};

/* Add @waiter, and set @waiter->handle. Returns 0, -ENOMEM, or -EMFILE above the limit. */
int bid_handles_add(struct bid_handles *handles, struct bid_waiter *waiter);

/* Returns the waiter of @handle, or NULL. */
struct bid_waiter *bid_handles_get(const struct bid_handles *handles, uint64_t handle);

/* Returns the next waiter from the slot *@cursor on, or NULL. The first *@cursor is 0. */
struct bid_waiter *bid_handles_next(const struct bid_handles *handles, uint32_t *cursor);

/* Take @waiter out of the table. The caller owns it. */
void bid_handles_take(struct bid_handles *handles, struct bid_waiter *waiter);

/* Free the table, without waiters in it. */
void bid_handles_release(struct bid_handles *handles);

#endif
