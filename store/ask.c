// SPDX-License-Identifier: LGPL-2.1-or-later
#include "flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"

int bid_flight_begin_body(struct bid_flight *flight, uint64_t size)
{
	uint64_t max = flight->broker->config.max_size;

	flight->received = 0;
	flight->size = size;
	flight->head_len = 0;
	flight->head_checked = !bid_kind_is_elf(flight->request.kind);
	if (max > 0 && size != BID_SIZE_UNKNOWN && size > max)
		return -EFBIG;
	if (flight->txn)
		return bid_txn_reset(flight->txn);
	/* not earlier: a flight that only waits for its turn, or is told "no", costs no descriptor */
	return bid_txn_begin(flight->broker->store, &flight->request, &flight->txn);
}

/*
 * End the transfer of a large file that is plainly another one. What the head cannot tell, and what is smaller, is left to the
 * commit, which alone decides for good.
 */
static int check_head(struct bid_flight *flight)
{
	char hex[BID_ID_HEX_MAX];
	struct bid_id id;
	int r = bid_elf_identify_head(flight->head, flight->head_len, &id);

	flight->head_checked = true;
	free(bid_steal(flight->head));

	if (r == -ENOEXEC || r == -ENODATA) {
		snprintf(flight->reason, sizeof(flight->reason), "%s", bid_strerror(r));
		return -EBADMSG;
	}
	if (r == 0 && !bid_id_answers(&id, &flight->request.id)) {
		snprintf(flight->reason, sizeof(flight->reason), "carries build-id %s", bid_id_format(&id, hex));
		return -EBADMSG;
	}
	return 0;
}

static int keep_head(struct bid_flight *flight, const void *data, size_t len)
{
	size_t room = BID_HEAD_MAX - flight->head_len;

	if (!flight->head) {
		flight->head = malloc(BID_HEAD_MAX);
		if (!flight->head)
			return -ENOMEM;
	}
	if (len > room)
		len = room;
	memcpy(flight->head + flight->head_len, data, len);
	flight->head_len += len;
	return flight->head_len == BID_HEAD_MAX ? check_head(flight) : 0;
}

static int take_body(struct bid_flight *flight, const void *data, size_t len)
{
	uint64_t max = flight->broker->config.max_size;
	int r = 0;

	if (max > 0 && len > max - flight->received)
		return -EFBIG;
	if (!flight->txn)
		r = bid_flight_begin_body(flight, BID_SIZE_UNKNOWN);
	if (r == 0 && !flight->head_checked)
		r = keep_head(flight, data, len);
	if (r == 0)
		r = bid_txn_write(flight->txn, data, len);
	if (r < 0)
		return r;
	flight->received += len;
	flight->delivered += len;
	return 0;
}

static int refuse(struct bid_flight *flight, int error)
{
	error = bid_local_error(error);
	flight->receive_error = error;
	if (error == -EFBIG && flight->broker->config.max_size > 0)
		snprintf(flight->reason, sizeof(flight->reason), "larger than the limit of %llu bytes",
			 (unsigned long long)flight->broker->config.max_size);
	else if (error != -EBADMSG)
		snprintf(flight->reason, sizeof(flight->reason), "%s", bid_strerror(error));
	return error;
}

static int receive_head(void *user, uint64_t size)
{
	struct bid_flight *flight = user;
	int r = flight->receive_error ? flight->receive_error : bid_flight_begin_body(flight, size);

	return r < 0 ? refuse(flight, r) : 0;
}

static int receive_body(void *user, const void *data, size_t len)
{
	struct bid_flight *flight = user;
	int r = flight->receive_error ? flight->receive_error : take_body(flight, data, len);

	return r < 0 ? refuse(flight, r) : 0;
}

void bid_said_release(struct bid_said *said)
{
	free(said->url);
	free(said->file);
	free(said->archive);
	*said = (struct bid_said){ 0 };
}

static void keep_said(struct bid_said *said, const struct bid_answer *answer)
{
	bid_said_release(said);
	said->outcome = answer->outcome;
	snprintf(said->text, sizeof(said->text), "%s", answer->text ? answer->text : bid_outcome_name(answer->outcome));
	/* where it came from is worth having, but not worth failing for */
	said->url = answer->url ? strdup(answer->url) : NULL;
	said->file = answer->file ? strdup(answer->file) : NULL;
	said->archive = answer->archive ? strdup(answer->archive) : NULL;
}

/* The source is done with @flight: the publisher's turn. Under the lock. */
static void to_publisher(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;

	flight->phase = BID_PHASE_DECIDING;
	TAILQ_INSERT_TAIL(&broker->jobs, flight, job);
	pthread_cond_signal(&broker->has_job);
}

static void receive_done(void *user, const struct bid_answer *answer)
{
	struct bid_flight *flight = user;
	struct bid_broker *broker = flight->broker;

	keep_said(&flight->said, answer);
	pthread_mutex_lock(&broker->lock);
	/* inside start(), or next to it: the one who asks has still to do with the flight, and passes it on */
	if (flight->phase == BID_PHASE_ASKING)
		flight->answered = true;
	else
		to_publisher(flight);
	pthread_mutex_unlock(&broker->lock);
}

static const struct bid_receiver receiver = {
	.head = receive_head,
	.body = receive_body,
	.done = receive_done,
};

struct bid_ending bid_flight_cancel(struct bid_flight *flight)
{
	if (flight->phase != BID_PHASE_RUNNING || flight->cancelled)
		return (struct bid_ending){ 0 };
	flight->cancelled = true;
	bid_flight_retire(flight);
	return (struct bid_ending){ flight->broker->asked[flight->source].source, flight->transfer };
}

void bid_ending_cancel(const struct bid_ending *ending)
{
	if (ending->source)
		ending->source->ops->cancel(ending->source, ending->transfer);
}

/* start() returned, so the flight may go where it will: it is not ours any more. */
static void started(struct bid_flight *flight, uint64_t transfer)
{
	struct bid_broker *broker = flight->broker;
	struct bid_ending ending = { 0 };

	pthread_mutex_lock(&broker->lock);
	if (flight->answered) {
		to_publisher(flight);
	} else {
		flight->phase = BID_PHASE_RUNNING;
		flight->transfer = transfer;
		if (broker->ending || bid_flight_abandoned(flight))
			ending = bid_flight_cancel(flight);
	}
	pthread_mutex_unlock(&broker->lock);
	bid_ending_cancel(&ending);
}

static void prepare(struct bid_flight *flight)
{
	/* what the one before delivered must not be taken for this one's */
	bid_txn_free(bid_steal(flight->txn));
	flight->received = 0;
	flight->size = BID_SIZE_UNKNOWN;
	flight->asked_ms = bid_broker_now();
	flight->delivered = 0;
	bid_said_release(&flight->said);
	flight->receive_error = 0;
	flight->reason[0] = '\0';
	flight->head_len = 0;
	flight->head_checked = !bid_kind_is_elf(flight->request.kind);
}

void bid_flight_ask(struct bid_flight *flight)
{
	int r;

	do {
		struct bid_source *source = flight->broker->asked[flight->source].source;
		uint64_t transfer = 0;

		prepare(flight);
		r = source->ops->start(source, &flight->request, &receiver, flight, &transfer);
		if (r == 0) {
			started(flight, transfer);
			return;
		}
		bid_flight_verdict(flight, BID_OUTCOME_UNREACHABLE, bid_strerror(r));
		r = bid_flight_next(flight);
	} while (r == 0);
	bid_flight_end(flight, r, NULL);
}

int bid_flight_next(struct bid_flight *flight)
{
	struct bid_broker *broker = flight->broker;
	int r = 0;

	pthread_mutex_lock(&broker->lock);
	if (flight->source + 1 == broker->n_sources) {
		r = bid_flight_conclusion(flight);
	} else if (broker->ending || bid_flight_abandoned(flight)) {
		/* in the same breath, or somebody could still join and be told -EINTR without having given up */
		bid_flight_retire(flight);
		r = -EINTR;
	} else {
		flight->source++;
		flight->phase = BID_PHASE_ASKING;
		flight->answered = false;
	}
	pthread_mutex_unlock(&broker->lock);
	return r;
}
