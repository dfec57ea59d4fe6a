// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A directory as a server. It may be on a slow file system, such as NFS or another mount.bidfs: own threads wait for it, never the
 * caller of start(). It may be on a file system that no longer responds: requests then end without their waiting threads, which
 * stay behind.
 *
 * The thread of a request alternates between waits for the file system and calls of the receiver. The timer thread or a
 * cancellation ends the request without this thread, after the deadline or when it is no longer wanted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/server.h"
#include "base/breaker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/thread.h"
#include "fetch/file_tree.h"

enum {
	THREADS = 4,
	END_MS = 1000, /* how long the end waits for the file system */
	PIECE = 256 * 1024, /* bytes of one read */
};

/*
 * A request. Its list owns it; the code that removes it from a list becomes its owner. For a running request, only its thread does
 * so.
 */
struct tree_job {
	TAILQ_ENTRY(tree_job) link; /* in one of the lists below */
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

TAILQ_HEAD(tree_jobs, tree_job);

struct file_tree_server {
	struct bid_server server;
	char *name;
	char *path;
	dev_t own; /* device that the server must not serve from; 0 without one */
	const char *const *links; /* where links may lead, or NULL; borrowed */
	bool for_all; /* serve only files that all users may read */
	unsigned limit_ms; /* limit of a wait for the file system */

	pthread_mutex_t lock; /* guards everything below; not held during I/O, nor during a call of a receiver */
	pthread_cond_t has_job;
	pthread_cond_t has_time; /* a job has begun to wait while the timer thread slept */
	pthread_cond_t ends; /* while stopping: a thread ended, or began to wait */
	struct tree_jobs waiting;
	struct tree_jobs running; /* as many as there are threads, at most */
	struct bid_breaker breaker; /* breaker for a file system that does not respond */
	uint64_t refused; /* requests ended by the breaker */
	int64_t answered_ms; /* when the file system answered last */
	unsigned n_threads; /* with the timer thread */
	bool rests; /* the timer thread sleeps without a deadline */
	bool stopping;
	bool given_up; /* the owner has left: the last thread frees the tree */
};

/* the result of one request */
struct finding {
	struct bid_server_response response;
	char text[256];
	char url[256 + BID_FILE_TREE_NAME_MAX];
};

static void find_that(struct finding *finding, enum bid_outcome outcome, const char *what, int error)
{
	finding->response.outcome = outcome;
	if (error)
		snprintf(finding->text, sizeof(finding->text), "%s: %s", what, bid_strerror(error));
	else
		snprintf(finding->text, sizeof(finding->text), "%s", what);
}

/* The thread of @job is about to wait for the file system. Under the lock. */
static void begin_wait(struct file_tree_server *tree, struct tree_job *job)
{
	job->telling = false;
	job->since_ms = bid_clock_ms();
	if (tree->rests)
		pthread_cond_signal(&tree->has_time);
	if (tree->stopping)
		pthread_cond_broadcast(&tree->ends);
}

/* The same, without the lock. */
static void wait_again(struct file_tree_server *tree, struct tree_job *job)
{
	pthread_mutex_lock(&tree->lock);
	begin_wait(tree, job);
	pthread_mutex_unlock(&tree->lock);
}

/* Report the health @sign of the file system, with @text, after a wait of @job or at its end. Called with the lock. */
static void note_health(struct file_tree_server *tree, struct tree_job *job, enum bid_health sign, const char *text)
{
	int64_t now = bid_clock_ms();

	if (sign == BID_HEALTH_HEALTHY)
		tree->answered_ms = now;
	/* a closed breaker needs no report */
	else if (sign == BID_HEALTH_NONE && !job->probe)
		return;
	bid_breaker_note(&tree->breaker, now, job->probe, sign, 0, text);
	/* jobs behind the probe request may run, or one of them is the next probe request */
	if (job->probe)
		pthread_cond_broadcast(&tree->has_job);
	job->probe = false;
}

/* Did the file system respond, with any result but a failure of its own? @r is a negative errno. */
static bool is_answer(int r)
{
	switch (r) {
	case 0:
	case -ENOENT:
	case -ENOTDIR:
	case -EDEADLK:
	case -EACCES:
	case -EPERM:
	case -EXDEV:
	case -ELOOP:
		return true;
	default:
		return false;
	}
}

/* End a wait of @job's thread for the file system, with the result @r. Returns true if the thread may call the receiver. */
static bool may_tell(struct file_tree_server *tree, struct tree_job *job, int r)
{
	bool may;

	pthread_mutex_lock(&tree->lock);
	if (is_answer(r))
		note_health(tree, job, BID_HEALTH_HEALTHY, "");
	may = job->telling = !job->over;
	pthread_mutex_unlock(&tree->lock);
	return may;
}

/*
 * Deliver the file. Returns 0 and the receiver's result in @ret_refusal, the error of a read, or -ECANCELED if the request is over.
 */
static int deliver(struct file_tree_server *tree, struct tree_job *job, int fd, uint64_t size, int *ret_refusal)
{
	bid_auto_free char *buffer = malloc(PIECE);
	uint64_t at = 0;
	int r;

	if (!buffer)
		return -ENOMEM;
	r = job->receiver.head(job->user, size);
	while (r == 0 && at < size && !job->cancelled) {
		ssize_t n;

		wait_again(tree, job);
		n = bid_pread_full(fd, buffer, size - at < PIECE ? size - at : PIECE, (off_t)at);
		if (!may_tell(tree, job, n < 0 ? (int)n : 0))
			return -ECANCELED;
		if (n < 0)
			return (int)n;
		/* the file shrank during the read */
		if (n == 0)
			return -ESTALE;
		r = job->receiver.body(job->user, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	*ret_refusal = r;
	return 0;
}

static void answer_file(struct file_tree_server *tree, struct tree_job *job, const struct bid_file_tree_file *file,
			struct finding *finding)
{
	int refusal = 0, r;

	finding->response.modified = file->modified;
	r = deliver(tree, job, file->fd, file->size, &refusal);
	if (r < 0)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "reading it", r);
	else if (job->cancelled)
		find_that(finding, BID_OUTCOME_CANCELLED, "cancelled", 0);
	else if (refusal)
		find_that(finding, refusal == -EBADMSG ? BID_OUTCOME_REJECTED : BID_OUTCOME_FAILED, "could not keep it", refusal);
	else
		find_that(finding, BID_OUTCOME_FOUND, "read", 0);
}

/* Without an answer, if the request is over. */
static void answer(struct file_tree_server *tree, struct tree_job *job, struct bid_file_tree_file *file, struct finding *finding)
{
	int r = bid_file_tree_open(tree->path, tree->own, &job->request, tree->links, file);

	if (!may_tell(tree, job, r))
		return;
	if (file->name[0])
		snprintf(finding->url, sizeof(finding->url), "%s/%s", tree->name, file->name);
	if (r == 0 && tree->for_all && !file->is_public)
		find_that(finding, BID_OUTCOME_REFUSED, "not all may read it there, as they might here", 0);
	else if (r == 0)
		answer_file(tree, job, file, finding);
	else if (r == -EDEADLK)
		find_that(finding, BID_OUTCOME_ABSENT, "this mount itself", 0);
	else if (r == -ENOENT && file->proves_absence)
		find_that(finding, BID_OUTCOME_ABSENT, "no such file", 0);
	else if (r == -ENOENT)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "no such file, but on a FUSE file system this may be an outage", 0);
	else if (r == -ENOTDIR)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "not a tree of files by build-id, or not mounted", 0);
	else if (r == -EXDEV)
		find_that(finding, BID_OUTCOME_REFUSED, "a link leads out of the tree: name where it may lead by links=DIR", 0);
	else if (r == -EACCES || r == -EPERM || r == -ELOOP)
		find_that(finding, BID_OUTCOME_REFUSED, "opening it", r);
	else
		find_that(finding, BID_OUTCOME_UNREACHABLE, "opening it", r);
}

static void tell(const struct bid_receiver *receiver, void *user, struct finding *finding)
{
	finding->response.text = finding->text;
	finding->response.url = finding->url;
	receiver->done(user, &finding->response);
}

static struct finding finding_of(const struct file_tree_server *tree)
{
	struct finding finding = { 0 };

	snprintf(finding.url, sizeof(finding.url), "%s", tree->name);
	return finding;
}

/* Run @job in its thread, with @telling set. On return it waits again, or is over. Called without the lock. */
static void run_job(struct file_tree_server *tree, struct tree_job *job)
{
	bid_cleanup(bid_file_tree_release) struct bid_file_tree_file file = BID_FILE_TREE_FILE_NONE;
	struct finding finding = finding_of(tree);

	if (job->receiver.sent)
		job->receiver.sent(job->user);
	wait_again(tree, job);
	answer(tree, job, &file, &finding);
	if (!job->telling)
		return;
	tell(&job->receiver, job->user, &finding);
	/* closing a file may take as long as reading it */
	pthread_mutex_lock(&tree->lock);
	job->over = true;
	note_health(tree, job, BID_HEALTH_NONE, "");
	begin_wait(tree, job);
	pthread_mutex_unlock(&tree->lock);
}

/*
 * End @job without its thread and report @what. @job is not over, and its thread does not call the receiver. Called with the lock,
 * which is released meanwhile; the thread may have freed @job then.
 */
static void finish_job(struct file_tree_server *tree, struct tree_job *job, enum bid_outcome outcome, const char *what)
{
	struct finding finding = finding_of(tree);
	struct bid_receiver receiver = job->receiver;
	void *user = job->user;
	bool not_sent = job->not_sent;

	note_health(tree, job, BID_HEALTH_NONE, "");
	job->over = true;
	pthread_mutex_unlock(&tree->lock);
	find_that(&finding, outcome, what, 0);
	finding.response.not_sent = not_sent;
	tell(&receiver, user, &finding);
	pthread_mutex_lock(&tree->lock);
}

static const char silent[] = "the file system does not answer";

static struct file_tree_server *tree_of(struct bid_server *server)
{
	return (struct file_tree_server *)server;
}

static void job_free(struct tree_job *job)
{
	bid_request_release(&job->request);
	free(job);
}

/* As finish_job(), for a job without a thread. Frees the job. */
static void finish_waiting(struct file_tree_server *tree, struct tree_job *job, enum bid_outcome outcome, const char *what)
{
	TAILQ_REMOVE(&tree->waiting, job, link);
	finish_job(tree, job, outcome, what);
	job_free(job);
}

/* Does the breaker refuse requests now? If so, @ret_text has the reason. */
static bool is_refused(const struct file_tree_server *tree, char *ret_text, size_t size)
{
	if (bid_breaker_remaining_s(&tree->breaker, bid_clock_ms()) == 0)
		return false;
	bid_breaker_describe(&tree->breaker, ret_text, size);
	return true;
}

static void refuse(struct file_tree_server *tree, struct tree_job *job, const char *text)
{
	tree->refused++;
	job->not_sent = true;
	finish_waiting(tree, job, BID_OUTCOME_UNREACHABLE, text);
}

static void tree_release(struct file_tree_server *tree)
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
static void leave(struct file_tree_server *tree)
{
	bool last = --tree->n_threads == 0 && tree->given_up;

	pthread_cond_broadcast(&tree->ends);
	pthread_mutex_unlock(&tree->lock);
	if (last)
		tree_release(tree);
}

static void *tree_main(void *argument)
{
	struct file_tree_server *tree = argument;

	pthread_mutex_lock(&tree->lock);
	while (!tree->stopping) {
		struct tree_job *job = TAILQ_FIRST(&tree->waiting);

		/* the timer thread ends jobs that the breaker refuses; other jobs wait for the probe request */
		if (!job || !bid_breaker_admits(&tree->breaker, bid_clock_ms(), &job->probe)) {
			pthread_cond_wait(&tree->has_job, &tree->lock);
			continue;
		}
		TAILQ_REMOVE(&tree->waiting, job, link);
		TAILQ_INSERT_TAIL(&tree->running, job, link);
		job->telling = true;
		pthread_mutex_unlock(&tree->lock);
		run_job(tree, job);
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
static unsigned count_lost(struct file_tree_server *tree, struct tree_job **ret_job, int64_t *ret_next)
{
	int64_t now = bid_clock_ms();
	unsigned lost = 0;
	struct tree_job *job;

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
static void end_silence(struct file_tree_server *tree, struct tree_job *job)
{
	bool answers = tree->answered_ms > job->since_ms + tree->limit_ms / 2;

	note_health(tree, job, answers ? BID_HEALTH_NONE : BID_HEALTH_DEAD, silent);
	finish_job(tree, job, BID_OUTCOME_UNREACHABLE, silent);
}

/* Find a cancelled job of @jobs that can end without its thread. */
static struct tree_job *find_cancelled(struct tree_jobs *jobs)
{
	struct tree_job *job = TAILQ_FIRST(jobs);

	while (job && (!job->cancelled || job->telling || job->over))
		job = TAILQ_NEXT(job, link);
	return job;
}

/* End the cancelled requests. Called with the lock, which is released meanwhile. */
static void end_cancelled(struct file_tree_server *tree)
{
	struct tree_job *job;

	/* the waiting ones again after each, because the end of the tree cancels more meanwhile */
	do {
		while ((job = find_cancelled(&tree->waiting)))
			finish_waiting(tree, job, BID_OUTCOME_CANCELLED, "cancelled");
		job = find_cancelled(&tree->running);
		if (job)
			finish_job(tree, job, BID_OUTCOME_CANCELLED, "cancelled");
	} while (job);
}

/* The timer thread: end cancelled requests, and requests to a file system that does not respond. */
static void *keep_time(void *argument)
{
	struct file_tree_server *tree = argument;
	char text[256];

	pthread_mutex_lock(&tree->lock);
	for (;;) {
		struct tree_job *job, *waiting;
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

static int tree_start(struct bid_server *server, const struct bid_request *request, const struct bid_receiver *receiver, void *user)
{
	struct file_tree_server *tree = tree_of(server);
	struct tree_job *job;

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
static void mark_cancelled(struct tree_jobs *jobs, const void *user)
{
	struct tree_job *job;

	for (job = TAILQ_FIRST(jobs); job; job = TAILQ_NEXT(job, link))
		job->cancelled = job->cancelled || !user || job->user == user;
}

static void cancel(struct file_tree_server *tree, const void *user)
{
	mark_cancelled(&tree->waiting, user);
	mark_cancelled(&tree->running, user);
	pthread_cond_signal(&tree->has_time);
}

static void tree_cancel(struct bid_server *server, const void *user)
{
	struct file_tree_server *tree = tree_of(server);

	pthread_mutex_lock(&tree->lock);
	cancel(tree, user);
	pthread_mutex_unlock(&tree->lock);
}

/* Is there a thread that does not wait for the file system? Called with the lock. */
static bool is_busy(const struct file_tree_server *tree)
{
	unsigned n_waiting = 0;
	const struct tree_job *job;

	for (job = TAILQ_FIRST(&tree->running); job; job = TAILQ_NEXT(job, link))
		n_waiting += !job->telling;
	return tree->n_threads > n_waiting;
}

static void tree_free(struct bid_server *server)
{
	struct file_tree_server *tree = tree_of(server);
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

static void tree_health(struct bid_server *server, struct bid_server_health *ret_health)
{
	struct file_tree_server *tree = tree_of(server);
	const struct bid_breaker *breaker = &tree->breaker;

	pthread_mutex_lock(&tree->lock);
	*ret_health = (struct bid_server_health){
		.breaker = !breaker->open     ? BID_BREAKER_CLOSED
			   : breaker->probing ? BID_BREAKER_HALF_OPEN
					      : BID_BREAKER_OPEN,
		.failures = breaker->failures,
		.next_probe_s = bid_breaker_remaining_s(breaker, bid_clock_ms()),
		.refused = tree->refused,
	};
	snprintf(ret_health->last_failure, sizeof(ret_health->last_failure), "%s", breaker->last_failure);
	pthread_mutex_unlock(&tree->lock);
}

static const struct bid_server_ops tree_ops = {
	.start = tree_start,
	.cancel = tree_cancel,
	.free = tree_free,
	.health = tree_health,
};

static int start_thread(struct file_tree_server *tree, const char *name, void *(*body)(void *))
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
static int start_threads(struct file_tree_server *tree)
{
	int r = start_thread(tree, "bid-tree-time", keep_time);

	for (unsigned i = 0; r == 0 && i < THREADS; i++)
		r = start_thread(tree, "bid-tree", tree_main);
	return r;
}

int bid_file_tree_server_new(const char *name, const char *path, dev_t own, bool for_all, unsigned limit_ms,
			     const char *const *links, struct bid_server **ret_server)
{
	struct file_tree_server *tree;
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
	tree->server = (struct bid_server){ .ops = &tree_ops, .name = tree->name };
	pthread_mutex_lock(&tree->lock);
	r = tree->name && tree->path ? start_threads(tree) : -ENOMEM;
	pthread_mutex_unlock(&tree->lock);
	if (r < 0) {
		tree_free(&tree->server);
		return r;
	}
	*ret_server = &tree->server;
	return 0;
}
