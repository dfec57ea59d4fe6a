// SPDX-License-Identifier: LGPL-2.1-or-later
/* bid_broker_refresh() drops the negative cache entries. */
#include "broker_fixture.h"

#include <errno.h>
#include <stdlib.h>

#include "api/artifact.h"
#include "base/log.h"

static void test_refresh_requests_absent_file_again(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct bid_artifact all = request_of(0xa, BID_KIND_NONE);
	struct bid_server *server;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(fetch(fixture, &debuginfo, NULL), -ENOENT);
	/* refresh removes the entries of one kind, and a recent result answers no new caller */
	assert_int_equal(bid_broker_refresh(fixture->broker, &debuginfo, false), 0);
	assert_int_equal(find(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(fetch(fixture, &debuginfo, NULL), -ENOENT);
	assert_int_equal(memory_server_requests(server), 3);
	put_elf(server, 0xa, 0xa);
	assert_int_equal(bid_broker_refresh(fixture->broker, &all, false), 0);
	assert_int_equal(stats_of(fixture).negative_entries, 0);
	assert_int_equal(find(fixture, &debuginfo, NULL), -EINPROGRESS);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	assert_int_equal(memory_server_requests(server), 4);
}

static void test_refresh_drops_every_reason(void **state)
{
	static const enum bid_outcome outcomes[] = { BID_OUTCOME_UNSUPPORTED, BID_OUTCOME_TOO_LARGE };
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	unsigned requests = 0;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		memory_server_set_default(server, outcomes[i]);
		assert_int_not_equal(fetch(fixture, &artifact, NULL), 0);
		assert_int_equal(memory_server_requests(server), ++requests);
		assert_int_equal(bid_broker_refresh(fixture->broker, &artifact, false), 0);
	}
	/* and the reason */
	put_elf(server, 0xa, 0xb);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
	assert_int_equal(bid_broker_refresh(fixture->broker, &artifact, false), 0);
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

static void test_refresh_of_bad_request_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact nobody = { .kind = BID_KIND_NONE }, server = request_of(0xa, BID_KIND_SOURCE);
	struct bid_artifact local = request_of(0xa, BID_KIND_KALLSYMS);
	struct bid_subpath *subpath;

	fixture_broker(fixture, &unhedged);
	assert_int_equal(bid_broker_refresh(fixture->broker, &nobody, false), -EINVAL);
	assert_int_equal(bid_broker_refresh(fixture->broker, &server, false), -EINVAL);
	assert_int_equal(bid_broker_refresh(fixture->broker, &local, false), -EINVAL);
	assert_int_equal(bid_subpath_source("/a.c", &subpath), 0);
	server.subpath = subpath;
	fixture_memory(fixture, "memory");
	assert_int_equal(fetch(fixture, &server, NULL), -ENOENT);
	assert_int_equal(find(fixture, &server, NULL), -ENOENT);
	assert_int_equal(bid_broker_refresh(fixture->broker, &server, false), 0);
	assert_int_equal(find(fixture, &server, NULL), -EINPROGRESS);
	bid_subpath_unref(subpath);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_refresh_requests_absent_file_again),
		fixture_test(test_refresh_drops_every_reason),
		fixture_test(test_refresh_of_bad_request_is_refused),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
