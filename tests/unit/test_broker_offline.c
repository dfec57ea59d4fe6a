// SPDX-License-Identifier: LGPL-2.1-or-later
/* A broker with the option offline. */
#include "broker_fixture.h"

#include <errno.h>

#include "broker/download.h"
#include "held_server.h"

/*
 * Offline, stored artifacts are served, and negative cache entries answer -ENOENT. All others are unknown, and are fetched
 * afterwards.
 */
static void test_offline_sends_no_request(void **state)
{
	struct bid_artifact here = elf_of(0xa), wanted = elf_of(0xb), absent = request_of(0xc, BID_KIND_DEBUGINFO);
	struct fixture *fixture = *state;
	struct bid_server *server;
	struct call *call;
	unsigned ttl = 0;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	put_elf(server, 0xb, 0xb);
	assert_int_equal(fetch(fixture, &here, NULL), 0);
	assert_int_equal(fetch(fixture, &absent, NULL), -ENOENT);
	assert_int_equal(memory_server_requests(server), 2);

	bid_broker_set_offline(fixture->broker, true);
	assert_true(bid_broker_is_offline(fixture->broker));
	assert_int_equal(find(fixture, &here, NULL), 0);
	assert_int_equal(find(fixture, &absent, &ttl), -ENOENT);
	assert_true(ttl > 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(find(fixture, &wanted, NULL), -EHOSTUNREACH);
		assert_int_equal(fetch(fixture, &wanted, NULL), -EHOSTUNREACH);
	}
	assert_int_equal(memory_server_requests(server), 2);
	assert_true(stats_of(fixture).unknown > 0);

	bid_broker_set_offline(fixture->broker, false);
	assert_int_equal(fetch(fixture, &wanted, &call), 0);
	assert_content(call->fd, 0xb);
	assert_int_equal(memory_server_requests(server), 3);
}

/* If the request in flight fails, no other server gets one. */
static void test_running_request_continues_offline(void **state)
{
	struct bid_artifact artifact = elf_of(0xa);
	struct fixture *fixture = *state;
	struct held_server *first, *second;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	first = fixture_held(fixture, "first");
	second = fixture_held(fixture, "second");
	held_elf(second, 0xa);
	first->outcome = BID_OUTCOME_UNAVAILABLE;
	first->text = "HTTP 503";
	held_hold(first, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	held_wait(first, 1);
	bid_broker_set_offline(fixture->broker, true);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -EHOSTUNREACH);
	assert_int_equal(second->requests, 0);
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->texts[0], "HTTP 503");
	assert_string_equal(call->texts[1], "offline: bidfs sends no request");

	bid_broker_set_offline(fixture->broker, false);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
}

static void test_running_request_may_deliver_offline(void **state)
{
	struct bid_artifact artifact = elf_of(0xa);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	call = call_for(fixture, &artifact);
	held_wait(held, 1);
	bid_broker_set_offline(fixture->broker, true);
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_content(call->fd, 0xa);
}

/* A request that is under way goes on, but its server gets no probe for a loop. */
static void test_offline_broker_sends_no_probe(void **state)
{
	static const struct bid_broker_config config = { .hedge_ms = 60000, .detect_loops = true };
	struct bid_artifact artifact = elf_of(0xa);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &config);
	held = fixture_held(fixture, "held");
	held_hold(held, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	held_wait(held, 1);
	bid_broker_set_offline(fixture->broker, true);
	fixture_hedge_ms(fixture, 1);
	pthread_mutex_lock(&fixture->broker->lock);
	bid_broker_arm(fixture->broker, &TAILQ_FIRST(&fixture->broker->downloads)->start_timer, 1);
	pthread_mutex_unlock(&fixture->broker->lock);
	sleep_ms(50);
	assert_int_equal(held->requests, 1);
	bid_broker_set_offline(fixture->broker, false);
	held_wait_requests(held, 2);
	assert_false(call_over(call));
	/* the circuit breaker of a server closes */
	assert_int_equal(held->right, 1);
}

/* One request is in flight, and @behind is queued at the same server while the broker goes offline: the queued one is not sent. */
static void end_in_line(struct fixture *fixture, struct held_server *held, struct call *call, struct call *behind)
{
	assert_int_equal(call_wait(behind), -EHOSTUNREACH);
	assert_string_equal(behind->texts[0], "offline: bidfs sends no request");
	assert_false(call_over(call));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(held->requests, 2);
	assert_true(bid_broker_is_offline(fixture->broker));
}

static struct call *call_held(struct fixture *fixture, struct held_server **ret_held)
{
	const struct bid_artifact artifact = elf_of(0xa);
	struct call *call;

	fixture_broker(fixture, &unhedged);
	*ret_held = fixture_held(fixture, "held");
	held_elf(*ret_held, 0xa);
	held_hold(*ret_held, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	held_wait(*ret_held, 1);
	return call;
}

/* A request queued at a server behind another is never sent, and fails at once. */
static void test_queued_request_is_not_sent_offline(void **state)
{
	struct bid_artifact next = elf_of(0xb);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call = call_held(fixture, &held), *behind;

	behind = call_for(fixture, &next);
	held_wait_requests(held, 2);
	bid_broker_set_offline(fixture->broker, true);
	end_in_line(fixture, held, call, behind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_offline_sends_no_request),
		fixture_test(test_running_request_continues_offline),
		fixture_test(test_running_request_may_deliver_offline),
		fixture_test(test_offline_broker_sends_no_probe),
		fixture_test(test_queued_request_is_not_sent_offline),
	};

	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
