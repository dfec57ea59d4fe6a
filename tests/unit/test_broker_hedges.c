// SPDX-License-Identifier: LGPL-2.1-or-later
/* Order of the candidates: the first request, hedged requests, retries. */
#include "held_server.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "broker/download.h"

/* Short, to keep the tests short. Events that must come earlier happen while no hedged request is due. */
#define HEDGE_MS 40
static const struct bid_broker_config hedging = { .hedge_ms = HEDGE_MS };

/* Longer than any test: a hedged request follows an event of the first server, and not its duration. */
static const struct bid_broker_config unhurried = { .hedge_ms = 2 * PATIENCE_MS };

static struct held_server *silent(struct fixture *fixture, const char *name)
{
	struct held_server *held = fixture_held(fixture, name);

	held_hold(held, HOLD_HEAD);
	return held;
}

/*
 * Ask for elf_of(0xa), and wait until @held is held at HOLD_MIDDLE. Others get hedged requests from its headers on, not sooner,
 * however late those are.
 */
static struct call *hedge_from_headers(struct fixture *fixture, struct held_server *held)
{
	struct bid_artifact artifact = elf_of(0xa);
	struct call *call;

	held_hold(held, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	held_wait(held, 1);
	fixture_hedge_ms(fixture, HEDGE_MS);
	held_hold(held, HOLD_MIDDLE);
	held_wait(held, 2);
	return call;
}

/* Wait until @held of silent() has a request, too. From then on no server is late, or slow. */
static void wait_for_race_with(struct fixture *fixture, struct held_server *held)
{
	held_wait(held, 1);
	fixture_hedge_ms(fixture, HEDGE_NEVER);
}

static bool is_preferred(struct fixture *fixture, size_t server)
{
	struct bid_server_stats stats;

	assert_int_equal(bid_broker_server_stats(fixture->broker, server, &stats), 0);
	return stats.preferred;
}

static void test_silent_server_is_hedged(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), other = elf_of(0xb);
	struct bid_server *second;
	struct held_server *first;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	second = fixture_memory(fixture, "second");
	put_elf(second, 0xa, 0xa);
	put_elf(second, 0xb, 0xb);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	/* the loser sent no response and is reported all the same */
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->servers[0], "second");
	assert_string_equal(call->servers[1], "first");
	assert_int_equal(call->outcomes[1], BID_OUTCOME_CANCELLED);
	held_wait_done(first, 1);
	assert_int_equal(first->cancels, 1);
	assert_int_equal(first->ended, BID_OUTCOME_CANCELLED);

	/* the server that delivered last is preferred */
	assert_true(is_preferred(fixture, 1));
	fixture_hedge_ms(fixture, HEDGE_NEVER);
	assert_int_equal(fetch(fixture, &other, NULL), 0);
	assert_int_equal(first->requests, 1);
}

static void test_responding_server_is_not_hedged(void **state)
{
	struct fixture *fixture = *state;
	struct held_server *first;
	struct bid_server *second;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	first = fixture_held(fixture, "first");
	second = fixture_memory(fixture, "second");
	held_elf(first, 0xa);
	put_elf(second, 0xa, 0xa);
	call = hedge_from_headers(fixture, first);
	sleep_ms(5 * HEDGE_MS);
	assert_int_equal(memory_server_requests(second), 0);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(memory_server_requests(second), 0);
}

static void test_race_0_requests_one_after_the_other(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first;
	struct bid_server *second;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	first = silent(fixture, "first");
	second = fixture_memory(fixture, "second");
	call = call_for(fixture, &artifact);
	held_wait(first, 1);
	sleep_ms(2 * BID_HEDGE_MS);
	assert_int_equal(memory_server_requests(second), 0);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -ENOENT);
}

/* The winner broke off: the cancelled server gets a second request, in the same call. */
static void test_failed_winner_is_replaced(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first, *second;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	held_elf(first, 0xa);
	second = silent(fixture, "second");
	held_elf(second, 0xa);
	second->body_len -= 1000;
	call = call_for(fixture, &artifact);
	wait_for_race_with(fixture, second);
	held_hold(second, HOLD_MIDDLE);
	held_wait_done(first, 1);
	assert_int_equal(first->cancels, 1);
	held_hold(first, HOLD_NOWHERE);
	held_hold(second, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(first->requests, 2);
	assert_int_equal(second->requests, 1);
	assert_int_equal(call->n_reports, 2);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_FOUND);
}

/* ... also if the cancelled one has not ended yet. */
static void test_failed_winner_is_replaced_by_the_cancelled_loser(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first, *second;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	first->deaf = true;
	second = silent(fixture, "second");
	held_elf(second, 0xa);
	second->body_len -= 1000;
	call = call_for(fixture, &artifact);
	wait_for_race_with(fixture, second);
	held_hold(second, HOLD_NOWHERE);
	held_wait_done(second, 1);
	assert_int_equal(first->requests, 1);
	assert_false(call_over(call));
	held_elf(first, 0xa);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(first->requests, 2);
}

static struct held_server *breaking_off(struct fixture *fixture, const char *name, size_t after)
{
	struct held_server *held = fixture_held(fixture, name);

	held_elf(held, 0xa);
	held->breaks_off = true;
	held->first_len = after;
	held_hold(held, HOLD_MIDDLE);
	return held;
}

/* The second server gets a request once the first breaks off. It breaks off, too, and continues alone. */
static void test_servers_that_break_off_end(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first, *second;
	struct call *call;

	fixture_broker(fixture, &unhurried);
	first = breaking_off(fixture, "first", 2 * BID_HEAD_MAX);
	second = breaking_off(fixture, "second", BID_HEAD_MAX + 8192);
	call = call_for(fixture, &artifact);
	held_wait_done(first, 1);
	held_wait(second, 1);
	sleep_ms(5 * HEDGE_MS);
	second->breaks_off = false;
	second->body_len -= 1000;
	held_hold(second, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -EHOSTUNREACH);
	assert_int_equal(first->requests, 1);
	assert_int_equal(second->requests, 1);
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->texts[1], "the body broke off");
}

/* While the chosen server retries, a hedged request goes to another server, which may be faster. */
static void test_broken_winner_gets_a_hedge(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first;
	struct bid_server *second;
	struct call *call;

	fixture_broker(fixture, &unhurried);
	first = fixture_held(fixture, "first");
	held_elf(first, 0xa);
	first->breaks_off = true;
	held_hold(first, HOLD_MIDDLE);
	second = fixture_memory(fixture, "second");
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	held_wait_done(first, 1);
	assert_int_equal(first->ended, BID_OUTCOME_CANCELLED);
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->servers[0], "second");
	assert_int_equal(call->outcomes[1], BID_OUTCOME_CANCELLED);
}

/* ... or not. */
static void test_resumed_winner_wins(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *first, *second;
	struct call *call;

	fixture_broker(fixture, &unhurried);
	first = fixture_held(fixture, "first");
	held_elf(first, 0xa);
	first->breaks_off = true;
	held_hold(first, HOLD_MIDDLE);
	second = silent(fixture, "second");
	call = call_for(fixture, &artifact);
	held_wait(first, 1);
	held_wait(second, 1);
	assert_int_equal(first->cancels, 0);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_content(call->fd, 0xa);
	held_wait_done(second, 1);
	assert_int_equal(second->ended, BID_OUTCOME_CANCELLED);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FOUND);
}

/* A loser that does not end delays no caller. */
static void test_loser_without_end_delays_no_caller(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *second;
	struct held_server *first;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	first->deaf = true;
	second = fixture_memory(fixture, "second");
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	wait_for_no_downloads(fixture);
	assert_int_equal(first->done, 0);
	held_hold(first, HOLD_NOWHERE);
	fixture_end_broker(fixture);
	assert_true(first->freed_clean);
}

/* A "not found" frees the place of its server. */
static void test_absence_starts_the_next_server(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *second, *third;
	struct held_server *first;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	second = fixture_memory(fixture, "second");
	third = fixture_memory(fixture, "third");
	put_elf(third, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(memory_server_requests(second), 1);
	assert_int_equal(call->n_reports, 3);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_ABSENT);
	assert_string_equal(call->servers[1], "third");
	assert_string_equal(call->servers[2], "first");
	held_wait_done(first, 1);
}

static void test_absence_waits_for_the_silent_server(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), other = elf_of(0xb);
	struct held_server *first;
	struct bid_server *second;
	struct call *call;

	fixture_broker(fixture, &hedging);
	first = silent(fixture, "first");
	second = fixture_memory(fixture, "second");
	call = call_for(fixture, &artifact);
	held_wait(first, 1);
	for (int64_t begun = now_ms(); memory_server_requests(second) == 0; sleep_ms(1))
		assert_true(now_ms() - begun < 20000);
	sleep_ms(HEDGE_MS);
	assert_int_equal(memory_server_requests(second), 1);
	assert_false(call_over(call));
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -ENOENT);
	assert_int_equal(call->n_reports, 2);

	first->outcome = BID_OUTCOME_UNAVAILABLE;
	assert_int_equal(fetch(fixture, &other, NULL), -EHOSTUNREACH);
	assert_int_equal(find(fixture, &other, NULL), -EINPROGRESS);
}

/* While no server responds, one more gets a request: any may be the first to respond. */
static void test_last_of_many_servers_delivers(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *others[9];
	struct call *call;

	fixture_broker(fixture, &hedging);
	for (int i = 0; i < 9; i++)
		others[i] = silent(fixture, "other");
	put_elf(fixture_memory(fixture, "last"), 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	for (int i = 0; i < 9; i++) {
		held_wait_done(others[i], 1);
		assert_int_equal(others[i]->ended, BID_OUTCOME_CANCELLED);
	}
	assert_int_equal(call->n_reports, 10);
}

/* Many races that end in every order, some of them with callers who give up. */
static void test_many_races_answer_once(void **state)
{
	static const enum bid_outcome outcomes[] = { BID_OUTCOME_ABSENT, BID_OUTCOME_UNAVAILABLE };
	struct fixture *fixture = *state;
	struct held_server *held[3];
	struct bid_server *memory;

	fixture_broker(fixture, &(struct bid_broker_config){ .hedge_ms = 1 });
	for (int i = 0; i < 3; i++)
		held[i] = fixture_held(fixture, "held");
	memory = fixture_memory(fixture, "memory");
	put_elf(memory, 0xa, 0xa);
	put_elf(memory, 0xb, 0xb);
	for (unsigned round = 0; round < 60; round++) {
		struct call *calls[16];

		for (int i = 0; i < 3; i++) {
			held[i]->outcome = outcomes[(round + (unsigned)i) % 2];
			held_hold(held[i], round % 3 == (unsigned)i ? HOLD_HEAD : HOLD_NOWHERE);
		}
		for (uint8_t i = 0; i < 16; i++) {
			struct bid_artifact artifact = elf_of((uint8_t)(round + i));

			calls[i] = call_for(fixture, &artifact);
		}
		sleep_ms(round % 4);
		for (unsigned i = 0; i < 16; i += 3)
			bid_broker_cancel(fixture->broker, calls[i]->waiter_id);
		for (int i = 0; i < 3; i++)
			held_hold(held[i], HOLD_NOWHERE);
		for (int i = 0; i < 16; i++) {
			int error = call_wait(calls[i]);

			assert_true(error == 0 || error == -EINTR || error == -EHOSTUNREACH || error == -ENOENT);
		}
		wait_for_no_downloads(fixture);
	}
	assert_int_equal(stats_of(fixture).fetched, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_silent_server_is_hedged),
		fixture_test(test_responding_server_is_not_hedged),
		fixture_test(test_race_0_requests_one_after_the_other),
		fixture_test(test_failed_winner_is_replaced),
		fixture_test(test_failed_winner_is_replaced_by_the_cancelled_loser),
		fixture_test(test_servers_that_break_off_end),
		fixture_test(test_broken_winner_gets_a_hedge),
		fixture_test(test_resumed_winner_wins),
		fixture_test(test_loser_without_end_delays_no_caller),
		fixture_test(test_absence_starts_the_next_server),
		fixture_test(test_absence_waits_for_the_silent_server),
		fixture_test(test_last_of_many_servers_delivers),
		fixture_test(test_many_races_answer_once),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
