/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types shared by the files of the broker.
 *
 *   lookup.c		lookup in the store and in the negative cache
 *   broker.c		start and end; waiters and their calls; progress, offline, refresh
 *   threads.c		disk workers and their queue, timer thread
 *   download.c		downloads and their waiters; the wait for downloads of other processes; driver of machine.c: steps the
 *			machine, runs actions
 *   machine.c		states of a download: event -> actions, pure
 *   self_request.c	servers that request the same from this broker
 *   attempt.c		transfer from one server: receive, check, publish
 *   server_reports.c		reports of a download, the error that follows; the ring of the last reports; counters, messages
 */
#ifndef BID_BROKER_TYPES_H
#define BID_BROKER_TYPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>

#include "api/broker.h"
#include "api/negative.h"
#include "base/timer.h"

#define BID_DOWNLOAD_BUCKETS 1024
#define BID_HEDGE_MS	     300

struct bid_attempt;
struct bid_download;
struct bid_waiter;

TAILQ_HEAD(bid_downloads, bid_download);
TAILQ_HEAD(bid_jobs, bid_job);
TAILQ_HEAD(bid_waiters, bid_waiter);

enum bid_waiter_state {
	BID_WAITER_NEW, /* before bid_broker_fetch() */
	BID_WAITER_BUSY, /* a thread answers or queues it */
	BID_WAITER_QUEUED, /* in the list of @download */
};

/*
 * A waiter: one call of @fn, or no call with NULL, as for a prefetch. The thread that takes the waiter out of the broker's list
 * owns it, and calls @fn.
 */
struct bid_waiter {
	bid_broker_fn fn;
	void *user;
	uint64_t id; /* 0 for none: not in the broker's list */
	enum bid_waiter_state state;
	bool cancelled; /* cancelled while NEW or BUSY */
	struct bid_download *download; /* while QUEUED; a download with waiters is not freed */
	struct bid_download *dependent; /* download that waits with its whole_file.waiter, which is this; else NULL */
	TAILQ_ENTRY(bid_waiter) link; /* in its download, or in a list of waiters to answer */
	TAILQ_ENTRY(bid_waiter) all; /* in the broker's list */
};

/* sizes of jobs that take longer than a commit: two workers leave them alone */
#define BID_JOB_DERIVATION (UINT64_MAX - 1)
#define BID_JOB_EVICTION   UINT64_MAX

/* A job for the disk workers, embedded in its download or attempt. */
struct bid_job {
	TAILQ_ENTRY(bid_job) link; /* in the broker's jobs */
	bool queued;
	bool commits; /* one such job of a download runs at a time */
	uint64_t size; /* bytes to check and write, or one of the above */
	void (*run)(struct bid_job *job); /* by a disk worker, under the lock, which it may release meanwhile */
	struct bid_download *download;
	struct bid_attempt *attempt; /* NULL for a job of the download itself */
};

/* Detection of a server that requests from this broker: self_request.c. */
struct bid_self_request {
	struct bid_id id; /* id of the marker, unknown to readers; constant */
	int64_t marker_sent_ms; /* time of the last marker; under the broker's lock */
	int64_t recognised_ms; /* time of the last request for the id here; likewise */
};

/* A server and its counters. */
struct bid_server_state {
	struct bid_server *server; /* owned */
	struct bid_server_stats stats; /* under the broker's lock */
	struct bid_self_request loop;
};

/*
 * A disk worker, for attempts up to a size: small artifacts never wait for the disk behind large ones. The last worker also
 * evicts.
 */
struct bid_disk_worker {
	struct bid_broker *broker;
	uint64_t max_size; /* of its jobs */
	pthread_t thread;
	pthread_cond_t has_job;
	bool idle; /* waits for has_job; under the broker's lock */
};

#define BID_DISK_WORKERS 4

struct bid_broker {
	struct bid_store *store; /* not owned */
	struct bid_broker_config config;
	struct bid_negative *negative; /* has its own lock */
	struct bid_download_locks *download_locks; /* locks of all processes that fetch into the store; locked inside */
	struct bid_server_state *servers; /* constant from the first request on */
	size_t n_servers;
	uint64_t servers_hash; /* bid_download_lock_server() of all */
	_Atomic bool offline; /* no server gets a request */

	/* Guards all fields below but the counters. Released during I/O and in callbacks. */
	pthread_mutex_t lock;
	struct bid_waiters waiters; /* all with a valid id, in ascending order */
	uint64_t last_waiter_id;
	size_t n_waiting;
	struct bid_download *buckets[BID_DOWNLOAD_BUCKETS]; /* by artifact: joinable downloads, and ended ones with a kept result */
	struct bid_downloads downloads; /* downloads that have not ended */
	size_t n_downloads;
	size_t n_attempts; /* with those of ended downloads */
	struct bid_server_state *preferred; /* the server of the last delivery, which gets the first attempt; or NULL */
	struct bid_jobs jobs;
	size_t n_dependents; /* downloads that wait for another one */
	struct bid_timers timers; /* timers of downloads; the timer thread calls expire() under the lock */
	/*
	 * Ring of the last reports, for attributes, info, status and messages. A report is counted by reference: one of its
	 * download, one of the ring, one of each reader without the lock.
	 */
	struct bid_report *reports[BID_REPORTS_MAX];
	size_t n_reports; /* number of all reports ever added */
	pthread_cond_t has_time; /* a new first timer */
	pthread_cond_t idle; /* no download or no attempt is left */
	bool ending; /* bid_broker_free() runs: nothing new begins */
	bool stopping; /* all downloads have ended: threads return */

	struct bid_disk_worker workers[BID_DISK_WORKERS];
	unsigned n_workers; /* started workers */
	pthread_t timer_thread;

	struct {
		_Atomic uint64_t hits, fetched, absent, unknown, rejected, interrupted;
	} counts;
};

/*
 * As bid_broker_look_up(), but count hits alone: the end of a download counts its absence. With BID_MAY_DERIVE, a disk
 * worker derives what the store can derive; otherwise -EAGAIN for it.
 */
int bid_broker_find(struct bid_broker *broker, const struct bid_artifact *artifact, enum bid_derive derive,
		    struct bid_file *ret_file, unsigned *ret_ttl);

/* Let @waiter, which is BUSY, wait for @artifact, or answer it at once. The caller no longer owns @waiter. */
void bid_broker_submit(struct bid_broker *broker, struct bid_waiter *waiter, const struct bid_artifact *artifact);

/* self_request.c */

/* Make the id of @loop. Returns 0 or a negative errno. */
int bid_self_request_init(struct bid_self_request *loop);

/* Send the markers that are due. Returns the bits of the candidates without a response because of a loop. Under the lock. */
uint64_t bid_self_request_look(struct bid_download *download);

/* Returns whether @id is the id of a server, which therefore leads back. From any thread, without the lock. */
bool bid_self_request_recognise(struct bid_broker *broker, const struct bid_id *id);

/* server_reports.c */

/* Returns a copy of @text; NULL of NULL, or without memory. */
static inline const char *bid_text_copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Free the ring, after the threads. */
void bid_broker_drop_reports(struct bid_broker *broker);

/* Under the lock. */
void bid_report_unref(struct bid_report *report);

/* threads.c */

/* Arm @timer for @at_ms. Under the lock. */
void bid_broker_arm(struct bid_broker *broker, struct bid_timer *timer, int64_t at_ms);

/* Queue @job of @size for a disk worker, unless it is queued. Under the lock. */
void bid_broker_queue(struct bid_broker *broker, struct bid_job *job, uint64_t size);

/* Start the disk workers and the timer thread. Returns 0, or a negative errno without a thread. */
int bid_broker_start_threads(struct bid_broker *broker);

/* End them. Without the lock. */
void bid_broker_stop_threads(struct bid_broker *broker);

#endif
