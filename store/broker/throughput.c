// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/throughput.h"

#include "base/clock.h"
#include "broker/download.h"

struct bid_ask *bid_pace_first(const struct bid_flight *flight)
{
	struct bid_ask *first = NULL;

	for (struct bid_ask *ask = TAILQ_FIRST(&flight->asks); ask; ask = TAILQ_NEXT(ask, link))
		if (ask->begun && !ask->lost && (!first || ask->received > first->received))
			first = ask;
	return first;
}

/* For how long has @ask been delivering? In ms. */
static uint64_t time_of(const struct bid_ask *ask)
{
	return (uint64_t)(bid_clock_ms() - ask->begun_ms) + 1;
}

uint64_t bid_pace_rate(const struct bid_ask *ask)
{
	uint64_t received = ask->received;

	/* a new body may just begin */
	return received > ask->begun_with ? (received - ask->begun_with) / time_of(ask) : 0;
}

bool bid_pace_is_known(const struct bid_ask *ask)
{
	return time_of(ask) > (uint64_t)BID_SLOW_TURNS * ask->flight->broker->config.race_ms;
}

bool bid_pace_is_slow(const struct bid_ask *ask)
{
	uint64_t received = ask->received, size = ask->size, rate = bid_pace_rate(ask);

	/* what is done with its body, or refused it, is not waited for */
	if (!bid_pace_is_known(ask) || rate >= BID_SLOW_RATE || ask->phase == BID_ASK_DECIDING)
		return false;
	return size == BID_SIZE_UNKNOWN || (size > received && (size - received) / BID_SLOW_REST > rate);
}
