// SPDX-License-Identifier: LGPL-2.1-or-later
/* A section or an unstripped file from whole files: wait for their downloads, then derive it. */
#include "broker/download.h"

#include <errno.h>

#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/local_error.h"

bool bid_whole_file_is_used(const struct bid_download *download)
{
	return download->artifact.kind == BID_KIND_SECTION || download->artifact.kind == BID_KIND_UNSTRIPPED;
}

/*
 * May a whole file have the section, after @error of the last request of @download? Servers without sections send any response, and
 * one of several servers may be dead. If all are dead, another request is useless.
 */
static bool may_be_elsewhere(int error, const struct bid_download *download)
{
	if (error == 0 || error == -ENOENT || bid_is_unusable(error))
		return true;
	if (error != -EHOSTUNREACH)
		return false;
	for (size_t i = download->whole_file.first_report; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i]->outcome;

		if (bid_outcome_is_no(outcome) || outcome == BID_OUTCOME_REFUSED || outcome == BID_OUTCOME_REJECTED)
			return true;
	}
	return false;
}

/* Keep the first @error other than an absence. */
static void note_whole_file_error(struct bid_whole_file_wait *wait, int error)
{
	if (error != 0 && error != -ENOENT && wait->error == 0)
		wait->error = error;
}

/* Derive the artifact from a whole file, after its download. */
static void derive_from_whole_file(struct bid_download *download)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_whole_file_wait *wait = &download->whole_file;
	int result = wait->result, r = result;

	/* an unstripped file needs both */
	if (download->artifact.kind == BID_KIND_UNSTRIPPED ? r == 0 : may_be_elsewhere(r, download))
		r = bid_broker_find(download->broker, &download->artifact, BID_MAY_DERIVE, &file, NULL);
	if (r != -EINPROGRESS) {
		bid_download_set_result(download, r, &file);
		return;
	}
	/* the debuginfo's section headers decide */
	if (result == 0 && download->machine.whole_files_tried == 1)
		wait->error = 0;
	note_whole_file_error(wait, result);
	bid_download_step(download, BID_EVENT_WHOLE_FILE_FAILED, BID_NO_CANDIDATE);
}

void bid_whole_file_note_result(struct bid_download *download, int result, const struct bid_download *whole)
{
	struct bid_whole_file_wait *wait = &download->whole_file;

	wait->first_report = download->n_reports;
	if (whole)
		bid_download_copy_reports(download, whole);
	wait->result = result;
	bid_download_queue(download, derive_from_whole_file, BID_JOB_DERIVATION);
}

void bid_whole_file_cancel(struct bid_download *download)
{
	bool timed_out = download->machine.state == BID_DOWNLOAD_TIMED_OUT;
	struct bid_waiter *waiter = &download->whole_file.waiter;

	waiter->cancelled = true;
	/* otherwise its answer is coming */
	if (!waiter->download)
		return;
	/* after a timeout, a reader may return for the file */
	bid_waiter_leave(waiter, timed_out);
	bid_whole_file_note_result(download, timed_out ? -ETIMEDOUT : -EINTR, NULL);
}

void bid_whole_file_await(struct bid_download *download)
{
	size_t index = download->machine.whole_files_tried - 1;
	struct bid_artifact artifact = { .id = download->artifact.id, .kind = bid_section_whole_file(index) };
	struct bid_waiter *waiter = &download->whole_file.waiter;
	struct bid_broker *broker = download->broker;
	int error = index == 0 ? bid_download_reported_error(download) : 0;
	bool waits = may_be_elsewhere(error, download);

	pthread_mutex_lock(&broker->lock);
	if (waits && download->machine.state == BID_DOWNLOAD_RUNNING && download->n_waiters == 0) {
		error = -ETIMEDOUT;
		waits = false;
	}
	*waiter = (struct bid_waiter){
		.state = BID_WAITER_BUSY,
		.dependent = download,
		.cancelled = download->machine.state != BID_DOWNLOAD_RUNNING,
	};
	pthread_mutex_unlock(&broker->lock);
	if (!waits) {
		bid_download_set_result(download, error, NULL);
		return;
	}
	note_whole_file_error(&download->whole_file, error);
	bid_download_unlock(download);
	bid_broker_submit(broker, waiter, &artifact);
}
