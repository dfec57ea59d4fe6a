// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fetch_all.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "api/absence.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "ctl/output.h"
#include "ctl/signals.h"
#include "ctl/sources.h"

/* Each download has a temporary file open; further ones would only wait for the servers' limits. */
enum { AT_ONCE = 32, REDRAW_MS = 100 };

struct fetching {
	const struct ctl *ctl;
	struct bid_broker *broker; /* borrowed */
	struct ctl_wanted *wanted; /* borrowed */
	size_t n, begun, ended;
	int event; /* eventfd that counts finished downloads; owned */
	int signals; /* signalfd; owned */
	int caught; /* signal that cancelled the downloads, or 0 */
	int64_t redraw_ms; /* clock of the next drawing of the progress */
};

/* Return the last report, if possible one other than "absent", as the cause of the failure. */
static const struct bid_report *why_not(const struct bid_result *result)
{
	const struct bid_report *why = result->reports[result->n_reports - 1];

	for (size_t i = result->n_reports; i > 0 && why->outcome == BID_OUTCOME_ABSENT; i--)
		if (result->reports[i - 1]->outcome != BID_OUTCOME_ABSENT)
			why = result->reports[i - 1];
	return why;
}

/* bid_broker_fn. Its writes are read after bid_broker_free(), which joins the broker's threads. */
static void take_answer(void *user, const struct bid_result *result)
{
	struct ctl_wanted *wanted = user;

	wanted->error = result->error;
	for (size_t i = 0; i < result->n_reports; i++)
		wanted->bytes += result->reports[i]->bytes;
	if (result->n_reports > 0 && result->error < 0) {
		const struct bid_report *why = why_not(result);

		wanted->changed = why->changed;
		if (asprintf(&wanted->why, "%s: %s", why->source, why->text ? why->text : bid_outcome_name(why->outcome)) < 0)
			wanted->why = NULL;
	}
	if (wanted->story)
		ctl_story_take(wanted->story, result);
	eventfd_write(wanted->event, 1);
}

/* Start the next download. */
static void begin(struct fetching *fetching)
{
	struct ctl_wanted *wanted = &fetching->wanted[fetching->begun++];
	struct bid_file file = BID_FILE_NONE;

	wanted->event = fetching->event;
	if (fetching->ctl->refresh || fetching->ctl->accept)
		bid_broker_refresh(fetching->broker, &wanted->request, fetching->ctl->accept);
	wanted->error = bid_broker_find(fetching->broker, &wanted->request, &file, &wanted->remembered_s);
	bid_file_release(&file);
	if (wanted->error == -EINPROGRESS)
		wanted->error = bid_broker_handle(fetching->broker, take_answer, wanted, &wanted->handle);
	if (wanted->handle)
		bid_broker_fetch(fetching->broker, wanted->handle, &wanted->request);
	else
		fetching->ended++;
}

static void give_up(struct fetching *fetching, int caught)
{
	fetching->caught = caught;
	for (size_t i = 0; i < fetching->begun; i++)
		if (fetching->wanted[i].handle)
			bid_broker_cancel(fetching->broker, fetching->wanted[i].handle);
	for (size_t i = fetching->begun; i < fetching->n; i++)
		fetching->wanted[i].error = -EINTR;
	fetching->n = fetching->begun;
}

static int add_received(void *user, const struct bid_progress *progress)
{
	struct ctl_progress_sum *sum = user;

	sum->received += progress->received;
	sum->under_way += progress->received > 0;
	return 0;
}

static void draw(const struct fetching *fetching, struct ctl_progress *line)
{
	struct ctl_progress_sum sum = { .done = fetching->ended, .all = fetching->n };
	struct bid_source_stats stats;
	struct bid_progress one;

	if (fetching->n == 1 && bid_broker_progress(fetching->broker, fetching->wanted->handle, &one) == 0) {
		ctl_progress_draw(line, &one);
		return;
	}
	for (size_t i = 0; bid_broker_source_stats(fetching->broker, i, &stats) == 0; i++)
		sum.received += stats.bytes;
	bid_broker_each_download(fetching->broker, add_received, &sum);
	ctl_progress_draw_sum(line, &sum);
}

static void wait_for_some(struct fetching *fetching, struct ctl_progress *line)
{
	struct pollfd fds[] = { { .fd = fetching->event, .events = POLLIN }, { .fd = fetching->signals, .events = POLLIN } };
	struct signalfd_siginfo caught;
	eventfd_t ended;

	if (poll(fds, 2, ctl_progress_wanted() ? REDRAW_MS : -1) < 0)
		return;
	if (fds[1].revents & POLLIN && read(fetching->signals, &caught, sizeof(caught)) == sizeof(caught))
		give_up(fetching, (int)caught.ssi_signo);
	if (fds[0].revents & POLLIN && eventfd_read(fetching->event, &ended) == 0)
		fetching->ended += (size_t)ended;
	if (ctl_progress_wanted() && bid_clock_ms() >= fetching->redraw_ms) {
		fetching->redraw_ms = bid_clock_ms() + REDRAW_MS;
		draw(fetching, line);
	}
}

/* Copy the negative cache entries of the servers behind a result without requests into its story. */
static void recall(struct bid_broker *broker, struct bid_store *store, const struct ctl_wanted *wanted)
{
	struct bid_absences *absences = NULL;
	struct bid_source_stats stats;

	if (wanted->remembered_s == 0 || bid_absences_new(store, NULL, NULL, &absences) < 0)
		return;
	for (size_t i = 0; bid_broker_source_stats(broker, i, &stats) == 0; i++)
		ctl_story_recall(wanted->story, stats.name, bid_absences_ttl(absences, &wanted->request, stats.name));
	bid_absences_free(absences);
}

static enum ctl_status fetch(struct fetching *fetching, const sigset_t *interrupts)
{
	struct ctl_progress line = { 0 };

	fetching->event = eventfd(0, EFD_CLOEXEC);
	fetching->signals = fetching->event < 0 ? -1 : signalfd(-1, interrupts, SFD_CLOEXEC);
	if (fetching->signals < 0)
		return ctl_trouble("servers", -errno, "starting to fetch");
	while (fetching->ended < fetching->n) {
		while (fetching->begun < fetching->n && fetching->begun - fetching->ended < AT_ONCE)
			begin(fetching);
		if (fetching->ended < fetching->n)
			wait_for_some(fetching, &line);
	}
	ctl_progress_clear(&line);
	return fetching->caught ? (enum ctl_status)(CTL_SIGNAL + fetching->caught) : CTL_DONE;
}

enum ctl_status ctl_fetch_all(const struct ctl *ctl, struct bid_store *store, struct ctl_wanted *wanted, size_t n)
{
	struct fetching fetching = { .ctl = ctl, .wanted = wanted, .n = n, .event = -1, .signals = -1 };
	struct ctl_sources sources = CTL_SOURCES_NONE;
	enum ctl_status status;
	sigset_t interrupts, before;

	/* before the threads start, so that they inherit the mask */
	ctl_end_signals(&interrupts);
	sigprocmask(SIG_BLOCK, &interrupts, &before);

	status = ctl_sources_init(&sources, ctl, store);
	fetching.broker = sources.broker;
	/* the report of each artifact includes the servers' responses, so the broker's warnings would repeat them */
	if (!ctl->verbose || wanted->story)
		bid_log_init("bidctl", BID_LOG_ERROR);
	if (status == CTL_DONE)
		status = fetch(&fetching, &interrupts);
	if (status == CTL_DONE && ctl->verbose && wanted->story)
		recall(sources.broker, store, wanted);
	/* joins the threads, which write to @wanted */
	ctl_sources_release(&sources);
	bid_log_init("bidctl", ctl->quiet ? BID_LOG_ERROR : ctl->verbose ? BID_LOG_INFO : BID_LOG_WARNING);
	bid_close(fetching.event);
	bid_close(fetching.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}
