// SPDX-License-Identifier: LGPL-2.1-or-later
/* The circuit breaker on a clock of the test, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/breaker.h"

#define START 1000000

static bool admits(struct bid_breaker *breaker, int64_t now)
{
	bool trial;

	return bid_breaker_admits(breaker, now, &trial);
}

static void fail_with(struct bid_breaker *breaker, int64_t now, enum bid_health sign)
{
	bid_breaker_note(breaker, now, false, sign, 0, "trouble");
}

static void assert_pause(const struct bid_breaker *breaker, int64_t now, int64_t least)
{
	assert_true(breaker->open && !breaker->in_trial);
	assert_in_range(breaker->until - now, least, least + least / 2);
}

static void test_dead_server_opens_the_breaker(void **state)
{
	struct bid_breaker breaker;
	char text[64];

	bid_breaker_init(&breaker, 1);
	assert_true(admits(&breaker, START));
	assert_int_equal(bid_breaker_remaining_s(&breaker, START), 0);
	fail_with(&breaker, START, BID_HEALTH_DEAD);
	assert_pause(&breaker, START, 5000);
	assert_false(admits(&breaker, START));
	assert_false(admits(&breaker, breaker.until - 1));
	assert_in_range(bid_breaker_remaining_s(&breaker, START), 5, 8);
	assert_int_equal(bid_breaker_remaining_s(&breaker, breaker.until - 1), 1);

	bid_breaker_describe(&breaker, text, sizeof(text));
	assert_int_equal(strncmp(text, "breaker open until ", 19), 0);
	assert_int_equal(text[21], ':');
	assert_string_equal(text + 27, ": trouble");
}

/* One trial at a time; each failed trial makes the pause longer, up to five minutes. */
static void test_failed_trials_lengthen_the_pause(void **state)
{
	static const int64_t pauses[] = { 5000, 10000, 20000, 40000, 80000, 160000, 300000, 300000, 300000 };
	struct bid_breaker breaker;
	int64_t now = START;
	bool trial = true;

	bid_breaker_init(&breaker, 2);
	assert_true(bid_breaker_admits(&breaker, now, &trial));
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		bid_breaker_note(&breaker, now, trial, BID_HEALTH_DEAD, 0, "dead");
		assert_pause(&breaker, now, pauses[i]);
		now = breaker.until;
		assert_true(bid_breaker_admits(&breaker, now, &trial));
		assert_true(trial);
		assert_true(breaker.open && breaker.in_trial);
		assert_false(admits(&breaker, now + 3600000));
	}
	bid_breaker_note(&breaker, now, true, BID_HEALTH_HEALTHY, 0, "HTTP 404");
	assert_false(breaker.open);
	assert_string_equal(breaker.last_failure, "");
	assert_true(bid_breaker_admits(&breaker, now, &trial));
	assert_false(trial);
	/* and it begins anew */
	fail_with(&breaker, now, BID_HEALTH_DEAD);
	assert_pause(&breaker, now, 5000);
}

static void test_fifth_bad_response_opens_the_breaker(void **state)
{
	struct bid_breaker breaker;

	bid_breaker_init(&breaker, 3);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < BID_BREAKER_FAILURES; i++) {
			fail_with(&breaker, START, BID_HEALTH_BAD);
			fail_with(&breaker, START, BID_HEALTH_NONE);
			assert_true(admits(&breaker, START));
		}
		if (round == 0)
			fail_with(&breaker, START, BID_HEALTH_HEALTHY);
	}
	fail_with(&breaker, START, BID_HEALTH_BAD);
	assert_pause(&breaker, START, 5000);
}

/* Requests in flight when the breaker opens. */
static void test_late_results_do_not_change_the_pause(void **state)
{
	struct bid_breaker breaker;
	int64_t until;
	bool trial;

	bid_breaker_init(&breaker, 4);
	fail_with(&breaker, START, BID_HEALTH_DEAD);
	until = breaker.until;
	for (int i = 0; i < 10; i++)
		fail_with(&breaker, START + 1000, BID_HEALTH_DEAD);
	assert_int_equal(breaker.until, until);
	assert_true(bid_breaker_admits(&breaker, until, &trial));
	fail_with(&breaker, until, BID_HEALTH_DEAD);
	assert_true(breaker.open && breaker.in_trial);
	/* a trial with a response shows a live server */
	fail_with(&breaker, until, BID_HEALTH_HEALTHY);
	assert_false(breaker.open);
}

/* A trial with its header admits others; if its body fails, the next pause follows. */
static void test_trial_with_header_admits_others(void **state)
{
	struct bid_breaker breaker;
	bool trial = false;

	bid_breaker_init(&breaker, 5);
	fail_with(&breaker, START, BID_HEALTH_DEAD);
	assert_true(bid_breaker_admits(&breaker, breaker.until, &trial));
	bid_breaker_answered(&breaker);
	assert_true(admits(&breaker, START + 8000));
	fail_with(&breaker, START + 8000, BID_HEALTH_BAD);
	assert_pause(&breaker, START + 8000, 10000);
	assert_true(bid_breaker_admits(&breaker, breaker.until, &trial));
	bid_breaker_answered(&breaker);
	fail_with(&breaker, START + 30000, BID_HEALTH_HEALTHY);
	fail_with(&breaker, START + 30000, BID_HEALTH_BAD);
	assert_true(admits(&breaker, START + 30000));
}

/* A cancelled trial has no result. */
static void test_cancelled_trial_has_no_result(void **state)
{
	struct bid_breaker breaker;
	bool trial = false;

	bid_breaker_init(&breaker, 5);
	fail_with(&breaker, START, BID_HEALTH_DEAD);
	assert_true(bid_breaker_admits(&breaker, breaker.until, &trial));
	bid_breaker_note(&breaker, breaker.until, true, BID_HEALTH_NONE, 0, "cancelled");
	assert_true(breaker.open && !breaker.in_trial);
	trial = false;
	assert_true(bid_breaker_admits(&breaker, breaker.until, &trial));
	assert_true(trial);
}

static void test_retry_after_sets_the_pause(void **state)
{
	struct bid_breaker breaker;

	bid_breaker_init(&breaker, 6);
	bid_breaker_note(&breaker, START, false, BID_HEALTH_BAD, 120, "HTTP 429");
	assert_int_equal(breaker.until, START + 120000);
	/* an answer to an older request is no leave to ask again */
	fail_with(&breaker, START + 1000, BID_HEALTH_HEALTHY);
	assert_true(breaker.open && !breaker.in_trial);
	assert_int_equal(breaker.until, START + 120000);

	/* the pause has a lower and an upper bound */
	bid_breaker_init(&breaker, 7);
	bid_breaker_note(&breaker, START, false, BID_HEALTH_BAD, 86400, "HTTP 429");
	assert_int_equal(breaker.until, START + BID_BREAKER_PAUSE_MAX_MS);
	bid_breaker_init(&breaker, 8);
	bid_breaker_note(&breaker, START, false, BID_HEALTH_BAD, 1, "HTTP 429");
	assert_pause(&breaker, START, 5000);
}

/* Clients who fail together do not come back together. */
static void test_pauses_have_jitter(void **state)
{
	struct bid_breaker first, second;
	bool differ = false;

	for (unsigned seed = 0; seed < 10; seed++) {
		bid_breaker_init(&first, seed);
		bid_breaker_init(&second, seed + 1000);
		fail_with(&first, START, BID_HEALTH_DEAD);
		fail_with(&second, START, BID_HEALTH_DEAD);
		differ |= first.until != second.until;
	}
	assert_true(differ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_server_opens_the_breaker),
		cmocka_unit_test(test_failed_trials_lengthen_the_pause),
		cmocka_unit_test(test_fifth_bad_response_opens_the_breaker),
		cmocka_unit_test(test_late_results_do_not_change_the_pause),
		cmocka_unit_test(test_cancelled_trial_has_no_result),
		cmocka_unit_test(test_trial_with_header_admits_others),
		cmocka_unit_test(test_retry_after_sets_the_pause),
		cmocka_unit_test(test_pauses_have_jitter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
