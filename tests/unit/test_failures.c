// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports of the broker: responses of sources, and the last failures. */
#include "broker_scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker_types.h"

struct seen {
	size_t n;
	struct bid_failure all[BID_FAILURES_MAX]; /* newest first */
};

static int see(void *user, const struct bid_failure *failure)
{
	struct seen *seen = user;

	seen->all[seen->n++] = *failure;
	return 0;
}

/* Add the response @text of @source to @request at @now to the ring. */
static void keep(struct scene *scene, size_t source, const struct bid_request *request, const char *text, int64_t now)
{
	struct bid_kept_response *response;
	struct bid_report report = {
		.source = scene->broker->sources[source].source->name,
		.outcome = BID_OUTCOME_UNREACHABLE,
		.text = text,
	};

	pthread_mutex_lock(&scene->broker->lock);
	response = bid_response_new(request, &report, now);
	assert_non_null(response);
	bid_responses_add(&scene->broker->responses, response);
	bid_response_unref(response);
	pthread_mutex_unlock(&scene->broker->lock);
}

static void test_equal_failures_are_counted(void **state)
{
	struct scene *scene = *state;
	struct bid_request one = elf_of(1), two = elf_of(2);
	struct seen seen = { 0 };

	scene_broker(scene, &patient);
	scene_memory(scene, "a");
	scene_memory(scene, "b");
	keep(scene, 0, &one, "HTTP 503", 10);
	keep(scene, 0, &one, "HTTP 401", 11);
	keep(scene, 1, &one, "HTTP 503", 11);
	keep(scene, 0, &two, "HTTP 503", 12);
	bid_broker_each_failure(scene->broker, see, &seen);
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.all[0].text, "HTTP 503");
	assert_string_equal(seen.all[0].source, "a");
	assert_int_equal(seen.all[0].count, 2);
	assert_int_equal(seen.all[0].first_time, 10);
	assert_int_equal(seen.all[0].last_time, 12);
	assert_int_equal(seen.all[0].request.id.bytes[0], 2);
	assert_string_equal(seen.all[1].source, "b");
	assert_int_equal(seen.all[1].count, 1);
	assert_string_equal(seen.all[2].text, "HTTP 401");
}

static void test_oldest_failure_is_dropped(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(1);
	struct seen seen = { 0 };
	char text[32];

	scene_broker(scene, &patient);
	scene_memory(scene, "a");
	for (int i = 0; i < BID_RESPONSES_MAX + 5; i++) {
		snprintf(text, sizeof(text), "trouble %d", i);
		keep(scene, 0, &request, text, i);
	}
	keep(scene, 0, &request, "trouble 250", 300);
	bid_broker_each_failure(scene->broker, see, &seen);
	assert_int_equal(seen.n, BID_FAILURES_MAX);
	assert_int_equal(seen.all[0].count, 2);
	assert_int_equal(seen.all[0].first_time, 250);
	assert_string_equal(seen.all[1].text, "trouble 260");
	assert_string_equal(seen.all[BID_FAILURES_MAX - 1].text, "trouble 245");
}

static void test_broker_lists_failures_without_absences(void **state)
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
	assert_string_equal(seen.all[0].source, "memory");
	assert_int_equal(seen.all[0].outcome, BID_OUTCOME_REFUSED);
	assert_int_equal(seen.all[0].request.id.bytes[0], 2);
	assert_true(seen.all[0].last_time > 0);
}

static void test_report_counts_bytes(void **state)
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
		scene_test(test_equal_failures_are_counted),
		scene_test(test_oldest_failure_is_dropped),
		scene_test(test_broker_lists_failures_without_absences),
		scene_test(test_report_counts_bytes),
	};

	return cmocka_run_group_tests(tests, scene_compile, scene_clean);
}
