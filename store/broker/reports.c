// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports of a download, counters, messages. */
#include "broker/download.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

/* Under the lock. */
static void count(const struct bid_attempt *attempt, enum bid_outcome outcome)
{
	struct bid_server_stats *stats = &attempt->from->stats;

	if (attempt->response.not_sent)
		return;
	stats->requests++;
	stats->outcomes[(unsigned)outcome < BID_OUTCOME_COUNT ? outcome : BID_OUTCOME_NONE]++;
	stats->bytes += attempt->delivered;
}

void bid_attempt_count(const struct bid_attempt *attempt, enum bid_outcome outcome)
{
	struct bid_broker *broker = attempt->download->broker;

	pthread_mutex_lock(&broker->lock);
	count(attempt, outcome);
	pthread_mutex_unlock(&broker->lock);
}

void bid_attempt_note_signer(const struct bid_attempt *attempt, const char *signer)
{
	struct bid_broker *broker = attempt->download->broker;

	pthread_mutex_lock(&broker->lock);
	snprintf(attempt->from->stats.signer, BID_SIGNER_MAX, "%s", signer);
	pthread_mutex_unlock(&broker->lock);
}

const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX])
{
	char hex[BID_ID_HEX_MAX];

	snprintf(buf, BID_NAME_MAX, "%s/%s%s%s", bid_id_format(&request->id, hex), bid_kind_name(request->kind),
		 request->kind == BID_KIND_SECTION ? "/" : "", bid_subpath_text(request->subpath));
	return buf;
}

static void log_report(const struct bid_download *download, const char *name, enum bid_outcome outcome, const char *text)
{
	char buf[BID_NAME_MAX];

	switch (outcome) {
	case BID_OUTCOME_REJECTED:
		bid_warning("%s: refused '%s' from %s", text, bid_request_name(&download->request, buf), name);
		break;
	case BID_OUTCOME_FAILED:
		bid_warning("%s: cannot keep '%s' from %s", text, bid_request_name(&download->request, buf), name);
		break;
	case BID_OUTCOME_TOO_LARGE:
	case BID_OUTCOME_UNSUPPORTED:
		bid_info("%s, %s: '%s'", text, bid_outcome_name(outcome), name);
		break;
	default:
		bid_warning("%s, %s: '%s'", text, bid_outcome_name(outcome), name);
		break;
	}
}

/*
 * Report the check of a body to its server. A digest other than the first one is no failure. A page without an id is no success,
 * because any server may send one. Without the lock.
 */
static void report_check(const struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_server *server = attempt->from->server;
	bool right = outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(attempt->download->request.kind);

	if (right || (outcome == BID_OUTCOME_REJECTED && attempt->error != -ESTALE))
		server->ops->note_check(server, right, text);
}

/* Add @report with a reference; NULL without memory. Under the lock. */
static void add_report(struct bid_download *download, struct bid_report *report)
{
	/* a server has more than one report after an overtaken attempt */
	if (report && download->n_reports < download->max_reports) {
		report->refs++;
		download->reports[download->n_reports] = report;
		download->n_reports++;
	}
}

void bid_download_copy_reports(struct bid_download *download, const struct bid_download *other)
{
	for (size_t i = 0; i < other->n_reports; i++)
		add_report(download, other->reports[i]);
}

static void report_simply(struct bid_download *download, const struct bid_server *server, enum bid_outcome outcome,
			  const char *text, unsigned elapsed_ms)
{
	struct bid_report *report = bid_report_new(&(struct bid_report){
		.server = server->name,
		.request = download->request,
		.outcome = outcome,
		.text = text,
		.elapsed_ms = elapsed_ms,
		.time = time(NULL),
	});

	add_report(download, report);
	if (report)
		bid_report_unref(report);
}

void bid_download_report_skipped(struct bid_download *download, const struct bid_server *server, enum bid_outcome outcome,
				 const char *text)
{
	report_simply(download, server, outcome, text, 0);
}

void bid_download_report_overtaken(struct bid_download *download)
{
	char text[BID_TEXT_MAX];

	if (!download->winner)
		return;
	snprintf(text, sizeof(text), "%s was faster", download->winner->server->name);
	for (size_t i = 0; i < download->machine.n; i++) {
		const struct bid_candidate *candidate = &download->machine.candidates[i];

		/* a server with a response has its report, and so has the winner */
		if (candidate->state == BID_CANDIDATE_NONE || candidate->state == BID_CANDIDATE_OVER ||
		    candidate->from == download->winner)
			continue;
		report_simply(download, candidate->from->server, BID_OUTCOME_CANCELLED, text, candidate->stopped_ms);
	}
}

void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_broker *broker = download->broker;
	struct bid_report *report = bid_report_new(&(struct bid_report){
		.server = attempt->from->server->name,
		.request = download->request,
		.outcome = outcome,
		.changed = outcome == BID_OUTCOME_REJECTED && attempt->error == -ESTALE,
		.text = text,
		.url = attempt->response.url,
		.redirect = attempt->response.redirect,
		.requests = attempt->response.requests,
		.before = attempt->response.before,
		.bytes = attempt->delivered,
		.received = attempt->received,
		.elapsed_ms = (unsigned)(bid_clock_ms() - attempt->started_ms),
		.time = time(NULL),
	});
	bool trouble = bid_outcome_is_failure(outcome), due = !report;

	if (outcome == BID_OUTCOME_REJECTED)
		atomic_fetch_add(&broker->counts.rejected, 1);
	pthread_mutex_lock(&broker->lock);
	if (report && outcome != BID_OUTCOME_CANCELLED)
		due = bid_recent_responses_add(&broker->responses, report);
	add_report(download, report);
	count(attempt, outcome);
	download->no_room |= bid_attempt_has_no_room(attempt);
	if (outcome == BID_OUTCOME_FOUND)
		broker->preferred = download->winner = attempt->from;
	if (report)
		bid_report_unref(report);
	pthread_mutex_unlock(&broker->lock);
	report_check(attempt, outcome, text);
	/* a message for each wrong body, because each is another artifact */
	if (trouble && (due || outcome == BID_OUTCOME_REJECTED))
		log_report(download, attempt->from->server->name, outcome, text);
}

void bid_broker_stats(struct bid_broker *broker, struct bid_broker_stats *ret_stats)
{
	struct bid_broker_stats stats = {
		.hits = broker->counts.hits,
		.fetched = broker->counts.fetched,
		.absent = broker->counts.absent,
		.unknown = broker->counts.unknown,
		.rejected = broker->counts.rejected,
		.interrupted = broker->counts.interrupted,
		.negative_entries = bid_negative_count(broker->negative),
	};

	pthread_mutex_lock(&broker->lock);
	stats.downloads = broker->n_downloads - broker->n_fallbacks;
	stats.waiters = broker->n_waiting;
	pthread_mutex_unlock(&broker->lock);
	*ret_stats = stats;
}

int bid_broker_server_stats(struct bid_broker *broker, size_t index, struct bid_server_stats *ret_stats)
{
	struct bid_server *server;

	if (index >= broker->n_servers)
		return -ENOENT;
	pthread_mutex_lock(&broker->lock);
	*ret_stats = broker->servers[index].stats;
	ret_stats->preferred = &broker->servers[index] == broker->preferred;
	pthread_mutex_unlock(&broker->lock);
	server = broker->servers[index].server;
	ret_stats->enforces = server->signers != NULL;
	server->ops->health(server, &ret_stats->health);
	return 0;
}
