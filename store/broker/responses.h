/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was heard of sources last: of bounded number. Has no lock; the broker's is held. */
#ifndef BID_BROKER_RESPONSES_H
#define BID_BROKER_RESPONSES_H

#include <sys/queue.h>

#include <bid/broker.h>

/* An answer. It does not change any more. */
struct bid_heard {
	TAILQ_ENTRY(bid_heard) link;
	unsigned refs; /* one for the list, one for each who reads it without the lock */
	struct bid_heard_answer answer; /* its detail is a reference, its strings but the source are owned */
};

struct bid_heard_list {
	TAILQ_HEAD(bid_heard_head, bid_heard) list; /* newest first; one of each source and request */
	size_t n;
};

void bid_heard_init(struct bid_heard_list *list);
void bid_heard_release(struct bid_heard_list *list);

/* @report was said of @request at @now. Without the lock; copies all but the source's name. NULL without memory. */
struct bid_heard *bid_heard_new(const struct bid_request *request, const struct bid_report *report, int64_t now);

/* Add @heard, which is taken over and may be NULL, in the place of what the same source said of the same before. */
void bid_heard_add(struct bid_heard_list *list, struct bid_heard *heard);

#endif
