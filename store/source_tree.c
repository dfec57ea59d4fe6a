// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A directory as a source. It may be on a file system that takes its time, such as NFS or another mount.bidfs, so threads of its
 * own wait for it, and never the caller of start().
 */
#include <bid/source.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/thread.h"
#include "tree_files.h"

#define THREADS 2
#define PIECE	(256 * 1024)

/* One request, from start() to the end of done(). */
struct job {
	TAILQ_ENTRY(job) link; /* in one of the lists below */
	uint64_t number;
	struct bid_request request; /* kept */
	struct bid_receiver receiver;
	void *user;
	atomic_bool cancelled;
};

TAILQ_HEAD(jobs, job);

struct tree {
	struct bid_source source;
	char *name;
	char *path;
	dev_t own; /* from which nothing is taken; 0 if there is none */
	pthread_t threads[THREADS];
	unsigned n_threads;

	pthread_mutex_t lock; /* guards everything below; not held during I/O, nor while a receiver is called */
	pthread_cond_t has_job;
	struct jobs waiting;
	struct jobs running;
	uint64_t last_number;
	bool stopping;
};

/* What comes of one request. */
struct finding {
	struct bid_answer answer;
	char text[256];
	char url[256 + BID_TREE_NAME_MAX];
};

static struct tree *tree_of(struct bid_source *source)
{
	return (struct tree *)source;
}

static void find_that(struct finding *finding, enum bid_outcome outcome, const char *what, int error)
{
	finding->answer.outcome = outcome;
	if (error)
		snprintf(finding->text, sizeof(finding->text), "%s: %s", what, bid_strerror(error));
	else
		snprintf(finding->text, sizeof(finding->text), "%s", what);
}

/* Hand the file over. Returns 0, what the receiver ended it with in @ret_refusal, or the error of a read. */
static int deliver(const struct job *job, int fd, uint64_t size, int *ret_refusal)
{
	bid_auto_free char *buffer = malloc(PIECE);
	uint64_t at = 0;
	int r;

	if (!buffer)
		return -ENOMEM;
	r = job->receiver.head(job->user, size);
	while (r == 0 && at < size && !job->cancelled) {
		ssize_t n = bid_pread_full(fd, buffer, size - at < PIECE ? size - at : PIECE, (off_t)at);

		if (n < 0)
			return (int)n;
		/* it was cut while we read it */
		if (n == 0)
			return -ESTALE;
		r = job->receiver.body(job->user, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	*ret_refusal = r;
	return 0;
}

static void answer_file(const struct job *job, const struct bid_tree_file *file, struct finding *finding)
{
	int refusal = 0, r;

	finding->answer.size = file->size;
	finding->answer.modified = file->modified;
	r = deliver(job, file->fd, file->size, &refusal);
	if (r < 0)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "reading it", r);
	else if (job->cancelled)
		find_that(finding, BID_OUTCOME_CANCELLED, "cancelled", 0);
	else if (refusal)
		find_that(finding, refusal == -EBADMSG ? BID_OUTCOME_REJECTED : BID_OUTCOME_FAILED, "could not keep it", refusal);
	else
		find_that(finding, BID_OUTCOME_FOUND, "read", 0);
}

static void answer(const struct tree *tree, const struct job *job, struct finding *finding)
{
	bid_cleanup(bid_tree_file_release) struct bid_tree_file file = BID_TREE_FILE_NONE;
	int r;

	if (job->cancelled) {
		find_that(finding, BID_OUTCOME_CANCELLED, "cancelled", 0);
		return;
	}
	r = bid_tree_open(tree->path, tree->own, &job->request, &file);
	if (file.name[0])
		snprintf(finding->url, sizeof(finding->url), "%s/%s", tree->name, file.name);
	if (r == 0)
		answer_file(job, &file, finding);
	else if (r == -EDEADLK)
		find_that(finding, BID_OUTCOME_ABSENT, "this mount itself", 0);
	else if (r == -ENOENT && file.proves_absence)
		find_that(finding, BID_OUTCOME_ABSENT, "no such file", 0);
	else if (r == -ENOENT)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "no such file, which on a file system that fetches is no proof", 0);
	else if (r == -ENOTDIR)
		find_that(finding, BID_OUTCOME_UNREACHABLE, "not a tree of files by build-id, or not mounted", 0);
	else if (r == -EACCES || r == -EPERM || r == -EXDEV || r == -ELOOP)
		find_that(finding, BID_OUTCOME_REFUSED, "opening it", r);
	else
		find_that(finding, BID_OUTCOME_UNREACHABLE, "opening it", r);
}

static void run(struct tree *tree, struct job *job)
{
	struct finding finding = { .answer.size = BID_SIZE_UNKNOWN };

	snprintf(finding.url, sizeof(finding.url), "%s", tree->name);
	answer(tree, job, &finding);
	finding.answer.text = finding.text;
	finding.answer.url = finding.url;
	job->receiver.done(job->user, &finding.answer);
}

static void *tree_main(void *argument)
{
	struct tree *tree = argument;
	struct job *job;

	pthread_mutex_lock(&tree->lock);
	for (;;) {
		job = TAILQ_FIRST(&tree->waiting);
		if (!job && tree->stopping)
			break;
		if (!job) {
			pthread_cond_wait(&tree->has_job, &tree->lock);
			continue;
		}
		TAILQ_REMOVE(&tree->waiting, job, link);
		TAILQ_INSERT_TAIL(&tree->running, job, link);
		pthread_mutex_unlock(&tree->lock);
		run(tree, job);
		pthread_mutex_lock(&tree->lock);
		TAILQ_REMOVE(&tree->running, job, link);
		bid_request_release(&job->request);
		free(job);
	}
	pthread_mutex_unlock(&tree->lock);
	return NULL;
}

static int tree_start(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver, void *user,
		      uint64_t *ret_transfer)
{
	struct tree *tree = tree_of(source);
	struct job *job;

	if (!bid_kind_fetchable(request->kind))
		return -EOPNOTSUPP;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->request = bid_request_keep(request);
	job->receiver = *receiver;
	job->user = user;

	pthread_mutex_lock(&tree->lock);
	job->number = ++tree->last_number;
	*ret_transfer = job->number;
	TAILQ_INSERT_TAIL(&tree->waiting, job, link);
	pthread_cond_signal(&tree->has_job);
	pthread_mutex_unlock(&tree->lock);
	return 0;
}

/* Mark the job of that @number, or all of them if it is 0. Under the lock. */
static void mark_cancelled(struct jobs *jobs, uint64_t number)
{
	struct job *job;

	for (job = TAILQ_FIRST(jobs); job; job = TAILQ_NEXT(job, link))
		if (!number || job->number == number)
			job->cancelled = true;
}

static void tree_cancel(struct bid_source *source, uint64_t transfer)
{
	struct tree *tree = tree_of(source);

	if (!transfer)
		return;
	pthread_mutex_lock(&tree->lock);
	mark_cancelled(&tree->waiting, transfer);
	mark_cancelled(&tree->running, transfer);
	pthread_mutex_unlock(&tree->lock);
}

static void tree_free(struct bid_source *source)
{
	struct tree *tree = tree_of(source);

	pthread_mutex_lock(&tree->lock);
	mark_cancelled(&tree->waiting, 0);
	mark_cancelled(&tree->running, 0);
	tree->stopping = true;
	pthread_cond_broadcast(&tree->has_job);
	pthread_mutex_unlock(&tree->lock);
	for (unsigned i = 0; i < tree->n_threads; i++)
		pthread_join(tree->threads[i], NULL);
	pthread_cond_destroy(&tree->has_job);
	pthread_mutex_destroy(&tree->lock);
	free(tree->name);
	free(tree->path);
	free(tree);
}

static const struct bid_source_ops tree_ops = {
	.start = tree_start,
	.cancel = tree_cancel,
	.free = tree_free,
};

static int start_threads(struct tree *tree)
{
	while (tree->n_threads < THREADS) {
		int r = bid_thread_start(&tree->threads[tree->n_threads], "bid-tree", tree_main, tree);

		if (r < 0)
			return r;
		tree->n_threads++;
	}
	return 0;
}

int bid_source_tree_new(const char *name, const char *path, dev_t own, struct bid_source **ret_source)
{
	struct tree *tree;
	int r;

	if (path[0] != '/')
		return -EINVAL;
	tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	pthread_mutex_init(&tree->lock, NULL);
	pthread_cond_init(&tree->has_job, NULL);
	TAILQ_INIT(&tree->waiting);
	TAILQ_INIT(&tree->running);
	tree->own = own;
	tree->name = strdup(name);
	tree->path = strdup(path);
	tree->source = (struct bid_source){ .ops = &tree_ops, .name = tree->name };
	r = tree->name && tree->path ? start_threads(tree) : -ENOMEM;
	if (r < 0) {
		tree_free(&tree->source);
		return r;
	}
	*ret_source = &tree->source;
	return 0;
}
