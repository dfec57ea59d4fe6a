/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Downloads and what other processes fetch: a download whose request another process holds (<bid/hold.h>) asks no source. It waits
 * until it can hold the request, for half a minute or half its readers' wait at most, and looks into the store then. Waiting takes
 * neither a thread nor a place at a source: one thread tries for all of them.
 */
#ifndef BID_BROKER_LOCK_WAITER_H
#define BID_BROKER_LOCK_WAITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct bid_broker;
struct bid_download;

/* What a download has to do with it. */
struct bid_lock_wait {
	uint64_t key;
	int64_t since_ms;
	TAILQ_ENTRY(bid_download) link; /* in the broker's list of those that wait; under its lock */
	_Atomic unsigned waited_ms; /* until it went on */
	bool holds; /* under the broker's lock */
};

/*
 * May @download, which asks nobody yet, go on? If not, it is gone on with later, and its reference with it. Without the broker's
 * lock.
 */
bool bid_lock_wait(struct bid_download *download);

/* @download ended: it is no holder any more. Under the lock. Returns whether it was, and bid_lock_wait_drop() is due. */
bool bid_lock_wait_end(struct bid_download *download);

/* Let others have what it held. Without the lock. */
void bid_lock_release(struct bid_download *download);

/* The body of the thread; of a struct bid_broker. */
void *bid_broker_run_lock_waiter(void *broker);

#endif
