/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Responses, counted by reference: those of a download, and a ring of the last ones, for attributes, info, status and messages.
 *
 * bid_response_new()
 * bid_responses_add()		for the ring; returns whether a message is due
 * bid_response_unref()
 *
 * Locking: under the broker's lock, except bid_response_new().
 */
#ifndef BID_BROKER_RESPONSES_H
#define BID_BROKER_RESPONSES_H

#include "api/broker.h"

/* Constant in the ring. */
struct bid_kept_response {
	unsigned refs; /* one for the download, one for the ring, one for each reader without the lock */
	struct bid_last_response response; /* its detail is a reference, its strings but the source are owned */
	uint64_t count; /* number of equal responses of the source, with this one */
	int64_t first_time; /* time of the first of them */
	int64_t logged_ms; /* time of their last message; 0 for none */
};

struct bid_responses {
	struct bid_kept_response *ring[BID_RESPONSES_MAX];
	size_t n; /* number of all entries ever added */
};

void bid_responses_release(struct bid_responses *responses);

/* Make an entry of @report of @request at @now. Copies everything but the source's name. Returns NULL without memory. */
struct bid_kept_response *bid_response_new(const struct bid_request *request, const struct bid_report *report, int64_t now);

void bid_response_unref(struct bid_kept_response *kept);

/* Add @kept (may be NULL). Returns whether the log needs a message: true without an equal one in recent time. */
bool bid_responses_add(struct bid_responses *responses, struct bid_kept_response *kept);

#endif
