// SPDX-License-Identifier: LGPL-2.1-or-later
/* A section or an unstripped file from whole files: the use of another download, and the derivation. */
#include "broker/download.h"

#include <errno.h>

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
static void note_error(struct bid_whole_file_wait *wait, int error)
{
	if (error != 0 && error != -ENOENT && wait->error == 0)
		wait->error = error;
}

int bid_whole_file_begin(struct bid_download *download)
{
	int error = download->machine.whole_files_tried == 1 ? bid_download_reported_error(download) : 0;

	if (!may_be_elsewhere(error, download))
		return error;
	note_error(&download->whole_file, error);
	return 0;
}

int bid_whole_file_end(struct bid_download *download, struct bid_file *ret_file)
{
	struct bid_whole_file_wait *wait = &download->whole_file;
	int r = wait->result;

	/* an unstripped file needs both */
	if (download->artifact.kind == BID_KIND_UNSTRIPPED ? r == 0 : may_be_elsewhere(r, download))
		r = bid_broker_find(download->broker, &download->artifact, BID_MAY_DERIVE, ret_file, NULL);
	if (r != -EINPROGRESS)
		return r;
	/* the debuginfo's section headers decide */
	if (wait->result == 0 && download->machine.whole_files_tried == 1)
		wait->error = 0;
	note_error(wait, wait->result);
	return r;
}
