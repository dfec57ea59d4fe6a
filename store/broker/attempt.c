// SPDX-License-Identifier: LGPL-2.1-or-later
/* An attempt: receive the body of one server, check its beginning, then commit it or drop it in a disk worker. */
#include "broker/download.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"

/* Under the lock. */
static enum bid_candidate_state state_of(const struct bid_attempt *attempt)
{
	return attempt->download->machine.candidates[attempt->candidate].state;
}

/* jobs */
static void run_make_room(struct bid_job *job);
static void run_decide(struct bid_job *job);

/* Queue @attempt, whose server is done, for a disk worker. Under the lock. */
static void queue_done(struct bid_attempt *attempt)
{
	bool is_complete = attempt->report.outcome == BID_OUTCOME_FOUND && attempt->error == 0;

	attempt->job.run = run_decide;
	attempt->job.commits = true;
	bid_broker_queue(attempt->download->broker, &attempt->job, is_complete ? attempt->received : 0);
}

/* Note an @event that does not end the download. By the thread of the server, without the lock. */
static void note_event(struct bid_attempt *attempt, enum bid_machine_event event)
{
	struct bid_download *download = attempt->download;

	pthread_mutex_lock(&download->broker->lock);
	bid_download_step_locked(download, event, attempt->candidate);
	pthread_mutex_unlock(&download->broker->lock);
}

/* Begin a body of @size bytes or BID_SIZE_UNKNOWN, in place of an earlier one. By the thread that has @attempt. */
static int begin_file(struct bid_attempt *attempt, uint64_t size)
{
	struct bid_broker *broker = attempt->download->broker;
	uint64_t max = broker->config.max_size;
	int r;

	attempt->received = 0;
	attempt->size = size;
	attempt->head_len = 0;
	attempt->checked = false;
	if (max > 0 && size != BID_SIZE_UNKNOWN && size > max)
		return -EFBIG;
	note_event(attempt, BID_EVENT_HEADER);
	/* as late as here: a request in a queue, or a 404, needs no descriptor */
	r = attempt->txn ? bid_txn_reset(attempt->txn) : bid_txn_begin(broker->store, &attempt->download->artifact, &attempt->txn);
	if (r == 0 && size != BID_SIZE_UNKNOWN)
		r = bid_txn_expect(attempt->txn, size);
	/* the first write returns -EAGAIN again, and waits for the room */
	return r == -EAGAIN ? 0 : r;
}

/* Refuse a large file whose first bytes carry another id. The commit decides on all others. */
static int check_head(struct bid_attempt *attempt)
{
	char hex[BID_ID_HEX_MAX];
	struct bid_id id;
	int r = bid_elf_build_id_in(attempt->head, attempt->head_len, &id);

	free(bid_steal(attempt->head));
	if (r == -ENOEXEC || r == -ENODATA) {
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", bid_strerror(r));
		return -EBADMSG;
	}
	if (r == 0 && !bid_id_answers(&id, &attempt->download->artifact.id)) {
		snprintf(attempt->reason, sizeof(attempt->reason), "carries the build-id '%s'", bid_id_format(&id, hex));
		return -EBADMSG;
	}
	return 0;
}

static int keep_head(struct bid_attempt *attempt, const void *data, size_t len)
{
	size_t room = BID_HEAD_MAX - attempt->head_len;

	if (!attempt->head) {
		attempt->head = malloc(BID_HEAD_MAX);
		if (!attempt->head)
			return -ENOMEM;
	}
	if (len > room)
		len = room;
	memcpy(attempt->head + attempt->head_len, data, len);
	attempt->head_len += len;
	return attempt->head_len == BID_HEAD_MAX ? check_head(attempt) : 0;
}

/* Is the beginning of the body checked, or has it no id to check? */
static bool is_head_checked(const struct bid_attempt *attempt)
{
	return attempt->head_len == BID_HEAD_MAX || !bid_kind_is_elf(attempt->download->artifact.kind);
}

static int write_body(struct bid_attempt *attempt, const void *data, size_t len)
{
	uint64_t max = attempt->download->broker->config.max_size;
	int r = 0;

	if (max > 0 && len > max - attempt->received)
		return -EFBIG;
	if (!attempt->txn)
		r = begin_file(attempt, BID_SIZE_UNKNOWN);
	if (r == 0)
		r = bid_txn_try_write(attempt->txn, data, len);
	if (r < 0)
		return r;
	attempt->received += len;
	attempt->delivered += len;
	if (!is_head_checked(attempt))
		r = keep_head(attempt, data, len);
	/* the id of the bytes, if known, is the right one */
	if (r == 0 && is_head_checked(attempt) && !attempt->checked) {
		attempt->checked = true;
		note_event(attempt, BID_EVENT_CHECKED);
	}
	return r;
}

static int note_failure(struct bid_attempt *attempt, int error)
{
	const char *reason = error == -ENOSPC && attempt->txn ? bid_txn_reason(attempt->txn) : "";
	uint64_t max = attempt->download->broker->config.max_size;

	attempt->error = bid_result_error(error);
	if (error == -EFBIG && max > 0 && attempt->size != BID_SIZE_UNKNOWN && attempt->size > max)
		snprintf(attempt->reason, sizeof(attempt->reason), "%llu bytes, the limit is %llu",
			 (unsigned long long)attempt->size, (unsigned long long)max);
	else if (error == -EFBIG && max > 0)
		snprintf(attempt->reason, sizeof(attempt->reason), "more than the limit of %llu bytes", (unsigned long long)max);
	else if (error != -EBADMSG)
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", *reason ? reason : bid_strerror(error));
	return attempt->error;
}

/* Returns the outcome of the server, or of the receiver. */
static enum bid_outcome outcome_of(struct bid_attempt *attempt, const char **ret_text)
{
	const struct bid_server_report *report = &attempt->report;

	if (attempt->in_loop && report->outcome == BID_OUTCOME_CANCELLED) {
		*ret_text = "requests the same from this mount";
		return BID_OUTCOME_UNAVAILABLE;
	}
	if (attempt->error == 0) {
		*ret_text = report->text ? report->text : bid_outcome_name(report->outcome);
		return report->outcome;
	}
	*ret_text = attempt->reason;
	/* the artifact may really be as large, but each attempt would cost as much */
	if (bid_attempt_has_no_room(attempt) && attempt->received > BID_TXN_UNANNOUNCED_MAX)
		return BID_OUTCOME_REJECTED;
	switch (attempt->error) {
	case -EBADMSG:
		return BID_OUTCOME_REJECTED;
	case -EFBIG:
		return BID_OUTCOME_TOO_LARGE;
	default:
		return BID_OUTCOME_FAILED;
	}
}

static void receive_sent(void *user)
{
	note_event(user, BID_EVENT_SENT);
}

static int receive_header(void *user, uint64_t size)
{
	struct bid_attempt *attempt = user;
	int r = attempt->error ? attempt->error : begin_file(attempt, size);

	return r < 0 ? note_failure(attempt, r) : 0;
}

static int receive_body(void *user, const void *data, size_t len)
{
	struct bid_attempt *attempt = user;
	struct bid_broker *broker = attempt->download->broker;
	int r = attempt->error ? attempt->error : write_body(attempt, data, len);

	if (r == -EAGAIN) {
		pthread_mutex_lock(&broker->lock);
		attempt->job.run = run_make_room;
		bid_broker_queue(broker, &attempt->job, BID_JOB_EVICTION);
		pthread_mutex_unlock(&broker->lock);
		return -EAGAIN;
	}
	return r < 0 ? note_failure(attempt, r) : 0;
}

static void receive_broke_off(void *user)
{
	struct bid_attempt *attempt = user;

	attempt->checked = false;
	bid_download_step(attempt->download, BID_EVENT_BROKE_OFF, attempt->candidate);
}

/* Without memory the origin is lost, the body is not. */
static void keep_report(struct bid_attempt *attempt, const struct bid_server_report *report)
{
	attempt->report = *report;
	attempt->report.text = bid_text_copy(report->text);
	attempt->report.url = bid_text_copy(report->url);
	attempt->report.redirect = bid_text_copy(report->redirect);
	attempt->report.before = bid_text_copy(report->before);
	attempt->report.file = bid_text_copy(report->file);
	attempt->report.archive = bid_text_copy(report->archive);
	attempt->report.ima_signature = bid_text_copy(report->ima_signature);
}

static void receive_done(void *user, const struct bid_server_report *report)
{
	struct bid_attempt *attempt = user;
	struct bid_broker *broker = attempt->download->broker;
	const char *text;

	keep_report(attempt, report);
	pthread_mutex_lock(&broker->lock);
	bid_download_step_locked(attempt->download,
				 outcome_of(attempt, &text) == BID_OUTCOME_CANCELLED ? BID_EVENT_DONE_CANCELLED : BID_EVENT_DONE,
				 attempt->candidate);
	/* otherwise the worker that makes room queues it */
	if (!attempt->makes_room)
		queue_done(attempt);
	pthread_mutex_unlock(&broker->lock);
}

const struct bid_receiver bid_attempt_receiver = {
	.sent = receive_sent,
	.header = receive_header,
	.body = receive_body,
	.broke_off = receive_broke_off,
	.done = receive_done,
};

static void attempt_free(struct bid_attempt *attempt)
{
	bid_txn_free(attempt->txn);
	free(attempt->head);
	free((char *)attempt->report.text);
	free((char *)attempt->report.url);
	free((char *)attempt->report.redirect);
	free((char *)attempt->report.before);
	free((char *)attempt->report.file);
	free((char *)attempt->report.archive);
	free((char *)attempt->report.ima_signature);
	free(attempt);
}

/* Take @attempt from its candidate, and free it. Without the lock. */
static void drop_attempt(struct bid_attempt *attempt)
{
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	download->machine.candidates[attempt->candidate].attempt = NULL;
	pthread_mutex_unlock(&broker->lock);

	/* close(2) may free blocks on the disk */
	attempt_free(attempt);

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
	if (--broker->n_attempts == 0)
		pthread_cond_broadcast(&broker->idle);
	pthread_mutex_unlock(&broker->lock);
}

/*
 * End @attempt as REPORTED, or as DROPPED if its server may get another one. Frees it. By the disk worker with its own reference,
 * without the lock.
 */
static void end_attempt(struct bid_attempt *attempt, enum bid_machine_event event)
{
	struct bid_download *download = attempt->download;
	size_t candidate = attempt->candidate;

	drop_attempt(attempt);
	bid_download_step(download, event, candidate);
}

static struct bid_origin origin_of(const struct bid_attempt *attempt)
{
	const struct bid_server *server = attempt->from->server;

	return (struct bid_origin){
		.how = "fetched",
		.server = server->name,
		.signers = server->signers,
		.url = attempt->report.url,
		.file = attempt->report.file,
		.archive = attempt->report.archive,
		.ima_signature = attempt->report.ima_signature,
		.modified = attempt->report.modified,
	};
}

/* Commit the body. Returns found, rejected or failed. */
static enum bid_outcome commit_body(struct bid_attempt *attempt, struct bid_file *ret_file, const char **ret_text)
{
	struct bid_origin origin = origin_of(attempt);
	int r = 0;

	/* found without a byte: the commit has the reason */
	if (!attempt->txn)
		r = begin_file(attempt, 0);
	if (r == 0 && attempt->size != BID_SIZE_UNKNOWN && attempt->size != attempt->received) {
		snprintf(attempt->reason, sizeof(attempt->reason), "%llu bytes, and %llu were announced",
			 (unsigned long long)attempt->received, (unsigned long long)attempt->size);
		*ret_text = attempt->reason;
		return BID_OUTCOME_REJECTED;
	}
	if (r == 0)
		r = bid_txn_commit(attempt->txn, &origin, ret_file);
	if (r == 0) {
		memcpy(attempt->signer, origin.signer, sizeof(attempt->signer));
		return BID_OUTCOME_FOUND;
	}

	if (r == -EBADMSG || r == -ESTALE) {
		const char *reason = bid_txn_reason(attempt->txn);

		attempt->error = r;
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", *reason ? reason : bid_strerror(r));
		*ret_text = attempt->reason;
		return BID_OUTCOME_REJECTED;
	}
	attempt->error = bid_result_error(r);
	*ret_text = bid_strerror(r);
	return BID_OUTCOME_FAILED;
}

static void note_fetched(const struct bid_attempt *attempt)
{
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;
	char name[BID_NAME_MAX];

	atomic_fetch_add(&broker->counts.fetched, 1);
	bid_negative_forget(broker->negative, &download->artifact, attempt->from->server->name);
	bid_negative_forget(broker->negative, &download->artifact, BID_NEGATIVE_ALL);
	bid_info("fetched %llu bytes from %s: '%s'", (unsigned long long)attempt->received, attempt->from->server->name,
		 bid_artifact_name(&download->artifact, name));
}

/*
 * Add the reason to the negative cache, except for an absent section: debuginfod of elfutils 0.192 and later responds with 404 for
 * a section in its cache.
 */
static void note_negative(const struct bid_attempt *attempt, enum bid_outcome outcome)
{
	const struct bid_artifact *artifact = &attempt->download->artifact;
	struct bid_broker *broker = attempt->download->broker;
	bool lasts = outcome == BID_OUTCOME_UNSUPPORTED || outcome == BID_OUTCOME_REJECTED ||
		     (outcome == BID_OUTCOME_REFUSED && attempt->report.lasting) ||
		     (outcome == BID_OUTCOME_ABSENT && artifact->kind != BID_KIND_SECTION);

	if (lasts)
		bid_negative_add(broker->negative, artifact, attempt->from->server->name, outcome);
}

/* Move the bytes of a rejected download to the quarantine. */
static void quarantine_bytes(struct bid_attempt *attempt)
{
	int r = attempt->txn && attempt->received > 0 ? bid_txn_quarantine(attempt->txn) : 0;

	if (r < 0)
		bid_debug("%s: cannot quarantine a download from %s", bid_strerror(r), attempt->from->server->name);
}

/* Download the dwz file @id, a shared part of the debug information that @download has published: its readers need both. */
static void prefetch_dwz(const struct bid_download *download, const struct bid_id *id)
{
	struct bid_artifact artifact = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	struct bid_waiter *waiter;

	/* no prefetch for a prefetched file: a server could make an endless chain */
	if (!download->broker->config.prefetch || !download->had_waiter)
		return;
	waiter = calloc(1, sizeof(*waiter));
	if (waiter)
		bid_broker_submit(download->broker, waiter, &artifact);
}

/* Report the outcome of @attempt, and end the download after a final one. Frees @attempt. */
static void decide_outcome(struct bid_attempt *attempt)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_download *download = attempt->download;
	struct bid_id alt = { 0 };
	const char *text;
	enum bid_outcome outcome = outcome_of(attempt, &text);
	bool over;

	if (outcome == BID_OUTCOME_FOUND)
		outcome = commit_body(attempt, &file, &text);
	if (outcome == BID_OUTCOME_REJECTED)
		quarantine_bytes(attempt);
	bid_download_report(download, attempt, outcome, text);
	if (outcome == BID_OUTCOME_FOUND) {
		note_fetched(attempt);
		alt = bid_txn_alt(attempt->txn);
	} else {
		note_negative(attempt, outcome);
	}
	/* a failure of the disk affects all servers; a size too large for the disk may be the mistake of one */
	over = outcome == BID_OUTCOME_FOUND ||
	       (outcome == BID_OUTCOME_FAILED && attempt->error != 0 && !bid_attempt_has_no_room(attempt));
	/* before the attempt ends, because another thread would find a download without attempts */
	if (over)
		bid_download_set_result(download, attempt->error, &file);
	end_attempt(attempt, BID_EVENT_REPORTED);
	if (alt.len > 0)
		prefetch_dwz(download, &alt);
}

/* Evict for the rest of the body, and resume the transfer. The attempt may be freed meanwhile, if it is done. */
static void run_make_room(struct bid_job *job)
{
	struct bid_attempt *attempt = job->attempt;
	struct bid_broker *broker = attempt->download->broker;
	struct bid_server *server = attempt->from->server;

	/* done() follows */
	if (state_of(attempt) == BID_CANDIDATE_STOPPED)
		return;
	attempt->makes_room = true;
	pthread_mutex_unlock(&broker->lock);
	bid_txn_make_room(attempt->txn);
	pthread_mutex_lock(&broker->lock);
	attempt->makes_room = false;
	if (state_of(attempt) == BID_CANDIDATE_DECIDING || state_of(attempt) == BID_CANDIDATE_DROPPING)
		queue_done(attempt);
	else
		server->ops->resume(server, attempt);
}

/* Check and publish the body, or drop it. Frees the attempt. */
static void run_decide(struct bid_job *job)
{
	struct bid_attempt *attempt = job->attempt;
	struct bid_download *download = attempt->download;
	struct bid_broker *broker = download->broker;
	bool wanted;

	download->committing = true;
	bid_download_ref(download);
	wanted = !broker->ending && bid_machine_wants_report(&download->machine, attempt->candidate);
	if (!wanted)
		bid_attempt_count(attempt, BID_OUTCOME_CANCELLED);
	pthread_mutex_unlock(&broker->lock);
	if (wanted)
		decide_outcome(attempt);
	else
		end_attempt(attempt, BID_EVENT_DROPPED);
	pthread_mutex_lock(&broker->lock);
	download->committing = false;
	bid_download_unref(download);
}
