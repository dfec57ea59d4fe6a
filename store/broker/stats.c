// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/download.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

/* Under the lock. */
static void count(const struct bid_attempt *attempt, enum bid_outcome outcome)
{
	struct bid_source_stats *stats = &attempt->download->broker->sources[attempt->source].stats;

	if (attempt->answer.not_sent)
		return;
	stats->asked++;
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

/* Under the lock. */
static void note_trouble(struct bid_source_stats *stats, const char *text)
{
	snprintf(stats->last_trouble, sizeof(stats->last_trouble), "%s", text);
	stats->last_trouble_time = time(NULL);
}

const char *bid_request_name(const struct bid_request *request, char buf[static BID_NAME_MAX])
{
	char hex[BID_ID_HEX_MAX];

	snprintf(buf, BID_NAME_MAX, "%s/%s%s%s", bid_id_format(&request->id, hex), bid_kind_name(request->kind),
		 request->kind == BID_KIND_SECTION ? "/" : "", bid_detail_text(request->detail));
	return buf;
}

static void log_report(const struct bid_download *download, const char *name, enum bid_outcome outcome, const char *text)
{
	char buf[BID_NAME_MAX];

	switch (outcome) {
	case BID_OUTCOME_REJECTED:
		bid_warning("%s, refused what %s delivered: '%s'", text, name, bid_request_name(&download->request, buf));
		break;
	case BID_OUTCOME_FAILED:
		bid_warning("%s, cannot keep what %s delivered: '%s'", text, name, bid_request_name(&download->request, buf));
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
 * Report the check of a body to its source. A digest other than the first one is no failure. A page without an id is no success,
 * because any server may send one. Without the lock.
 */
static void tell_source(const struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_source *source = attempt->download->broker->sources[attempt->source].source;
	bool right = outcome == BID_OUTCOME_FOUND && bid_kind_is_elf(attempt->download->request.kind);

	if (source->ops->checked && (right || (outcome == BID_OUTCOME_REJECTED && !attempt->changed)))
		source->ops->checked(source, right, text);
}

/* Add @report with its response (NULL without memory). Under the lock. */
static void add_report(struct bid_download *download, const struct bid_report *report, struct bid_kept_response *response)
{
	size_t n = download->n_reports;

	/* a source has more than one report after an overtaken attempt */
	if (n == download->max_reports) {
		if (response)
			bid_response_unref(response);
		return;
	}
	download->responses[n] = response;
	download->reports[n] = response ? response->response.report
					: (struct bid_report){ .source = report->source,
							       .outcome = report->outcome,
							       .text = bid_outcome_name(report->outcome) };
	download->n_reports = n + 1;
}

void bid_download_take_reports(struct bid_download *download, const struct bid_download *other)
{
	for (size_t i = 0; i < other->n_reports; i++) {
		if (other->responses[i])
			other->responses[i]->refs++;
		add_report(download, &other->reports[i], other->responses[i]);
	}
}

static void add_simple_report(struct bid_download *download, const struct bid_report *report)
{
	add_report(download, report, bid_response_new(&download->request, report, time(NULL)));
}

void bid_download_report_skipped(struct bid_download *download, size_t source, enum bid_outcome outcome, const char *text)
{
	const char *name = download->broker->sources[source].source->name;

	add_simple_report(download, &(struct bid_report){ .source = name, .outcome = outcome, .text = text });
}

void bid_download_report_overtaken(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	char text[BID_TEXT_MAX];

	if (download->winner == BID_NO_CANDIDATE)
		return;
	snprintf(text, sizeof(text), "%s was faster", broker->sources[download->winner].source->name);
	for (size_t i = 0; i < download->machine.n; i++) {
		const struct bid_candidate *candidate = &download->machine.candidates[i];

		/* a source with a response has its report, and so has the winner */
		if (!candidate->overtaken || candidate->state == BID_ATTEMPT_OVER || candidate->source == download->winner)
			continue;
		add_simple_report(download, &(struct bid_report){
						    .source = broker->sources[candidate->source].source->name,
						    .outcome = BID_OUTCOME_CANCELLED,
						    .text = text,
						    .elapsed_ms = candidate->overtaken_ms,
					    });
	}
}

void bid_download_report(struct bid_download *download, struct bid_attempt *attempt, enum bid_outcome outcome, const char *text)
{
	struct bid_broker *broker = download->broker;
	struct bid_source_state *state = &broker->sources[attempt->source];
	struct bid_report report = {
		.source = state->source->name,
		.outcome = outcome,
		.changed = attempt->changed,
		.text = text,
		.url = attempt->answer.url,
		.led_to = attempt->answer.led_to,
		.attempts = attempt->answer.attempts,
		.before = attempt->answer.before,
		.bytes = attempt->delivered,
		.received = attempt->received,
		.elapsed_ms = (unsigned)(bid_clock_ms() - attempt->started_ms),
	};
	struct bid_kept_response *response = bid_response_new(&download->request, &report, time(NULL));
	bool trouble = bid_outcome_is_trouble(outcome), due = false;

	if (outcome == BID_OUTCOME_REJECTED)
		atomic_fetch_add(&broker->counts.rejected, 1);
	pthread_mutex_lock(&broker->lock);
	if (outcome != BID_OUTCOME_CANCELLED)
		due = bid_responses_add(&broker->responses, response);
	add_report(download, &report, response);
	count(attempt, outcome);
	download->no_room |= bid_attempt_has_no_room(attempt);
	if (trouble)
		note_trouble(&state->stats, text);
	if (outcome == BID_OUTCOME_FOUND)
		broker->preferred = download->winner = attempt->source;
	pthread_mutex_unlock(&broker->lock);
	tell_source(attempt, outcome, text);
	/* a message for each wrong body, because each is another artifact */
	if (trouble && (due || outcome == BID_OUTCOME_REJECTED))
		log_report(download, state->source->name, outcome, text);
}

int bid_download_conclusion(const struct bid_download *download)
{
	bool all_no = true;
	bool only_rejected = true;

	for (size_t i = 0; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i].outcome;

		if (outcome == BID_OUTCOME_TOO_LARGE)
			return -EFBIG;
		if (bid_outcome_is_no(outcome))
			continue;
		all_no = false;
		if (outcome != BID_OUTCOME_REJECTED)
			only_rejected = false;
	}
	if (all_no)
		return -ENOENT;
	if (download->no_room)
		return -ENOSPC;
	return only_rejected ? -EBADMSG : -EHOSTUNREACH;
}

bool bid_download_is_too_large(const struct bid_download *download)
{
	bool is_too_large = false;

	for (size_t i = 0; i < download->n_reports; i++) {
		enum bid_outcome outcome = download->reports[i].outcome;

		if (outcome == BID_OUTCOME_TOO_LARGE)
			is_too_large = true;
		else if (!bid_outcome_is_no(outcome))
			return false;
	}
	return is_too_large;
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
		.negative_entries = bid_negative_count(&broker->negative),
	};

	pthread_mutex_lock(&broker->lock);
	stats.downloads = broker->n_downloads - broker->n_fallbacks;
	stats.waiters = broker->n_waiting;
	pthread_mutex_unlock(&broker->lock);
	*ret_stats = stats;
}

int bid_broker_source_stats(struct bid_broker *broker, size_t index, struct bid_source_stats *ret_stats)
{
	struct bid_source *source;

	if (index >= broker->n_sources)
		return -ENOENT;
	pthread_mutex_lock(&broker->lock);
	*ret_stats = broker->sources[index].stats;
	ret_stats->preferred = index == broker->preferred;
	pthread_mutex_unlock(&broker->lock);
	source = broker->sources[index].source;
	ret_stats->enforces = source->signers != NULL;
	if (source->ops->health)
		source->ops->health(source, &ret_stats->health);
	return 0;
}
