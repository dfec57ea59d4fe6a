/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How fast a body comes. It is slow if, BID_SLOW_TURNS times hedge_ms or more after its headers, it has come at less than
 * BID_SLOW_RATE since then, and what is left would take longer than BID_SLOW_REST at that rate. What is faster is never fetched
 * twice, however large it is. All of attempts whose headers came, under the broker's lock.
 */
#ifndef BID_BROKER_THROUGHPUT_H
#define BID_BROKER_THROUGHPUT_H

#include "broker/attempt.h"

#define BID_SLOW_TURNS 3 /* later than the first round trips of a connection, in which each brings twice as much */
#define BID_SLOW_RATE  256 /* bytes per ms: what those bring in that time where one takes 200 ms, and less than most links do */
#define BID_SLOW_REST  2000 /* ms */

/* Of those from which something comes the one that has most, or NULL. */
struct bid_attempt *bid_pace_first(const struct bid_download *download);

/* In bytes per ms. */
uint64_t bid_pace_rate(const struct bid_attempt *attempt);

/* Can it be told by now how fast @attempt is? */
bool bid_pace_is_known(const struct bid_attempt *attempt);

bool bid_pace_is_slow(const struct bid_attempt *attempt);

#endif
