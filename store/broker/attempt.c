// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "broker/download.h"
#include "broker/scheduler.h"

static struct bid_source *source_of(const struct bid_attempt *attempt)
{
	return attempt->download->broker->sources[attempt->source].source;
}

int bid_attempt_begin_body(struct bid_attempt *attempt, uint64_t size)
{
	struct bid_broker *broker = attempt->download->broker;
	uint64_t max = broker->config.max_size;
	unsigned ttl;
	int r;

	attempt->received = 0;
	attempt->size = size;
	attempt->head_len = 0;
	attempt->head_checked = !bid_kind_is_elf(attempt->download->request.kind);
	if (max > 0 && size != BID_SIZE_UNKNOWN && size > max)
		return -EFBIG;
	bid_scheduler_note(attempt, BID_EVENT_HEAD);
	/* as late as here: a request in a queue, or a 404, needs no descriptor */
	r = attempt->txn ? bid_txn_reset(attempt->txn) : bid_txn_begin(broker->store, &attempt->download->request, &attempt->txn);
	if (r == 0 && (broker->config.accept || bid_negative_lookup(&broker->negative, &attempt->download->request,
								    BID_NEGATIVE_ALL, &ttl) == BID_OUTCOME_FOUND))
		bid_txn_accept(attempt->txn);
	if (r == 0 && size != BID_SIZE_UNKNOWN)
		r = bid_txn_expect(attempt->txn, size);
	/* the first bytes wait for the room */
	return r == -EAGAIN ? 0 : r;
}

/* Refuse a large file whose first bytes carry another id. The commit decides on all others. */
static int check_head(struct bid_attempt *attempt)
{
	char hex[BID_ID_HEX_MAX];
	struct bid_id id;
	int r = bid_elf_identify_head(attempt->head, attempt->head_len, &id);

	attempt->head_checked = true;
	free(bid_steal(attempt->head));

	if (r == -ENOEXEC || r == -ENODATA) {
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", bid_strerror(r));
		return -EBADMSG;
	}
	if (r == 0 && !bid_id_answers(&id, &attempt->download->request.id)) {
		snprintf(attempt->reason, sizeof(attempt->reason), "carries build-id %s", bid_id_format(&id, hex));
		return -EBADMSG;
	}
	return 0;
}

static int keep_head(struct bid_attempt *attempt, const void *data, size_t len)
{
	size_t room = BID_HEAD_MAX - attempt->head_len;

	if (!attempt->head) {
		attempt->head = malloc(BID_HEAD_MAX);
		if (!attempt->head)
			return -ENOMEM;
	}
	if (len > room)
		len = room;
	memcpy(attempt->head + attempt->head_len, data, len);
	attempt->head_len += len;
	return attempt->head_len == BID_HEAD_MAX ? check_head(attempt) : 0;
}

static int take_body(struct bid_attempt *attempt, const void *data, size_t len)
{
	uint64_t max = attempt->download->broker->config.max_size;
	int r = 0;

	if (max > 0 && len > max - attempt->received)
		return -EFBIG;
	if (!attempt->txn)
		r = bid_attempt_begin_body(attempt, BID_SIZE_UNKNOWN);
	if (r == 0)
		r = bid_txn_try_write(attempt->txn, data, len);
	if (r < 0)
		return r;
	attempt->received += len;
	attempt->delivered += len;
	if (!attempt->head_checked)
		r = keep_head(attempt, data, len);
	/* the id of the bytes, if known, is the right one */
	if (r == 0 && attempt->head_checked && !attempt->chosen)
		attempt->chosen = bid_scheduler_note(attempt, BID_EVENT_VERIFIED) >= BID_ATTEMPT_CHOSEN;
	return r;
}

static int refuse(struct bid_attempt *attempt, int error)
{
	const char *reason = error == -ENOSPC && attempt->txn ? bid_txn_reason(attempt->txn) : "";
	uint64_t max = attempt->download->broker->config.max_size;

	error = bid_local_error(error);
	attempt->size_unknown = *reason && attempt->received > 0;
	attempt->endless = attempt->size_unknown && attempt->received > BID_TXN_UNSAID_MAX;
	attempt->receive_error = error;
	if (error == -EFBIG && max > 0 && attempt->size != BID_SIZE_UNKNOWN && attempt->size > max)
		snprintf(attempt->reason, sizeof(attempt->reason), "%llu bytes, the limit is %llu",
			 (unsigned long long)attempt->size, (unsigned long long)max);
	else if (error == -EFBIG && max > 0)
		snprintf(attempt->reason, sizeof(attempt->reason), "more than the limit of %llu bytes", (unsigned long long)max);
	else if (error != -EBADMSG)
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", *reason ? reason : bid_strerror(error));
	return error;
}

static void receive_sent(void *user)
{
	bid_scheduler_note(user, BID_EVENT_SENT);
}

static int receive_head(void *user, uint64_t size)
{
	struct bid_attempt *attempt = user;
	int r = attempt->receive_error ? attempt->receive_error : bid_attempt_begin_body(attempt, size);

	return r < 0 ? refuse(attempt, r) : 0;
}

/* Let a commit worker evict for the body. */
static void want_room(struct bid_attempt *attempt)
{
	struct bid_broker *broker = attempt->download->broker;

	pthread_mutex_lock(&broker->lock);
	attempt->room = BID_ATTEMPT_ROOM_WANTED;
	TAILQ_INSERT_TAIL(&broker->jobs, attempt, job);
	pthread_cond_broadcast(&broker->has_job);
	pthread_mutex_unlock(&broker->lock);
}

static int receive_body(void *user, const void *data, size_t len)
{
	struct bid_attempt *attempt = user;
	int r = attempt->receive_error ? attempt->receive_error : take_body(attempt, data, len);

	if (r == -EAGAIN && source_of(attempt)->ops->resume) {
		want_room(attempt);
		return -EAGAIN;
	}
	for (; r == -EAGAIN; r = take_body(attempt, data, len))
		bid_txn_make_room(attempt->txn);
	return r < 0 ? refuse(attempt, r) : 0;
}

static void receive_broke_off(void *user)
{
	struct bid_attempt *attempt = user;

	/* the next source with bytes is chosen */
	attempt->chosen = false;
	bid_scheduler_step(attempt->download, BID_EVENT_BROKE_OFF, attempt->candidate);
}

static const char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Without memory the origin is lost, the body is not. */
static void keep_answer(struct bid_attempt *attempt, const struct bid_answer *answer)
{
	attempt->answer = *answer;
	attempt->answer.text = copy_of(answer->text);
	attempt->answer.url = copy_of(answer->url);
	attempt->answer.led_to = copy_of(answer->led_to);
	attempt->answer.before = copy_of(answer->before);
	attempt->answer.file = copy_of(answer->file);
	attempt->answer.archive = copy_of(answer->archive);
	attempt->answer.ima_signature = copy_of(answer->ima_signature);
}

static void receive_done(void *user, const struct bid_answer *answer)
{
	struct bid_attempt *attempt = user;
	struct bid_broker *broker = attempt->download->broker;

	keep_answer(attempt, answer);
	pthread_mutex_lock(&broker->lock);
	bid_scheduler_done(attempt);
	pthread_mutex_unlock(&broker->lock);
}

const struct bid_receiver bid_attempt_receiver = {
	.sent = receive_sent,
	.head = receive_head,
	.body = receive_body,
	.broke_off = receive_broke_off,
	.done = receive_done,
};

void bid_attempt_make_room(struct bid_attempt *attempt)
{
	struct bid_broker *broker = attempt->download->broker;
	struct bid_source *source = source_of(attempt);

	/* done() follows */
	if (bid_scheduler_state(attempt) == BID_ATTEMPT_STOPPED) {
		attempt->room = BID_ATTEMPT_ROOM_ENOUGH;
		return;
	}
	attempt->room = BID_ATTEMPT_ROOM_MAKING;
	pthread_mutex_unlock(&broker->lock);
	bid_txn_make_room(attempt->txn);
	pthread_mutex_lock(&broker->lock);
	attempt->room = BID_ATTEMPT_ROOM_ENOUGH;
	if (bid_scheduler_state(attempt) == BID_ATTEMPT_DECIDING)
		bid_scheduler_done(attempt);
	else
		source->ops->resume(source, attempt);
}
