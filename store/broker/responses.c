// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/responses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/broker_types.h"
#include "broker/download.h"
#include "broker/request.h"

#define QUIET_MS 10000 /* between two equal messages */

void bid_response_unref(struct bid_kept_response *kept)
{
	struct bid_report *report = &kept->response.report;

	if (--kept->refs > 0)
		return;
	bid_request_release(&kept->response.request);
	free((char *)report->text);
	free((char *)report->url);
	free((char *)report->led_to);
	free((char *)report->before);
	free(kept);
}

/* Returns the @age-th last entry, or NULL. */
static struct bid_kept_response *last(const struct bid_responses *responses, size_t age)
{
	bool is_there = age < responses->n && age < BID_RESPONSES_MAX;

	return is_there ? responses->ring[(responses->n - 1 - age) % BID_RESPONSES_MAX] : NULL;
}

void bid_responses_release(struct bid_responses *responses)
{
	struct bid_kept_response *kept;

	for (size_t age = 0; (kept = last(responses, age)); age++)
		bid_response_unref(kept);
}

static const char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct bid_kept_response *bid_response_new(const struct bid_request *request, const struct bid_report *report, int64_t now)
{
	struct bid_kept_response *kept = calloc(1, sizeof(*kept));

	if (!kept)
		return NULL;
	kept->refs = 1;
	kept->count = 1;
	kept->first_time = now;
	kept->response = (struct bid_last_response){ .request = bid_request_keep(request), .report = *report, .time = now };
	kept->response.report.text = strdup(report->text);
	kept->response.report.url = copy_of(report->url);
	kept->response.report.led_to = copy_of(report->led_to);
	kept->response.report.before = copy_of(report->before);
	if (!kept->response.report.text) {
		bid_response_unref(kept);
		return NULL;
	}
	return kept;
}

static bool is_same_report(const struct bid_report *one, const struct bid_report *other)
{
	return one->source == other->source && one->outcome == other->outcome && strcmp(one->text, other->text) == 0;
}

static bool is_of_the_same(const struct bid_last_response *one, const struct bid_last_response *other)
{
	return one->report.source == other->report.source && bid_request_equal(&one->request, &other->request);
}

bool bid_responses_add(struct bid_responses *responses, struct bid_kept_response *kept)
{
	int64_t now = bid_clock_ms();
	struct bid_kept_response *other;
	bool due;

	if (!kept)
		return true;
	for (size_t age = 0; (other = last(responses, age)); age++) {
		if (!is_same_report(&other->response.report, &kept->response.report))
			continue;
		kept->count += other->count;
		kept->first_time = other->first_time;
		kept->logged_ms = other->logged_ms;
		break;
	}
	due = kept->logged_ms == 0 || now - kept->logged_ms >= QUIET_MS;
	if (due)
		kept->logged_ms = now;
	if (responses->n >= BID_RESPONSES_MAX)
		bid_response_unref(last(responses, BID_RESPONSES_MAX - 1));
	kept->refs++;
	responses->ring[responses->n++ % BID_RESPONSES_MAX] = kept;
	return due;
}

/* Copy all entries with a reference, newest first. Returns their number. */
static size_t collect(struct bid_broker *broker, struct bid_kept_response *ret_all[static BID_RESPONSES_MAX])
{
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	while (n < BID_RESPONSES_MAX && (ret_all[n] = last(&broker->responses, n)))
		ret_all[n++]->refs++;
	pthread_mutex_unlock(&broker->lock);
	return n;
}

static void give_back(struct bid_broker *broker, struct bid_kept_response *all[], size_t n)
{
	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < n; i++)
		bid_response_unref(all[i]);
	pthread_mutex_unlock(&broker->lock);
}

/* Is an entry of the same request and source among the first @n? */
static bool is_known(struct bid_kept_response *const all[], size_t n, const struct bid_last_response *response)
{
	for (size_t i = 0; i < n; i++)
		if (is_of_the_same(&all[i]->response, response))
			return true;
	return false;
}

/* Report the negative cache entry of @source and @request, perhaps of another process, if the ring has none. */
static int tell_negative(struct bid_broker *broker, const struct bid_request *request, size_t source,
			 struct bid_kept_response *const all[], size_t n, bid_response_fn fn, void *user)
{
	struct bid_last_response response = {
		.request = *request,
		.report = { .source = broker->sources[source].source->name, .text = "same response earlier" },
	};

	if (is_known(all, n, &response))
		return 0;
	response.report.outcome = bid_negative_lookup(&broker->negative, request, response.report.source, &response.again_s);
	return response.report.outcome != BID_OUTCOME_NONE ? fn(user, &response) : 0;
}

static int collect_reports(struct bid_broker *broker, const struct bid_id *id, struct bid_kept_response *const all[], size_t n,
			   bid_response_fn fn, void *user)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct bid_last_response response = all[i]->response;
		unsigned ttl;

		if (!bid_id_equal(&response.request.id, id) || is_known(all, i, &response))
			continue;
		if (bid_negative_lookup(&broker->negative, &response.request, response.report.source, &ttl) ==
		    response.report.outcome)
			response.again_s = ttl;
		r = fn(user, &response);
	}
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++) {
		struct bid_request request = { .id = *id, .kind = (enum bid_kind)kind };

		for (size_t i = 0; r == 0 && i < broker->n_sources && bid_kind_fetchable(request.kind); i++)
			r = tell_negative(broker, &request, i, all, n, fn, user);
	}
	return r;
}

int bid_broker_each_response(struct bid_broker *broker, const struct bid_id *id, bid_response_fn fn, void *user)
{
	struct bid_kept_response *all[BID_RESPONSES_MAX];
	size_t n = collect(broker, all);
	int r = collect_reports(broker, id, all, n, fn, user);

	give_back(broker, all, n);
	return r;
}

static bool is_listed(struct bid_kept_response *const listed[], size_t n, const struct bid_kept_response *kept)
{
	for (size_t i = 0; i < n; i++)
		if (is_same_report(&listed[i]->response.report, &kept->response.report))
			return true;
	return false;
}

static int tell_failure(const struct bid_kept_response *kept, int (*fn)(void *user, const struct bid_failure *failure), void *user)
{
	const struct bid_last_response *response = &kept->response;
	struct bid_failure failure = {
		.source = response->report.source,
		.request = response->request,
		.outcome = response->report.outcome,
		.count = kept->count,
		.first_time = kept->first_time,
		.last_time = response->time,
	};

	failure.request.detail = NULL;
	snprintf(failure.text, sizeof(failure.text), "%s", response->report.text);
	return fn(user, &failure);
}

void bid_broker_each_failure(struct bid_broker *broker, int (*fn)(void *user, const struct bid_failure *failure), void *user)
{
	struct bid_kept_response *all[BID_RESPONSES_MAX], *listed[BID_FAILURES_MAX];
	size_t n = collect(broker, all), n_listed = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n && n_listed < BID_FAILURES_MAX; i++) {
		if (!bid_outcome_is_trouble(all[i]->response.report.outcome) || is_listed(listed, n_listed, all[i]))
			continue;
		listed[n_listed++] = all[i];
		r = tell_failure(all[i], fn, user);
	}
	give_back(broker, all, n);
}

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
