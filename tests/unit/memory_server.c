// SPDX-License-Identifier: LGPL-2.1-or-later
#include "memory_server.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/artifact.h"
#include "base/cleanup.h"

/* Bodies come in pieces of libcurl's default size. */
#define PIECE (16 * 1024)

struct stored_artifact {
	struct bid_artifact artifact;
	struct stored_artifact *next;
	size_t len;
	uint8_t data[];
};

struct memory {
	struct bid_server server;
	char *name;
	atomic_uint requests;

	pthread_mutex_t lock; /* guards everything below; not held while a receiver is called */
	pthread_cond_t ended;
	unsigned running; /* transfers, each with its thread */
	struct stored_artifact *stored_artifacts; /* the last one put comes first. free none early: a transfer may be reading one */
	enum bid_outcome otherwise;
};

static struct memory *memory_of(const struct bid_server *server)
{
	return (struct memory *)server;
}

static const struct stored_artifact *find(struct memory *memory, const struct bid_artifact *artifact,
					  enum bid_outcome *ret_otherwise)
{
	const struct stored_artifact *stored;

	pthread_mutex_lock(&memory->lock);
	for (stored = memory->stored_artifacts; stored; stored = stored->next)
		if (bid_artifact_equal(&stored->artifact, artifact))
			break;
	*ret_otherwise = memory->otherwise;
	pthread_mutex_unlock(&memory->lock);
	return stored;
}

/* Returns 0, or the error of @receiver. */
static int deliver(const struct stored_artifact *stored, const struct bid_receiver *receiver, void *user)
{
	int r = receiver->header(user, stored->len);

	for (size_t at = 0; r == 0 && at < stored->len; at += PIECE)
		r = receiver->body(user, stored->data + at, stored->len - at < PIECE ? stored->len - at : PIECE);
	return r;
}

struct transfer {
	struct memory *memory;
	struct bid_artifact artifact;
	const struct bid_receiver *receiver;
	void *user;
};

static void *run_transfer(void *argument)
{
	struct transfer *transfer = argument;
	struct memory *memory = transfer->memory;
	struct bid_server_report report = { .url = memory->name };
	const struct stored_artifact *stored = find(memory, &transfer->artifact, &report.outcome);

	if (transfer->receiver->sent)
		transfer->receiver->sent(transfer->user);
	if (stored) {
		int r = deliver(stored, transfer->receiver, transfer->user);

		report.outcome = r == 0 ? BID_OUTCOME_FOUND : r == -EBADMSG ? BID_OUTCOME_REJECTED : BID_OUTCOME_FAILED;
	}
	report.text = bid_outcome_name(report.outcome);
	transfer->receiver->done(transfer->user, &report);
	bid_artifact_release(&transfer->artifact);
	free(transfer);
	pthread_mutex_lock(&memory->lock);
	memory->running--;
	pthread_cond_broadcast(&memory->ended);
	pthread_mutex_unlock(&memory->lock);
	return NULL;
}

static int memory_request(struct bid_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
			  void *user)
{
	struct transfer *transfer = malloc(sizeof(*transfer));
	struct memory *memory = memory_of(server);
	pthread_t thread;

	if (!transfer)
		return -ENOMEM;
	*transfer = (struct transfer){ memory, bid_artifact_copy(artifact), receiver, user };
	atomic_fetch_add(&memory->requests, 1);
	pthread_mutex_lock(&memory->lock);
	memory->running++;
	pthread_mutex_unlock(&memory->lock);
	if (pthread_create(&thread, NULL, run_transfer, transfer) != 0)
		abort();
	pthread_detach(thread);
	return 0;
}

static void memory_cancel(struct bid_server *server, const void *user)
{
	/* every transfer ends soon */
}

static void memory_free(struct bid_server *server)
{
	struct memory *memory = memory_of(server);

	pthread_mutex_lock(&memory->lock);
	while (memory->running > 0)
		pthread_cond_wait(&memory->ended, &memory->lock);
	pthread_mutex_unlock(&memory->lock);
	while (memory->stored_artifacts) {
		struct stored_artifact *stored = memory->stored_artifacts;

		memory->stored_artifacts = stored->next;
		bid_artifact_release(&stored->artifact);
		free(stored);
	}
	pthread_cond_destroy(&memory->ended);
	pthread_mutex_destroy(&memory->lock);
	free(memory->name);
	free(memory);
}

static void memory_note_check(struct bid_server *server, bool right, const char *text)
{
}

static void memory_health(struct bid_server *server, struct bid_server_health *ret_health)
{
	*ret_health = (struct bid_server_health){ 0 };
}

static const struct bid_server_ops memory_ops = {
	.request = memory_request,
	.cancel = memory_cancel,
	.note_check = memory_note_check,
	.free = memory_free,
	.health = memory_health,
};

int memory_server_new(const char *name, struct bid_server **ret_server)
{
	bid_auto_free struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->name = strdup(name);
	if (!memory->name)
		return -ENOMEM;
	memory->server = (struct bid_server){ .ops = &memory_ops, .name = memory->name };
	memory->otherwise = BID_OUTCOME_ABSENT;
	pthread_mutex_init(&memory->lock, NULL);
	pthread_cond_init(&memory->ended, NULL);

	*ret_server = &bid_steal(memory)->server;
	return 0;
}

int memory_server_put(struct bid_server *server, const struct bid_artifact *artifact, const void *data, size_t len)
{
	struct memory *memory = memory_of(server);
	struct stored_artifact *stored = malloc(sizeof(*stored) + len);

	if (!stored)
		return -ENOMEM;
	stored->artifact = bid_artifact_copy(artifact);
	stored->len = len;
	if (len > 0)
		memcpy(stored->data, data, len);

	pthread_mutex_lock(&memory->lock);
	stored->next = memory->stored_artifacts;
	memory->stored_artifacts = stored;
	pthread_mutex_unlock(&memory->lock);
	return 0;
}

void memory_server_set_default(struct bid_server *server, enum bid_outcome outcome)
{
	struct memory *memory = memory_of(server);

	pthread_mutex_lock(&memory->lock);
	memory->otherwise = outcome;
	pthread_mutex_unlock(&memory->lock);
}

unsigned memory_server_requests(const struct bid_server *server)
{
	return atomic_load(&memory_of(server)->requests);
}
