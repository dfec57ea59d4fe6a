// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports of the broker: responses of servers, and the last failures. */
#include "broker_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker_types.h"

struct seen {
	size_t n;
	struct bid_report all[BID_FAILURES_MAX]; /* newest first; the ring keeps their strings */
};

static int see(void *user, const struct bid_report *failure, unsigned again_s)
{
	struct seen *seen = user;

	seen->all[seen->n++] = *failure;
	return 0;
}

/* Add the response @text of @server to @request at @now to the ring. */
static void keep(struct fixture *fixture, size_t server, const struct bid_request *request, const char *text, int64_t now)
{
	struct bid_report *report = bid_report_new(&(struct bid_report){
		.server = fixture->broker->servers[server].server->name,
		.request = *request,
		.outcome = BID_OUTCOME_UNREACHABLE,
		.text = text,
		.time = now,
	});

	assert_non_null(report);
	pthread_mutex_lock(&fixture->broker->lock);
	bid_recent_responses_add(&fixture->broker->responses, report);
	bid_report_unref(report);
	pthread_mutex_unlock(&fixture->broker->lock);
}

static void test_equal_failures_are_counted(void **state)
{
	struct fixture *fixture = *state;
	struct bid_request one = elf_of(1), two = elf_of(2);
	struct seen seen = { 0 };

	fixture_broker(fixture, &patient);
	fixture_memory(fixture, "a");
	fixture_memory(fixture, "b");
	keep(fixture, 0, &one, "HTTP 503", 10);
	keep(fixture, 0, &one, "HTTP 401", 11);
	keep(fixture, 1, &one, "HTTP 503", 11);
	keep(fixture, 0, &two, "HTTP 503", 12);
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.all[0].text, "HTTP 503");
	assert_string_equal(seen.all[0].server, "a");
	assert_int_equal(seen.all[0].count, 2);
	assert_int_equal(seen.all[0].first_time, 10);
	assert_int_equal(seen.all[0].time, 12);
	assert_int_equal(seen.all[0].request.id.bytes[0], 2);
	assert_string_equal(seen.all[1].server, "b");
	assert_int_equal(seen.all[1].count, 1);
	assert_string_equal(seen.all[2].text, "HTTP 401");
}

static void test_oldest_failure_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct bid_request request = elf_of(1);
	struct seen seen = { 0 };
	char text[32];

	fixture_broker(fixture, &patient);
	fixture_memory(fixture, "a");
	for (int i = 0; i < BID_RESPONSES_MAX + 5; i++) {
		snprintf(text, sizeof(text), "trouble %d", i);
		keep(fixture, 0, &request, text, i);
	}
	keep(fixture, 0, &request, "trouble 250", 300);
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, BID_FAILURES_MAX);
	assert_int_equal(seen.all[0].count, 2);
	assert_int_equal(seen.all[0].first_time, 250);
	assert_string_equal(seen.all[1].text, "trouble 260");
	assert_string_equal(seen.all[BID_FAILURES_MAX - 1].text, "trouble 245");
}

static void test_broker_lists_failures_without_absences(void **state)
{
	struct fixture *fixture = *state;
	struct bid_request absent = elf_of(1), bad = elf_of(2);
	struct seen seen = { 0 };
	struct bid_server *server;

	fixture_broker(fixture, &patient);
	server = fixture_memory(fixture, "memory");
	assert_int_equal(fetch(fixture, &absent, NULL), -ENOENT);
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, 0);

	memory_server_set_default(server, BID_OUTCOME_REFUSED);
	assert_int_equal(fetch(fixture, &bad, NULL), -EHOSTUNREACH);
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.all[0].server, "memory");
	assert_int_equal(seen.all[0].outcome, BID_OUTCOME_REFUSED);
	assert_int_equal(seen.all[0].request.id.bytes[0], 2);
	assert_true(seen.all[0].time > 0);
}

static void test_report_counts_bytes(void **state)
{
	struct fixture *fixture = *state;
	struct bid_request request = elf_of(0xa);
	struct bid_server *server;
	struct call *call;
	size_t len;

	fixture_broker(fixture, &patient);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &request, &call), 0);
	assert_int_equal(call->n_reports, 1);
	elf_bytes(0xa, &len);
	assert_int_equal(call->bytes[0], len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_equal_failures_are_counted),
		fixture_test(test_oldest_failure_is_dropped),
		fixture_test(test_broker_lists_failures_without_absences),
		fixture_test(test_report_counts_bytes),
	};

	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
