// SPDX-License-Identifier: LGPL-2.1-or-later
/* The publisher: commits wait for the disk, which the thread of a source must not. */
#include "flight.h"

#include <errno.h>
#include <stdio.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "negative.h"

/* What the source said, in the light of what the receiver found. */
static enum bid_outcome outcome_of(struct bid_flight *flight, const char **ret_text)
{
	const struct bid_said *said = &flight->said;

	if (flight->receive_error == 0) {
		*ret_text = said->text;
		return said->outcome;
	}
	*ret_text = flight->reason;
	switch (flight->receive_error) {
	case -EBADMSG:
		return BID_OUTCOME_REJECTED;
	case -EFBIG:
		return BID_OUTCOME_TOO_LARGE;
	default:
		return BID_OUTCOME_FAILED;
	}
}

/* Commit what was received. Returns found, rejected or failed; with failed, @ret_error is set. */
static enum bid_outcome publish(struct bid_flight *flight, struct bid_file *ret_file, const char **ret_text, int *ret_error)
{
	struct bid_broker *broker = flight->broker;
	const struct bid_said *said = &flight->said;
	struct bid_origin origin = {
		.how = "fetched",
		.server = broker->asked[flight->source].source->name,
		.url = said->url,
		.file = said->file,
		.archive = said->archive,
	};
	int r = 0;

	/* a source that found it, but sent no byte: the commit will say what is wrong with that */
	if (!flight->txn)
		r = bid_flight_begin_body(flight, 0);
	if (r == 0)
		r = bid_txn_commit(flight->txn, &origin, ret_file);
	if (r == 0)
		return BID_OUTCOME_FOUND;

	if (r == -EBADMSG) {
		const char *reason = bid_txn_reason(flight->txn);

		snprintf(flight->reason, sizeof(flight->reason), "%s", *reason ? reason : bid_strerror(r));
		*ret_text = flight->reason;
		return BID_OUTCOME_REJECTED;
	}
	*ret_error = bid_local_error(r);
	*ret_text = bid_strerror(*ret_error);
	return BID_OUTCOME_FAILED;
}

static void note_fetched(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	char hex[BID_ID_HEX_MAX];

	atomic_fetch_add(&broker->counts.fetched, 1);
	bid_negative_forget(broker->negative, &flight->request);
	bid_negative_forget(broker->too_large, &flight->request);
	bid_info("fetched %llu bytes from %s: '%s/%s'", (unsigned long long)flight->received,
		 broker->asked[flight->source].source->name, bid_id_format(&flight->request.id, hex),
		 bid_kind_name(flight->request.kind));
}

static void decide(struct bid_flight *flight, bool given_up)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	const char *text;
	int error = flight->receive_error;
	enum bid_outcome outcome = outcome_of(flight, &text);
	int r;

	if (given_up) {
		bid_flight_verdict(flight, BID_OUTCOME_CANCELLED, text);
		bid_flight_end(flight, -EINTR, NULL);
		return;
	}
	if (outcome == BID_OUTCOME_FOUND)
		outcome = publish(flight, &file, &text, &error);
	bid_flight_verdict(flight, outcome, text);

	if (outcome == BID_OUTCOME_FOUND) {
		note_fetched(flight);
		bid_flight_end(flight, 0, &file);
		return;
	}
	/* our own disk's trouble: another source's bytes would meet the same */
	if (outcome == BID_OUTCOME_FAILED && error != 0) {
		bid_flight_end(flight, error, NULL);
		return;
	}
	r = bid_flight_next(flight);
	if (r == 0)
		bid_flight_ask(flight);
	else
		bid_flight_end(flight, r, NULL);
}

void *bid_broker_publish(void *user)
{
	struct bid_broker *broker = user;

	pthread_mutex_lock(&broker->lock);
	while (!broker->stopping) {
		struct bid_flight *flight = TAILQ_FIRST(&broker->jobs);
		bool given_up;

		if (!flight) {
			pthread_cond_wait(&broker->has_job, &broker->lock);
			continue;
		}
		TAILQ_REMOVE(&broker->jobs, flight, job);
		given_up = flight->cancelled || broker->ending;
		pthread_mutex_unlock(&broker->lock);
		decide(flight, given_up);
		pthread_mutex_lock(&broker->lock);
	}
	pthread_mutex_unlock(&broker->lock);
	return NULL;
}
