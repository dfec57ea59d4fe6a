// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tree_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "tree_files.h"

enum { PIECE = 256 * 1024 };

/* the result of one request */
struct finding {
	struct bid_answer answer;
	char text[256];
	char url[256 + BID_TREE_NAME_MAX];
};

static void find_that(struct finding *finding, enum bid_outcome outcome, const char *what, int error)
{
	finding->answer.outcome = outcome;
	if (error)
		snprintf(finding->text, sizeof(finding->text), "%s: %s", what, bid_strerror(error));
	else
		snprintf(finding->text, sizeof(finding->text), "%s", what);
}

/* The thread of @job is about to wait for the file system. Under the lock. */
static void begin_wait(struct bid_source_tree *tree, struct bid_tree_job *job)
{
	job->telling = false;
	job->since_ms = bid_clock_ms();
	if (tree->rests)
		pthread_cond_signal(&tree->has_time);
	if (tree->stopping)
		pthread_cond_broadcast(&tree->ends);
}

/* The same, without the lock. */
static void wait_again(struct bid_source_tree *tree, struct bid_tree_job *job)
{
	pthread_mutex_lock(&tree->lock);
	begin_wait(tree, job);
	pthread_mutex_unlock(&tree->lock);
}

void bid_tree_job_note(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_sign sign, const char *text)
{
	int64_t now = bid_clock_ms();

	if (sign == BID_SIGN_HEALTHY)
		tree->answered_ms = now;
	/* a closed breaker needs no report */
	else if (sign == BID_SIGN_NONE && !job->probe)
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
static bool may_tell(struct bid_source_tree *tree, struct bid_tree_job *job, int r)
{
	bool may;

	pthread_mutex_lock(&tree->lock);
	if (is_answer(r))
		bid_tree_job_note(tree, job, BID_SIGN_HEALTHY, "");
	may = job->telling = !job->over;
	pthread_mutex_unlock(&tree->lock);
	return may;
}

/*
 * Deliver the file. Returns 0 and the receiver's result in @ret_refusal, the error of a read, or -ECANCELED if the request is over.
 */
static int deliver(struct bid_source_tree *tree, struct bid_tree_job *job, int fd, uint64_t size, int *ret_refusal)
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

static void answer_file(struct bid_source_tree *tree, struct bid_tree_job *job, const struct bid_tree_file *file,
			struct finding *finding)
{
	int refusal = 0, r;

	finding->answer.modified = file->modified;
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
static void answer(struct bid_source_tree *tree, struct bid_tree_job *job, struct bid_tree_file *file, struct finding *finding)
{
	int r = bid_tree_open(tree->path, tree->own, &job->request, tree->links, file);

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
		find_that(finding, BID_OUTCOME_UNREACHABLE, "no such file, which on a file system that fetches is no proof", 0);
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
	finding->answer.text = finding->text;
	finding->answer.url = finding->url;
	receiver->done(user, &finding->answer);
}

static struct finding finding_of(const struct bid_source_tree *tree)
{
	struct finding finding = { 0 };

	snprintf(finding.url, sizeof(finding.url), "%s", tree->name);
	return finding;
}

void bid_tree_job_run(struct bid_source_tree *tree, struct bid_tree_job *job)
{
	bid_cleanup(bid_tree_file_release) struct bid_tree_file file = BID_TREE_FILE_NONE;
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
	bid_tree_job_note(tree, job, BID_SIGN_NONE, "");
	begin_wait(tree, job);
	pthread_mutex_unlock(&tree->lock);
}

void bid_tree_job_finish(struct bid_source_tree *tree, struct bid_tree_job *job, enum bid_outcome outcome, const char *what)
{
	struct finding finding = finding_of(tree);
	struct bid_receiver receiver = job->receiver;
	void *user = job->user;
	bool not_sent = job->not_sent;

	bid_tree_job_note(tree, job, BID_SIGN_NONE, "");
	job->over = true;
	pthread_mutex_unlock(&tree->lock);
	find_that(&finding, outcome, what, 0);
	finding.answer.not_sent = not_sent;
	tell(&receiver, user, &finding);
	pthread_mutex_lock(&tree->lock);
}
