/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A download: the waiters for one request, and its attempts, each a transfer from one server (attempt.h).
 *
 * bid_broker_submit()		a waiter joins a download, or makes one, and starts it: takes the lock between processes, or
 *				polls it; looks into the store, orders the servers, starts the first attempt
 * attempt.h			receives, checks and publishes the body of one server
 * bid_download_step_and_end()	an event, for the machine (machine.h); runs its actions: starts and cancels attempts
 * bid_download_end()		the result is known; answers the waiters
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

#include "broker/attempt.h"
#include "broker/broker_types.h"
#include "broker/machine.h"

#define BID_GRACE_MS	   250
#define BID_CONTAINERS_MAX 2 /* debuginfo and ELF file */

/*
 * Containers of a section, after the last server: the debuginfo or the ELF file may have it. The download waits for the downloads of
 * these files, one after the other, as their waiter. The machine starts the next one; a commit worker examines its result.
 */
struct bid_container_wait {
	struct bid_waiter waiter; /* for the download of the file */
	int answer; /* of the waiter; -EINPROGRESS before it */
	int error; /* first error other than an absence; the section's error counts until a file is found */
	size_t first_report; /* index of the first report of the file's download */
};

/*
 * Wait for the download of another process. A download starts no attempt while another process holds the lock of its request
 * ("api/download_lock.h"). It polls the lock for half a minute, or half its readers' wait if shorter. Then it looks into the store,
 * and downloads by itself.
 */
struct bid_lock_wait {
	uint64_t key;
	int64_t since_ms; /* time of the first look at the lock */
	_Atomic unsigned waited_ms; /* time of the wait */
	bool polls; /* start_timer is for the next poll; under the broker's lock */
	_Atomic bool holds;
};

struct bid_download {
	struct bid_broker *broker;
	struct bid_request request;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker's lists, one for each thread with waiters to answer */
	struct bid_machine machine; /* candidates are owned */
	bool committing; /* a commit worker has it, one at a time */
	bool had_waiter; /* not a prefetch */
	bool may_return; /* the end of a wait answered a waiter, which may come back */
	bool no_room; /* the announced size does not fit */
	int error; /* when ENDED */
	int64_t expires_ms; /* end of the last wait; when ENDED, of the kept result */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_download *next; /* in its bucket */
	TAILQ_ENTRY(bid_download) link; /* in the broker's downloads */
	struct bid_job job; /* a poll of the lock, a derivation, or a wait for a container; with a reference while queued */
	struct bid_timer expiry_timer; /* end of the wait, or of the kept result */
	struct bid_timer start_timer; /* start of another server, or poll of the lock */
	struct bid_lock_wait lock_wait;
	struct bid_container_wait container;
	struct bid_server_state *winner; /* it delivered the artifact; or NULL */
	size_t max_reports;
	/* shared by all threads */
	_Atomic size_t n_reports; /* entries below are constant */
	struct bid_report *reports[]; /* one per server and request, also those of containers; a reference each */
};

/* Returns the waiter of @handle, or NULL. Under the lock. */
struct bid_waiter *bid_waiter_of(struct bid_broker *broker, uint64_t handle);

/* Use up the request handle of @waiter before its answer. Under the lock. */
void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter);

/*
 * Answer and free a detached @waiter; queue the download that waited with it for a container. @download may be NULL. The callee may
 * take the descriptor of @file. Without the lock.
 */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download);

/*
 * Feed @event of @candidate, or BID_NO_CANDIDATE, to @download; start and cancel attempts. Events that may end the download are for
 * bid_download_step_and_end(). Under the lock.
 */
struct bid_actions bid_download_step(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/* The same, with the end of @download. By the owner of a reference, without the lock. */
void bid_download_step_and_end(struct bid_download *download, enum bid_machine_event event, size_t candidate);

/*
 * Answer all waiters with @error or a copy of @file, and cancel the attempts. By the commit worker of an attempt not yet ended,
 * or of a container; or before the first attempt. Without the lock.
 */
void bid_download_end(struct bid_download *download, int error, struct bid_file *file);

/*
 * Answer all waiters of @download with @error, and step its machine by @event. Locking: under the broker's lock, which is
 * released for the answers.
 */
void bid_download_answer_all(struct bid_download *download, enum bid_machine_event event, int error);

/* Let other processes download the same, if @download has its lock. Without the broker's lock. */
void bid_download_release_lock(struct bid_download *download);

/* Drop the kept results of all downloads, or of the one for @request. Under the lock. */
void bid_download_drop_kept(struct bid_broker *broker, const struct bid_request *request);

/*
 * Look into the store, where another thread or process may have published the artifact since its reader looked. Leave a derivation
 * to a commit worker, which calls with @derive. Without the artifact, start the first attempt. Takes the reference. Without the
 * lock.
 */
void bid_download_begin(struct bid_download *download, bool derive);

/*
 * Start @download, which is NEW, unless another process has its lock: then a commit worker calls this again later. Takes the
 * reference of the caller at the start. Without the lock.
 */
void bid_download_start(struct bid_download *download);

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

/* Returns the result of all reports, without a found one among them. */
int bid_download_conclusion(const struct bid_download *download);

/* container.c */

/* Wait for a container of @download, or derive from it. By a commit worker, without the lock. */
void bid_container_run(struct bid_download *download);

/* reports.c */

#define BID_NAME_MAX 512

/* Write @request for a message: "ID/elf", "ID/source/usr/src/a.c", as far as it fits. Returns @buf. */
const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX]);

/* Report the @outcome of @attempt to the download, the counters and the log. Without the lock. */
void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text);

/* Report @server without a request, for the reason @text. Not counted. Under the lock. */
void bid_download_report_skipped(struct bid_download *download, const struct bid_server *server, enum bid_outcome outcome,
				 const char *text);

/* Report the attempts that the winner has overtaken. Under the lock. */
void bid_download_report_overtaken(struct bid_download *download);

/* Take over the reports of @other. Under the lock. */
void bid_download_copy_reports(struct bid_download *download, const struct bid_download *other);

/* Count an @attempt without a report: it was cancelled. Without the lock. */
void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome);

/* Set the signer of the last file of the server for its statistics: "" without a signature. Without the lock. */
void bid_attempt_note_signer(const struct bid_attempt *attempt, const char *signer);

#endif
