/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A download: one request that sources are asked for, and everybody who waits for it. What becomes of it, and whom it asks, the
 * machine knows (machine.h); scheduler.c runs that. An attempt (attempt.h) asks one source.
 *
 * The wait. A kernel may look one name up for many callers one after the other, so waits are counted per download and not per
 * caller: a window of wait_ms opens with the first waiter, and all who come before it ends are sent away when it ends. What has not
 * even been sent by then is given up: it would only take the turns of those that are waited for. Who comes
 * within BID_WINDOW_GRACE after it is sent away at once; who comes later opens a new window. For the same reason a download that
 * ended without the artifact lingers for BID_DOWNLOAD_LINGER, so that 200 queued lookups do not become 200 tries.
 */
#ifndef BID_BROKER_DOWNLOAD_H
#define BID_BROKER_DOWNLOAD_H

#include "broker/attempt.h"
#include "broker/lock_waiter.h"
#include "broker/machine.h"

#define BID_WINDOW_GRACE    250 /* ms */
#define BID_DOWNLOAD_LINGER 250 /* ms */

struct bid_download {
	struct bid_broker *broker;
	struct bid_request request;
	int64_t started_ms;

	/* under the broker's lock */
	unsigned refs; /* one for the broker, until the download left its lists; one for whoever answers waiters */
	struct bid_machine machine; /* its candidates are owned */
	bool decided_on; /* by a commit worker: one at a time */
	bool joinable; /* in the broker's buckets */
	bool wanted; /* somebody has waited for it, at least for a while */
	bool timed_out; /* somebody was sent away, and may come back for it */
	bool no_room; /* a source has it, and there is no room for as much as it says */
	int error; /* when ENDED */
	int64_t until_ms; /* the end of the last window; when ENDED, of the lingering */
	struct bid_waiters waiters;
	unsigned n_waiters;
	struct bid_download *next; /* in its bucket */
	TAILQ_ENTRY(bid_download) link; /* in the broker's downloads */
	struct bid_timer timer; /* the end of the window, or of the lingering */
	struct bid_timer hedge; /* when another source is asked beside those that are */
	struct bid_lock_wait lock_wait;
	char (*texts)[BID_TEXT_MAX]; /* of the reports; owned */
	/* for everybody */
	_Atomic size_t n_reports; /* entries below it do not change any more */
	struct bid_report reports[]; /* room for one per source; all strings but sources and texts are owned */
};

/*
 * What becomes of @waiter, who wants @request from the sources. Under the lock. Returns
 *   -EINPROGRESS	it waits and is not the caller's any more. With @ret_lead set, to a download with a
 *			reference, he leads it: bid_download_lead()
 *   other		its answer. @ret_seen is set to the download whose reports belong to it, if any, with a reference
 */
int bid_download_join(struct bid_broker *broker, const struct bid_request *request, struct bid_waiter *waiter,
		      struct bid_download **ret_lead, struct bid_download **ret_seen);

/* Take @waiter out of its download, and detach it. Under the lock. */
void bid_download_leave(struct bid_waiter *waiter);

/* Move all waiters of @download, and their tickets, to @waiters. Under the lock. */
void bid_download_take_waiters(struct bid_download *download, struct bid_waiters *waiters);

/* Does nobody want @download any more? Under the lock. */
bool bid_download_abandoned(const struct bid_download *download);

/* Call and free all of @waiters, who waited for @download, with @error or a copy of @file each. Without the lock. */
void bid_download_answer(struct bid_download *download, struct bid_waiters *waiters, int error, struct bid_file *file);

/* The answer of @waiter is near: use up its ticket, unless it may have to ask for something else. Under the lock. */
void bid_waiter_detach(struct bid_broker *broker, struct bid_waiter *waiter);

/*
 * Call and free one that was detached, or let it wait for something else. @download may be NULL. The callee may take the descriptor
 * out of @file. Without the lock.
 */
void bid_waiter_answer(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_file *file,
		       struct bid_download *download);

/* Let nobody join @download from here on: the next who comes starts another. Under the lock. */
void bid_download_retire(struct bid_download *download);

/* End the lingering of all results, or of that for @request. Under the lock. */
void bid_download_end_lingering(struct bid_broker *broker, const struct bid_request *request);

/* Tell @waiter @result, and free it. It was detached. Without the lock. */
void bid_waiter_report(struct bid_broker *broker, struct bid_waiter *waiter, struct bid_result *result);

/* The result of @download is @error: move its waiters to @waiters, and let an unhappy one linger. Under the lock. */
void bid_download_settle(struct bid_download *download, int error, struct bid_waiters *waiters);

/* The lingering is over. Under the lock. */
void bid_download_end_linger(struct bid_download *download);

/* Both under the lock. */
void bid_download_ref(struct bid_download *download);
void bid_download_unref(struct bid_download *download);

/* bid_download_unref() without the lock. */
void bid_download_put(struct bid_download *download);

/* prefetch.c */

/*
 * The dwz file @id is what the artifact of @download, just published, cannot be read without: begin to fetch it. Without the
 * lock.
 */
void bid_download_prefetch(const struct bid_download *download, const struct bid_id *id);

/* stats.c */

#define BID_NAME_MAX 512

/* What is asked for, for a message: "ID/elf", "ID/source/usr/src/a.c", as much as fits. Returns @buf. */
const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX]);

/* Note what the source of @attempt said in the end, in the download, the counters and the log. Without the lock. */
void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text);

/* The same of a source that was not asked, for a reason that is in @text. Not counted. Under the lock. */
void bid_download_report_skipped(struct bid_download *download, size_t source, enum bid_outcome outcome, const char *text);

/*
 * @winner, an index into the broker's sources, has delivered: say so in place of those that were asked and got no further. By who
 * claimed the download, without the lock.
 */
void bid_download_report_overtaken(struct bid_download *download, size_t winner);

/* Count what came of @attempt, which is not a verdict: it was cancelled. Without the lock. */
void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome);

/* What all verdicts amount to, if none of them is "found". */
int bid_download_conclusion(const struct bid_download *download);

/* Did each source say that it is too large there, or absent? */
bool bid_download_is_too_large(const struct bid_download *download);

#endif
