// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A directory as a source. It may be on a slow file system, such as NFS or another mount.bidfs: own threads wait for it, never the
 * caller of start(). It may be on a file system that no longer responds: requests then end without their waiting threads, which
 * stay behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tree_job.h"

enum {
	THREADS = 4,
	END_MS = 1000, /* how long the end waits for the file system */
};

static const char silent[] = "the file system does not answer";

static struct bid_source_tree *tree_of(struct bid_source *source)
{
	return (struct bid_source_tree *)source;
}

static void job_free(struct bid_tree_job *job)
{
	bid_request_release(&job->request);
	free(job);
}

/* As bid_tree_job_finish(), for a job without a thread. Frees the job. */
static void finish_waiting(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_outcome outcome, const char *what)
{
	TAILQ_REMOVE(&tree->waiting, job, link);
	bid_tree_job_finish(tree, job, outcome, what);
	job_free(job);
}

/* Does the breaker refuse requests now? If so, @ret_text has the reason. */
static bool is_refused(const struct bid_source_tree *tree, char *ret_text, size_t size)
{
	if (bid_breaker_remaining_s(&tree->breaker, bid_clock_ms()) == 0)
		return false;
	bid_breaker_describe(&tree->breaker, ret_text, size);
	return true;
}

static void refuse(struct bid_source_tree *tree, struct bid_tree_job *job, const char *text)
{
	tree->refused++;
	job->not_sent = true;
	finish_waiting(tree, job, BID_OUTCOME_UNREACHABLE, text);
}

static void tree_release(struct bid_source_tree *tree)
{
	pthread_cond_destroy(&tree->ends);
	pthread_cond_destroy(&tree->has_time);
	pthread_cond_destroy(&tree->has_job);
	pthread_mutex_destroy(&tree->lock);
	free(tree->name);
	free(tree->path);
	free(tree);
}

/* End the calling thread. Called with the lock, which it releases. */
static void leave(struct bid_source_tree *tree)
{
	bool last = --tree->n_threads == 0 && tree->given_up;

	pthread_cond_broadcast(&tree->ends);
	pthread_mutex_unlock(&tree->lock);
	if (last)
		tree_release(tree);
}

static void *tree_main(void *argument)
{
	struct bid_source_tree *tree = argument;

	pthread_mutex_lock(&tree->lock);
	while (!tree->stopping) {
		struct bid_tree_job *job = TAILQ_FIRST(&tree->waiting);

		/* the timer thread ends jobs that the breaker refuses; other jobs wait for the probe request */
		if (!job || !bid_breaker_admits(&tree->breaker, bid_clock_ms(), &job->probe)) {
			pthread_cond_wait(&tree->has_job, &tree->lock);
			continue;
		}
		TAILQ_REMOVE(&tree->waiting, job, link);
		TAILQ_INSERT_TAIL(&tree->running, job, link);
		job->telling = true;
		pthread_mutex_unlock(&tree->lock);
		bid_tree_job_run(tree, job);
		pthread_mutex_lock(&tree->lock);
		TAILQ_REMOVE(&tree->running, job, link);
		job_free(job);
	}
	leave(tree);
	return NULL;
}

/*
 * Count the threads beyond their deadline. @ret_job is one of them with an unfinished request, or NULL; @ret_next is the next
 * deadline.
 */
static unsigned count_lost(struct bid_source_tree *tree, struct bid_tree_job **ret_job, int64_t *ret_next)
{
	int64_t now = bid_clock_ms();
	unsigned lost = 0;
	struct bid_tree_job *job;

	*ret_job = NULL;
	*ret_next = INT64_MAX;
	for (job = TAILQ_FIRST(&tree->running); job; job = TAILQ_NEXT(job, link)) {
		int64_t limit = job->since_ms + tree->limit_ms;

		if (job->telling)
			continue;
		if (limit > now) {
			*ret_next = limit < *ret_next ? limit : *ret_next;
			continue;
		}
		lost++;
		if (!job->over)
			*ret_job = job;
	}
	return lost;
}

/*
 * End @job, which is beyond its deadline. A file system that served another request in the second half of the wait, for example one
 * that fetches, counts as neither healthy nor dead.
 */
static void end_silence(struct bid_source_tree *tree, struct bid_tree_job *job)
{
	bool answers = tree->answered_ms > job->since_ms + tree->limit_ms / 2;

	bid_tree_job_note(tree, job, answers ? BID_SIGN_NONE : BID_SIGN_DEAD, silent);
	bid_tree_job_finish(tree, job, BID_OUTCOME_UNREACHABLE, silent);
}

/* Find a cancelled job of @jobs that can end without its thread. */
static struct bid_tree_job *find_cancelled(struct bid_tree_jobs *jobs)
{
	struct bid_tree_job *job = TAILQ_FIRST(jobs);

	while (job && (!job->cancelled || job->telling || job->over))
		job = TAILQ_NEXT(job, link);
	return job;
}

/* End the cancelled requests. Called with the lock, which is released meanwhile. */
static void end_cancelled(struct bid_source_tree *tree)
{
	struct bid_tree_job *job;

	while ((job = find_cancelled(&tree->waiting)))
		finish_waiting(tree, job, BID_OUTCOME_CANCELLED, "cancelled");
	while ((job = find_cancelled(&tree->running)))
		bid_tree_job_finish(tree, job, BID_OUTCOME_CANCELLED, "cancelled");
}

/* The timer thread: end cancelled requests, and requests to a file system that does not respond. */
static void *keep_time(void *argument)
{
	struct bid_source_tree *tree = argument;
	char text[256];

	pthread_mutex_lock(&tree->lock);
	for (;;) {
		struct bid_tree_job *job, *waiting;
		struct timespec until;
		int64_t next;
		unsigned lost;

		end_cancelled(tree);
		if (tree->stopping)
			break;
		waiting = TAILQ_FIRST(&tree->waiting);
		lost = count_lost(tree, &job, &next);
		until = (struct timespec){ .tv_sec = next / 1000, .tv_nsec = next % 1000 * 1000000 };
		if (job) {
			end_silence(tree, job);
		} else if (waiting && is_refused(tree, text, sizeof(text))) {
			refuse(tree, waiting, text);
		} else if (waiting && lost == THREADS) {
			finish_waiting(tree, waiting, BID_OUTCOME_UNREACHABLE, silent);
		} else if (next != INT64_MAX) {
			pthread_cond_clockwait(&tree->has_time, &tree->lock, CLOCK_MONOTONIC, &until);
		} else {
			tree->rests = true;
			pthread_cond_wait(&tree->has_time, &tree->lock);
			tree->rests = false;
		}
	}
	leave(tree);
	return NULL;
}

static int tree_start(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver, void *user)
{
	struct bid_source_tree *tree = tree_of(source);
	struct bid_tree_job *job;

	if (!bid_kind_fetchable(request->kind))
		return -EOPNOTSUPP;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->request = bid_request_keep(request);
	job->receiver = *receiver;
	job->user = user;

	pthread_mutex_lock(&tree->lock);
	TAILQ_INSERT_TAIL(&tree->waiting, job, link);
	pthread_cond_signal(&tree->has_job);
	/* the timer thread ends it if the breaker refuses it, or all threads are beyond their deadlines */
	if (tree->breaker.open || (tree->rests && !TAILQ_EMPTY(&tree->running)))
		pthread_cond_signal(&tree->has_time);
	pthread_mutex_unlock(&tree->lock);
	return 0;
}

/* Mark the request of @user, or all for NULL. Called with the lock. */
static void mark_cancelled(struct bid_tree_jobs *jobs, const void *user)
{
	struct bid_tree_job *job;

	for (job = TAILQ_FIRST(jobs); job; job = TAILQ_NEXT(job, link))
		job->cancelled = job->cancelled || !user || job->user == user;
}

static void cancel(struct bid_source_tree *tree, const void *user)
{
	mark_cancelled(&tree->waiting, user);
	mark_cancelled(&tree->running, user);
	pthread_cond_signal(&tree->has_time);
}

static void tree_cancel(struct bid_source *source, const void *user)
{
	struct bid_source_tree *tree = tree_of(source);

	pthread_mutex_lock(&tree->lock);
	cancel(tree, user);
	pthread_mutex_unlock(&tree->lock);
}

/* Is there a thread that does not wait for the file system? Called with the lock. */
static bool is_busy(const struct bid_source_tree *tree)
{
	unsigned n_waiting = 0;
	const struct bid_tree_job *job;

	for (job = TAILQ_FIRST(&tree->running); job; job = TAILQ_NEXT(job, link))
		n_waiting += !job->telling;
	return tree->n_threads > n_waiting;
}

static void tree_free(struct bid_source *source)
{
	struct bid_source_tree *tree = tree_of(source);
	int64_t end = bid_clock_ms() + END_MS;
	struct timespec until = { .tv_sec = end / 1000, .tv_nsec = end % 1000 * 1000000 };
	bool given_up;
	int r = 0;

	pthread_mutex_lock(&tree->lock);
	tree->stopping = true;
	cancel(tree, NULL);
	pthread_cond_broadcast(&tree->has_job);
	pthread_cond_signal(&tree->has_time);
	/* wait for all threads that call a receiver or are about to end; wait for the file system only END_MS */
	while (is_busy(tree))
		pthread_cond_wait(&tree->ends, &tree->lock);
	while (tree->n_threads > 0 && r == 0)
		r = pthread_cond_clockwait(&tree->ends, &tree->lock, CLOCK_MONOTONIC, &until);
	given_up = tree->given_up = tree->n_threads > 0;
	pthread_mutex_unlock(&tree->lock);
	if (!given_up)
		tree_release(tree);
}

static void tree_health(struct bid_source *source, struct bid_source_health *ret_health)
{
	struct bid_source_tree *tree = tree_of(source);
	const struct bid_breaker *breaker = &tree->breaker;

	pthread_mutex_lock(&tree->lock);
	*ret_health = (struct bid_source_health){
		.breaker = !breaker->open     ? BID_BREAKER_CLOSED
			   : breaker->probing ? BID_BREAKER_PROBING
					      : BID_BREAKER_OPEN,
		.failures = breaker->failures,
		.next_probe_s = bid_breaker_remaining_s(breaker, bid_clock_ms()),
		.refused = tree->refused,
	};
	snprintf(ret_health->trouble, sizeof(ret_health->trouble), "%s", breaker->trouble);
	pthread_mutex_unlock(&tree->lock);
}

static const struct bid_source_ops tree_ops = {
	.start = tree_start,
	.cancel = tree_cancel,
	.free = tree_free,
	.health = tree_health,
};

static int start_thread(struct bid_source_tree *tree, const char *name, void *(*body)(void *))
{
	pthread_t thread;
	int r;

	tree->n_threads++;
	r = bid_thread_start(&thread, name, body, tree);
	if (r < 0)
		tree->n_threads--;
	else
		pthread_detach(thread);
	return r;
}

/* Start all threads. Called with the lock: no thread must end before all are counted. */
static int start_threads(struct bid_source_tree *tree)
{
	int r = start_thread(tree, "bid-tree-time", keep_time);

	for (unsigned i = 0; r == 0 && i < THREADS; i++)
		r = start_thread(tree, "bid-tree", tree_main);
	return r;
}

int bid_source_tree_new(const char *name, const char *path, dev_t own, bool for_all, unsigned limit_ms, const char *const *links,
			struct bid_source **ret_source)
{
	struct bid_source_tree *tree;
	int r;

	if (path[0] != '/')
		return -EINVAL;
	tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	pthread_mutex_init(&tree->lock, NULL);
	pthread_cond_init(&tree->has_job, NULL);
	pthread_cond_init(&tree->has_time, NULL);
	pthread_cond_init(&tree->ends, NULL);
	TAILQ_INIT(&tree->waiting);
	TAILQ_INIT(&tree->running);
	tree->own = own;
	tree->links = links;
	tree->for_all = for_all;
	tree->limit_ms = limit_ms;
	bid_breaker_init(&tree->breaker, (unsigned)bid_clock_ms() ^ (unsigned)getpid());
	tree->name = strdup(name);
	tree->path = strdup(path);
	tree->source = (struct bid_source){ .ops = &tree_ops, .name = tree->name };
	pthread_mutex_lock(&tree->lock);
	r = tree->name && tree->path ? start_threads(tree) : -ENOMEM;
	pthread_mutex_unlock(&tree->lock);
	if (r < 0) {
		tree_free(&tree->source);
		return r;
	}
	*ret_source = &tree->source;
	return 0;
}
