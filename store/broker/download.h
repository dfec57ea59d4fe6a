/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A download: one request to the sources, and its waiters.
 *
 * bid_download_join()	a waiter joins a download, or makes one
 * bid_download_start()	its first waiter starts it
 * bid_download_end()	the result is known; answers the waiters (scheduler.h)
 *
 * The machine (machine.h) has the states; download.c runs it. An attempt (attempt.h) is a request to one source.
 *
 * The kernel may look up one name for many callers one after the other. Therefore the wait belongs to the download, and not to each
 * caller.
 * A window of wait_ms opens with the first waiter. At its end all waiters are answered, and a download without a sent request is
 * given up. Within BID_WINDOW_GRACE after the window, a waiter is answered at once; later it opens a new window.
 * A download without an artifact keeps its result for BID_DOWNLOAD_TTL_MS: 200 queued look-ups are one download.
 */
#ifndef BID_BROKER_DOWNLOAD_H
#define BID_BROKER_DOWNLOAD_H

#include "broker/attempt.h"
#include "broker/machine.h"

#define BID_WINDOW_GRACE    250 /* ms */
#define BID_DOWNLOAD_TTL_MS 250
#define BID_FALLBACKS_MAX   2 /* debuginfo and ELF file */

/*
 * Fallback of a section absent at all sources: other files may contain it, each with its own download. The machine says when the
 * next one is due. A commit worker starts it, and examines its result.
 */
struct bid_fallback {
	struct bid_waiter waiter; /* for the download of the file */
	bool answered; /* the waiter has its answer */
	int answer; /* the answer */
	int error; /* first error other than an absence; the section's error counts until a file is found */
	size_t first_report; /* index of the first report of the file's download */
};

/* Wait for the download of another process: lock.c. */
struct bid_lock_wait {
	uint64_t key;
	int64_t since_ms;
	_Atomic unsigned waited_ms; /* time of the wait */
	bool polls; /* the next poll is at the time of the download's hedge; under the broker's lock */
	bool holds; /* under the broker's lock */
};

struct bid_download {
	struct bid_broker *broker;
	struct bid_request request;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker's lists, one for each thread with waiters to answer */
	struct bid_machine machine; /* candidates are owned */
	bool committing; /* a commit worker has it, one at a time */
	bool joinable; /* in the broker's buckets */
	bool had_waiter; /* not a prefetch */
	bool timed_out; /* the end of a window answered a waiter, which may return */
	bool no_room; /* the announced size does not fit */
	int error; /* when ENDED */
	int64_t until_ms; /* end of the last window; when ENDED, of the kept result */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_download *next; /* in its bucket */
	TAILQ_ENTRY(bid_download) link; /* in the broker's downloads */
	TAILQ_ENTRY(bid_download) turn; /* in the broker's turns */
	bool has_turn; /* it is in that list */
	struct bid_timer timer; /* end of the window, or of the kept result */
	struct bid_timer hedge; /* start of another source, or poll of the lock */
	struct bid_lock_wait lock_wait;
	struct bid_fallback fallback;
	size_t winner; /* index of the source that delivered the artifact; or BID_NO_CANDIDATE */
	struct bid_kept_response **responses; /* the reports, a reference each; or NULL without memory */
	size_t max_reports;
	/* shared by all threads */
	_Atomic size_t n_reports; /* entries below are constant */
	struct bid_report reports[]; /* one per source and request, also those of fallbacks; with the strings of its response */
};

/*
 * Let @waiter wait for @request. Locking: under the lock. Returns
 *   -EINPROGRESS	@waiter waits, and belongs to the download. With @ret_new set, with a reference, the caller
 *			calls bid_download_start()
 *   other		the answer. @ret_seen may be set to the download of its reports, with a reference
 */
int bid_download_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		      struct bid_download **ret_new, struct bid_download **ret_seen);

/* Take @waiter out of its download, and detach it. Under the lock. */
void bid_download_leave(struct bid_waiter *waiter);

/* Move all waiters of @download to @waiters, and detach them. Under the lock. */
void bid_download_take_waiters(struct bid_download *download, struct bid_waiters *waiters);

/* Is @download without waiters, present ones and ones that may return? Under the lock. */
bool bid_download_abandoned(const struct bid_download *download);

/* Answer and free all @waiters of @download, with @error or a copy of @file each. Without the lock. */
void bid_download_answer(struct bid_download *download, struct bid_waiters *waiters, int error, struct bid_file *file);

/* Use up the request handle of @waiter before its answer. Under the lock. */
void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter);

/*
 * Answer and free a detached @waiter; queue the download whose fallback it waited for. @download may be NULL. The callee may
 * take the descriptor of @file. Without the lock.
 */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download);

/* Close @download for waiters: the next waiter starts another download. Under the lock. */
void bid_download_retire(struct bid_download *download);

/* Drop the kept results of all downloads, or of the one for @request. Under the lock. */
void bid_download_expire_ended(struct bid_broker *broker, const struct bid_request *request);

/* End @download with @error, and move its waiters to @waiters. A result without an artifact is kept for a while. Under the lock. */
void bid_download_finish(struct bid_download *download, int error, struct bid_waiters *waiters);

/* Drop the kept result. Under the lock. */
void bid_download_expire(struct bid_download *download);

/* Under the lock. */
void bid_download_ref(struct bid_download *download);
void bid_download_unref(struct bid_download *download);

/* bid_download_unref() without the lock. */
void bid_download_put(struct bid_download *download);

/* Let a commit worker poll the lock of @download, or run its fallback. Under the lock. */
void bid_download_queue(struct bid_download *download);

/* Record @answer for the waiter of @download's fallback, with the reports of the download @whole, or NULL. Under the lock. */
void bid_fallback_answer(struct bid_download *download, int answer, const struct bid_download *whole);

/* lock.c */

/*
 * Start @download, or let it wait for another process's download of the same. @look: another thread may have published the
 * artifact. Takes the reference of bid_download_join(). Without the lock.
 */
void bid_download_start(struct bid_download *download, bool look);

/* Start @download if its lock is free, else poll later. By the commit worker that has unset `polls`, without the lock. */
void bid_download_poll(struct bid_download *download);

/* fallback.c */

/* Start the fallback of @download, or examine its result. By a commit worker, without the lock. */
void bid_fallback_run(struct bid_download *download);

/* responses.c */

#define BID_NAME_MAX 512

/* Write @request for a message: "ID/elf", "ID/source/usr/src/a.c", as far as it fits. Returns @buf. */
const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX]);

/* Report the @outcome of @attempt to the download, the counters and the log. Without the lock. */
void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text);

/* Report a @source without a request, for the reason @text. Not counted. Under the lock. */
void bid_download_report_skipped(struct bid_download *download, size_t source, enum bid_outcome outcome, const char *text);

/* Report the attempts that the winner has overtaken. Under the lock. */
void bid_download_report_overtaken(struct bid_download *download);

/* Take over the reports of @other. Under the lock. */
void bid_download_take_reports(struct bid_download *download, const struct bid_download *other);

/* Count an @attempt without a report: it was cancelled. Without the lock. */
void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome);

/* Returns the result of all reports, without a found one among them. */
int bid_download_conclusion(const struct bid_download *download);

/* Is the artifact too large at a source, and at each other one too large or absent? False after a fallback. */
bool bid_download_is_too_large(const struct bid_download *download);

#endif
