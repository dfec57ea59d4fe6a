/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Downloads of other processes.
 *
 * A download starts no attempt while another process holds the lock of its request ("api/hold.h"). The download waits for the lock,
 * for half a minute or half its readers' wait at most, and then looks into the store. One thread waits for all such downloads.
 */
#ifndef BID_BROKER_LOCK_WAITER_H
#define BID_BROKER_LOCK_WAITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct bid_broker;
struct bid_download;

/* State of the wait, part of a download. */
struct bid_lock_wait {
	uint64_t key;
	int64_t since_ms;
	TAILQ_ENTRY(bid_download) link; /* in broker->lock_waits; under its lock */
	_Atomic unsigned waited_ms; /* time of the wait */
	bool holds; /* under the broker's lock */
};

/*
 * Start @download, or let it wait for another process's download of the same. @look: another thread may have published the
 * artifact. Takes the reference of bid_download_join(). Without the lock.
 */
void bid_download_lead(struct bid_download *download, bool look);

#endif
