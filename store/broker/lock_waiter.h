/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Downloads and what other processes fetch: a download whose request another process holds ("api/hold.h") asks no source. It waits
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
 * Begin to ask for @download, unless another process fetches the same: then later. Without the lock, by whom bid_download_join()
 * told to; takes the reference. With @look it may have been published since he has looked.
 */
void bid_download_lead(struct bid_download *download, bool look);

#endif
