/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ring of the last reports, for attributes, info, status and messages. A report is counted by reference: one of its download, one
 * of the ring, one of each reader without the lock.
 *
 * bid_report_new()
 * bid_recent_responses_add()		returns whether a message is due
 * bid_report_unref()
 *
 * Locking: under the broker's lock, except bid_report_new().
 */
#ifndef BID_BROKER_RECENT_RESPONSES_H
#define BID_BROKER_RECENT_RESPONSES_H

#include <string.h>

#include "api/broker.h"

struct bid_recent_responses {
	struct bid_report *ring[BID_RESPONSES_MAX];
	size_t n; /* number of all reports ever added */
};

/* Returns a copy of @text; NULL of NULL, or without memory. */
static inline const char *bid_text_copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

void bid_recent_responses_release(struct bid_recent_responses *responses);

/* Copy @from, except the server's name. Returns NULL without memory. */
struct bid_report *bid_report_new(const struct bid_report *from);

void bid_report_unref(struct bid_report *report);

/* Add @report with a reference, and count equal ones. Returns whether the log needs a message: true without an equal one lately. */
bool bid_recent_responses_add(struct bid_recent_responses *responses, struct bid_report *report);

#endif
