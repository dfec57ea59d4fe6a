// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reports of the broker: responses of servers, and the last failures. */
#include "held_server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* Let @server fail with @text. */
static void set_failure(struct held_server *server, const char *text)
{
	server->outcome = BID_OUTCOME_UNAVAILABLE;
	server->text = text;
}

static void test_equal_failures_are_counted(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact one = elf_of(1), two = elf_of(2);
	struct held_server *a, *b;
	struct seen seen = { 0 };

	fixture_broker(fixture, &unhedged);
	a = fixture_held(fixture, "a");
	b = fixture_held(fixture, "b");
	set_failure(a, "HTTP 503");
	set_failure(b, "HTTP 401");
	assert_int_equal(fetch(fixture, &one, NULL), -EHOSTUNREACH);
	set_failure(b, "HTTP 503");
	assert_int_equal(fetch(fixture, &two, NULL), -EHOSTUNREACH);
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.all[0].text, "HTTP 503");
	assert_string_equal(seen.all[0].server, "b");
	assert_int_equal(seen.all[0].count, 1);
	assert_string_equal(seen.all[1].text, "HTTP 503");
	assert_string_equal(seen.all[1].server, "a");
	assert_int_equal(seen.all[1].count, 2);
	assert_int_equal(seen.all[1].artifact.id.bytes[0], 2);
	assert_true(seen.all[1].first_time > 0 && seen.all[1].first_time <= seen.all[1].time);
	assert_string_equal(seen.all[2].text, "HTTP 401");
}

static void test_oldest_failure_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(1);
	struct seen seen = { 0 };
	struct held_server *a;
	char text[32];

	fixture_broker(fixture, &unhedged);
	a = fixture_held(fixture, "a");
	set_failure(a, text);
	for (int i = 0; i <= BID_REPORTS_MAX + 5; i++) {
		/* an old failure comes again at the end */
		snprintf(text, sizeof(text), "trouble %d", i < BID_REPORTS_MAX + 5 ? i : 250);
		artifact.id.bytes[1] = (uint8_t)(i & 255);
		artifact.id.bytes[2] = (uint8_t)(i >> 8);
		assert_int_equal(fetch(fixture, &artifact, NULL), -EHOSTUNREACH);
	}
	bid_broker_each_failure(fixture->broker, see, &seen);
	assert_int_equal(seen.n, BID_FAILURES_MAX);
	assert_string_equal(seen.all[0].text, "trouble 250");
	assert_int_equal(seen.all[0].count, 2);
	assert_string_equal(seen.all[1].text, "trouble 260");
	assert_string_equal(seen.all[BID_FAILURES_MAX - 1].text, "trouble 245");
}

static void test_broker_lists_failures_without_absences(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact absent = elf_of(1), bad = elf_of(2);
	struct seen seen = { 0 };
	struct bid_server *server;

	fixture_broker(fixture, &unhedged);
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
	assert_int_equal(seen.all[0].artifact.id.bytes[0], 2);
	assert_true(seen.all[0].time > 0);
}

static void test_report_counts_bytes(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	struct call *call;
	size_t len;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
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
