/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring of the last responses, whatever they were. Attributes, info, status and messages read it: what a source said last of an
 * id, what went wrong lately, and whether the log has told of it. Locking: the broker's lock is held, but by bid_response_new().
 */
#ifndef BID_BROKER_RESPONSES_H
#define BID_BROKER_RESPONSES_H

#include "api/broker.h"

/* Does not change any more, once it is in the ring. */
struct bid_kept_response {
	unsigned refs; /* one for the ring, one for each reader without the lock */
	struct bid_last_response response; /* its detail is a reference, its strings but the source are owned */
	uint64_t count; /* of those that say the same of the same source, up to this one */
	int64_t first_time; /* of the first of them */
	int64_t logged_ms; /* when the log told of them; 0 if it did not */
};

struct bid_responses {
	struct bid_kept_response *ring[BID_RESPONSES_MAX];
	size_t n; /* how many came, ever */
};

void bid_responses_release(struct bid_responses *responses);

/* @report came of @request at @now. Without the lock; copies all but the source's name. NULL without memory. */
struct bid_kept_response *bid_response_new(const struct bid_request *request, const struct bid_report *report, int64_t now);

/* Add @kept, which is taken over and may be NULL. Returns whether a message is due: the log has none lately that says the same. */
bool bid_responses_add(struct bid_responses *responses, struct bid_kept_response *kept);

#endif
