// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"
#include "broker/download.h"
#include "broker/scheduler.h"

static struct bid_source *source_of(const struct bid_ask *ask)
{
	return ask->flight->broker->asked[ask->source].source;
}

static void begun(struct bid_ask *ask)
{
	ask->broke_off = false;
	bid_race_begun(ask);
}

int bid_ask_begin_body(struct bid_ask *ask, uint64_t size)
{
	struct bid_broker *broker = ask->flight->broker;
	uint64_t max = broker->config.max_size;
	int r;

	ask->received = 0;
	ask->size = size;
	ask->head_len = 0;
	ask->head_checked = !bid_kind_is_elf(ask->flight->request.kind);
	if (max > 0 && size != BID_SIZE_UNKNOWN && size > max)
		return -EFBIG;
	begun(ask);
	/* not earlier: a source that only waits for its turn, or says "no", costs no descriptor */
	r = ask->txn ? bid_txn_reset(ask->txn) : bid_txn_begin(broker->store, &ask->flight->request, &ask->txn);
	if (r == 0 && (broker->config.accept || bid_absences_ttl(broker->accepted, &ask->flight->request, "") > 0))
		bid_txn_accept(ask->txn);
	if (r == 0 && size != BID_SIZE_UNKNOWN)
		r = bid_txn_expect(ask->txn, size, false);
	/* the first bytes wait for room */
	return r == -EAGAIN ? 0 : r;
}

/*
 * End the transfer of a large file that is plainly another one. What the head cannot tell, and what is smaller, is left to the
 * commit, which alone decides for good.
 */
static int check_head(struct bid_ask *ask)
{
	char hex[BID_ID_HEX_MAX];
	struct bid_id id;
	int r = bid_elf_identify_head(ask->head, ask->head_len, &id);

	ask->head_checked = true;
	free(bid_steal(ask->head));

	if (r == -ENOEXEC || r == -ENODATA) {
		snprintf(ask->reason, sizeof(ask->reason), "%s", bid_strerror(r));
		return -EBADMSG;
	}
	if (r == 0 && !bid_id_answers(&id, &ask->flight->request.id)) {
		snprintf(ask->reason, sizeof(ask->reason), "carries build-id %s", bid_id_format(&id, hex));
		return -EBADMSG;
	}
	return 0;
}

static int keep_head(struct bid_ask *ask, const void *data, size_t len)
{
	size_t room = BID_HEAD_MAX - ask->head_len;

	if (!ask->head) {
		ask->head = malloc(BID_HEAD_MAX);
		if (!ask->head)
			return -ENOMEM;
	}
	if (len > room)
		len = room;
	memcpy(ask->head + ask->head_len, data, len);
	ask->head_len += len;
	return ask->head_len == BID_HEAD_MAX ? check_head(ask) : 0;
}

static int take_body(struct bid_ask *ask, const void *data, size_t len)
{
	uint64_t max = ask->flight->broker->config.max_size;
	int r = 0;

	if (max > 0 && len > max - ask->received)
		return -EFBIG;
	if (!ask->txn)
		r = bid_ask_begin_body(ask, BID_SIZE_UNKNOWN);
	if (r == 0)
		r = bid_txn_try_write(ask->txn, data, len);
	if (r < 0)
		return r;
	ask->received += len;
	ask->delivered += len;
	if (ask->broke_off)
		begun(ask);
	if (!ask->head_checked)
		r = keep_head(ask, data, len);
	/* as far as can be told, these are the bytes that are wanted */
	if (r == 0 && ask->head_checked && !ask->leads)
		ask->leads = bid_race_won(ask, false);
	return r;
}

static int refuse(struct bid_ask *ask, int error)
{
	const char *reason = error == -ENOSPC && ask->txn ? bid_txn_reason(ask->txn) : "";
	uint64_t max = ask->flight->broker->config.max_size;

	error = bid_local_error(error);
	ask->unsaid = *reason && ask->received > 0;
	ask->endless = ask->unsaid && ask->received > BID_TXN_UNSAID_MAX;
	ask->receive_error = error;
	if (error == -EFBIG && max > 0)
		snprintf(ask->reason, sizeof(ask->reason), "larger than the limit of %llu bytes", (unsigned long long)max);
	else if (error != -EBADMSG)
		snprintf(ask->reason, sizeof(ask->reason), "%s", *reason ? reason : bid_strerror(error));
	return error;
}

static void receive_sent(void *user)
{
	struct bid_ask *ask = user;
	struct bid_broker *broker = ask->flight->broker;

	pthread_mutex_lock(&broker->lock);
	ask->sent = true;
	pthread_mutex_unlock(&broker->lock);
}

static int receive_head(void *user, uint64_t size)
{
	struct bid_ask *ask = user;
	int r = ask->receive_error ? ask->receive_error : bid_ask_begin_body(ask, size);

	return r < 0 ? refuse(ask, r) : 0;
}

/* Something has to be evicted for the body: a publisher's turn. */
static void want_room(struct bid_ask *ask)
{
	struct bid_broker *broker = ask->flight->broker;

	pthread_mutex_lock(&broker->lock);
	ask->room = BID_ASK_ROOM_WANTED;
	TAILQ_INSERT_TAIL(&broker->jobs, ask, job);
	pthread_cond_broadcast(&broker->has_job);
	pthread_mutex_unlock(&broker->lock);
}

static int receive_body(void *user, const void *data, size_t len)
{
	struct bid_ask *ask = user;
	int r = ask->receive_error ? ask->receive_error : take_body(ask, data, len);

	if (r == -EAGAIN && source_of(ask)->ops->resume) {
		want_room(ask);
		return -EAGAIN;
	}
	for (; r == -EAGAIN; r = take_body(ask, data, len))
		bid_txn_make_room(ask->txn);
	return r < 0 ? refuse(ask, r) : 0;
}

static void receive_broke_off(void *user)
{
	struct bid_ask *ask = user;

	ask->broke_off = true;
	/* whoever delivers next is ahead of the others */
	ask->leads = false;
	bid_race_broke_off(ask);
}

static void keep_said(struct bid_said *said, const struct bid_answer *answer)
{
	said->outcome = answer->outcome;
	said->unasked = answer->unasked;
	said->lasting = answer->lasting;
	said->modified = answer->modified;
	snprintf(said->text, sizeof(said->text), "%s", answer->text ? answer->text : bid_outcome_name(answer->outcome));
	/* where it came from is worth having, but not worth failing for */
	said->tries = answer->tries;
	said->url = answer->url ? strdup(answer->url) : NULL;
	said->led_to = answer->led_to ? strdup(answer->led_to) : NULL;
	said->before = answer->before ? strdup(answer->before) : NULL;
	said->file = answer->file ? strdup(answer->file) : NULL;
	said->archive = answer->archive ? strdup(answer->archive) : NULL;
	said->ima_signature = answer->ima_signature ? strdup(answer->ima_signature) : NULL;
}

/* The source is done with @ask: a publisher's turn, unless it is in line for one or with one. Under the lock. */
static void to_publishers(struct bid_ask *ask)
{
	struct bid_broker *broker = ask->flight->broker;

	ask->phase = BID_ASK_DECIDING;
	if (ask->room == BID_ASK_ROOM_MAKING)
		return;
	if (ask->room != BID_ASK_ROOM_WANTED)
		TAILQ_INSERT_TAIL(&broker->jobs, ask, job);
	ask->room = BID_ASK_ROOM_ENOUGH;
	/* not any of them may do it */
	pthread_cond_broadcast(&broker->has_job);
}

static void receive_done(void *user, const struct bid_answer *answer)
{
	struct bid_ask *ask = user;
	struct bid_broker *broker = ask->flight->broker;

	keep_said(&ask->said, answer);
	pthread_mutex_lock(&broker->lock);
	/* inside start(), or next to it: the one who asks has still to do with it, and passes it on */
	if (ask->phase == BID_ASK_STARTING)
		ask->answered = true;
	else
		to_publishers(ask);
	pthread_mutex_unlock(&broker->lock);
}

static const struct bid_receiver receiver = {
	.sent = receive_sent,
	.head = receive_head,
	.body = receive_body,
	.broke_off = receive_broke_off,
	.done = receive_done,
};

/* start() returned, so it may go where it will: it is not ours any more. */
static void started(struct bid_ask *ask, uint64_t transfer)
{
	struct bid_flight *flight = ask->flight;
	struct bid_broker *broker = flight->broker;
	struct bid_source *source = source_of(ask);
	struct bid_endings endings = { 0 };
	bool resumes = false;

	pthread_mutex_lock(&broker->lock);
	if (ask->answered) {
		to_publishers(ask);
	} else {
		ask->phase = BID_ASK_RUNNING;
		ask->transfer = transfer;
		resumes = ask->room == BID_ASK_ROOM_MADE;
		if (resumes)
			ask->room = BID_ASK_ROOM_ENOUGH;
		if (ask->cancelled)
			bid_endings_add(&endings, ask);
		else if (broker->ending || bid_flight_abandoned(flight))
			bid_flight_cancel(flight, &endings);
		else if (bid_broker_is_offline(broker))
			bid_race_stop_unsent(flight, &endings);
	}
	pthread_mutex_unlock(&broker->lock);
	if (resumes)
		source->ops->resume(source, transfer);
	bid_endings_cancel(&endings);
}

void bid_ask_make_room(struct bid_ask *ask)
{
	struct bid_broker *broker = ask->flight->broker;
	struct bid_source *source = source_of(ask);
	uint64_t transfer = 0;

	/* its end is to come */
	if (ask->cancelled) {
		ask->room = BID_ASK_ROOM_ENOUGH;
		return;
	}
	ask->room = BID_ASK_ROOM_MAKING;
	pthread_mutex_unlock(&broker->lock);
	bid_txn_make_room(ask->txn);
	pthread_mutex_lock(&broker->lock);
	ask->room = BID_ASK_ROOM_ENOUGH;
	if (ask->phase == BID_ASK_DECIDING)
		to_publishers(ask);
	else if (ask->phase == BID_ASK_STARTING)
		ask->room = BID_ASK_ROOM_MADE;
	else
		transfer = ask->transfer;
	if (!transfer)
		return;
	/* it may be over by then, and its source knows */
	pthread_mutex_unlock(&broker->lock);
	source->ops->resume(source, transfer);
	pthread_mutex_lock(&broker->lock);
}

int bid_ask_start(struct bid_ask *ask)
{
	struct bid_source *source = source_of(ask);
	uint64_t transfer = 0;
	int r = source->ops->start(source, &ask->flight->request, &receiver, ask, &transfer);

	if (r == 0)
		started(ask, transfer);
	return r;
}

void bid_ask_free(struct bid_ask *ask)
{
	bid_txn_free(ask->txn);
	free(ask->head);
	free(ask->said.url);
	free(ask->said.led_to);
	free(ask->said.before);
	free(ask->said.file);
	free(ask->said.archive);
	free(ask->said.ima_signature);
	free(ask);
}
