// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/breaker.h"

#include <stdio.h>
#include <stdlib.h>

void bid_breaker_init(struct bid_breaker *breaker, unsigned seed)
{
	*breaker = (struct bid_breaker){ .seed = seed };
}

bool bid_breaker_refuses(const struct bid_breaker *breaker, int64_t now)
{
	return breaker->open && (breaker->in_trial || now < breaker->until);
}

bool bid_breaker_admits(struct bid_breaker *breaker, int64_t now, bool *ret_trial)
{
	if (bid_breaker_refuses(breaker, now))
		return false;
	breaker->in_trial = *ret_trial = breaker->open;
	return true;
}

static int64_t pause_ms(struct bid_breaker *breaker)
{
	int64_t pause = BID_BREAKER_PAUSE_MIN_MS;

	for (unsigned i = 1; i < breaker->pauses && pause < BID_BREAKER_PAUSE_MAX_MS; i++)
		pause *= 2;
	if (pause > BID_BREAKER_PAUSE_MAX_MS)
		pause = BID_BREAKER_PAUSE_MAX_MS;
	return pause + rand_r(&breaker->seed) % (pause / 2);
}

static void open_breaker(struct bid_breaker *breaker, int64_t now, int64_t wanted_ms)
{
	int64_t pause;

	breaker->pauses++;
	pause = pause_ms(breaker);
	if (wanted_ms > BID_BREAKER_PAUSE_MAX_MS)
		wanted_ms = BID_BREAKER_PAUSE_MAX_MS;
	breaker->retry_after = wanted_ms > 0;
	if (pause < wanted_ms)
		pause = wanted_ms;
	breaker->open = true;
	breaker->in_trial = false;
	breaker->until = now + pause;
	/* rounded up, so that the pause is over at that second */
	breaker->until_wall = time(NULL) + (pause + 999) / 1000;
}

static void note_health(struct bid_breaker *breaker, bool trial)
{
	/* the request was in flight when the server set the pause, and does not end it */
	if (breaker->open && breaker->retry_after && !trial)
		return;
	breaker->open = false;
	breaker->in_trial = false;
	breaker->failures = 0;
	breaker->pauses = 0;
	breaker->last_failure[0] = '\0';
}

void bid_breaker_note(struct bid_breaker *breaker, int64_t now, bool trial, enum bid_health sign, int64_t retry_after_s,
		      const char *text)
{
	bool admitted = trial || !breaker->open;

	if (sign == BID_HEALTH_HEALTHY) {
		note_health(breaker, trial);
		return;
	}
	if (sign == BID_HEALTH_NONE) {
		/* no result: the next request is another trial */
		if (trial)
			breaker->in_trial = false;
		return;
	}
	/* the failure of a request from before the pause does not make it longer */
	if (!admitted)
		return;
	breaker->failures++;
	snprintf(breaker->last_failure, sizeof(breaker->last_failure), "%s", text);
	if (trial || sign == BID_HEALTH_DEAD || retry_after_s > 0 || breaker->failures >= BID_BREAKER_FAILURES)
		open_breaker(breaker, now, retry_after_s * 1000);
}

void bid_breaker_answered(struct bid_breaker *breaker)
{
	breaker->open = false;
	breaker->in_trial = false;
	breaker->failures = BID_BREAKER_FAILURES - 1;
}

void bid_breaker_describe(const struct bid_breaker *breaker, char *buf, size_t size)
{
	char clock[16] = "?";
	struct tm tm;

	if (breaker->in_trial) {
		snprintf(buf, size, "breaker open, and the trial on its way: %s", breaker->last_failure);
		return;
	}
	if (localtime_r(&breaker->until_wall, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(buf, size, "breaker open until %s: %s", clock, breaker->last_failure);
}

unsigned bid_breaker_remaining_s(const struct bid_breaker *breaker, int64_t now)
{
	if (!breaker->open || breaker->in_trial || breaker->until <= now)
		return 0;
	return (unsigned)((breaker->until - now + 999) / 1000);
}
