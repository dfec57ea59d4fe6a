// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "broker/download.h"

enum {
	LOOP_TURNS = 3,
	LOOP_KNOWN_MS = 120000,
	LOOP_ASK_MS = 60000, /* a source is not asked again before */
	ID_LEN = 20,
};

/* The beginning of the ids, for those who find one in the log of a server. */
static const char prefix[10] = "bidfs-loop";

int bid_loop_init(struct bid_loop *loop, size_t source)
{
	size_t len = ID_LEN - sizeof(prefix);
	uint16_t index = (uint16_t)source;

	*loop = (struct bid_loop){ .id.len = ID_LEN, .heard_ms = -LOOP_KNOWN_MS, .asked_ms = -LOOP_ASK_MS };
	memcpy(loop->id.bytes, prefix, sizeof(prefix));
	if (getrandom(loop->id.bytes + sizeof(prefix), len, 0) != (ssize_t)len)
		return -errno;
	/* two sources never share an id */
	memcpy(loop->id.bytes + ID_LEN - sizeof(index), &index, sizeof(index));
	return 0;
}

size_t bid_loop_look(struct bid_flight *flight, struct bid_endings *endings)
{
	struct bid_broker *broker = flight->broker;
	int64_t turn = broker->config.race_ms, now = bid_clock_ms();
	size_t due = BID_LOOP_NONE;
	struct bid_ask *ask;

	for (ask = TAILQ_FIRST(&flight->asks); ask && broker->config.loops; ask = TAILQ_NEXT(ask, link)) {
		struct bid_loop *loop = &broker->asked[ask->source].loop;
		int64_t silent = now - ask->started_ms;

		/* servers elsewhere get no requests that nobody made */
		if (!broker->asked[ask->source].source->near)
			continue;
		if (!ask->sent || ask->begun || ask->cancelled || ask->phase != BID_ASK_RUNNING)
			continue;
		if (silent >= LOOP_TURNS * turn && now - loop->heard_ms < LOOP_KNOWN_MS) {
			ask->looped = ask->cancelled = true;
			bid_endings_add(endings, ask);
		} else if (silent >= turn && now - loop->asked_ms >= LOOP_ASK_MS && !loop->asking) {
			due = ask->source;
		}
	}
	if (due != BID_LOOP_NONE) {
		broker->asked[due].loop.asking = true;
		broker->asked[due].loop.asked_ms = now;
	}
	return due;
}

static int receive_head(void *user, uint64_t size)
{
	return -ECANCELED;
}

static int receive_body(void *user, const void *data, size_t len)
{
	return -ECANCELED;
}

static void receive_done(void *user, const struct bid_answer *answer)
{
	struct bid_loop *loop = user;

	loop->asking = false;
}

void bid_loop_ask(struct bid_broker *broker, size_t source)
{
	static const struct bid_receiver receiver = { .head = receive_head, .body = receive_body, .done = receive_done };
	struct bid_asked *asked = &broker->asked[source];
	struct bid_request request = { .id = asked->loop.id, .kind = BID_KIND_ELF };
	uint64_t transfer;

	if (asked->source->ops->start(asked->source, &request, &receiver, &asked->loop, &transfer) < 0)
		asked->loop.asking = false;
}

bool bid_loop_hear(struct bid_broker *broker, const struct bid_id *id)
{
	for (size_t i = 0; i < broker->n_sources; i++) {
		struct bid_loop *loop = &broker->asked[i].loop;

		if (!bid_id_equal(&loop->id, id))
			continue;
		loop->heard_ms = bid_clock_ms();
		return true;
	}
	return false;
}
