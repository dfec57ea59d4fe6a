// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Containers of a section: the debuginfo, then the ELF file may contain it. debuginfod of elfutils 0.192 and later responds with 404
 * for a section that it has just served. An unstripped file is made of both, and has no attempt of its own.
 */
#include <errno.h>

#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "broker/download.h"

/*
 * May another file have the section, after @error of the last request of @download? Servers without sections send any response, and
 * one of several servers may be dead. If all are dead, another request is useless.
 */
static bool may_be_elsewhere(int error, const struct bid_download *download)
{
	if (error == 0 || error == -ENOENT || bid_is_unusable(error))
		return true;
	if (error != -EHOSTUNREACH)
		return false;
	for (size_t i = download->container.first_report; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i]->outcome;

		if (bid_outcome_is_no(outcome) || outcome == BID_OUTCOME_REFUSED || outcome == BID_OUTCOME_REJECTED)
			return true;
	}
	return false;
}

static void note_error(struct bid_container_wait *wait, int error)
{
	if (error != 0 && error != -ENOENT && wait->error == 0)
		wait->error = error;
}

/*
 * Let the waiter of @download wait for a file of the kind @kind. Releases the lock of the section: other processes need not wait
 * any more.
 */
static void wait_for_whole(struct bid_download *download, enum bid_kind kind)
{
	struct bid_request whole = { .id = download->request.id, .kind = kind };
	struct bid_waiter *waiter = &download->container.waiter;
	struct bid_broker *broker = download->broker;
	bool late;

	pthread_mutex_lock(&broker->lock);
	late = download->machine.state == BID_DOWNLOAD_RUNNING && download->n_waiters == 0;
	*waiter = (struct bid_waiter){
		.state = BID_WAITER_BUSY,
		.dependent = download,
		.cancelled = download->machine.state != BID_DOWNLOAD_RUNNING,
	};
	pthread_mutex_unlock(&broker->lock);
	bid_download_release_lock(download);
	if (late)
		bid_download_end(download, -ETIMEDOUT, NULL);
	else
		bid_broker_submit(broker, waiter, &whole);
}

/* Wait for a container. @index is its number. */
static void start_container(struct bid_download *download, size_t index)
{
	int error = index == 0 ? bid_download_conclusion(download) : 0;

	if (!may_be_elsewhere(error, download)) {
		bid_download_end(download, error, NULL);
		return;
	}
	note_error(&download->container, error);
	wait_for_whole(download, bid_section_container(index));
}

/* Derive the artifact from a container, after its download. @index is its number. */
static void finish_container(struct bid_download *download, size_t index, int answer)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_container_wait *wait = &download->container;
	int r = answer;

	/* an unstripped file needs both */
	if (download->request.kind == BID_KIND_UNSTRIPPED ? r == 0 : may_be_elsewhere(r, download))
		r = bid_broker_find(download->broker, &download->request, true, &file, NULL);
	if (r != -EINPROGRESS) {
		bid_download_end(download, r, &file);
		return;
	}
	/* the debuginfo's section headers decide */
	if (answer == 0 && index == 0)
		wait->error = 0;
	note_error(wait, answer);
	bid_download_step_and_end(download, BID_EVENT_CONTAINER_FAILED, BID_NO_CANDIDATE);
}

void bid_container_run(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	size_t index;
	int answer;

	pthread_mutex_lock(&broker->lock);
	answer = download->container.answer;
	download->container.answer = -EINPROGRESS;
	index = BID_CONTAINERS_MAX - 1 - download->machine.containers;
	pthread_mutex_unlock(&broker->lock);
	if (answer == -EINPROGRESS)
		start_container(download, index);
	else
		finish_container(download, index, answer);
}
