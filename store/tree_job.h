/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request to a tree of files. Its thread alternates between waits for the file system and calls of the receiver. The timer thread
 * or a cancellation ends the request without this thread, after the deadline or when it is no longer wanted.
 */
#ifndef BID_TREE_JOB_H
#define BID_TREE_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "api/source.h"
#include "base/breaker.h"

/*
 * A request. Its list owns it; the code that removes it from a list becomes its owner. For a running request, only its thread does
 * so.
 */
struct bid_tree_job {
	TAILQ_ENTRY(bid_tree_job) link; /* in one of the lists below */
	struct bid_request request; /* kept */
	struct bid_receiver receiver;
	void *user;
	atomic_bool cancelled;

	/* under the tree's lock */
	bool not_sent; /* the breaker is open */
	bool probe; /* the probe request of the tree's breaker, without a result so far */
	bool telling; /* its thread calls the receiver; otherwise a running job waits for the file system */
	bool over; /* the code that sets this calls done(); no further calls of the receiver */
	int64_t since_ms; /* begin of the wait */
};

TAILQ_HEAD(bid_tree_jobs, bid_tree_job);

struct bid_source_tree {
	struct bid_source source;
	char *name;
	char *path;
	dev_t own; /* device that the source must not serve from; 0 without one */
	const char *const *links; /* where links may lead, or NULL; borrowed */
	bool for_all; /* serve only files that all users may read */
	unsigned limit_ms; /* limit of a wait for the file system */

	pthread_mutex_t lock; /* guards everything below; not held during I/O, nor during a call of a receiver */
	pthread_cond_t has_job;
	pthread_cond_t has_time; /* a job has begun to wait while the timer thread slept */
	pthread_cond_t ends; /* while stopping: a thread ended, or began to wait */
	struct bid_tree_jobs waiting;
	struct bid_tree_jobs running; /* as many as there are threads, at most */
	struct bid_breaker breaker; /* breaker for a file system that does not respond */
	uint64_t refused; /* requests ended by the breaker */
	int64_t answered_ms; /* when the file system answered last */
	unsigned n_threads; /* with the timer thread */
	bool rests; /* the timer thread sleeps without a deadline */
	bool stopping;
	bool given_up; /* the owner has left: the last thread frees the tree */
};

/* Run @job in its thread, with @telling set. On return it waits again, or is over. Called without the lock. */
void bid_tree_job_run(struct bid_source_tree *tree, struct bid_tree_job *job);

/* Report the health @sign of the file system, with @text, after a wait of @job or at its end. Called with the lock. */
void bid_tree_job_note(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_sign sign, const char *text);

/*
 * End @job without its thread and report @what. @job is not over, and its thread does not call the receiver. Called with the lock,
 * which is released meanwhile; the thread may have freed @job then.
 */
void bid_tree_job_finish(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_outcome outcome, const char *what);

#endif
