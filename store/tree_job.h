/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request to a tree of files: its thread, which waits for the file system by turns with calling the receiver, and who ends it
 * without that thread, because it waits for too long or is not wanted any more.
 */
#ifndef BID_TREE_JOB_H
#define BID_TREE_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "api/source.h"
#include "base/breaker.h"

/* One request. Whoever takes it out of its list owns it; from the running ones, that is its thread. */
struct bid_tree_job {
	TAILQ_ENTRY(bid_tree_job) link; /* in one of the lists below */
	uint64_t number;
	struct bid_request request; /* kept */
	struct bid_receiver receiver;
	void *user;
	atomic_bool cancelled;

	/* under the tree's lock */
	bool not_sent; /* the tree is left alone */
	bool probe; /* of the tree's breaker, which was not told yet how it ends */
	bool telling; /* its thread calls the receiver; a running one that is not waits for the file system */
	bool over; /* who set this calls done(), and nobody calls the receiver after that */
	int64_t since_ms; /* when it began to wait */
};

TAILQ_HEAD(bid_tree_jobs, bid_tree_job);

struct bid_source_tree {
	struct bid_source source;
	char *name;
	char *path;
	dev_t own; /* from which nothing is taken; 0 if there is none */
	const char *const *links; /* where links may lead, or NULL; borrowed */
	bool for_all; /* nothing is taken that not all may read */
	unsigned limit_ms; /* of a wait for the file system */

	pthread_mutex_t lock; /* guards everything below; not held during I/O, nor while a receiver is called */
	pthread_cond_t has_job;
	pthread_cond_t has_time; /* somebody began to wait, while the keeper rested */
	pthread_cond_t ends; /* while stopping: a thread ended, or began to wait */
	struct bid_tree_jobs waiting;
	struct bid_tree_jobs running; /* as many as there are threads, at most */
	uint64_t last_number;
	struct bid_breaker breaker; /* of what is on a file system that does not answer */
	uint64_t refused; /* requests that ended because of it */
	int64_t answered_ms; /* when the file system answered last */
	unsigned n_threads; /* the keeper is one */
	bool rests; /* the keeper, without a limit to wait for */
	bool stopping;
	bool given_up; /* by its owner: the last thread frees it */
};

/* Answer @job, in its thread, which begins with telling. It waits again, or is over, when this returns. Without the lock. */
void bid_tree_job_run(struct bid_source_tree *tree, struct bid_tree_job *job);

/* What the end of a wait of @job, or of @job itself, says of the file system: @text. Under the lock. */
void bid_tree_job_note(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_sign sign, const char *text);

/*
 * End @job, which is not over and does not tell, without its thread, and say @what. Under the lock, which is released meanwhile;
 * the thread may have freed it then.
 */
void bid_tree_job_finish(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_outcome outcome, const char *what);

#endif
