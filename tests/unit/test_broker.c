// SPDX-License-Identifier: LGPL-2.1-or-later
/* Results of the broker for the files and errors that servers deliver. */
#include "held_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/download.h"

static void test_downloaded_file_is_a_cache_hit(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server_stats of_server;
	struct bid_server *server;
	struct call *call, *again;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(call->n_reports, 1);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_FOUND);
	assert_string_equal(call->servers[0], "memory");

	assert_int_equal(find(fixture, &artifact, NULL), 0);
	again = call_for(fixture, &artifact);
	assert_true(call_over(again));
	assert_content(again->fd, 0xa);
	assert_int_equal(again->n_reports, 0);
	assert_int_equal(memory_server_requests(server), 1);
	assert_int_equal(stats_of(fixture).fetched, 1);
	assert_int_equal(stats_of(fixture).hits, 2);

	assert_int_equal(bid_broker_server_stats(fixture->broker, 0, &of_server), 0);
	assert_string_equal(of_server.name, "memory");
	assert_int_equal(of_server.requests, 1);
	assert_int_equal(of_server.outcomes[BID_OUTCOME_FOUND], 1);
	assert_int_equal(of_server.bytes, call->size);
	assert_int_equal(bid_broker_server_stats(fixture->broker, 1, &of_server), -ENOENT);
}

/* Another process publishes the file between lookup and download: no request is sent. */
static void test_first_waiter_finds_a_file_published_meanwhile(void **state)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;
	struct bid_txn *txn;
	const void *bytes;
	struct call *call;
	size_t len;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);

	bytes = elf_bytes(0xa, &len);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(bid_txn_write(txn, bytes, len), 0);
	assert_int_equal(bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched" }, &file), 0);
	bid_txn_free(txn);

	call = call_for(fixture, &artifact);
	assert_true(call_over(call));
	assert_int_equal(call->error, 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(memory_server_requests(server), 0);
}

static void test_servers_get_requests_in_order(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server[3];
	struct call *call;

	fixture_broker(fixture, &unhedged);
	server[0] = fixture_memory(fixture, "first");
	server[1] = fixture_memory(fixture, "second");
	server[2] = fixture_memory(fixture, "third");
	put_elf(server[1], 0xa, 0xa);
	put_elf(server[2], 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(call->n_reports, 2);
	assert_string_equal(call->servers[0], "first");
	assert_int_equal(call->outcomes[0], BID_OUTCOME_ABSENT);
	assert_string_equal(call->servers[1], "second");
	assert_int_equal(call->outcomes[1], BID_OUTCOME_FOUND);
	assert_int_equal(memory_server_requests(server[2]), 0);
}

static void test_wrong_build_goes_to_the_next_server(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *wrong, *right;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	wrong = fixture_memory(fixture, "wrong");
	right = fixture_memory(fixture, "right");
	put_elf(wrong, 0xa, 0xb);
	put_elf(right, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "0b0b0b"));
	assert_int_equal(call->outcomes[1], BID_OUTCOME_FOUND);
	assert_int_equal(stats_of(fixture).rejected, 1);
	assert_int_equal(stats_of(fixture).fetched, 1);
}

static void test_only_wrong_builds_end_as_rejected(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *wrong;

	fixture_broker(fixture, &unhedged);
	wrong = fixture_memory(fixture, "wrong");
	fixture_memory(fixture, "empty");
	put_elf(wrong, 0xa, 0xb);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
	/* the server that lacks it has a negative cache entry; the artifact is unknown */
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	assert_int_equal(stats_of(fixture).negative_entries, 1);
}

/* A cut file begins well: only the commit can tell. */
static void test_truncated_is_rejected(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *cut, *whole;
	struct call *call;
	size_t len;
	const void *data = elf_bytes(0xa, &len);

	fixture_broker(fixture, &unhedged);
	cut = fixture_memory(fixture, "cut");
	whole = fixture_memory(fixture, "whole");
	assert_int_equal(memory_server_put(cut, &artifact, data, len - 1000), 0);
	put_elf(whole, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_content(call->fd, 0xa);
}

/* A login page of a megabyte is not downloaded to its end. */
static void test_html_is_rejected_early(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	bid_auto_free char *html = malloc(1 << 20);
	struct held_server *portal;
	struct bid_server *right;
	struct call *call;

	assert_non_null(html);
	memset(html, ' ', 1 << 20);
	memcpy(html, "<!DOCTYPE html>", 15);
	fixture_broker(fixture, &unhedged);
	portal = fixture_held(fixture, "portal");
	right = fixture_memory(fixture, "right");
	put_elf(right, 0xa, 0xa);
	portal->body = html;
	portal->body_len = 1 << 20;
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "not an ELF file"));
	assert_int_equal(portal->ended, BID_OUTCOME_REJECTED);
	assert_in_range(portal->accepted, 0, 64 * 1024);
}

static void test_wrong_build_is_rejected_early(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xb);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
	assert_int_equal(held->ended, BID_OUTCOME_REJECTED);
	assert_in_range(held->accepted, 0, 64 * 1024);
}

/* The partial body of one server must not become the beginning, or the whole, of the next one's file. */
static void test_second_server_starts_an_empty_body(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), other = elf_of(0xb);
	struct held_server *headless, *empty;
	struct bid_server *cut;
	size_t len;
	const void *data = elf_bytes(0xa, &len);
	struct call *call;

	fixture_broker(fixture, &unhedged);
	cut = fixture_memory(fixture, "cut");
	empty = fixture_held(fixture, "empty");
	headless = fixture_held(fixture, "headless");
	assert_int_equal(memory_server_put(cut, &artifact, data, len - 1), 0);
	empty->outcome = BID_OUTCOME_FOUND;
	held_elf(headless, 0xa);
	headless->no_header = true;
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_REJECTED);
	assert_int_equal(call->outcomes[2], BID_OUTCOME_FOUND);

	/* the wrong file is not kept for another id */
	put_elf(cut, 0xb, 0xa);
	assert_int_equal(fetch(fixture, &other, NULL), -EBADMSG);
	assert_int_equal(find(fixture, &other, NULL), -EINPROGRESS);
}

/* Servers limit sizes themselves: an unreachable one may have a smaller file. */
static void test_too_large_is_not_cached_while_others_are_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *large, *other;

	fixture_broker(fixture, &unhedged);
	large = fixture_memory(fixture, "large");
	other = fixture_memory(fixture, "other");
	memory_server_set_default(large, BID_OUTCOME_TOO_LARGE);
	memory_server_set_default(other, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EFBIG);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	assert_int_equal(stats_of(fixture).negative_entries, 0);

	put_elf(other, 0xa, 0xa);
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

static void test_too_large_is_refused_and_cached(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact refused = elf_of(0x1), announced = elf_of(0xa), silent = elf_of(0xb), other = elf_of(0x2);
	struct held_server *held;
	struct bid_server *memory;
	struct call *call;
	unsigned requests;

	fixture_broker(fixture, &(struct bid_broker_config){ .max_size = 100 * 1024, .hedge_ms = HEDGE_NEVER });
	held = fixture_held(fixture, "held");
	memory = fixture_memory(fixture, "memory");
	held->outcome = BID_OUTCOME_TOO_LARGE;
	assert_int_equal(fetch(fixture, &refused, NULL), -EFBIG);

	held_elf(held, 0xa);
	assert_int_equal(fetch(fixture, &announced, &call), -EFBIG);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_TOO_LARGE);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_ABSENT);
	assert_non_null(strstr(call->texts[0], " bytes, the limit is 102400"));
	assert_int_equal(held->accepted, 0);

	held_elf(held, 0xb);
	held->announce = BID_SIZE_UNKNOWN;
	assert_int_equal(fetch(fixture, &silent, &call), -EFBIG);
	assert_string_equal(call->texts[0], "more than the limit of 102400 bytes");
	assert_int_equal(held->accepted, 100 * 1024);
	/* and three responses of the other one: absent */
	assert_int_equal(stats_of(fixture).negative_entries, 3 + 3);
	assert_int_equal(stats_of(fixture).rejected, 0);

	/* cached, with its reason */
	requests = memory_server_requests(memory);
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &refused, NULL), -EFBIG);
	assert_int_equal(memory_server_requests(memory), requests);

	/* an error elsewhere does not hide it */
	held->body = NULL;
	memory_server_set_default(memory, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(fetch(fixture, &other, NULL), -EFBIG);
	assert_int_equal(memory_server_requests(memory), requests + 1);
}

static void test_kind_of_no_server_is_absent(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact kallsyms = request_of(0xa, BID_KIND_KALLSYMS), elf = elf_of(0xa), nothing = { .kind = BID_KIND_ELF };
	struct bid_server *server;
	unsigned ttl = 7;

	fixture_broker(fixture, &unhedged);
	assert_false(bid_broker_has_servers(fixture->broker));
	assert_int_equal(find(fixture, &elf, &ttl), -ENOENT);
	assert_int_equal(ttl, 0);
	assert_int_equal(fetch(fixture, &elf, NULL), -ENOENT);

	server = fixture_memory(fixture, "memory");
	assert_true(bid_broker_has_servers(fixture->broker));
	ttl = 7;
	assert_int_equal(find(fixture, &kallsyms, &ttl), -ENOENT);
	assert_int_equal(ttl, 0);
	assert_int_equal(fetch(fixture, &kallsyms, NULL), -ENOENT);
	assert_true(fetch(fixture, &nothing, NULL) < 0);
	assert_int_equal(memory_server_requests(server), 0);
	assert_int_equal(stats_of(fixture).negative_entries, 0);
}

static void test_read_only_store_downloads_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *server;

	bid_store_free(fixture->store);
	assert_int_equal(bid_store_open(fixture->directory, 0, &fixture->store), 0);
	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(find(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ENOENT);
	assert_int_equal(memory_server_requests(server), 0);
}

struct freeable {
	struct bid_server server;
	bool freed;
};

static void note_free(struct bid_server *server)
{
	((struct freeable *)server)->freed = true;
}

static void test_server_beyond_the_limit_is_freed(void **state)
{
	static const struct bid_server_ops ops = { .free = note_free };
	struct freeable one = { .server = { .ops = &ops, .name = "one too many" } };
	struct fixture *fixture = *state;

	fixture_broker(fixture, &unhedged);
	for (unsigned i = 0; i < BID_CANDIDATES_MAX; i++)
		fixture_memory(fixture, "memory");
	assert_int_equal(bid_broker_add_server(fixture->broker, &one.server), -E2BIG);
	assert_true(one.freed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_downloaded_file_is_a_cache_hit),
		fixture_test(test_first_waiter_finds_a_file_published_meanwhile),
		fixture_test(test_servers_get_requests_in_order),
		fixture_test(test_wrong_build_goes_to_the_next_server),
		fixture_test(test_only_wrong_builds_end_as_rejected),
		fixture_test(test_truncated_is_rejected),
		fixture_test(test_html_is_rejected_early),
		fixture_test(test_wrong_build_is_rejected_early),
		fixture_test(test_second_server_starts_an_empty_body),
		fixture_test(test_too_large_is_refused_and_cached),
		fixture_test(test_too_large_is_not_cached_while_others_are_unknown),
		fixture_test(test_kind_of_no_server_is_absent),
		fixture_test(test_read_only_store_downloads_nothing),
		fixture_test(test_server_beyond_the_limit_is_freed),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
