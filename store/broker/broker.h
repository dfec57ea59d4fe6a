/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types that the files of the broker share.
 *
 *   lifecycle.c		start and end of a broker and its threads
 *   broker.c		interface: find, tickets, cancel, progress
 *   download.c		downloads and their waiters
 *   lock_waiter.c	thread that waits for downloads of other processes
 *   machine.c		states of a download: event -> actions, pure
 *   scheduler.c		driver of machine.c: feeds events, runs actions
 *   loop.c		sources that ask this broker in turn
 *   attempt.c		one request to one source: start, receive
 *   refresh.c		drop negative cache entries, for a caller
 *   offline.c		stop all requests, for a caller
 *   prefetch.c		fetch files that a download refers to
 *   fallback.c		fetch a whole file when no source has the section
 *   commit_worker.c	threads that check and publish downloads
 *   timers.c		timer thread
 *   stats.c		reports, counters, messages
 *   negative.c		negative cache, with reasons
 *   responses.c		ring of the last responses
 */
#ifndef BID_BROKER_PRIVATE_H
#define BID_BROKER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "api/broker.h"
#include "base/timer.h"
#include "broker/handle.h"
#include "broker/negative.h"
#include "broker/responses.h"

#define BID_DOWNLOAD_BUCKETS 1024
#define BID_HEDGE_MS	     300

struct bid_attempt;
struct bid_download;

TAILQ_HEAD(bid_downloads, bid_download);
TAILQ_HEAD(bid_attempts, bid_attempt);

/* Whether a source asks this broker: loop.h. */
struct bid_loop {
	struct bid_id id; /* that nobody else asks for; does not change */
	int64_t probed_ms; /* when the source was asked for it last; under the broker's lock */
	_Atomic int64_t recognised_ms; /* when a request for it arrived last */
	_Atomic bool probing; /* the source has not answered yet */
};

/* A source and what it did so far. */
struct bid_source_state {
	struct bid_source *source; /* owned */
	struct bid_source_stats stats; /* under the broker's lock */
	struct bid_loop loop;
};

/*
 * One of the threads that decide what became of attempts: of those that have no more to be committed than it takes, so that what is
 * quickly done never waits for the disk. The last one evicts as well.
 */
struct bid_commit_worker {
	struct bid_broker *broker;
	uint64_t largest; /* bytes */
	pthread_t thread;
};

#define BID_COMMIT_WORKERS 4

struct bid_broker {
	struct bid_store *store; /* not owned */
	struct bid_broker_config config;
	struct bid_negative negative; /* has its own lock */
	struct bid_holds *holds; /* of all processes that fetch into the store; have their own lock */
	struct bid_source_state *sources; /* does not change from the first request on */
	size_t n_sources;
	uint64_t sources_hold; /* what stands for them (bid_hold_source()) */
	_Atomic bool offline; /* none of them is asked */

	/* Guards everything below but the counters. Not held during I/O, while a callback runs, or while a source is called. */
	pthread_mutex_t lock;
	struct bid_tickets tickets;
	size_t n_waiting;
	struct bid_download *buckets[BID_DOWNLOAD_BUCKETS]; /* by request: those that can be joined, and lingering results */
	struct bid_downloads downloads; /* all that have not ended */
	size_t n_downloads;
	size_t n_attempts; /* of ended downloads too */
	size_t preferred; /* the index of the source that is asked first */
	struct bid_attempts jobs; /* what the commit workers have to decide */
	struct bid_timers timers; /* ends of windows, waits and lingering results, and hedged requests */
	struct bid_downloads lock_waits; /* those that wait for another process, and are not being looked at by the thread */
	size_t n_lock_waits; /* with the one that is */
	struct bid_responses responses;
	pthread_cond_t has_job;
	pthread_cond_t has_time; /* a new first one in timers */
	pthread_cond_t has_lock_wait; /* one in lock_waits */
	pthread_cond_t idle; /* no download is left, or no attempt */
	bool ending; /* bid_broker_free() is at work: nothing new begins */
	bool stopping; /* and has seen the last download end: threads return */

	struct bid_commit_worker workers[BID_COMMIT_WORKERS];
	unsigned n_workers; /* that were started */
	bool has_timer_thread, has_lock_waiter; /* the next two were started */
	pthread_t timer_thread;
	pthread_t lock_waiter;

	struct {
		_Atomic uint64_t hits, fetched, absent, unknown, rejected, interrupted;
	} counts;
};

/* bid_broker_find() without counting what is not to be had. */
int bid_broker_lookup(struct bid_broker *broker, const struct bid_request *request, struct bid_file *ret_file, unsigned *ret_ttl);

/* Ask for @request on behalf of @waiter, who is BUSY, and not the caller's any more: it is answered, perhaps at once, or queued. */
void bid_broker_submit(struct bid_broker *broker, struct bid_waiter *waiter, const struct bid_request *request);

enum bid_timer_kind {
	BID_TIMER_DOWNLOAD, /* of a struct bid_download: its window or its lingering ends */
	BID_TIMER_HEDGE, /* of a struct bid_download: another source may be asked */
	BID_TIMER_WAIT, /* of a struct bid_waiter: its wait ends */
};

/* Let @timer end at @at_ms. Under the lock. */
void bid_broker_arm(struct bid_broker *broker, struct bid_timer *timer, int64_t at_ms);

/* The bodies of the threads; of a struct bid_commit_worker, and of the struct bid_broker. */
void *bid_broker_run_worker(void *worker);
void *bid_broker_run_timers(void *broker);
void *bid_broker_run_lock_waiter(void *broker);

#endif
