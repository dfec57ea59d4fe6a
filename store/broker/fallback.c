// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fetch; and a whole file in place of a section that no server has, or that one which has just served it denies (elfutils 0.192 and
 * later): the section may still be in a file that they have. Its waiter waits for these files then, one after the other, with the
 * same ticket.
 */
#include <errno.h>

#include <stdlib.h>
#include <string.h>

#include "api/piece.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trouble.h"
#include "broker/download.h"

#define DOWNLOADS_MAX 3 /* of the section, the debuginfo and the ELF file */

struct bid_fallback {
	struct bid_request section; /* kept */
	size_t tried; /* files that it may be in */
	int trouble; /* what else than "no" was said, of the section until a whole file was found, or of one that it may be in */
	struct bid_download *downloads[DOWNLOADS_MAX]; /* that were waited for; with a reference each */
	size_t n_downloads;
	struct bid_report *reports; /* of all of them, for collect_reports(); owned */
};

static void note_download(struct bid_fallback *fallback, struct bid_download *download)
{
	struct bid_broker *broker;

	if (!download || fallback->n_downloads == DOWNLOADS_MAX)
		return;
	broker = download->broker;
	pthread_mutex_lock(&broker->lock);
	bid_download_ref(download);
	pthread_mutex_unlock(&broker->lock);
	fallback->downloads[fallback->n_downloads++] = download;
}

/*
 * @download has come to @error: is there any use in probing for something else? Servers that do not know sections say so in many
 * ways, and one of several may be dead; but if all are, they are for everything.
 */
static bool leaves_hope(int error, const struct bid_download *download)
{
	if (error == 0 || error == -ENOENT || bid_is_unusable(error))
		return true;
	if (error != -EHOSTUNREACH || !download)
		return false;
	for (size_t i = 0; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i].outcome;

		if (bid_outcome_is_no(outcome) || outcome == BID_OUTCOME_REFUSED || outcome == BID_OUTCOME_REJECTED)
			return true;
	}
	return false;
}

/* What to ask for, now that the last has come to @error: -EINPROGRESS and @ret_whole, or what there is to answer. */
static int next(struct bid_broker *broker, struct bid_fallback *fallback, int error, const struct bid_download *download,
		struct bid_request *ret_whole, struct bid_file *ret_file)
{
	enum bid_kind kind;

	if ((error == 0 && fallback->tried == 0) || !leaves_hope(error, download))
		return error;
	if (fallback->tried > 0) {
		int r = bid_broker_lookup(broker, &fallback->section, ret_file, NULL);

		if (r != -EINPROGRESS)
			return r;
	}
	/* what is in a file the file itself tells, and no server needs to */
	if (error == 0 && fallback->tried == 1)
		fallback->trouble = 0;
	else if (error != 0 && error != -ENOENT && fallback->trouble == 0)
		fallback->trouble = error;
	kind = bid_section_whole(fallback->tried);
	if (kind == BID_KIND_NONE)
		return fallback->trouble ? fallback->trouble : -ENOENT;
	fallback->tried++;
	*ret_whole = (struct bid_request){ .id = fallback->section.id, .kind = kind };
	return -EINPROGRESS;
}

static void collect_reports(struct bid_fallback *fallback, struct bid_result *result)
{
	size_t n = 0;

	for (size_t i = 0; i < fallback->n_downloads; i++)
		n += fallback->downloads[i]->n_reports;
	if (n == result->n_reports)
		return;
	fallback->reports = calloc(n, sizeof(*fallback->reports));
	if (!fallback->reports) {
		bid_warning("out of memory: what servers said is not told in full");
		return;
	}
	result->n_reports = 0;
	for (size_t i = 0; i < fallback->n_downloads; i++) {
		const struct bid_download *download = fallback->downloads[i];

		/* one that others still wait for may have more of them by now */
		for (size_t k = 0; k < download->n_reports && result->n_reports < n; k++)
			fallback->reports[result->n_reports++] = download->reports[k];
	}
	result->reports = fallback->reports;
}

static void fallback_free(struct bid_fallback *fallback)
{
	for (size_t i = 0; i < fallback->n_downloads; i++)
		bid_download_put(fallback->downloads[i]);
	bid_request_release(&fallback->section);
	free(fallback->reports);
	free(fallback);
}

/* bid_waiter.answer: what @waiter asked for last has come to @result, in @download, which may be NULL. Without the lock. */
static void answer(struct bid_broker *broker, struct bid_waiter *waiter, struct bid_result *result, struct bid_download *download)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_fallback *fallback = waiter->fallback;
	struct bid_request whole;
	int r;

	note_download(fallback, download);
	r = next(broker, fallback, result->error, download, &whole, &file);
	if (r == -EINPROGRESS) {
		bid_broker_submit(broker, waiter, &whole);
		return;
	}
	pthread_mutex_lock(&broker->lock);
	if (waiter->cancelled)
		r = -EINTR;
	bid_tickets_take(&broker->tickets, waiter);
	pthread_mutex_unlock(&broker->lock);
	result->error = r;
	if (r == 0 && file.fd >= 0)
		result->file = &file;
	collect_reports(fallback, result);
	bid_waiter_report(broker, waiter, result);
	fallback_free(fallback);
}

static int fallback_new(struct bid_waiter *waiter, const struct bid_request *section)
{
	struct bid_fallback *fallback = calloc(1, sizeof(*fallback));

	if (!fallback)
		return -ENOMEM;
	fallback->section = bid_request_keep(section);
	waiter->fallback = fallback;
	waiter->answer = answer;
	return 0;
}

/* The new waiter of @ticket; NULL if the ticket was used already. */
static struct bid_waiter *claim(struct bid_broker *broker, uint64_t ticket)
{
	struct bid_waiter *waiter;

	pthread_mutex_lock(&broker->lock);
	waiter = bid_tickets_get(&broker->tickets, ticket);
	if (waiter && waiter->state == BID_WAITER_NEW)
		waiter->state = BID_WAITER_BUSY;
	else
		waiter = NULL;
	pthread_mutex_unlock(&broker->lock);
	return waiter;
}

void bid_broker_fetch(struct bid_broker *broker, uint64_t ticket, const struct bid_request *request)
{
	struct bid_waiter *waiter = claim(broker, ticket);
	int r = 0;

	if (!waiter) {
		bid_error("ticket used twice: '%llu'", (unsigned long long)ticket);
		return;
	}
	if (request->kind == BID_KIND_SECTION)
		r = fallback_new(waiter, request);
	/* one after the other, three downloads could be waited for: all of it is one wait */
	if (waiter->fallback && broker->config.wait_ms > 0)
		waiter->until_ms = bid_clock_ms() + broker->config.wait_ms;
	if (r == 0) {
		bid_broker_submit(broker, waiter, request);
		return;
	}
	pthread_mutex_lock(&broker->lock);
	bid_waiter_detach(broker, waiter);
	pthread_mutex_unlock(&broker->lock);
	bid_waiter_answer(broker, waiter, r, NULL, NULL);
}
