// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cancelled calls of the broker, in every phase, and calls at its end. */
#include "held_server.h"

#include <errno.h>

#include "base/log.h"
#include "broker/broker_types.h"

/* Waits have an end, and come to none. */
static const struct bid_broker_config windowed = { .wait_ms = 2 * PATIENCE_MS };

static void test_cancel_before_use(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	call = call_begin(fixture);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	assert_false(call_over(call));
	bid_broker_fetch(fixture->broker, call->waiter_id, &artifact);
	assert_true(call_over(call));
	assert_int_equal(call->error, -EINTR);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	assert_int_equal(memory_server_requests(server), 0);
	assert_int_equal(stats_of(fixture).interrupted, 1);
}

static void test_cancel_of_one_caller_keeps_the_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;
	struct held_server *held;

	fixture_broker(fixture, &unhedged);
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	first = call_for(fixture, &artifact);
	second = call_for(fixture, &artifact);
	held_wait(held, 1);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	assert_true(call_over(first));
	assert_int_equal(first->error, -EINTR);
	assert_false(call_over(second));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(second), 0);
	assert_int_equal(held->cancels, 0);

	/* after the fact nothing happens */
	bid_broker_cancel(fixture->broker, first->waiter_id);
	bid_broker_cancel(fixture->broker, second->waiter_id);
	bid_broker_cancel(fixture->broker, 0);
	bid_broker_cancel(fixture->broker, UINT64_MAX);
}

static void test_cancel_of_last_caller_ends_the_transfer(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;
	struct bid_server_stats stats;
	struct held_server *held;
	struct bid_server *next;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	next = fixture_memory(fixture, "next");
	held_elf(held, 0xa);
	held_hold(held, HOLD_MIDDLE);
	first = call_for(fixture, &artifact);
	second = call_for(fixture, &artifact);
	held_wait(held, 1);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	bid_broker_cancel(fixture->broker, second->waiter_id);
	assert_int_equal(call_wait(first), -EINTR);
	assert_int_equal(call_wait(second), -EINTR);
	held_wait_done(held, 1);
	wait_for_no_downloads(fixture);
	assert_int_equal(held->cancels, 1);
	assert_int_equal(held->ended, BID_OUTCOME_CANCELLED);
	assert_int_equal(memory_server_requests(next), 0);
	assert_int_equal(stats_of(fixture).interrupted, 2);
	assert_int_equal(stats_of(fixture).negative_entries, 0);
	assert_int_equal(bid_broker_server_stats(fixture->broker, 0, &stats), 0);
	assert_int_equal(stats.outcomes[BID_OUTCOME_CANCELLED], 1);

	/* the result is not kept: the next one is served */
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	assert_int_equal(held->requests, 2);
}

/* A caller that comes while a cancelled transfer ends gets a transfer of its own. */
static void test_request_during_cancel_starts_a_new_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second;
	struct held_server *held;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	held->deaf = true;
	held->hold = HOLD_MIDDLE;
	first = call_for(fixture, &artifact);
	held_wait(held, 1);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	assert_int_equal(call_wait(first), -EINTR);
	second = call_for(fixture, &artifact);
	assert_int_equal(stats_of(fixture).downloads, 2);
	assert_int_equal(held->requests, 2);
	assert_false(call_over(second));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(second), 0);
	wait_for_no_downloads(fixture);
	assert_int_equal(stats_of(fixture).fetched, 1);
}

/* Keeps disk workers from their other work for as long as a test wants. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned reached;
	bool open;
};

static void stand_at_gate(void *user, const struct bid_result *result)
{
	struct gate *gate = user;

	pthread_mutex_lock(&gate->lock);
	gate->reached++;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

/* Cancel after the end of one server and before the request to the next. Only a wanted download sends that. */
static void test_cancel_between_servers_ends_the_request(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact unwanted = elf_of(0x1), wanted = elf_of(0xb);
	/* a worker may leave the gate after the end of this function */
	static struct gate gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };
	struct call *first, *second, *third;
	struct held_server *held;
	struct bid_server *next;
	uint64_t waiter_id;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	next = fixture_memory(fixture, "next");
	put_elf(next, 0x1, 0xa);
	put_elf(next, 0xb, 0xb);
	for (uint8_t i = 0; i < BID_DISK_WORKERS; i++) {
		struct bid_artifact nowhere = elf_of(0x20 + i);

		assert_int_equal(bid_broker_new_waiter(fixture->broker, stand_at_gate, &gate, &waiter_id), 0);
		bid_broker_fetch(fixture->broker, waiter_id, &nowhere);
	}
	pthread_mutex_lock(&gate.lock);
	while (gate.reached < BID_DISK_WORKERS)
		wait_changed(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);

	first = call_for(fixture, &unwanted);
	second = call_for(fixture, &wanted);
	held_wait_done(held, BID_DISK_WORKERS + 2);
	bid_broker_cancel(fixture->broker, first->waiter_id);
	bid_broker_cancel(fixture->broker, second->waiter_id);
	assert_int_equal(call_wait(first), -EINTR);
	assert_int_equal(call_wait(second), -EINTR);
	third = call_for(fixture, &wanted);
	open_gate(&gate);
	assert_int_equal(call_wait(third), 0);
	wait_for_no_downloads(fixture);
	assert_int_equal(held->requests, BID_DISK_WORKERS + 2);
	assert_int_equal(held->cancels, 0);
	assert_int_equal(memory_server_requests(next), BID_DISK_WORKERS + 1);
	/* a late reader is not interrupted: the server has another build */
	assert_int_equal(fetch(fixture, &unwanted, NULL), -EBADMSG);
}

/* Cancels at any moment of a fetch(): one answer each, and the broker is usable afterwards. */
static void test_cancel_at_any_moment_answers_once(void **state)
{
	enum { N = 300 };
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;
	unsigned interrupted = 0;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held->outcome = BID_OUTCOME_UNAVAILABLE;
	for (int i = 0; i < N; i++) {
		struct caller caller;
		int error;

		caller_start(&caller, fixture, 0xa);
		for (volatile int spin = 0; spin < i * 300; spin++)
			continue;
		bid_broker_cancel(fixture->broker, caller.call->waiter_id);
		assert_int_equal(pthread_join(caller.thread, NULL), 0);
		error = call_wait(caller.call);
		assert_true(error == -EINTR || error == -EHOSTUNREACH);
		interrupted += error == -EINTR;
	}
	assert_int_equal(stats_of(fixture).interrupted, interrupted);
	wait_for_no_downloads(fixture);
	held_elf(held, 0xa);
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

/* Free with a call in each state: every one is answered, once, and no transfer outlives it. */
static void test_free_answers_all_callers(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact known = elf_of(0xa), running = elf_of(0xb), queued = elf_of(0x1);
	struct call *over, *unused, *given_up, *wait[3];
	struct held_server *held;

	fixture_broker(fixture, &windowed);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	assert_int_equal(fetch(fixture, &known, &over), 0);
	held_hold(held, HOLD_MIDDLE);
	unused = call_begin(fixture);
	given_up = call_begin(fixture);
	bid_broker_cancel(fixture->broker, given_up->waiter_id);
	wait[0] = call_for(fixture, &running);
	wait[1] = call_for(fixture, &running);
	wait[2] = call_for(fixture, &queued);
	fixture_end_broker(fixture);

	assert_int_equal(over->error, 0);
	assert_int_equal(unused->error, -EINTR);
	assert_int_equal(given_up->error, -EINTR);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait[i]->error, -EINTR);
	assert_int_equal(held->done, 3);
	assert_true(held->freed_clean);
}

/* Free while downloads end, one after the other, by themselves. */
static void test_free_at_the_end_answers_once(void **state)
{
	struct fixture *fixture = *state;

	for (int round = 0; round < 30; round++) {
		struct held_server *held;
		struct call *calls[8];

		fixture_broker(fixture, &unhedged);
		fixture_memory(fixture, "empty");
		held = fixture_held(fixture, "held");
		held->outcome = BID_OUTCOME_UNAVAILABLE;
		for (uint8_t i = 0; i < 8; i++) {
			struct bid_artifact artifact = elf_of(0x20 + i);

			calls[i] = call_for(fixture, &artifact);
		}
		for (volatile int spin = 0; spin < round * 3000; spin++)
			continue;
		fixture_end_broker(fixture);
		for (int i = 0; i < 8; i++)
			assert_true(calls[i]->error == -EINTR || calls[i]->error == -EHOSTUNREACH);
		assert_true(held->freed_clean);
	}
}

static void test_free_of_idle_broker_works(void **state)
{
	struct fixture *fixture = *state;

	bid_broker_free(NULL);
	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "memory");
	fixture_end_broker(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_cancel_before_use),
		fixture_test(test_cancel_of_one_caller_keeps_the_download),
		fixture_test(test_cancel_of_last_caller_ends_the_transfer),
		fixture_test(test_request_during_cancel_starts_a_new_download),
		fixture_test(test_cancel_between_servers_ends_the_request),
		fixture_test(test_cancel_at_any_moment_answers_once),
		fixture_test(test_free_answers_all_callers),
		fixture_test(test_free_at_the_end_answers_once),
		fixture_test(test_free_of_idle_broker_works),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
