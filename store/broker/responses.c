// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/responses.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/broker.h"

void bid_heard_init(struct bid_heard_list *list)
{
	TAILQ_INIT(&list->list);
	list->n = 0;
}

static void put(struct bid_heard *heard)
{
	struct bid_report *report = &heard->answer.report;

	if (--heard->refs > 0)
		return;
	bid_request_release(&heard->answer.request);
	free((char *)report->text);
	free((char *)report->url);
	free((char *)report->led_to);
	free((char *)report->before);
	free(heard);
}

static void drop(struct bid_heard_list *list, struct bid_heard *heard)
{
	TAILQ_REMOVE(&list->list, heard, link);
	list->n--;
	put(heard);
}

void bid_heard_release(struct bid_heard_list *list)
{
	while (!TAILQ_EMPTY(&list->list))
		drop(list, TAILQ_FIRST(&list->list));
}

static const char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct bid_heard *bid_heard_new(const struct bid_request *request, const struct bid_report *report, int64_t now)
{
	struct bid_heard *heard = calloc(1, sizeof(*heard));

	if (!heard)
		return NULL;
	heard->refs = 1;
	heard->answer.request = bid_request_keep(request);
	heard->answer.report = *report;
	heard->answer.report.text = copy_of(report->text);
	heard->answer.report.url = copy_of(report->url);
	heard->answer.report.led_to = copy_of(report->led_to);
	heard->answer.report.before = copy_of(report->before);
	heard->answer.time = now;
	return heard;
}

static bool is_same(const struct bid_heard_answer *one, const struct bid_heard_answer *other)
{
	return one->report.source == other->report.source && one->request.kind == other->request.kind &&
	       bid_id_equal(&one->request.id, &other->request.id) && bid_detail_equal(one->request.detail, other->request.detail);
}

void bid_heard_add(struct bid_heard_list *list, struct bid_heard *heard)
{
	struct bid_heard *other;

	if (!heard)
		return;
	for (other = TAILQ_FIRST(&list->list); other; other = TAILQ_NEXT(other, link))
		if (is_same(&other->answer, &heard->answer))
			break;
	if (!other && list->n == BID_HEARD_MAX)
		other = TAILQ_LAST(&list->list, bid_heard_head);
	if (other)
		drop(list, other);
	TAILQ_INSERT_HEAD(&list->list, heard, link);
	list->n++;
}

/* For how many seconds nobody asks @source of @request again, for what it said. */
static unsigned stands_for(struct bid_broker *broker, const struct bid_request *request, const char *source,
			   enum bid_outcome outcome)
{
	switch (outcome) {
	case BID_OUTCOME_ABSENT:
		return bid_absences_ttl(broker->absences, request, source);
	case BID_OUTCOME_UNSUPPORTED:
		return bid_absences_ttl(broker->unsupported, request, source);
	case BID_OUTCOME_REFUSED:
		return bid_absences_ttl(broker->refused, request, source);
	case BID_OUTCOME_REJECTED:
		return bid_absences_ttl(broker->wrong, request, source);
	default:
		return 0;
	}
}

/* Those of @id, with a reference each. Returns how many. */
static size_t collect(struct bid_broker *broker, const struct bid_id *id, struct bid_heard *found[static BID_HEARD_MAX])
{
	struct bid_heard *heard;
	size_t n = 0;

	pthread_mutex_lock(&broker->lock);
	for (heard = TAILQ_FIRST(&broker->heard.list); heard; heard = TAILQ_NEXT(heard, link)) {
		if (!bid_id_equal(&heard->answer.request.id, id))
			continue;
		heard->refs++;
		found[n++] = heard;
	}
	pthread_mutex_unlock(&broker->lock);
	return n;
}

/* What @source said of @request a while ago, perhaps to another process, if it is none of the @n that were heard. */
static int tell_remembered(struct bid_broker *broker, const struct bid_request *request, const char *source,
			   struct bid_heard *const heard[], size_t n, bid_heard_fn fn, void *user)
{
	struct bid_heard_answer answer = {
		.request = *request,
		.report = { .source = source, .outcome = BID_OUTCOME_ABSENT, .text = "it said so before" },
	};

	for (size_t i = 0; i < n; i++)
		if (is_same(&heard[i]->answer, &answer))
			return 0;
	answer.again_s = stands_for(broker, request, source, BID_OUTCOME_ABSENT);
	return answer.again_s > 0 ? fn(user, &answer) : 0;
}

static int tell(struct bid_broker *broker, const struct bid_id *id, struct bid_heard *const heard[], size_t n, bid_heard_fn fn,
		void *user)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct bid_heard_answer answer = heard[i]->answer;

		answer.again_s = stands_for(broker, &answer.request, answer.report.source, answer.report.outcome);
		r = fn(user, &answer);
	}
	for (int kind = BID_KIND_NONE + 1; r == 0 && kind < BID_KIND_COUNT; kind++) {
		struct bid_request request = { .id = *id, .kind = (enum bid_kind)kind };

		for (size_t i = 0; r == 0 && i < broker->n_sources && bid_kind_fetchable(request.kind); i++)
			r = tell_remembered(broker, &request, broker->sources[i].source->name, heard, n, fn, user);
	}
	return r;
}

int bid_broker_each_heard(struct bid_broker *broker, const struct bid_id *id, bid_heard_fn fn, void *user)
{
	struct bid_heard *heard[BID_HEARD_MAX];
	size_t n = collect(broker, id, heard);
	int r = tell(broker, id, heard, n, fn, user);

	pthread_mutex_lock(&broker->lock);
	for (size_t i = 0; i < n; i++)
		put(heard[i]);
	pthread_mutex_unlock(&broker->lock);
	return r;
}
