/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A download: the waiters for one artifact, and its attempts, each a transfer from one server.
 *
 * bid_broker_submit()		a waiter joins a download, or makes one, and starts it: takes the lock between processes, or
 *				polls it; looks into the store, lists the candidates, starts the first attempt
 * attempt.c			receives, checks and publishes the body of one server
 * bid_download_step()		an event, for the machine (machine.h); runs its actions: starts and cancels attempts
 * bid_download_set_result()	the result is known; answers the waiters
 *
 * The kernel looks up one name for many callers one after the other. With a wait of its own, the tenth caller would wait ten times
 * as long. Therefore all waiters of a download share one wait:
 *
 *   wait_ms from the first waiter on	others join
 *   end of the wait			all waiters get -ETIMEDOUT. A download without a sent request times out; others continue
 *   BID_GRACE_MS after the end		a waiter gets -ETIMEDOUT at once
 *   later				a waiter begins another wait
 *
 * A download without an artifact keeps its error for BID_GRACE_MS, for the callers that the kernel held back.
 */
#ifndef BID_BROKER_DOWNLOAD_H
#define BID_BROKER_DOWNLOAD_H

#include <errno.h>

#include "api/txn.h"
#include "broker/broker_types.h"
#include "broker/machine.h"

#define BID_TEXT_MAX	    256 /* bytes of a report, with its NUL */
#define BID_HEAD_MAX	    (64 * 1024) /* bytes of a body before the early check of its id */
#define BID_GRACE_MS	    250
#define BID_WHOLE_FILES_MAX 2 /* debuginfo and ELF file */

/*
 * Whole files that may have a section, if no server has it: the debuginfo and the ELF file. The download of the section waits for
 * their downloads, one after the other, as a waiter. An unstripped file is made of both, and has no attempt of its own. The machine
 * starts the next wait; a disk worker derives the artifact.
 */
struct bid_whole_file_wait {
	struct bid_waiter waiter; /* for the download of the file */
	int result; /* of the waiter */
	int error; /* first error other than an absence; the section's error counts until a file is found */
	size_t first_report; /* index of the first report of the file's download */
};

/*
 * Wait for the download of another process. A download starts no attempt while another process holds the lock of its artifact
 * ("api/download_lock.h"). It polls the lock for half a minute, or half its readers' wait if shorter. Then it looks into the store,
 * and downloads by itself.
 */
struct bid_lock_wait {
	uint64_t key;
	int64_t since_ms; /* time of the first look at the lock */
	_Atomic unsigned waited_ms; /* time of the wait */
	struct bid_timer poll_timer; /* next poll; under the broker's lock */
	_Atomic bool holds;
};

struct bid_download {
	struct bid_broker *broker;
	struct bid_artifact artifact;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker's lists, one for each thread with waiters to answer */
	struct bid_machine machine; /* candidates are owned */
	bool committing; /* a disk worker has it, one at a time */
	bool had_waiter; /* not a prefetch */
	bool may_return; /* the end of a wait answered a waiter, which may come back */
	bool no_room; /* the announced size does not fit */
	int error; /* when ENDED */
	int64_t expires_ms; /* end of the last wait; when ENDED, of the kept result */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_download *next; /* in its bucket */
	TAILQ_ENTRY(bid_download) link; /* in the broker's downloads */
	struct bid_job job; /* runs @task; with a reference while queued */
	void (*task)(struct bid_download *download); /* start, derivation, or wait for a whole file */
	struct bid_timer expiry_timer; /* end of the wait, or of the kept result */
	struct bid_timer start_timer; /* start of another server */
	struct bid_lock_wait lock_wait;
	struct bid_whole_file_wait whole_file;
	struct bid_server_state *winner; /* it delivered the artifact; or NULL */
	size_t max_reports;
	/* shared by all threads */
	_Atomic size_t n_reports; /* entries below are constant */
	struct bid_report *reports[]; /* one per server and artifact, also those of whole files; a reference each */
};

/*
 * An attempt: the transfer of the artifact from one server, into a transaction. Its server calls bid_attempt_receiver; then a
 * disk worker checks and publishes the body.
 */
struct bid_attempt {
	struct bid_download *download; /* a reference */
	size_t candidate; /* index in the download's */
	struct bid_server_state *from;
	int64_t started_ms;

	/* under the broker's lock */
	bool makes_room; /* a disk worker evicts */
	bool in_loop; /* cancelled: the server requests from this broker (self_request.c) */
	struct bid_job job;

	/* owned by one thread at a time: starter, server, disk worker; by a disk worker while it makes room */
	struct bid_txn *txn; /* begun with the body */
	uint8_t *head; /* begin of the body, until its check */
	size_t head_len; /* BID_HEAD_MAX: checked */
	bool checked; /* the machine knows of the check; false after a break */
	uint64_t delivered; /* bytes from this server, with repeated ones */
	int error; /* negative errno that ended the transfer or the commit; -ESTALE: other bytes than the first download */
	char reason[BID_TEXT_MAX]; /* the same as a text */
	struct bid_server_report report; /* its strings are owned, or NULL */
	char signer[BID_SIGNER_MAX]; /* signer of the published file, for the statistics; "" for none */

	/* shared by all threads */
	_Atomic uint64_t received; /* bytes of the current body */
	_Atomic uint64_t size; /* announced size, or BID_SIZE_UNKNOWN */
};

/*
 * Did the body of this server not fit, while another server may have a smaller one? Nothing arrived, or the transaction has a
 * reason: no announced size. By the thread that has @attempt.
 */
static inline bool bid_attempt_has_no_room(const struct bid_attempt *attempt)
{
	return attempt->error == -ENOSPC && (attempt->received == 0 || (attempt->txn && *bid_txn_reason(attempt->txn)));
}

/*
 * Take @waiter out of its download, and cancel the download if no caller wants it any more. After @timed_out, its caller may
 * return: a download without a sent request times out, others continue. Under the lock.
 */
void bid_waiter_leave(struct bid_waiter *waiter, bool timed_out);

/* Use up the id of @waiter before its answer. Under the lock. */
void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter);

/*
 * Answer and free a detached @waiter; queue the download that waited with it for a whole file. @download may be NULL. The callee
 * may take the descriptor of @file. Without the lock.
 */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download);

/*
 * Feed @event of @candidate, or BID_NO_CANDIDATE, to @download; start and cancel attempts. Events that may end the download are for
 * bid_download_step(). Under the lock.
 */
struct bid_actions bid_download_step_locked(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/* The same, with the end of @download. By the owner of a reference, without the lock. */
void bid_download_step(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/*
 * Answer all waiters with @error or a copy of @file, and cancel the attempts. By the disk worker of an attempt not yet ended,
 * or of a whole file; or before the first attempt. Without the lock.
 */
void bid_download_set_result(struct bid_download *download, int error, struct bid_file *file);

/*
 * Answer all waiters of @download with @error, and step its machine by @event. Locking: under the broker's lock, which is
 * released for the answers.
 */
void bid_download_answer_waiters(struct bid_download *download, enum bid_machine_event event, int error);

/* Drop the kept results of all downloads, or of the one for @artifact. Under the lock. */
void bid_download_drop_kept(struct bid_broker *broker, const struct bid_artifact *artifact);

/* Under the lock. */
void bid_download_ref(struct bid_download *download);
void bid_download_unref(struct bid_download *download);

/*
 * Returns @error of the store as a result: -ENOENT of a directory is no proof of absence, and -EACCES of a write is none of a
 * read.
 */
static inline int bid_result_error(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM ? -EIO : error;
}

/* whole_file.c */

/* May the artifact come from the debuginfo and the ELF file? */
bool bid_whole_file_is_used(const struct bid_download *download);

/* Before the wait for the next whole file: is another download of use? Returns 0, or the result of @download. By its task. */
int bid_whole_file_begin(struct bid_download *download);

/*
 * After the wait: derive the artifact. Returns 0 and the file, -EINPROGRESS if the next whole file may have it, or the result of
 * @download. By its task.
 */
int bid_whole_file_end(struct bid_download *download, struct bid_file *ret_file);

/* attempt.c */

/* Callbacks of the servers, for their attempts. */
extern const struct bid_receiver bid_attempt_receiver;

/* server_reports.c */

#define BID_NAME_MAX 512

/* Write @artifact for a message: "ID/elf", "ID/source/usr/src/a.c", as far as it fits. Returns @buf. */
const char *bid_artifact_name(const struct bid_artifact *artifact, char buf[static BID_NAME_MAX]);

/* Report the @outcome of @attempt to the download, the counters and the log. Without the lock. */
void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text);

/* Report @candidate, whose server reports nothing, for the reason @text. Not counted. Under the lock. */
void bid_download_report_only(struct bid_download *download, const struct bid_candidate *candidate, enum bid_outcome outcome,
			      const char *text);

/* Report the attempts that the winner has overtaken. Under the lock. */
void bid_download_report_overtaken(struct bid_download *download);

/* Returns the errno that follows from all reports, without a found one among them. */
int bid_download_reported_error(const struct bid_download *download);

/* Is the artifact too large at a server, and at each other one too large or absent? False after a whole file. */
bool bid_download_is_too_large(const struct bid_download *download);

/* Take over the reports of @other. Under the lock. */
void bid_download_copy_reports(struct bid_download *download, const struct bid_download *other);

/* Count an @attempt, also one without a report: it was cancelled. Under the lock. */
void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome);

#endif
