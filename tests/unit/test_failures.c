// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the broker tells of a source's answer and of the last troubles. */
#include "broker_scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/failures.h"

static void test_the_same_is_counted(void **state)
{
	struct bid_failures failures = { .n = 0 };
	struct bid_request one = elf_of(1), two = elf_of(2);

	bid_failures_add(&failures, "a", &one, BID_OUTCOME_UNREACHABLE, "HTTP 503", 10);
	bid_failures_add(&failures, "a", &one, BID_OUTCOME_REFUSED, "HTTP 401", 11);
	bid_failures_add(&failures, "a", &two, BID_OUTCOME_UNREACHABLE, "HTTP 503", 12);
	assert_int_equal(failures.n, 2);
	assert_string_equal(failures.list[0].text, "HTTP 503");
	assert_int_equal(failures.list[0].count, 2);
	assert_int_equal(failures.list[0].first_time, 10);
	assert_int_equal(failures.list[0].last_time, 12);
	assert_int_equal(failures.list[0].request.id.bytes[0], 2);
	assert_string_equal(failures.list[1].text, "HTTP 401");
	assert_int_equal(failures.list[1].count, 1);
}

static void test_the_oldest_goes(void **state)
{
	struct bid_failures failures = { .n = 0 };
	struct bid_request request = elf_of(1);
	char text[32];

	for (int i = 0; i < BID_FAILURES_MAX + 5; i++) {
		snprintf(text, sizeof(text), "trouble %d", i);
		bid_failures_add(&failures, "a", &request, BID_OUTCOME_FAILED, text, i);
	}
	assert_int_equal(failures.n, BID_FAILURES_MAX);
	assert_string_equal(failures.list[0].text, "trouble 20");
	assert_string_equal(failures.list[BID_FAILURES_MAX - 1].text, "trouble 5");

	/* one from the middle comes to the front, and none is lost */
	bid_failures_add(&failures, "a", &request, BID_OUTCOME_FAILED, "trouble 9", 30);
	assert_int_equal(failures.n, BID_FAILURES_MAX);
	assert_int_equal(failures.list[0].count, 2);
	assert_string_equal(failures.list[1].text, "trouble 20");
	assert_string_equal(failures.list[BID_FAILURES_MAX - 1].text, "trouble 5");
}

struct seen {
	size_t n;
	struct bid_failure last;
};

static int see(void *user, const struct bid_failure *failure)
{
	struct seen *seen = user;

	seen->n++;
	seen->last = *failure;
	return 0;
}

static void test_the_broker_keeps_troubles_and_no_absence(void **state)
{
	struct scene *scene = *state;
	struct bid_request absent = elf_of(1), bad = elf_of(2);
	struct seen seen = { 0 };
	struct bid_source *source;

	scene_broker(scene, &patient);
	source = scene_memory(scene, "memory");
	assert_int_equal(fetch(scene, &absent, NULL), -ENOENT);
	bid_broker_each_failure(scene->broker, see, &seen);
	assert_int_equal(seen.n, 0);

	source_memory_set_default(source, BID_OUTCOME_REFUSED);
	assert_int_equal(fetch(scene, &bad, NULL), -EHOSTUNREACH);
	bid_broker_each_failure(scene->broker, see, &seen);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.last.source, "memory");
	assert_int_equal(seen.last.outcome, BID_OUTCOME_REFUSED);
	assert_int_equal(seen.last.request.id.bytes[0], 2);
	assert_true(seen.last.last_time > 0);
}

static void test_a_verdict_tells_bytes(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct bid_source *source;
	struct call *call;
	size_t len;

	scene_broker(scene, &patient);
	source = scene_memory(scene, "memory");
	put_elf(source, 0xa, 0xa);
	assert_int_equal(fetch(scene, &request, &call), 0);
	assert_int_equal(call->n_reports, 1);
	elf_bytes(0xa, &len);
	assert_int_equal(call->bytes[0], len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_is_counted),
		cmocka_unit_test(test_the_oldest_goes),
		scene_test(test_the_broker_keeps_troubles_and_no_absence),
		scene_test(test_a_verdict_tells_bytes),
	};

	return cmocka_run_group_tests(tests, scene_compile, scene_clean);
}
