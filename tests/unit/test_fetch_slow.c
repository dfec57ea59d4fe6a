// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: wait for a slow server, and detect a dead one. */
#include "fetch_fixture.h"

#include <string.h>
#include <unistd.h>

/*
 * The server fetches one artifact from elsewhere, slowly, and serves the others: the server sends those requests, and waits for the
 * slow one up to a limit.
 */
static bool one_is_slow(int endless)
{
	struct bid_fetch_config config = calm;
	struct bid_server_health health;
	struct setting setting;
	struct capture slow, capture;
	bool found = true, in_time = true, over;
	double began, last, next;

	config.first_byte_ms = 2000;
	config.answer_ms = 8000;
	set_up(&setting, &config);
	behave("ok");
	control("POST", "?behaviour=%s&id=" OTHER_ID, endless ? "stall-headers" : "delay:3.6");
	capture_init(&slow);
	began = last = now();
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &slow);
	do {
		over = is_done(&slow);
		ask(setting.server, ID, &capture);
		found = found && capture.outcome == BID_OUTCOME_FOUND;
		usleep(20000);
		next = now();
		/* a response in the later half of each two seconds counts; two responses may be two rounds apart */
		in_time = in_time && next - last < 0.5;
		last = next;
	} while (!over);
	health = health_of(setting.server);
	control("POST", "/release");
	tear_down(&setting);
	if (!in_time || (!endless && slow.done_at - began > 7))
		return false;
	assert_true(found);
	assert_string_equal(slow.text, endless ? "no response within 8 s" : "HTTP 200");
	assert_int_equal(health.breaker, BID_BREAKER_CLOSED);
	assert_int_equal(health.failures, 0);
	return true;
}

static void test_one_slow_response_delays_no_other(void **state)
{
	assert_true(one_is_slow(false));
	assert_true(one_is_slow(true));
}

/* Ask for ID. False if the machine may have taken longer than half a second. */
static bool ask_in_time(struct bid_server *server, struct capture *capture)
{
	double began = now();

	ask(server, ID, capture);
	return now() - began < 0.45;
}

/* Without other requests, a known server counts as dead after the second late response. */
static bool one_is_slow_and_alone(int variant)
{
	struct bid_fetch_config config = calm;
	struct capture first, between, last, capture;
	struct bid_server_health health;
	struct setting setting;
	bool in_time;

	config.first_byte_ms = 500;
	set_up(&setting, &config);
	behave("ok");
	in_time = ask_in_time(setting.server, &first);
	control("POST", "?behaviour=stall-headers&id=" OTHER_ID);
	if (in_time) {
		ask(setting.server, OTHER_ID, &capture);
		assert_string_equal(capture.text, "no response within 0.5 s");
		health = health_of(setting.server);
		assert_int_equal(health.breaker, BID_BREAKER_CLOSED);
		assert_int_equal(health.failures, 1);
	}
	in_time = in_time && ask_in_time(setting.server, &between);
	if (!in_time) {
		tear_down(&setting);
		return false;
	}
	assert_int_equal(first.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(between.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.server).failures, 0);

	behave("stall-headers");
	ask(setting.server, OTHER_ID, &capture);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	ask(setting.server, ID, &last);
	assert_string_equal(last.text, "no response within 0.5 s");
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_OPEN);
	assert_refused(setting.server);
	control("POST", "/release");
	tear_down(&setting);
	return true;
}

static void test_only_slow_response_is_waited_for(void **state)
{
	assert_true(one_is_slow_and_alone(0));
}

static void await_failure(struct bid_server *server)
{
	double deadline = now() + PATIENCE_S;

	while (health_of(server).failures == 0) {
		assert_true(now() < deadline);
		usleep(5000);
	}
}

/* The server unpacks the first file for long. The breaker opens, and the late response closes it. */
static void test_slow_first_response_is_waited_for(void **state)
{
	struct bid_fetch_config config = calm;
	static struct capture slow;
	struct setting setting;

	config.first_byte_ms = 500;
	config.answer_ms = CALM_MS;
	set_up(&setting, &config);
	behave("hold*1");
	capture_init(&slow);
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &slow);
	await_breaker(setting.server, BID_BREAKER_OPEN);
	assert_refused(setting.server);
	assert_false(is_done(&slow));
	control("POST", "/release");
	await_done(&slow);
	assert_int_equal(slow.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	assert_int_equal(health_of(setting.server).failures, 0);
	/* also on a kept connection: the server unpacks the file once */
	behave("hold*1");
	capture_init(&slow);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &slow);
	await_failure(setting.server);
	control("POST", "/release");
	await_done(&slow);
	assert_int_equal(slow.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(requests(), 1);
	tear_down(&setting);
}

/* But not for ever. */
static void test_too_slow_first_response_opens_the_breaker(void **state)
{
	struct bid_fetch_config config = calm;
	struct bid_server_health health;
	struct setting setting;
	struct capture capture;

	config.first_byte_ms = 500;
	config.answer_ms = 2000;
	set_up(&setting, &config);
	behave("stall-headers*1");
	ask(setting.server, ID, &capture);
	assert_string_equal(capture.text, "no response within 2 s");
	health = health_of(setting.server);
	assert_int_equal(health.breaker, BID_BREAKER_OPEN);
	assert_int_equal(health.failures, 1);
	assert_string_equal(health.last_failure, "no response within 0.5 s");
	tear_down(&setting);
}

/* A late probe begins the next pause, and its response closes the breaker. */
static void test_slow_probe_is_waited_for(void **state)
{
	static struct capture probe;
	struct bid_fetch_config config = calm;
	struct setting setting;
	double began;

	config.first_byte_ms = 500;
	config.answer_ms = CALM_MS;
	set_up(&setting, &config);
	open_breaker(setting.server);
	await_end_of_pause(setting.server);
	behave("hold*1");
	capture_init(&probe);
	began = now();
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &probe);
	await_requests(1);
	await_breaker(setting.server, BID_BREAKER_OPEN);
	assert_pause(setting.server, began, 10, 15);
	assert_false(is_done(&probe));
	control("POST", "/release");
	await_done(&probe);
	assert_int_equal(probe.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	tear_down(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_slow_response_delays_no_other),
		cmocka_unit_test(test_only_slow_response_is_waited_for),
		cmocka_unit_test(test_slow_first_response_is_waited_for),
		cmocka_unit_test(test_too_slow_first_response_opens_the_breaker),
		cmocka_unit_test(test_slow_probe_is_waited_for),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
