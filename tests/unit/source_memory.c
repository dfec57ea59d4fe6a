// SPDX-License-Identifier: LGPL-2.1-or-later
#include "source_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/request.h"

/* Bodies come in pieces of libcurl's default size. */
#define PIECE (16 * 1024)

struct artifact {
	struct bid_request request;
	struct artifact *next;
	size_t len;
	uint8_t data[];
};

struct memory {
	struct bid_source source;
	char *name;
	atomic_uint asked;

	pthread_mutex_t lock;		/* guards everything below; not held while a receiver is called */
	struct artifact *artifacts;	/* the last one put comes first. free none early: a transfer may be reading one */
	enum bid_outcome otherwise;
};

static struct memory *memory_of(const struct bid_source *source)
{
	return (struct memory *)source;
}

static const struct artifact *find(struct memory *memory, const struct bid_request *request, enum bid_outcome *ret_otherwise)
{
	const struct artifact *artifact;

	pthread_mutex_lock(&memory->lock);
	for (artifact = memory->artifacts; artifact; artifact = artifact->next)
		if (bid_request_equal(&artifact->request, request))
			break;
	*ret_otherwise = memory->otherwise;
	pthread_mutex_unlock(&memory->lock);
	return artifact;
}

/* Returns 0, or the error of @receiver. */
static int deliver(const struct artifact *artifact, const struct bid_receiver *receiver, void *user)
{
	int r = receiver->head(user, artifact->len);

	for (size_t at = 0; r == 0 && at < artifact->len; at += PIECE)
		r = receiver->body(user, artifact->data + at, artifact->len - at < PIECE ? artifact->len - at : PIECE);
	return r;
}

static int memory_start(struct bid_source *source, const struct bid_request *request, const struct bid_receiver *receiver,
			void *user, uint64_t *ret_transfer)
{
	struct memory *memory = memory_of(source);
	struct bid_answer answer = { .url = source->name };
	const struct artifact *artifact;

	*ret_transfer = atomic_fetch_add(&memory->asked, 1) + 1;
	artifact = find(memory, request, &answer.outcome);
	if (artifact) {
		int r = deliver(artifact, receiver, user);

		answer.outcome = r == 0 ? BID_OUTCOME_FOUND : r == -EBADMSG ? BID_OUTCOME_REJECTED : BID_OUTCOME_FAILED;
	}
	answer.text = bid_outcome_name(answer.outcome);
	receiver->done(user, &answer);
	return 0;
}

static void memory_cancel(struct bid_source *source, uint64_t transfer)
{
	/* every transfer is over when start() returns */
}

static void memory_free(struct bid_source *source)
{
	struct memory *memory = memory_of(source);

	while (memory->artifacts) {
		struct artifact *artifact = memory->artifacts;

		memory->artifacts = artifact->next;
		bid_request_release(&artifact->request);
		free(artifact);
	}
	pthread_mutex_destroy(&memory->lock);
	free(memory->name);
	free(memory);
}

static const struct bid_source_ops memory_ops = {
	.start = memory_start,
	.cancel = memory_cancel,
	.free = memory_free,
};

int source_memory_new(const char *name, struct bid_source **ret_source)
{
	bid_auto_free struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->name = strdup(name);
	if (!memory->name)
		return -ENOMEM;
	memory->source = (struct bid_source){ .ops = &memory_ops, .name = memory->name };
	memory->otherwise = BID_OUTCOME_ABSENT;
	pthread_mutex_init(&memory->lock, NULL);

	*ret_source = &bid_steal(memory)->source;
	return 0;
}

int source_memory_put(struct bid_source *source, const struct bid_request *request, const void *data, size_t len)
{
	struct memory *memory = memory_of(source);
	struct artifact *artifact = malloc(sizeof(*artifact) + len);

	if (!artifact)
		return -ENOMEM;
	artifact->request = bid_request_keep(request);
	artifact->len = len;
	if (len > 0)
		memcpy(artifact->data, data, len);

	pthread_mutex_lock(&memory->lock);
	artifact->next = memory->artifacts;
	memory->artifacts = artifact;
	pthread_mutex_unlock(&memory->lock);
	return 0;
}

void source_memory_set_default(struct bid_source *source, enum bid_outcome outcome)
{
	struct memory *memory = memory_of(source);

	pthread_mutex_lock(&memory->lock);
	memory->otherwise = outcome;
	pthread_mutex_unlock(&memory->lock);
}

unsigned source_memory_asked(const struct bid_source *source)
{
	return atomic_load(&memory_of(source)->asked);
}
