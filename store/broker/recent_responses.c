// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/recent_responses.h"

#include <stdlib.h>
#include <string.h>

#include "api/request.h"
#include "base/clock.h"
#include "broker/broker_types.h"

#define QUIET_MS 10000 /* between two equal messages */

void bid_report_unref(struct bid_report *report)
{
	if (--report->refs > 0)
		return;
	bid_request_release(&report->request);
	free((char *)report->text);
	free((char *)report->url);
	free((char *)report->redirect);
	free((char *)report->before);
	free(report);
}

/* Returns the @age-th last report, or NULL. */
static struct bid_report *last(const struct bid_recent_responses *responses, size_t age)
{
	bool is_there = age < responses->n && age < BID_RESPONSES_MAX;

	return is_there ? responses->ring[(responses->n - 1 - age) % BID_RESPONSES_MAX] : NULL;
}

void bid_recent_responses_release(struct bid_recent_responses *responses)
{
	struct bid_report *report;

	for (size_t age = 0; (report = last(responses, age)); age++)
		bid_report_unref(report);
}

struct bid_report *bid_report_new(const struct bid_report *from)
{
	struct bid_report *report = malloc(sizeof(*report));

	if (!report)
		return NULL;
	*report = *from;
	report->refs = 1;
	report->count = 1;
	report->first_time = from->time;
	report->request = bid_request_keep(&from->request);
	report->text = strdup(from->text);
	report->url = bid_text_copy(from->url);
	report->redirect = bid_text_copy(from->redirect);
	report->before = bid_text_copy(from->before);
	if (!report->text) {
		bid_report_unref(report);
		return NULL;
	}
	return report;
}

static bool is_same_response(const struct bid_report *one, const struct bid_report *other)
{
	return one->server == other->server && one->outcome == other->outcome && strcmp(one->text, other->text) == 0;
}

static bool is_same_request(const struct bid_report *one, const struct bid_report *other)
{
	return one->server == other->server && bid_request_equal(&one->request, &other->request);
}

bool bid_recent_responses_add(struct bid_recent_responses *responses, struct bid_report *report)
{
	int64_t now = bid_clock_ms();
	struct bid_report *other;
	bool due;

	for (size_t age = 0; (other = last(responses, age)); age++) {
		if (!is_same_response(other, report))
			continue;
		report->count += other->count;
		report->first_time = other->first_time;
		report->logged_ms = other->logged_ms;
		break;
	}
	due = report->logged_ms == 0 || now - report->logged_ms >= QUIET_MS;
	if (due)
		report->logged_ms = now;
	if (responses->n >= BID_RESPONSES_MAX)
		bid_report_unref(last(responses, BID_RESPONSES_MAX - 1));
	report->refs++;
	responses->ring[responses->n++ % BID_RESPONSES_MAX] = report;
	return due;
}

/* Copy all reports with a reference, newest first. Returns their number. */
static size_t ref_all(struct bid_broker *broker, struct bid_report *ret_all[static BID_RESPONSES_MAX])
{
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	while (n < BID_RESPONSES_MAX && (ret_all[n] = last(&broker->responses, n)))
		ret_all[n++]->refs++;
	pthread_mutex_unlock(&broker->lock);
	return n;
}

static void unref_all(struct bid_broker *broker, struct bid_report *all[], size_t n)
{
	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < n; i++)
		bid_report_unref(all[i]);
	pthread_mutex_unlock(&broker->lock);
}

/* Is @is of @report and one of the first @n of @all true? */
static bool is_among(struct bid_report *const all[], size_t n, const struct bid_report *report,
		     bool (*is)(const struct bid_report *, const struct bid_report *))
{
	for (size_t i = 0; i < n; i++)
		if (is(all[i], report))
			return true;
	return false;
}

/* Report the negative cache entry of @server and @request, perhaps of another process, if the ring has none. */
static int pass_negative(struct bid_broker *broker, const struct bid_request *request, size_t server,
			 struct bid_report *const all[], size_t n, bid_report_fn fn, void *user)
{
	struct bid_report report = {
		.request = *request,
		.server = broker->servers[server].server->name,
		.text = "same response earlier",
	};
	unsigned ttl;

	if (is_among(all, n, &report, is_same_request))
		return 0;
	report.outcome = bid_negative_lookup(broker->negative, request, report.server, &ttl);
	return report.outcome != BID_OUTCOME_NONE ? fn(user, &report, ttl) : 0;
}

static int pass_responses(struct bid_broker *broker, const struct bid_id *id, struct bid_report *const all[], size_t n,
			  bid_report_fn fn, void *user)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct bid_report *report = all[i];
		unsigned ttl;

		if (!bid_id_equal(&report->request.id, id) || is_among(all, i, report, is_same_request))
			continue;
		if (bid_negative_lookup(broker->negative, &report->request, report->server, &ttl) != report->outcome)
			ttl = 0;
		r = fn(user, report, ttl);
	}
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++) {
		struct bid_request request = { .id = *id, .kind = (enum bid_kind)kind };

		for (size_t i = 0; r == 0 && i < broker->n_servers && bid_kind_fetchable(request.kind); i++)
			r = pass_negative(broker, &request, i, all, n, fn, user);
	}
	return r;
}

int bid_broker_each_response(struct bid_broker *broker, const struct bid_id *id, bid_report_fn fn, void *user)
{
	struct bid_report *all[BID_RESPONSES_MAX];
	size_t n = ref_all(broker, all);
	int r = pass_responses(broker, id, all, n, fn, user);

	unref_all(broker, all, n);
	return r;
}

void bid_broker_each_failure(struct bid_broker *broker, bid_report_fn fn, void *user)
{
	struct bid_report *all[BID_RESPONSES_MAX];
	size_t n = ref_all(broker, all), n_passed = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n && n_passed < BID_FAILURES_MAX; i++) {
		if (!bid_outcome_is_failure(all[i]->outcome) || is_among(all, i, all[i], is_same_response))
			continue;
		n_passed++;
		r = fn(user, all[i], 0);
	}
	unref_all(broker, all, n);
}
