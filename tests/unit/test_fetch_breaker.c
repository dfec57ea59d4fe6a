// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: the breaker of a failing server opens, and closes again. */
#include "fetch_fixture.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/breaker.h"

/* Ask until the breaker lets one through. */
static void ask_until_admitted(struct bid_server *server, struct capture *capture)
{
	double deadline = now() + PATIENCE_S;

	do {
		usleep(100000);
		ask(server, ID, capture);
	} while (strncmp(capture->text, "breaker open", 12) == 0 && now() < deadline);
}

/* A silent server costs one request, however many artifacts are wanted; the trial finds it again. */
static void test_outage_costs_one_request(void **state)
{
	static struct capture first;
	struct bid_fetch_config config = calm;
	struct bid_server_health health;
	struct capture capture;
	struct setting setting;
	unsigned refused = 0;
	double began;

	config.first_byte_ms = 1500;
	config.answer_ms = CALM_MS;
	set_up(&setting, &config);
	behave("stall-headers");
	capture_init(&first);
	began = now();
	start(setting.server, ID, BID_KIND_DEBUGINFO, &first);
	await_breaker(setting.server, BID_BREAKER_OPEN);
	/* well before the pause is over */
	for (double end = now() + 2; refused == 0 || (refused < 200 && now() < end); refused++)
		assert_refused(setting.server);
	assert_pause(setting.server, began + 1.4, 5, 8);
	health = health_of(setting.server);
	assert_int_equal(health.breaker, BID_BREAKER_OPEN);
	assert_int_equal(health.failures, 1);
	assert_string_equal(health.last_failure, "no response within 1.5 s");
	await_requests(1);
	assert_int_equal(requests(), 1);

	control("POST", "/release");
	await_done(&first);
	assert_int_equal(first.outcome, BID_OUTCOME_UNAVAILABLE);
	behave("ok");
	ask_until_admitted(setting.server, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	health = health_of(setting.server);
	assert_int_equal(health.breaker, BID_BREAKER_CLOSED);
	assert_string_equal(health.last_failure, "");
	assert_true(health.latency_ms >= 1);
	tear_down(&setting);
}

/*
 * A server that never responded opens the breaker at its first late response, though it may only be slow. Its response closes
 * the breaker, and from then on the server gets the usual time.
 */
static void test_late_first_response_opens_the_breaker(void **state)
{
	static struct capture first, second;
	struct bid_fetch_config config = calm;
	struct setting setting;

	config.first_contact_ms = 300;
	set_up(&setting, &config);
	behave("hold*1");
	capture_init(&first);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &first);
	await_breaker(setting.server, BID_BREAKER_OPEN);
	assert_string_equal(health_of(setting.server).last_failure, "no response within 0.3 s");
	assert_refused(setting.server);
	await_requests(1);
	assert_int_equal(requests(), 1);
	control("POST", "/release");
	await_done(&first);
	assert_int_equal(first.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	behave("hold*1");
	capture_init(&second);
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &second);
	usleep(3 * config.first_contact_ms * 1000);
	assert_int_equal(health_of(setting.server).failures, 0);
	control("POST", "/release");
	await_done(&second);
	assert_int_equal(second.outcome, BID_OUTCOME_FOUND);
	tear_down(&setting);
}

/* Servers unreachable in other ways: one attempt, and then none for a while. */
static void test_unreachable_server_opens_the_breaker(void **state)
{
	static const char *const urls[] = {
		/* no server on the port of discard(9); a name that does not resolve; a server without TLS */
		"http://127.0.0.1:9",
		"http://debuginfod.invalid",
		"https://127.0.0.1",
	};
	struct bid_fetch_config config = calm;

	/* there may be no resolver here */
	config.connect_ms = 1000;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct bid_server_health health;
		struct capture capture;
		struct setting setting;
		char url[64];

		snprintf(url, sizeof(url), "%s", urls[i]);
		if (i == 2)
			snprintf(url, sizeof(url), "%s:%u", urls[i], world.port);
		assert_int_equal(bid_fetch_new(&config, &setting.fetch), 0);
		assert_int_equal(bid_fetch_server_new(setting.fetch, url, &setting.server), 0);
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
		if (strncmp(capture.text, "breaker", 7) == 0)
			fail_msg("%s: \"%s\"", url, capture.text);
		for (int n = 0; n < 20; n++)
			assert_refused(setting.server);
		setting.server->ops->health(setting.server, &health);
		assert_int_equal(health.failures, 1);
		tear_down(&setting);
	}
}

/* A request during the trial is refused: it does not pay for a silent server. */
static void test_requests_during_the_trial_are_refused(void **state)
{
	static struct capture trial;
	struct capture other;
	struct setting setting;

	set_up(&setting, &calm);
	open_breaker(setting.server);
	await_end_of_pause(setting.server);
	behave("hold*1");
	capture_init(&trial);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &trial);
	await_requests(1);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_HALF_OPEN);
	ask(setting.server, OTHER_ID, &other);
	assert_int_equal(other.outcome, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(strncmp(other.text, "breaker open, and the trial on its way: ", 40), 0);
	assert_int_equal(requests(), 1);
	control("POST", "/release");
	await_done(&trial);
	assert_int_equal(trial.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	tear_down(&setting);
}

/* A trial succeeds with its response header, however long the body takes and however it ends. */
static void test_trial_succeeds_with_its_header(void **state)
{
	static struct capture slow, other;
	struct setting setting;

	set_up(&setting, &calm);
	open_breaker(setting.server);
	await_end_of_pause(setting.server);
	behave("slow:10000*1");
	capture_init(&slow);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &slow);
	await_breaker(setting.server, BID_BREAKER_CLOSED);
	ask(setting.server, OTHER_ID, &other);
	assert_int_equal(other.outcome, BID_OUTCOME_FOUND);
	setting.server->ops->cancel(setting.server, &slow);
	await_done(&slow);
	assert_int_equal(slow.outcome, BID_OUTCOME_CANCELLED);
	assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
	tear_down(&setting);
}

/* A cancelled trial shows nothing: the next request is the trial. */
static void test_cancelled_trial(void **state)
{
	struct capture trial, next;
	struct setting setting;

	set_up(&setting, &calm);
	open_breaker(setting.server);
	await_end_of_pause(setting.server);
	behave("hold*1");
	capture_init(&trial);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &trial);
	await_requests(1);
	setting.server->ops->cancel(setting.server, &trial);
	await_done(&trial);
	assert_int_equal(trial.outcome, BID_OUTCOME_CANCELLED);
	ask(setting.server, OTHER_ID, &next);
	assert_int_equal(next.outcome, BID_OUTCOME_FOUND);
	await_breaker(setting.server, BID_BREAKER_CLOSED);
	control("POST", "/release");
	tear_down(&setting);
}

/* A cancelled request leaves the queue, or ends in flight. */
static bool cancelled_and_well(int variant)
{
	enum { N = 4 };
	static struct capture captures[N];
	struct setting setting;
	double began = now();
	bool in_time;

	set_up(&setting, &calm);
	behave("hold*2");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	await_requests(2);
	/* the queued one first, or it would be sent */
	for (size_t i = N - 1; i-- > 0;)
		setting.server->ops->cancel(setting.server, &captures[i]);
	for (size_t i = 0; i < N; i++)
		await_done(&captures[i]);
	/* a long wait would send one more request */
	in_time = captures[0].done_at - began < 2.9;
	for (size_t i = 0; in_time && i < N; i++) {
		assert_int_equal(captures[i].outcome, i < N - 1 ? BID_OUTCOME_CANCELLED : BID_OUTCOME_FOUND);
		assert_int_equal(captures[i].dones, 1);
		assert_int_equal(captures[i].heads, i < N - 1 ? 0 : 1);
	}
	if (in_time)
		assert_int_equal(requests(), 3);
	control("POST", "/release");
	tear_down(&setting);
	return in_time;
}

static void test_cancelled_request_ends_at_its_header(void **state)
{
	assert_true(cancelled_and_well(0));
}

static void test_bad_responses_open_the_breaker(void **state)
{
	static const char *const bad[] = { "error:503",	    "error:429",  "error:401",	"garbage",  "hang-up",
					   "truncate:5000", "reset:5000", "stall:5000", "error:400" };
	static const char *const harmless[] = { "absent", "error:403", "error:503::invalid%20buildid", "error:501" };
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct setting setting;

	config.stall_ms = 100;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_up(&setting, &config);
		behave(bad[i]);
		for (int n = 0; n < 8; n++)
			ask(setting.server, ID, &capture);
		if (requests() != 5)
			fail_msg("%s: %u requests", bad[i], requests());
		assert_refused(setting.server);
		tear_down(&setting);
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		set_up(&setting, &calm);
		behave(harmless[i]);
		for (int n = 0; n < 8; n++)
			ask(setting.server, n % 2 ? ID : OTHER_ID, &capture);
		if (health_of(setting.server).breaker != BID_BREAKER_CLOSED)
			fail_msg("%s: \"%s\"", harmless[i], capture.text);
		tear_down(&setting);
	}
}

/* A refused request is no failure of a server that accepted others. */
static void test_one_refused_request_keeps_the_breaker_closed(void **state)
{
	static const char *const behaviours[] = { "ok*1", "absent*1" };

	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		struct capture capture;
		struct setting setting;

		set_up(&setting, &calm);
		behave(behaviours[i]);
		ask(setting.server, ID, &capture);
		behave("error:400");
		for (int n = 0; n < 8; n++)
			ask(setting.server, ID, &capture);
		assert_int_equal(requests(), 8);
		assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
		tear_down(&setting);
	}
}

/* One file breaks off again and again, and the others arrive: the breaker stays closed. */
static void test_one_broken_file_keeps_the_breaker_closed(void **state)
{
	struct capture capture;
	struct setting setting;

	set_up(&setting, &calm);
	behave("ok");
	control("POST", "?behaviour=reset:5000&id=" OTHER_ID);
	for (int i = 0; i < 12; i++) {
		ask(setting.server, OTHER_ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
		assert_int_equal(health_of(setting.server).failures, 1 + i % 2);
		if (i % 2 == 0)
			continue;
		ask(setting.server, ID, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_int_equal(health_of(setting.server).failures, 0);
	}
	tear_down(&setting);
}

/* Each request attempts again by itself until the breaker opens. */
static void test_many_broken_connections_open_the_breaker(void **state)
{
	static const char *const broken[] = { "reset-headers", "hang-up" };
	enum { N = 40, AT_ONCE = 8 };
	static struct capture captures[N];
	struct bid_fetch_config config = calm;
	struct setting setting;
	char once[64];

	config.retries = 3;
	config.parallel = AT_ONCE;
	for (size_t i = 0; i < 2 * sizeof(broken) / sizeof(broken[0]); i++) {
		/* for good, or until all that are under way have noticed */
		bool passes = i % 2;

		snprintf(once, sizeof(once), "%s*%d", broken[i / 2], AT_ONCE + 1);
		set_up(&setting, &config);
		behave(passes ? once : broken[i / 2]);
		for (size_t n = 0; n < N; n++) {
			capture_init(&captures[n]);
			start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[n]);
		}
		for (size_t n = 0; n < N; n++) {
			await_done(&captures[n]);
			if (captures[n].outcome != (passes ? BID_OUTCOME_FOUND : BID_OUTCOME_UNAVAILABLE))
				fail_msg("%s: %zu: \"%s\"", broken[i / 2], n, captures[n].text);
		}
		/* the requests that follow the first failures have their retries as well */
		if (requests() > (passes ? N + AT_ONCE + 1 : (AT_ONCE + BID_BREAKER_FAILURES - 1) * (1 + config.retries)))
			fail_msg("%s: %u requests", passes ? once : broken[i / 2], requests());
		assert_int_equal(health_of(setting.server).breaker, passes ? BID_BREAKER_CLOSED : BID_BREAKER_OPEN);
		tear_down(&setting);
	}
}

/* A long Retry-After ends the request and opens the breaker; a short one is a pause for all queued requests. */
static void test_long_retry_after_opens_the_breaker(void **state)
{
	static const char *const waits[] = { "error:503:120", "error:429:date200" };
	enum { N = 6 };
	static struct capture captures[N];
	struct bid_fetch_config config = calm;
	struct capture capture;
	struct setting setting;
	double began;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		set_up(&setting, &calm);
		behave(waits[i]);
		ask(setting.server, ID, &capture);
		assert_non_null(strstr(capture.text, "(Retry-After: "));
		assert_refused(setting.server);
		/* a date is of whole seconds, as is time(2), which is behind by a tick */
		assert_in_range(health_of(setting.server).next_trial_s, i ? 180 : 110, i ? 201 : 120);
		assert_int_equal(requests(), 1);
		tear_down(&setting);
	}

	config.retries = 1;
	config.parallel = 1;
	set_up(&setting, &config);
	behave("error:429:2*1");
	began = now();
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	for (size_t i = 0; i < N; i++) {
		await_done(&captures[i]);
		assert_int_equal(captures[i].outcome, BID_OUTCOME_FOUND);
		assert_true(captures[i].done_at - began >= 2);
	}
	assert_int_equal(requests(), N + 1);
	tear_down(&setting);
}

/* Wait until one request of two has been answered, and its header read. */
static void await_answer(struct bid_server *server)
{
	double deadline = now() + PATIENCE_S;

	while (statistic("active") > 1 || !health_of(server).protocol) {
		assert_true(now() < deadline);
		usleep(5000);
	}
}

/* The same with free slots: no request is sent while the breaker is open, even if the request that opened it is gone. */
static void test_open_breaker_sends_no_request(void **state)
{
	static struct capture first, second, third;
	struct bid_fetch_config config = calm;
	struct setting setting;
	double began;

	config.retries = 1;
	set_up(&setting, &config);
	behave("ok");
	control("POST", "?behaviour=error:429:2*1&id=" ID);
	control("POST", "?behaviour=stall-headers*1&id=" OTHER_ID);
	capture_init(&first);
	capture_init(&second);
	capture_init(&third);
	/* with a connection of its own: on one from before libcurl asks again by itself */
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &second);
	await_requests(1);
	began = now();
	start(setting.server, ID, BID_KIND_DEBUGINFO, &first);
	await_requests(2);
	await_answer(setting.server);
	/* the other one breaks off, and has its own backoff, which would end earlier */
	control("POST", "/release");
	usleep(100000);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &third);
	setting.server->ops->cancel(setting.server, &first);
	await_done(&first);
	/* after the backoff the server requests the kind again */
	if (now() - began < 1.9)
		assert_int_equal(first.outcome, BID_OUTCOME_CANCELLED);
	await_done(&second);
	await_done(&third);
	assert_int_equal(second.outcome, BID_OUTCOME_FOUND);
	assert_int_equal(third.outcome, BID_OUTCOME_FOUND);
	assert_true(second.done_at - began >= 2);
	assert_true(third.done_at - began >= 2);
	tear_down(&setting);
}

/* A dead redirect target does not open the breaker of the server. */
static void test_dead_redirect_target_keeps_the_breaker_closed(void **state)
{
	struct bid_server_health health;
	struct capture capture;
	struct setting setting;

	set_up(&setting, &calm);
	behave("redirect:http://127.0.0.1:1{path}*1");
	ask(setting.server, ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_UNAVAILABLE);
	setting.server->ops->health(setting.server, &health);
	assert_int_equal(health.breaker, BID_BREAKER_CLOSED);
	ask(setting.server, OTHER_ID, &capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	tear_down(&setting);
}

/* Wrong content after a good response is a failure: the fifth in a row opens the breaker. */
static void test_wrong_content_opens_the_breaker(void **state)
{
	const struct bid_server_ops *ops;
	struct bid_server_health health;
	struct setting setting;

	set_up(&setting, &calm);
	behave("ok");
	ops = setting.server->ops;
	for (unsigned i = 1; i < BID_BREAKER_FAILURES; i++)
		ops->note_check(setting.server, false, "carries another id");
	/* a success in between resets the count */
	ops->note_check(setting.server, true, "");
	for (unsigned i = 1; i <= BID_BREAKER_FAILURES; i++) {
		assert_int_equal(health_of(setting.server).breaker, BID_BREAKER_CLOSED);
		ops->note_check(setting.server, false, "carries another id");
	}
	health = health_of(setting.server);
	assert_int_equal(health.breaker, BID_BREAKER_OPEN);
	assert_string_equal(health.last_failure, "carries another id");
	assert_refused(setting.server);
	assert_int_equal(requests(), 0);
	tear_down(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outage_costs_one_request),
		cmocka_unit_test(test_late_first_response_opens_the_breaker),
		cmocka_unit_test(test_unreachable_server_opens_the_breaker),
		cmocka_unit_test(test_dead_redirect_target_keeps_the_breaker_closed),
		cmocka_unit_test(test_requests_during_the_trial_are_refused),
		cmocka_unit_test(test_trial_succeeds_with_its_header),
		cmocka_unit_test(test_cancelled_request_ends_at_its_header),
		cmocka_unit_test(test_bad_responses_open_the_breaker),
		cmocka_unit_test(test_wrong_content_opens_the_breaker),
		cmocka_unit_test(test_long_retry_after_opens_the_breaker),
		cmocka_unit_test(test_open_breaker_sends_no_request),
		cmocka_unit_test(test_many_broken_connections_open_the_breaker),
		cmocka_unit_test(test_one_broken_file_keeps_the_breaker_closed),
		cmocka_unit_test(test_one_refused_request_keeps_the_breaker_closed),
		cmocka_unit_test(test_cancelled_trial),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
