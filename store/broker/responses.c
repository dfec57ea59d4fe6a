// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/broker_types.h"
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
