// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last response of each server for an artifact. */
#include "broker_fixture.h"

#include <errno.h>
#include <stdio.h>

#include "api/artifact.h"
#include "base/log.h"

struct last_reports {
	size_t n;
	struct bid_report reports[8]; /* their public fields, without texts */
	unsigned again_s[8];
};

static int copy_report(void *user, const struct bid_report *report, unsigned again_s)
{
	struct last_reports *last = user;

	if (last->n < 8) {
		/* other threads count references to @report */
		last->reports[last->n] = (struct bid_report){
			.server = report->server,
			.artifact = { .id = report->artifact.id, .kind = report->artifact.kind },
			.outcome = report->outcome,
			.time = report->time,
			.bytes = report->bytes,
			.received = report->received,
		};
		last->again_s[last->n] = again_s;
	}
	last->n++;
	return 0;
}

static struct last_reports responses_of(struct fixture *fixture, uint8_t byte)
{
	struct bid_artifact artifact = elf_of(byte);
	struct last_reports last = { .n = 0 };

	assert_int_equal(bid_broker_each_report(fixture->broker, &artifact.id, copy_report, &last), 0);
	return last;
}

static void test_last_response_of_each_source_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *second;
	struct last_reports last;

	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "first");
	second = fixture_memory(fixture, "second");
	memory_server_set_default(second, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(responses_of(fixture, 0xa).n, 0);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EHOSTUNREACH);
	last = responses_of(fixture, 0xa);
	assert_int_equal(last.n, 2);
	assert_int_equal(last.reports[0].outcome, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(last.again_s[0], 0);
	assert_string_equal(last.reports[1].server, "first");
	assert_in_range(last.again_s[1], 80, 90);
	assert_true(last.reports[1].time > 0);
	assert_int_equal(responses_of(fixture, 0xb).n, 0);
	/* the delivery replaces the earlier response of the server */
	put_elf(second, 0xa, 0xa);
	sleep_ms(300); /* the result expires */
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	last = responses_of(fixture, 0xa);
	assert_int_equal(last.n, 2);
	assert_int_equal(last.reports[0].outcome, BID_OUTCOME_FOUND);
	assert_int_equal(last.reports[0].received, last.reports[0].bytes);
	assert_int_equal(last.reports[1].outcome, BID_OUTCOME_ABSENT);
}

static void test_earlier_entries_are_listed(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct last_reports last;

	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "memory");
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	fixture_end_broker(fixture);
	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "memory");
	last = responses_of(fixture, 0xa);
	assert_int_equal(last.n, 1);
	assert_int_equal(last.reports[0].artifact.kind, BID_KIND_ELF);
	assert_int_equal(last.reports[0].time, 0);
	assert_in_range(last.again_s[0], 80, 90);
}

static void test_oldest_response_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact one = elf_of(0xa), server = request_of(0xb, BID_KIND_SOURCE);

	fixture_broker(fixture, &unhedged);
	memory_server_set_default(fixture_memory(fixture, "memory"), BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(fetch(fixture, &one, NULL), -EHOSTUNREACH);
	for (unsigned i = 0; i < BID_REPORTS_MAX; i++) {
		struct bid_subpath *subpath;
		char name[32];

		assert_int_equal(responses_of(fixture, 0xa).n, 1);
		snprintf(name, sizeof(name), "/%u.c", i);
		assert_int_equal(bid_subpath_source(name, &subpath), 0);
		server.subpath = subpath;
		assert_int_equal(fetch(fixture, &server, NULL), -EHOSTUNREACH);
		bid_subpath_unref(subpath);
	}
	assert_int_equal(responses_of(fixture, 0xa).n, 0);
	assert_int_equal(responses_of(fixture, 0xb).n, BID_REPORTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_last_response_of_each_source_is_kept),
		fixture_test(test_earlier_entries_are_listed),
		fixture_test(test_oldest_response_is_dropped),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
