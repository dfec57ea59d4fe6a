// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <bid/error.h>

#include "api/artifact.h"
#include "api/download_lock.h"
#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define LOCK_POLL_MS 50 /* between two polls of the lock of another process */
#define LOCK_WAIT_MS 30000 /* limit, after which both processes download: the holder may be stopped */

/* no seed: downloads are few and short-lived */
static struct bid_download **bucket_of(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	return &broker->buckets[bid_artifact_hash(artifact, 0) % BID_DOWNLOAD_BUCKETS];
}

static struct bid_download *find_download(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	struct bid_download *download = *bucket_of(broker, artifact);

	while (download && !bid_artifact_equal(&download->artifact, artifact))
		download = download->next;
	return download;
}

static void download_free(struct bid_download *download)
{
	for (size_t i = 0; i < download->n_reports; i++)
		bid_report_unref(download->reports[i]);
	bid_artifact_release(&download->artifact);
	free(download->machine.candidates);
	free(download);
}

void bid_download_ref(struct bid_download *download)
{
	download->refs++;
}

void bid_download_unref(struct bid_download *download)
{
	if (--download->refs > 0)
		return;
	download_free(download);
}

/* Take the lock, and drop a reference. */
static void unref_unlocked(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
	pthread_mutex_unlock(&broker->lock);
}

/* Take @download out of the buckets, if it is there: no waiter joins any more. */
static void leave_bucket(struct bid_download *download)
{
	struct bid_download **at = bucket_of(download->broker, &download->artifact);

	while (*at && *at != download)
		at = &(*at)->next;
	if (*at)
		*at = download->next;
}

/* Let other processes download the same, if @download has its lock. Without the broker's lock. */
static void unlock_download(struct bid_download *download)
{
	if (atomic_exchange(&download->lock_wait.holds, false))
		bid_download_locks_unlock(download->broker->download_locks, download->lock_wait.key);
}

/* Is @download without waiters, present ones and ones that may return? Under the lock. */
static bool is_unwanted(const struct bid_download *download)
{
	return download->n_waiters == 0 && !download->may_return;
}

/* Let a disk worker call @task without the lock, as a job of @size. Under the lock. */
static void queue_task(struct bid_download *download, void (*task)(struct bid_download *download), uint64_t size)
{
	if (!download->job.queued)
		bid_download_ref(download);
	download->task = task;
	bid_broker_queue(download->broker, &download->job, size);
}

/* tasks */
static void lock_or_poll(struct bid_download *download);
static void derive_artifact(struct bid_download *download);
static void wait_for_whole_file(struct bid_download *download);
static void derive_from_whole_file(struct bid_download *download);

/* Take the result of the wait for a whole file, and the reports of its download @whole, which may be NULL. Under the lock. */
static void note_whole_file_result(struct bid_download *download, int result, const struct bid_download *whole)
{
	struct bid_whole_file_wait *wait = &download->whole_file;

	wait->first_report = download->n_reports;
	if (whole)
		bid_download_copy_reports(download, whole);
	wait->result = result;
	queue_task(download, derive_from_whole_file, BID_JOB_DERIVATION);
}

static void add_waiter(struct bid_download *download, struct bid_waiter *waiter)
{
	waiter->state = BID_WAITER_QUEUED;
	waiter->download = download;
	download->had_waiter |= waiter->fn || waiter->dependent;
	TAILQ_INSERT_TAIL(&download->waiters, waiter, link);
	download->n_waiters++;
	*(waiter->dependent ? &download->broker->n_dependents : &download->broker->n_waiting) += 1;
}

/* Drop the kept result. Under the lock. */
static void drop_kept_result(struct bid_download *download)
{
	bid_timer_disarm(&download->expiry_timer);
	leave_bucket(download);
	bid_download_unref(download);
}

void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter)
{
	if (waiter->id)
		TAILQ_REMOVE(&broker->waiters, waiter, all);
}

/* Take @waiter out of its download, and detach it. Under the lock. */
static void remove_waiter(struct bid_waiter *waiter)
{
	struct bid_download *download = waiter->download;

	TAILQ_REMOVE(&download->waiters, waiter, link);
	waiter->download = NULL;
	download->n_waiters--;
	*(waiter->dependent ? &download->broker->n_dependents : &download->broker->n_waiting) -= 1;
	bid_waiter_detach(download->broker, waiter);
}

static void take_waiters(struct bid_download *download, struct bid_waiters *waiters)
{
	struct bid_waiter *waiter;

	while ((waiter = TAILQ_FIRST(&download->waiters))) {
		remove_waiter(waiter);
		TAILQ_INSERT_TAIL(waiters, waiter, link);
	}
}

static void count_answer(struct bid_broker *broker, int error)
{
	if (error < 0)
		atomic_fetch_add(error == -ENOENT  ? &broker->counts.absent
				 : error == -EINTR ? &broker->counts.interrupted
						   : &broker->counts.unknown,
				 1);
}

void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download)
{
	struct bid_result result = { .error = error, .file = error == 0 ? file : NULL };

	if (waiter->dependent) {
		pthread_mutex_lock(&broker->lock);
		note_whole_file_result(waiter->dependent, error, download);
		pthread_mutex_unlock(&broker->lock);
		return;
	}
	if (download) {
		result.reports = (const struct bid_report *const *)download->reports;
		result.n_reports = download->n_reports;
		result.waited_ms = download->lock_wait.waited_ms;
	}
	if (waiter->fn) {
		count_answer(broker, error);
		waiter->fn(waiter->user, &result);
	}
	free(waiter);
}

/* Answer @waiters, each with a descriptor of its own. Without the lock. */
static void answer_waiters(struct bid_download *download, struct bid_waiters *waiters, int error, struct bid_file *file)
{
	bid_cleanup(bid_file_release) struct bid_file stripped = BID_FILE_NONE;
	struct bid_broker *broker = download->broker;
	struct bid_waiter *waiter;
	bool is_stripped;

	/* no server delivered: stripped debuginfo of the store is better than none */
	is_stripped = error < 0 && error != -EINTR && download->artifact.kind == BID_KIND_DEBUGINFO &&
		      bid_store_find(broker->store, &download->artifact, BID_NEVER_DERIVE, &stripped) == 0;
	while ((waiter = TAILQ_FIRST(waiters))) {
		bid_cleanup(bid_file_release) struct bid_file own = BID_FILE_NONE;
		int r = is_stripped && !waiter->dependent ? 0 : error;

		TAILQ_REMOVE(waiters, waiter, link);
		if (r == 0) {
			own = is_stripped ? stripped : *file;
			own.fd = fcntl(own.fd, F_DUPFD_CLOEXEC, 0);
			if (own.fd < 0)
				r = -errno;
		}
		bid_waiter_answer(broker, waiter, r, &own, download);
	}
}

/* Take @download out of the list of those in flight. Keep @error as its result for late readers. Under the lock. */
static void keep_result(struct bid_download *download, int error)
{
	struct bid_broker *broker = download->broker;

	bid_timer_disarm(&download->expiry_timer);
	TAILQ_REMOVE(&broker->downloads, download, link);
	broker->n_downloads--;
	download->error = error;

	if (error == 0 || find_download(broker, &download->artifact) != download || broker->ending) {
		leave_bucket(download);
		bid_download_unref(download);
	} else {
		download->expires_ms = bid_clock_ms() + BID_GRACE_MS;
		bid_broker_arm(broker, &download->expiry_timer, download->expires_ms);
	}
	if (broker->n_downloads == 0)
		pthread_cond_broadcast(&broker->idle);
}

void bid_download_drop_kept(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	struct bid_download *download, *next;

	for (size_t i = 0; i < BID_DOWNLOAD_BUCKETS; i++)
		for (download = broker->buckets[i]; download; download = next) {
			next = download->next;
			if (download->machine.state == BID_DOWNLOAD_ENDED &&
			    (!artifact || bid_artifact_equal(&download->artifact, artifact)))
				drop_kept_result(download);
		}
}

/* Report a reason against a request to candidate @i, from the negative cache or for want of a signature. Without the lock. */
static void report_known(struct bid_download *download, size_t i)
{
	const struct bid_candidate *candidate = &download->machine.candidates[i];
	const struct bid_server *server = candidate->from->server;
	struct bid_broker *broker = download->broker;
	char text[BID_TEXT_MAX] = "a section carries no signature";
	enum bid_outcome reason = BID_OUTCOME_UNSUPPORTED;
	unsigned ttl;

	if (!server->signers || download->artifact.kind != BID_KIND_SECTION) {
		reason = bid_negative_lookup(broker->negative, &download->artifact, server->name, &ttl);
		if (reason == BID_OUTCOME_NONE)
			return;
		snprintf(text, sizeof(text), "%s, next request in %u s",
			 reason == BID_OUTCOME_REJECTED ? "wrong content earlier" : "same response earlier", ttl);
	}
	pthread_mutex_lock(&broker->lock);
	bid_download_report_only(download, candidate, reason, text);
	pthread_mutex_unlock(&broker->lock);
	bid_download_step(download, BID_EVENT_REPORTED, i);
}

static bool has_tried_whole_files(const struct bid_download *download)
{
	return download->machine.whole_files_tried > 0;
}

/* List the candidates of @download: all servers, the last one that delivered first. Without the lock. */
static void list_candidates(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	struct bid_machine *machine = &download->machine;

	pthread_mutex_lock(&broker->lock);
	if (bid_whole_file_is_used(download))
		machine->whole_files = BID_WHOLE_FILES_MAX;
	if (download->artifact.kind == BID_KIND_UNSTRIPPED) {
		pthread_mutex_unlock(&broker->lock);
		return;
	}
	if (broker->preferred)
		machine->candidates[machine->n++].from = broker->preferred;
	for (size_t server = 0; server < broker->n_servers; server++)
		if (&broker->servers[server] != broker->preferred)
			machine->candidates[machine->n++].from = &broker->servers[server];
	pthread_mutex_unlock(&broker->lock);

	for (size_t i = 0; i < machine->n; i++)
		report_known(download, i);
}

/* Send the request of candidate @i. Returns 0, or -ENOMEM or an error of the server without an attempt. Under the lock. */
static int submit_attempt(struct bid_download *download, size_t i)
{
	struct bid_candidate *candidate = &download->machine.candidates[i];
	struct bid_broker *broker = download->broker;
	struct bid_server *server = candidate->from->server;
	struct bid_attempt *attempt = calloc(1, sizeof(*attempt));
	int r;

	if (!attempt)
		return -ENOMEM;
	attempt->download = download;
	attempt->job.download = download;
	attempt->job.attempt = attempt;
	attempt->candidate = i;
	attempt->from = candidate->from;
	attempt->started_ms = bid_clock_ms();
	attempt->size = BID_SIZE_UNKNOWN;
	r = server->ops->request(server, &download->artifact, &bid_attempt_receiver, attempt);
	if (r < 0) {
		free(attempt);
		return r;
	}
	bid_download_ref(download);
	candidate->attempt = attempt;
	broker->n_attempts++;
	return 0;
}

/* Returns the event after the start of candidate @i: START, or REPORTED after a report without a request. Under the lock. */
static enum bid_machine_event start_attempt(struct bid_download *download, size_t i)
{
	const struct bid_candidate *candidate = &download->machine.candidates[i];
	int r;

	if (atomic_load(&download->broker->offline)) {
		bid_download_report_only(download, candidate, BID_OUTCOME_UNAVAILABLE, "offline: bidfs sends no request");
		return BID_EVENT_REPORTED;
	}
	r = submit_attempt(download, i);
	if (r < 0)
		bid_download_report_only(download, candidate, r == -ENOMEM ? BID_OUTCOME_FAILED : BID_OUTCOME_UNAVAILABLE,
					 bid_strerror(r));
	return r < 0 ? BID_EVENT_REPORTED : BID_EVENT_START;
}

/* Under the lock. */
static void set_start_timer(struct bid_download *download, enum bid_hedge hedge)
{
	unsigned times = hedge == BID_HEDGE_AFTER_HEADER ? BID_HEADER_HEDGES : 1;
	struct bid_broker *broker = download->broker;

	if (hedge == BID_HEDGE_STOP)
		bid_timer_disarm(&download->start_timer);
	else if (hedge != BID_HEDGE_KEEP || !download->start_timer.timers)
		bid_broker_arm(broker, &download->start_timer, bid_clock_ms() + (int64_t)times * broker->config.hedge_ms);
}

/* End the wait for a whole file, of a download that is cancelled or timed out. Under the lock. */
static void cancel_whole_file(struct bid_download *download)
{
	bool timed_out = download->machine.state == BID_DOWNLOAD_TIMED_OUT;
	struct bid_waiter *waiter = &download->whole_file.waiter;

	waiter->cancelled = true;
	/* otherwise its answer is coming */
	if (!waiter->download)
		return;
	/* after a timeout, a reader may return for the file */
	bid_waiter_leave(waiter, timed_out);
	note_whole_file_result(download, timed_out ? -ETIMEDOUT : -EINTR, NULL);
}

/* Cancel the attempts of @candidates, and the wait for a whole file. Under the lock. */
static void cancel_attempts(struct bid_download *download, uint64_t candidates, bool whole_file)
{
	for (size_t i = 0; i < download->machine.n; i++) {
		struct bid_candidate *candidate = &download->machine.candidates[i];
		struct bid_server *server = candidate->from->server;

		if (!(candidates & UINT64_C(1) << i))
			continue;
		candidate->stopped_ms = (unsigned)(bid_clock_ms() - candidate->attempt->started_ms);
		server->ops->cancel(server, candidate->attempt);
	}
	if (whole_file)
		cancel_whole_file(download);
}

struct bid_actions bid_download_step_locked(struct bid_download *download, enum bid_machine_event event, size_t candidate)
{
	struct bid_broker *broker = download->broker;
	struct bid_machine *machine = &download->machine;
	struct bid_actions actions;
	bool starts;

	do {
		machine->unwanted = broker->ending || is_unwanted(download);
		actions = bid_machine_step(machine, event, candidate);
		starts = actions.start != BID_NO_CANDIDATE;
		cancel_attempts(download, actions.cancel, actions.cancel_whole_file);
		if (actions.whole_file)
			queue_task(download, wait_for_whole_file, 0);
		/* the next poll ends a download that does not start any more */
		if (machine->state != BID_DOWNLOAD_NEW && download->lock_wait.poll_timer.timers)
			bid_broker_arm(broker, &download->lock_wait.poll_timer, 0);
		/* under the same lock, because a new waiter could join a download that ends as interrupted */
		if (machine->state == BID_DOWNLOAD_CANCELLED || (actions.end && actions.ended_as == BID_DOWNLOAD_CANCELLED))
			leave_bucket(download);
		if (starts)
			event = start_attempt(download, actions.start);
		set_start_timer(download, actions.hedge);
		candidate = event == BID_EVENT_REPORTED ? actions.start : BID_NO_CANDIDATE;
	} while (starts);
	return actions;
}

/* End @download, which is ENDED, with @error or @file. Under the lock, released meanwhile. */
static void deliver_result(struct bid_download *download, int error, struct bid_file *file)
{
	struct bid_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
	struct bid_broker *broker = download->broker;

	bid_download_ref(download);
	bid_download_report_overtaken(download);
	take_waiters(download, &waiters);
	keep_result(download, error);
	pthread_mutex_unlock(&broker->lock);

	/* a server may announce a wrong size, and a server without a response may have a smaller artifact */
	if (error == -EFBIG && !has_tried_whole_files(download) && bid_download_is_too_large(download))
		bid_negative_add(broker->negative, &download->artifact, BID_NEGATIVE_ALL, BID_OUTCOME_TOO_LARGE);
	unlock_download(download);
	answer_waiters(download, &waiters, error, file);

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

void bid_download_set_result(struct bid_download *download, int error, struct bid_file *file)
{
	struct bid_broker *broker = download->broker;

	pthread_mutex_lock(&broker->lock);
	bid_download_step_locked(download, BID_EVENT_RESULT, BID_NO_CANDIDATE);
	deliver_result(download, error, file);
	pthread_mutex_unlock(&broker->lock);
}

/* Under the lock. */
static int error_of(const struct bid_download *download, enum bid_download_state ended_as)
{
	switch (ended_as) {
	case BID_DOWNLOAD_CANCELLED:
		return -EINTR;
	case BID_DOWNLOAD_TIMED_OUT:
		return -ETIMEDOUT;
	default:
		if (has_tried_whole_files(download))
			return download->whole_file.error ? download->whole_file.error : -ENOENT;
		return bid_download_reported_error(download);
	}
}

/* Report the servers without a further attempt: their bodies broke off. Under the lock. */
static void report_broken(struct bid_download *download)
{
	for (size_t i = 0; i < download->machine.n; i++) {
		const struct bid_candidate *candidate = &download->machine.candidates[i];

		if (candidate->state == BID_CANDIDATE_IDLE_AGAIN && candidate->broken)
			bid_download_report_only(download, candidate, BID_OUTCOME_UNAVAILABLE, "the body broke off");
	}
}

void bid_download_step(struct bid_download *download, enum bid_machine_event event, size_t candidate)
{
	struct bid_broker *broker = download->broker;
	struct bid_actions actions;

	pthread_mutex_lock(&broker->lock);
	actions = bid_download_step_locked(download, event, candidate);
	if (actions.end) {
		report_broken(download);
		deliver_result(download, error_of(download, actions.ended_as), NULL);
	}
	pthread_mutex_unlock(&broker->lock);
}

/* Start another server. Under the lock, which is released meanwhile. */
static void expire_start_timer(void *user)
{
	struct bid_download *download = user;
	struct bid_broker *broker = download->broker;
	uint64_t in_loop = bid_self_request_look(download);

	for (size_t i = 0; i < download->machine.n; i++)
		if (in_loop & UINT64_C(1) << i)
			bid_download_step_locked(download, BID_EVENT_LOOP, i);
	bid_download_ref(download);
	pthread_mutex_unlock(&broker->lock);
	bid_download_step(download, BID_EVENT_TIMER, BID_NO_CANDIDATE);
	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

void bid_download_answer_waiters(struct bid_download *download, enum bid_machine_event event, int error)
{
	struct bid_broker *broker = download->broker;
	struct bid_waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);

	take_waiters(download, &waiters);
	bid_download_step_locked(download, event, BID_NO_CANDIDATE);
	bid_download_ref(download);
	pthread_mutex_unlock(&broker->lock);

	answer_waiters(download, &waiters, error, NULL);

	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

/* End the wait or the kept result of a download. Under the lock, which may be released in between. */
static void expire_wait(void *user)
{
	struct bid_download *download = user;

	if (download->machine.state == BID_DOWNLOAD_ENDED) {
		drop_kept_result(download);
		return;
	}
	download->may_return |= download->n_waiters > 0;
	bid_download_answer_waiters(download, BID_EVENT_TIMEOUT, -ETIMEDOUT);
}

/* Let a disk worker derive the artifact. Returns false for a download that nobody waits for: it ends. Without the lock. */
static bool derive_later(struct bid_download *download)
{
	bool wanted;

	pthread_mutex_lock(&download->broker->lock);
	wanted = download->machine.state == BID_DOWNLOAD_NEW;
	if (wanted)
		queue_task(download, derive_artifact, BID_JOB_DERIVATION);
	pthread_mutex_unlock(&download->broker->lock);
	return wanted;
}

/*
 * Look into the store, where another thread or process may have published the artifact since its reader looked. Leave a derivation
 * to a disk worker, which calls with BID_MAY_DERIVE. Without the artifact, start the first attempt. Drops the reference of the
 * caller. Without the lock.
 */
static void find_or_request(struct bid_download *download, enum bid_derive derive)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	unsigned ttl = 0;
	int r = bid_broker_find(download->broker, &download->artifact, derive, &file, &ttl);

	if (r == -EAGAIN && derive_later(download))
		return;
	/* with a TTL, each server has a negative entry, which becomes its report */
	if (r == -EINPROGRESS || r == -EAGAIN || ttl > 0) {
		list_candidates(download);
		bid_download_step(download, BID_EVENT_START, BID_NO_CANDIDATE);
	} else {
		bid_download_set_result(download, r, &file);
	}
	unref_unlocked(download);
}

/* Let a disk worker poll the lock later: less often after a longer wait, because the lock may be a request to an NFS server. */
static void poll_later(struct bid_download *download, int64_t waited_ms)
{
	struct bid_broker *broker = download->broker;
	int64_t at = bid_clock_ms();

	pthread_mutex_lock(&broker->lock);
	/* the download may have ended meanwhile */
	if (download->machine.state == BID_DOWNLOAD_NEW)
		at += LOCK_POLL_MS + waited_ms / 8;
	bid_broker_arm(broker, &download->lock_wait.poll_timer, at);
	pthread_mutex_unlock(&broker->lock);
}

/* Returns the limit of the wait for the lock: a part of the readers' wait, because the download needs the rest. */
static int64_t lock_wait_limit(const struct bid_broker *broker)
{
	unsigned half = broker->config.wait_ms / 2;

	return half > 0 && half < LOCK_WAIT_MS ? half : LOCK_WAIT_MS;
}

/*
 * Start @download, which is NEW, unless another process has its lock: then a disk worker calls this again later. Drops the
 * reference of the caller when it starts. Without the lock.
 */
static void lock_or_poll(struct bid_download *download)
{
	struct bid_lock_wait *wait = &download->lock_wait;
	struct bid_broker *broker = download->broker;
	int64_t now = bid_clock_ms();
	char name[BID_NAME_MAX];
	bool over;
	int r;

	if (wait->since_ms == 0)
		wait->since_ms = now;
	pthread_mutex_lock(&broker->lock);
	over = download->machine.state != BID_DOWNLOAD_NEW || broker->ending || is_unwanted(download);
	pthread_mutex_unlock(&broker->lock);
	wait->key = bid_download_lock_key(&download->artifact, broker->servers_hash);
	r = over ? -ECANCELED : bid_download_locks_try(broker->download_locks, wait->key);
	wait->holds = r == 0;
	/* any other error starts the download without the lock */
	if (r == -EBUSY) {
		if (now - wait->since_ms < lock_wait_limit(broker)) {
			poll_later(download, now - wait->since_ms);
			return;
		}
		bid_info("another process holds the download lock: download without it: '%s'",
			 bid_artifact_name(&download->artifact, name));
	}
	wait->waited_ms = (unsigned)(now - wait->since_ms);
	find_or_request(download, BID_NEVER_DERIVE);
}

/*
 * Wait for the next whole file. debuginfod of elfutils 0.192 and later responds with 404 for a section that it has just
 * served. Releases the lock of the section: other processes need not wait any more.
 */
static void wait_for_whole_file(struct bid_download *download)
{
	size_t index = download->machine.whole_files_tried - 1;
	struct bid_artifact artifact = { .id = download->artifact.id, .kind = bid_section_whole_file(index) };
	struct bid_waiter *waiter = &download->whole_file.waiter;
	struct bid_broker *broker = download->broker;
	int error = bid_whole_file_begin(download);

	pthread_mutex_lock(&broker->lock);
	if (error == 0 && download->machine.state == BID_DOWNLOAD_RUNNING && download->n_waiters == 0)
		error = -ETIMEDOUT;
	*waiter = (struct bid_waiter){
		.state = BID_WAITER_BUSY,
		.dependent = download,
		.cancelled = download->machine.state != BID_DOWNLOAD_RUNNING,
	};
	pthread_mutex_unlock(&broker->lock);
	if (error < 0) {
		bid_download_set_result(download, error, NULL);
		return;
	}
	unlock_download(download);
	bid_broker_submit(broker, waiter, &artifact);
}

/* Derive the artifact from a whole file, after its download. */
static void derive_from_whole_file(struct bid_download *download)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	int r = bid_whole_file_end(download, &file);

	if (r == -EINPROGRESS)
		bid_download_step(download, BID_EVENT_WHOLE_FILE_FAILED, BID_NO_CANDIDATE);
	else
		bid_download_set_result(download, r, &file);
}

static void derive_artifact(struct bid_download *download)
{
	bool wanted;

	pthread_mutex_lock(&download->broker->lock);
	wanted = download->machine.state == BID_DOWNLOAD_NEW;
	pthread_mutex_unlock(&download->broker->lock);
	find_or_request(download, wanted ? BID_MAY_DERIVE : BID_NEVER_DERIVE);
}

/* bid_job.run: run the task of a download. */
static void run_task(struct bid_job *job)
{
	struct bid_download *download = job->download;
	struct bid_broker *broker = download->broker;

	pthread_mutex_unlock(&broker->lock);
	download->task(download);
	pthread_mutex_lock(&broker->lock);
	bid_download_unref(download);
}

/* Under the lock. */
static void expire_poll_timer(void *user)
{
	queue_task(user, lock_or_poll, 0);
}

static struct bid_download *download_new(struct bid_broker *broker, const struct bid_artifact *artifact)
{
	size_t max_reports = broker->n_servers * (1 + BID_WHOLE_FILES_MAX);
	struct bid_download *download = calloc(1, sizeof(*download) + max_reports * sizeof(*download->reports));
	struct bid_download **at = bucket_of(broker, artifact);

	if (!download)
		return NULL;
	download->max_reports = max_reports;
	download->machine.candidates = calloc(broker->n_servers, sizeof(*download->machine.candidates));
	if (!download->machine.candidates) {
		download_free(download);
		return NULL;
	}
	download->broker = broker;
	download->artifact = bid_artifact_copy(artifact);
	download->started_ms = bid_clock_ms();
	download->job.download = download;
	download->job.run = run_task;
	download->expiry_timer = (struct bid_timer){ .expire = expire_wait, .user = download };
	download->start_timer = (struct bid_timer){ .expire = expire_start_timer, .user = download };
	download->lock_wait.poll_timer = (struct bid_timer){ .expire = expire_poll_timer, .user = download };
	download->refs = 1;
	TAILQ_INIT(&download->waiters);

	download->next = *at;
	*at = download;
	TAILQ_INSERT_TAIL(&broker->downloads, download, link);
	broker->n_downloads++;
	return download;
}

static void begin_wait(struct bid_download *download, int64_t now)
{
	struct bid_broker *broker = download->broker;

	download->expires_ms = now + broker->config.wait_ms;
	bid_broker_arm(broker, &download->expiry_timer, download->expires_ms);
}

/* May a new waiter wait for @download? */
static bool admit_waiter(struct bid_download *download, int64_t now)
{
	if (download->broker->config.wait_ms == 0)
		return true;
	if (now < download->expires_ms)
		return true;
	/* the waiters of an ended wait must not wait for another one */
	if (download->n_waiters > 0 || now < download->expires_ms + BID_GRACE_MS)
		return false;
	begin_wait(download, now);
	return true;
}

/*
 * Let @waiter wait for @artifact. Under the lock. Returns
 *   -EINPROGRESS	@waiter waits, and belongs to the download. With @ret_new set, with a reference, the caller starts it
 *   other		the result. @ret_seen may be set to the download of its reports, with a reference
 */
static int join_download(struct bid_broker *broker, const struct bid_artifact *artifact, struct bid_waiter *waiter,
			 struct bid_download **ret_new, struct bid_download **ret_seen)
{
	int64_t now = bid_clock_ms();
	struct bid_download *download = find_download(broker, artifact);
	int error;

	if (download && download->machine.state == BID_DOWNLOAD_ENDED && now >= download->expires_ms) {
		drop_kept_result(download);
		download = NULL;
	}
	/* no attempt is left to start, but one may end late */
	if (download && download->machine.state == BID_DOWNLOAD_TIMED_OUT && now >= download->expires_ms + BID_GRACE_MS) {
		leave_bucket(download);
		download = NULL;
	}
	if (!download) {
		download = download_new(broker, artifact);
		if (!download)
			return -ENOMEM;
		if (broker->config.wait_ms > 0)
			begin_wait(download, now);
		add_waiter(download, waiter);
		bid_download_ref(download);
		*ret_new = download;
		return -EINPROGRESS;
	}

	if (download->machine.state == BID_DOWNLOAD_ENDED) {
		error = download->error;
	} else if (admit_waiter(download, now)) {
		add_waiter(download, waiter);
		return -EINPROGRESS;
	} else {
		download->may_return = true;
		error = -ETIMEDOUT;
	}
	bid_download_ref(download);
	*ret_seen = download;
	return error;
}

void bid_broker_submit(struct bid_broker *broker, struct bid_waiter *waiter, const struct bid_artifact *artifact)
{
	struct bid_waiters one = TAILQ_HEAD_INITIALIZER(one);
	struct bid_download *fresh = NULL, *seen = NULL;
	int r = -EINTR;

	pthread_mutex_lock(&broker->lock);
	if (!bid_artifact_valid(artifact))
		r = -EINVAL;
	else if (!waiter->cancelled && !broker->ending)
		r = join_download(broker, artifact, waiter, &fresh, &seen);
	if (r != -EINPROGRESS)
		bid_waiter_detach(broker, waiter);
	pthread_mutex_unlock(&broker->lock);

	if (fresh)
		lock_or_poll(fresh);
	if (r == -EINPROGRESS)
		return;
	if (!seen) {
		bid_waiter_answer(broker, waiter, r, NULL, NULL);
		return;
	}
	TAILQ_INSERT_TAIL(&one, waiter, link);
	answer_waiters(seen, &one, r, NULL);
	unref_unlocked(seen);
}

void bid_waiter_leave(struct bid_waiter *waiter, bool timed_out)
{
	struct bid_download *download = waiter->download;

	remove_waiter(waiter);
	download->may_return |= timed_out;
	if (timed_out && download->n_waiters == 0)
		bid_download_step_locked(download, BID_EVENT_TIMEOUT, BID_NO_CANDIDATE);
	else if (is_unwanted(download))
		bid_download_step_locked(download, BID_EVENT_CANCEL, BID_NO_CANDIDATE);
	/* the next waiter starts another download */
	if (timed_out && download->machine.state == BID_DOWNLOAD_TIMED_OUT)
		leave_bucket(download);
}
