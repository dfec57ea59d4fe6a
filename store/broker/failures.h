/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last troubles with sources: of bounded size, whatever goes wrong how often. Has no lock; the broker's is held. */
#ifndef BID_BROKER_FAILURES_H
#define BID_BROKER_FAILURES_H

#include <bid/broker.h>

struct bid_failures {
	struct bid_failure list[BID_FAILURES_MAX]; /* newest first */
	size_t n;
};

/* @source said @outcome, in words @text, of @request, at @now. What it said before is moved to the front, and counted. */
void bid_failures_add(struct bid_failures *failures, const char *source, const struct bid_request *request,
		      enum bid_outcome outcome, const char *text, int64_t now);

#endif
