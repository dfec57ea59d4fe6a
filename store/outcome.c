// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names and classes of outcomes, names of breaker states. */
#include "api/server.h"

static const struct {
	const char *name;
	bool no;
	bool failure;
} outcomes[BID_OUTCOME_COUNT] = {
	[BID_OUTCOME_NONE] = { "none", false, true },
	[BID_OUTCOME_FOUND] = { "found", false, false },
	[BID_OUTCOME_ABSENT] = { "absent", true, false },
	[BID_OUTCOME_TOO_LARGE] = { "too-large", false, true },
	[BID_OUTCOME_UNSUPPORTED] = { "unsupported", true, true },
	[BID_OUTCOME_REFUSED] = { "refused", false, true },
	[BID_OUTCOME_UNAVAILABLE] = { "unavailable", false, true },
	[BID_OUTCOME_REJECTED] = { "rejected", false, true },
	[BID_OUTCOME_FAILED] = { "failed", false, true },
	[BID_OUTCOME_CANCELLED] = { "cancelled", false, false },
};

static enum bid_outcome checked(enum bid_outcome outcome)
{
	return (unsigned)outcome < BID_OUTCOME_COUNT ? outcome : BID_OUTCOME_NONE;
}

const char *bid_outcome_name(enum bid_outcome outcome)
{
	return outcomes[checked(outcome)].name;
}

bool bid_outcome_is_no(enum bid_outcome outcome)
{
	return outcomes[checked(outcome)].no;
}

bool bid_outcome_is_failure(enum bid_outcome outcome)
{
	return outcomes[checked(outcome)].failure;
}

const char *bid_breaker_state_name(enum bid_breaker_state state)
{
	static const char *const names[] = {
		[BID_BREAKER_CLOSED] = "closed",
		[BID_BREAKER_OPEN] = "open",
		[BID_BREAKER_HALF_OPEN] = "half-open",
	};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "closed";
}
