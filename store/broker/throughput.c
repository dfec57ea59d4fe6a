// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/throughput.h"

#include "base/clock.h"
#include "broker/download.h"

struct bid_attempt *bid_pace_first(const struct bid_download *download)
{
	struct bid_attempt *first = NULL;

	for (struct bid_attempt *attempt = TAILQ_FIRST(&download->attempts); attempt; attempt = TAILQ_NEXT(attempt, link))
		if (attempt->begun && !attempt->lost && (!first || attempt->received > first->received))
			first = attempt;
	return first;
}

/* For how long has @attempt been delivering? In ms. */
static uint64_t time_of(const struct bid_attempt *attempt)
{
	return (uint64_t)(bid_clock_ms() - attempt->begun_ms) + 1;
}

uint64_t bid_pace_rate(const struct bid_attempt *attempt)
{
	uint64_t received = attempt->received;

	/* a new body may just begin */
	return received > attempt->begun_with ? (received - attempt->begun_with) / time_of(attempt) : 0;
}

bool bid_pace_is_known(const struct bid_attempt *attempt)
{
	return time_of(attempt) > (uint64_t)BID_SLOW_TURNS * attempt->download->broker->config.hedge_ms;
}

bool bid_pace_is_slow(const struct bid_attempt *attempt)
{
	uint64_t received = attempt->received, size = attempt->size, rate = bid_pace_rate(attempt);

	/* what is done with its body, or refused it, is not waited for */
	if (!bid_pace_is_known(attempt) || rate >= BID_SLOW_RATE || attempt->state == BID_ATTEMPT_DECIDING)
		return false;
	return size == BID_SIZE_UNKNOWN || (size > received && (size - received) / BID_SLOW_REST > rate);
}
