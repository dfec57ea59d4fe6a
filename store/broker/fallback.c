// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/fallback.h"

#include <stdlib.h>
#include <string.h>

#include <bid/piece.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/trouble.h"

#define DOWNLOADS_MAX 3 /* of the section, the debuginfo and the ELF file */

struct bid_fallback {
	struct bid_request section; /* kept */
	size_t tried; /* files that it may be in */
	int trouble; /* what else than "no" was said, of the section until a whole file was found, or of one that it may be in */
	struct bid_download *downloads[DOWNLOADS_MAX]; /* that were waited for; with a reference each */
	size_t n_downloads;
	struct bid_report *reports; /* of all of them, for bid_fallback_tell(); owned */
};

int bid_fallback_new(const struct bid_request *section, struct bid_fallback **ret_instead)
{
	struct bid_fallback *fallback = calloc(1, sizeof(*fallback));

	if (!fallback)
		return -ENOMEM;
	fallback->section = bid_request_keep(section);
	*ret_instead = fallback;
	return 0;
}

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
 * @download has come to @error: is there any use in asking for something else? Servers that do not know sections say so in many
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

int bid_fallback_step(struct bid_broker *broker, struct bid_waiter *waiter, int error, struct bid_download *download,
		      struct bid_file *ret_file)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_request whole;
	int r;

	note_download(waiter->fallback, download);
	r = next(broker, waiter->fallback, error, download, &whole, &file);
	if (r == -EINPROGRESS) {
		bid_broker_submit(broker, waiter, &whole);
		return r;
	}
	pthread_mutex_lock(&broker->lock);
	if (waiter->cancelled)
		r = -EINTR;
	bid_tickets_take(&broker->tickets, waiter);
	pthread_mutex_unlock(&broker->lock);
	if (r == 0 && file.fd >= 0) {
		*ret_file = file;
		file.fd = -1;
	}
	return r;
}

void bid_fallback_tell(struct bid_fallback *fallback, struct bid_result *result)
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

void bid_fallback_free(struct bid_fallback *fallback)
{
	if (!fallback)
		return;
	for (size_t i = 0; i < fallback->n_downloads; i++)
		bid_download_put(fallback->downloads[i]);
	bid_request_release(&fallback->section);
	free(fallback->reports);
	free(fallback);
}
