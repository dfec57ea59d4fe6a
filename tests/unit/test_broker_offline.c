// SPDX-License-Identifier: LGPL-2.1-or-later
/* A broker with the option offline. */
#include "broker_scene.h"

#include <errno.h>

#include "broker/download.h"
#include "held_source.h"

/*
 * Offline, stored artifacts are served, and negative cache entries answer -ENOENT. All others are unknown, and are fetched
 * afterwards.
 */
static void test_offline_sends_no_request(void **state)
{
	struct bid_request here = elf_of(0xa), wanted = elf_of(0xb), absent = request_of(0xc, BID_KIND_DEBUGINFO);
	struct scene *scene = *state;
	struct bid_source *source;
	struct call *call;
	unsigned ttl = 0;

	scene_broker(scene, &patient);
	source = scene_memory(scene, "memory");
	put_elf(source, 0xa, 0xa);
	put_elf(source, 0xb, 0xb);
	assert_int_equal(fetch(scene, &here, NULL), 0);
	assert_int_equal(fetch(scene, &absent, NULL), -ENOENT);
	assert_int_equal(source_memory_asked(source), 2);

	bid_broker_set_offline(scene->broker, true);
	assert_true(bid_broker_is_offline(scene->broker));
	assert_int_equal(find(scene, &here, NULL), 0);
	assert_int_equal(find(scene, &absent, &ttl), -ENOENT);
	assert_true(ttl > 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(find(scene, &wanted, NULL), -EHOSTUNREACH);
		assert_int_equal(fetch(scene, &wanted, NULL), -EHOSTUNREACH);
	}
	assert_int_equal(source_memory_asked(source), 2);
	assert_true(stats_of(scene).unknown > 0);

	bid_broker_set_offline(scene->broker, false);
	assert_int_equal(fetch(scene, &wanted, &call), 0);
	assert_content(call->fd, 0xb);
	assert_int_equal(source_memory_asked(source), 3);
}

/* If the request in flight fails, no other source gets one. */
static void test_running_request_continues_offline(void **state)
{
	struct bid_request request = elf_of(0xa);
	struct scene *scene = *state;
	struct held_source *first, *second;
	struct call *call;

	scene_broker(scene, &patient);
	first = scene_held(scene, "first");
	second = scene_held(scene, "second");
	held_elf(second, 0xa);
	first->outcome = BID_OUTCOME_UNREACHABLE;
	first->text = "HTTP 503";
	held_hold(first, HOLD_HEAD);
	call = call_for(scene, &request);
	held_wait(first, 1);
	bid_broker_set_offline(scene->broker, true);
	held_hold(first, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -EHOSTUNREACH);
	assert_int_equal(second->asked, 0);
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->texts[0], "HTTP 503");
	assert_string_equal(call->texts[1], "offline, no request is sent");

	bid_broker_set_offline(scene->broker, false);
	assert_int_equal(fetch(scene, &request, &call), 0);
	assert_content(call->fd, 0xa);
}

static void test_running_request_may_deliver_offline(void **state)
{
	struct bid_request request = elf_of(0xa);
	struct scene *scene = *state;
	struct held_source *held;
	struct call *call;

	scene_broker(scene, &patient);
	held = scene_held_elf(scene, 0xa, HOLD_MIDDLE);
	call = call_for(scene, &request);
	held_wait(held, 1);
	bid_broker_set_offline(scene->broker, true);
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_content(call->fd, 0xa);
}

/* A request that is under way goes on, but its source gets no probe for a loop. */
static void test_offline_broker_sends_no_probe(void **state)
{
	static const struct bid_broker_config config = { .hedge_ms = 60000, .loops = true };
	struct bid_request request = elf_of(0xa);
	struct scene *scene = *state;
	struct held_source *held;
	struct call *call;

	scene_broker(scene, &config);
	held = scene_held(scene, "held");
	held_hold(held, HOLD_HEAD);
	call = call_for(scene, &request);
	held_wait(held, 1);
	bid_broker_set_offline(scene->broker, true);
	scene_hedge_ms(scene, 1);
	pthread_mutex_lock(&scene->broker->lock);
	bid_broker_arm(scene->broker, &TAILQ_FIRST(&scene->broker->downloads)->hedge, 1);
	pthread_mutex_unlock(&scene->broker->lock);
	sleep_ms(50);
	assert_int_equal(held->asked, 1);
	bid_broker_set_offline(scene->broker, false);
	held_wait_asked(held, 2);
	assert_false(call_over(call));
}

/* One request is in flight, and @behind is queued at the same source while the broker goes offline: the queued one is not sent. */
static void end_in_line(struct scene *scene, struct held_source *held, struct call *call, struct call *behind)
{
	assert_int_equal(call_wait(behind), -EHOSTUNREACH);
	assert_string_equal(behind->texts[0], "offline, no request is sent");
	assert_false(call_over(call));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(held->asked, 2);
	assert_true(bid_broker_is_offline(scene->broker));
}

static struct call *call_held(struct scene *scene, struct held_source **ret_held)
{
	const struct bid_request request = elf_of(0xa);
	struct call *call;

	scene_broker(scene, &patient);
	*ret_held = scene_held(scene, "held");
	held_elf(*ret_held, 0xa);
	held_hold(*ret_held, HOLD_HEAD);
	call = call_for(scene, &request);
	held_wait(*ret_held, 1);
	return call;
}

/* A request queued at a source behind another is never sent, and fails at once. */
static void test_queued_request_is_not_sent_offline(void **state)
{
	struct bid_request next = elf_of(0xb);
	struct scene *scene = *state;
	struct held_source *held;
	struct call *call = call_held(scene, &held), *behind;

	behind = call_for(scene, &next);
	held_wait_asked(held, 2);
	bid_broker_set_offline(scene->broker, true);
	end_in_line(scene, held, call, behind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(test_offline_sends_no_request),
		scene_test(test_running_request_continues_offline),
		scene_test(test_running_request_may_deliver_offline),
		scene_test(test_offline_broker_sends_no_probe),
		scene_test(test_queued_request_is_not_sent_offline),
	};

	return cmocka_run_group_tests(tests, scene_compile, scene_clean);
}
