// SPDX-License-Identifier: LGPL-2.1-or-later
/* The HTTP server: slots, threads, cancelling, and its end. */
#include "fetch_fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* More requests than turns: they wait in line, and the clock of each starts with its turn. */
static void test_queued_request_gets_its_slot(void **state)
{
	enum { N = 8 };
	static struct capture captures[N];
	struct setting setting;

	set_up(&setting, &calm);
	behave("delay:0.3");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, i % 2 ? ID : OTHER_ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	for (size_t i = 0; i < N; i++) {
		await_done(&captures[i]);
		assert_int_equal(captures[i].outcome, BID_OUTCOME_FOUND);
		assert_body(&captures[i]);
		/* first come, first served */
		assert_true(i == 0 || captures[i].sent_at >= captures[i - 1].sent_at);
	}
	assert_int_equal(statistic("peak"), 2);
	tear_down(&setting);
}

/* One silent server does not hold up another. */
static void test_servers_have_slots_of_their_own(void **state)
{
	struct capture silent, healthy;
	struct bid_server *other;
	struct setting setting;
	char url[128];

	behave("stall-headers");
	set_up(&setting, &calm);
	snprintf(url, sizeof(url), "%s/plain", world.url);
	assert_int_equal(bid_fetch_server_new(setting.fetch, url, &other), 0);
	capture_init(&silent);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &silent);
	ask(other, ID, &healthy);
	assert_int_equal(healthy.outcome, BID_OUTCOME_FOUND);
	assert_false(is_done(&silent));
	control("POST", "/release");
	await_done(&silent);
	assert_int_equal(silent.outcome, BID_OUTCOME_UNAVAILABLE);
	other->ops->free(other);
	tear_down(&setting);
}

static void test_cancel_in_body_ends_the_transfer(void **state)
{
	struct capture capture;
	struct setting setting;
	double began;

	set_up(&setting, &calm);
	behave("stall:5000");
	capture_init(&capture);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
	await(&capture, &capture.heads, 1);
	began = now();
	setting.server->ops->cancel(setting.server, &capture);
	/* cancelled twice, and an unknown transfer */
	setting.server->ops->cancel(setting.server, &capture);
	setting.server->ops->cancel(setting.server, &setting);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_CANCELLED);
	assert_true(capture.done_at - began < 15);
	tear_down(&setting);
	assert_int_equal(capture.dones, 1);
}

/* Requests that wait for a slot or for a retry can be cancelled as well; the others continue. */
static bool cancel_in_line(int variant)
{
	enum { N = 5 };
	static struct capture captures[N];
	struct bid_fetch_config config = calm;
	struct setting setting;
	double began;
	bool in_time;

	config.parallel = 1;
	config.retries = 1;
	set_up(&setting, &config);
	behave("error:503:1*1");
	began = now();
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	await_requests(1);
	setting.server->ops->cancel(setting.server, &captures[3]);
	await_done(&captures[3]);
	setting.server->ops->cancel(setting.server, &captures[0]);
	await_done(&captures[0]);
	in_time = captures[0].done_at - began < 0.9;
	for (size_t i = 0; in_time && i < N; i++) {
		await_done(&captures[i]);
		assert_int_equal(captures[i].outcome, i == 0 || i == 3 ? BID_OUTCOME_CANCELLED : BID_OUTCOME_FOUND);
		assert_int_equal(captures[i].heads, i == 0 || i == 3 ? 0 : 1);
	}
	if (in_time)
		assert_int_equal(requests(), N - 1);
	tear_down(&setting);
	return in_time;
}

static void test_cancel_of_queued_request_ends_it(void **state)
{
	assert_true(cancel_in_line(0));
}

/* free() ends the running and waiting requests; each done() returns before free() does. */
static void test_free_ends_running_transfers(void **state)
{
	enum { N = 6 };
	static struct capture captures[N];
	struct setting setting;
	double began;

	set_up(&setting, &calm);
	behave("stall:5000");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[i]);
	}
	await(&captures[0], &captures[0].heads, 1);
	began = now();
	setting.server->ops->free(setting.server);
	assert_true(now() - began < 15);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(captures[i].dones, 1);
		assert_int_equal(captures[i].outcome, BID_OUTCOME_CANCELLED);
	}
	bid_fetch_free(setting.fetch);
}

static void test_free_after_start_ends_the_transfer(void **state)
{
	static struct capture capture;

	behave("ok");
	for (int i = 0; i < 50; i++) {
		struct setting setting;

		set_up(&setting, &calm);
		capture_init(&capture);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
		tear_down(&setting);
		assert_int_equal(capture.dones, 1);
	}
	bid_fetch_free(NULL);
}

static void test_receiver_error_ends_the_transfer(void **state)
{
	static const struct {
		int head_result, body_result;
		enum bid_outcome outcome;
		const char *text;
	} cases[] = {
		{ -ENOSPC, 0, BID_OUTCOME_FAILED, "could not keep it: No space left on device" },
		{ 0, -ENOSPC, BID_OUTCOME_FAILED, "could not keep it: No space left on device" },
		{ -EBADMSG, 0, BID_OUTCOME_REJECTED, "another artifact than requested" },
		{ 0, -EBADMSG, BID_OUTCOME_REJECTED, "another artifact than requested" },
	};
	struct bid_fetch_config config = calm;
	struct setting setting;

	config.retries = 2;
	set_up(&setting, &config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;

		behave("ok");
		capture_init(&capture);
		capture.head_result = cases[i].head_result;
		capture.body_result = cases[i].body_result;
		start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
		await_done(&capture);
		assert_int_equal(capture.outcome, cases[i].outcome);
		assert_string_equal(capture.text, cases[i].text);
		assert_true(capture.received < BODY_SIZE);
		assert_int_equal(requests(), 1);
	}
	tear_down(&setting);
}

/*
 * A disk that stalls is no failure of a server: of its own, or of others with unread bytes. Returns false if a limit was exceeded.
 */
static bool receiver_is_slow(int delayed)
{
	static struct capture slow, other;
	struct bid_fetch_config config = calm;
	struct setting setting;
	bool well;

	config.stall_ms = 1600;
	config.first_byte_ms = 2400;
	set_up(&setting, &config);
	behave(delayed ? "delay:0.3" : "slow:200000");
	control("POST", "?behaviour=slow:200000&id=" ID);
	capture_init(&slow);
	capture_init(&other);
	slow.body_pause = 3000000;
	start(setting.server, OTHER_ID, BID_KIND_DEBUGINFO, &other);
	start(setting.server, ID, BID_KIND_DEBUGINFO, &slow);
	await_done(&slow);
	await_done(&other);
	well = strcmp(slow.text, "HTTP 200") == 0 && strcmp(other.text, "HTTP 200") == 0;
	if (well) {
		assert_body(&slow);
		assert_body(&other);
	} else {
		print_message("\"%s\", and of the other \"%s\"\n", slow.text, other.text);
	}
	tear_down(&setting);
	return well;
}

static void test_slow_receiver_is_no_server_failure(void **state)
{
	assert_true(receiver_is_slow(false));
	assert_true(receiver_is_slow(true));
}

static void start_next(struct capture *capture)
{
	capture_init(capture->next_capture);
	start(capture->next_server, ID, BID_KIND_DEBUGINFO, capture->next_capture);
}

/* As in the broker: done() of one server starts the request to the next. */
static void test_paused_body_continues(void **state)
{
	enum { STALL_MS = 100 };
	struct bid_fetch_config config = calm;
	struct capture capture, other;
	struct setting setting;

	config.stall_ms = STALL_MS;
	set_up(&setting, &config);
	behave("ok");
	capture_init(&capture);
	capture.pauses = 2;
	start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
	for (unsigned pauses = 1; pauses <= capture.pauses; pauses++) {
		await(&capture, &capture.paused, pauses);
		ask(setting.server, OTHER_ID, &other);
		assert_int_equal(other.outcome, BID_OUTCOME_FOUND);
		/* stall_ms does not count while the body is paused */
		usleep(3 * STALL_MS * 1000);
		assert_false(is_done(&capture));
		setting.server->ops->resume(setting.server, &capture);
	}
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	assert_body(&capture);
	assert_int_equal(capture.heads, 1);

	capture_init(&capture);
	capture.pauses = 1;
	start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
	await(&capture, &capture.paused, 1);
	setting.server->ops->cancel(setting.server, &capture);
	setting.server->ops->resume(setting.server, &capture);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_CANCELLED);
	tear_down(&setting);
}

static void test_done_may_start_a_request(void **state)
{
	static struct capture first, second;
	struct bid_server *other;
	struct setting setting;
	char url[128];

	behave("absent");
	set_up(&setting, &calm);
	snprintf(url, sizeof(url), "%s/plain", world.url);
	assert_int_equal(bid_fetch_server_new(setting.fetch, url, &other), 0);
	capture_init(&first);
	first.on_done = start_next;
	first.next_server = other;
	first.next_capture = &second;
	start(setting.server, ID, BID_KIND_DEBUGINFO, &first);
	await_done(&first);
	assert_int_equal(first.outcome, BID_OUTCOME_ABSENT);
	await_done(&second);
	assert_int_equal(second.outcome, BID_OUTCOME_FOUND);
	assert_body(&second);
	/* at once, and not when the thread wakes up for something else */
	assert_true(second.done_at - first.done_at < 15);
	other->ops->free(other);
	tear_down(&setting);
}

/* Transfers of a thread of test_concurrent_threads_end_once(); every third is cancelled at once. */
struct flow_worker {
	pthread_t thread;
	struct bid_server *server;
	struct capture *captures;
};

enum { WORKERS = 4, EACH = 60 };

static void *worker_main(void *argument)
{
	struct flow_worker *worker = argument;
	struct bid_artifact artifact = { .kind = BID_KIND_DEBUGINFO };

	bid_id_parse_str(ABSENT_ID, &artifact.id);
	for (unsigned i = 0; i < EACH; i++) {
		capture_init(&worker->captures[i]);
		if (worker->server->ops->request(worker->server, &artifact, &receiver, &worker->captures[i]) < 0)
			return worker;
		if (i % 3 == 0)
			worker->server->ops->cancel(worker->server, &worker->captures[i]);
	}
	return NULL;
}

/* Any thread may start and cancel; each transfer ends once. */
static void test_concurrent_threads_end_once(void **state)
{
	static struct capture captures[WORKERS][EACH];
	struct flow_worker workers[WORKERS];
	struct setting setting;

	behave("ok");
	set_up(&setting, &calm);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].server = setting.server;
		workers[i].captures = captures[i];
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		void *trouble;

		assert_int_equal(pthread_join(workers[i].thread, &trouble), 0);
		assert_null(trouble);
	}
	for (unsigned i = 0; i < WORKERS * EACH; i++) {
		struct capture *capture = &captures[i / EACH][i % EACH];

		await_done(capture);
		if (i % EACH % 3 != 0 || capture->outcome != BID_OUTCOME_CANCELLED)
			assert_int_equal(capture->outcome, BID_OUTCOME_ABSENT);
	}
	tear_down(&setting);
	for (unsigned i = 0; i < WORKERS * EACH; i++)
		assert_int_equal(captures[i / EACH][i % EACH].dones, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queued_request_gets_its_slot),
		cmocka_unit_test(test_servers_have_slots_of_their_own),
		cmocka_unit_test(test_cancel_in_body_ends_the_transfer),
		cmocka_unit_test(test_cancel_of_queued_request_ends_it),
		cmocka_unit_test(test_receiver_error_ends_the_transfer),
		cmocka_unit_test(test_slow_receiver_is_no_server_failure),
		cmocka_unit_test(test_paused_body_continues),
		cmocka_unit_test(test_done_may_start_a_request),
		cmocka_unit_test(test_concurrent_threads_end_once),
		/* last: the server may count their requests late */
		cmocka_unit_test(test_free_ends_running_transfers),
		cmocka_unit_test(test_free_after_start_ends_the_transfer),
	};

	return cmocka_run_group_tests(tests, begin_world, end_world);
}
