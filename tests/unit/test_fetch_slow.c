// SPDX-License-Identifier: LGPL-2.1-or-later
/* The source that speaks HTTP: what takes a server long is waited for, and told apart from a server that is gone. */
#include "fetch_scene.h"

#include <string.h>
#include <unistd.h>

/*
 * It has to get one artifact from elsewhere, which takes long, and answers for the others: those are not kept from it, and the one
 * is waited for, but not for ever.
 */
static void test_one_is_slow(void **state)
{
	struct bid_fetch_config config = quick;
	struct bid_source_health health;
	struct setting setting;

	config.first_byte_ms = 1000;
	for (int i = 0; i < 2; i++) {
		struct capture slow, capture;

		set_up(&setting, &config);
		behave("ok");
		control("POST", "?behaviour=%s&id=" OTHER_ID, i ? "stall-headers" : "delay:1.8");
		capture_init(&slow);
		start(setting.source, OTHER_ID, BID_KIND_DEBUGINFO, &slow);
		while (!is_done(&slow)) {
			ask(setting.source, ID, &capture);
			assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
			usleep(20000);
		}
		assert_string_equal(slow.text, i ? "no answer within 4 s" : "HTTP 200");
		health = health_of(setting.source);
		assert_int_equal(health.breaker, BID_BREAKER_CLOSED);
		assert_int_equal(health.failures, 0);
		ask(setting.source, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_int_equal(health_of(setting.source).refused, 0);
		control("POST", "/release");
		tear_down(&setting);
	}
}

/* The same with nobody else who asks: the server, which is known, is not taken for dead before a second one gets no answer. */
static void test_one_is_slow_and_alone(void **state)
{
	struct bid_fetch_config config = quick;
	struct capture capture;
	struct setting setting;

	config.first_byte_ms = 500;
	set_up(&setting, &config);
	behave("ok");
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	control("POST", "?behaviour=stall-headers&id=" OTHER_ID);
	for (int i = 0; i < 2; i++) {
		ask(setting.source, OTHER_ID, &capture);
		assert_string_equal(capture.text, "no answer within 0.5 s");
		assert_int_equal(health_of(setting.source).breaker, BID_BREAKER_CLOSED);
	}
	assert_int_equal(health_of(setting.source).failures, 2);
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.source).failures, 0);

	behave("stall-headers");
	ask(setting.source, OTHER_ID, &capture);
	assert_int_equal(health_of(setting.source).breaker, BID_BREAKER_CLOSED);
	ask(setting.source, ID, &capture);
	assert_string_equal(capture.text, "no answer within 0.5 s");
	assert_int_equal(health_of(setting.source).breaker, BID_BREAKER_OPEN);
	assert_refused(setting.source);
	control("POST", "/release");
	tear_down(&setting);
}

/* The first that is asked for has to be unpacked: others are not asked for meanwhile, but it is waited for, and ends the outage. */
static void test_first_is_slow(void **state)
{
	struct bid_fetch_config config = quick;
	static struct capture slow;
	struct capture capture;
	struct setting setting;

	config.first_byte_ms = 500;
	config.answer_ms = 4000;
	set_up(&setting, &config);
	behave("delay:2*1");
	capture_init(&slow);
	start(setting.source, OTHER_ID, BID_KIND_DEBUGINFO, &slow);
	await_breaker(setting.source, BID_BREAKER_OPEN);
	assert_refused(setting.source);
	assert_false(is_done(&slow));
	await_done(&slow);
	assert_int_equal(slow.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.source).breaker, BID_BREAKER_CLOSED);
	assert_int_equal(health_of(setting.source).failures, 0);
	/* nor does it matter that there is a connection from before, and no other try */
	behave("delay:2*1");
	ask(setting.source, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(requests(), 1);
	tear_down(&setting);
}

/* But not for ever; and if the probe is as slow, whoever waits for that is told as soon as it is late. */
static void test_probe_is_slow(void **state)
{
	static struct capture probe, next;
	struct bid_fetch_config config = quick;
	struct bid_source_health health;
	struct setting setting;
	struct capture capture;

	config.first_byte_ms = 500;
	config.answer_ms = 4000;
	set_up(&setting, &config);
	behave("stall-headers*1");
	ask(setting.source, ID, &capture);
	assert_string_equal(capture.text, "no answer within 4 s");
	health = health_of(setting.source);
	assert_int_equal(health.breaker, BID_BREAKER_OPEN);
	assert_int_equal(health.failures, 1);
	assert_string_equal(health.trouble, "no answer within 0.5 s");

	control("POST", "?behaviour=delay:2*1");
	while (health_of(setting.source).next_probe_s > 0)
		usleep(20000);
	capture_init(&probe);
	capture_init(&next);
	start(setting.source, OTHER_ID, BID_KIND_DEBUGINFO, &probe);
	start(setting.source, ID, BID_KIND_DEBUGINFO, &next);
	await_done(&next);
	assert_int_equal(strncmp(next.text, "breaker open until ", 19), 0);
	assert_in_range(health_of(setting.source).next_probe_s, 9, 15);
	await_done(&probe);
	assert_int_equal(probe.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.source).breaker, BID_BREAKER_CLOSED);
	control("POST", "/release");
	tear_down(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_is_slow),
		cmocka_unit_test(test_one_is_slow_and_alone),
		cmocka_unit_test(test_first_is_slow),
		cmocka_unit_test(test_probe_is_slow),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
