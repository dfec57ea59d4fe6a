// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/failures.h"

#include <stdio.h>
#include <string.h>

#include "broker/broker.h"

/* Where the one is that says the same; the end of the list if none does. */
static size_t index_of(const struct bid_failures *failures, const struct bid_failure *failure)
{
	size_t at = 0;

	for (; at < failures->n; at++) {
		const struct bid_failure *other = &failures->list[at];

		if (other->source == failure->source && other->outcome == failure->outcome &&
		    strcmp(other->text, failure->text) == 0)
			break;
	}
	return at;
}

void bid_failures_add(struct bid_failures *failures, const char *source, const struct bid_request *request,
		      enum bid_outcome outcome, const char *text, int64_t now)
{
	struct bid_failure failure = {
		.source = source, .request = *request, .outcome = outcome, .count = 1, .first_time = now, .last_time = now
	};
	size_t at;

	failure.request.detail = NULL;
	snprintf(failure.text, sizeof(failure.text), "%s", text);
	at = index_of(failures, &failure);
	if (at < failures->n) {
		failure.count += failures->list[at].count;
		failure.first_time = failures->list[at].first_time;
	} else if (failures->n < BID_FAILURES_MAX) {
		failures->n++;
	} else {
		at--; /* the oldest makes room */
	}
	memmove(&failures->list[1], &failures->list[0], at * sizeof(failures->list[0]));
	failures->list[0] = failure;
}

void bid_broker_each_failure(struct bid_broker *broker, int (*fn)(void *user, const struct bid_failure *failure), void *user)
{
	struct bid_failures copy;

	pthread_mutex_lock(&broker->lock);
	copy = broker->failures;
	pthread_mutex_unlock(&broker->lock);
	for (size_t i = 0; i < copy.n; i++)
		if (fn(user, &copy.list[i]) != 0)
			return;
}
