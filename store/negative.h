/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is remembered as absent: requests to which every source said no. A "no" stands for 10 minutes, and for longer each time
 * it is repeated after that: 30 minutes, 2 hours, a day. Holds a bounded number of requests and forgets the least recently wanted
 * one.
 *
 * Any number of threads may use one. Nothing here blocks.
 */
#ifndef BID_NEGATIVE_H
#define BID_NEGATIVE_H

#include <bid/artifact.h>

struct bid_negative;

/* Seconds on a clock that never goes back and counts the time asleep. */
typedef int64_t (*bid_clock_fn)(void *user);

/* CLOCK_BOOTTIME. */
int64_t bid_clock_boottime(void *user);

/* At most @max requests, timed by @clock. The caller frees @ret_negative with bid_negative_free(). Returns 0 or -ENOMEM. */
int bid_negative_new(size_t max, bid_clock_fn clock, void *user, struct bid_negative **ret_negative);

/* @negative may be NULL. */
void bid_negative_free(struct bid_negative *negative);

/*
 * Remember @request as absent from now on. If it is remembered already the time begins anew without growing: asking often must not
 * make a "no" last long. Returns 0 or -ENOMEM.
 */
int bid_negative_add(struct bid_negative *negative, const struct bid_request *request);

/* For how many seconds, rounded up, is @request still absent? 0 if it is not remembered as that. */
unsigned bid_negative_ttl(struct bid_negative *negative, const struct bid_request *request);

/* It turned up: forget the "no" and how often it was said. */
void bid_negative_forget(struct bid_negative *negative, const struct bid_request *request);

/* How many requests are remembered as absent at the moment. */
size_t bid_negative_count(struct bid_negative *negative);

#endif
