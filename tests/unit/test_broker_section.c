// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whole files: the files that may have a section, if no server has the section itself. */
#include "held_server.h"

#include <errno.h>
#include <string.h>

#include "broker/download.h"

static const struct bid_broker_config hasty = { .wait_ms = 400 };

/* The section ".comment" of the build @byte; the test gives its subpath back. */
static struct bid_artifact section_of(uint8_t byte)
{
	struct bid_artifact artifact = request_of(byte, BID_KIND_SECTION);
	struct bid_subpath *name;

	assert_int_equal(bid_subpath_section(".comment", &name), 0);
	artifact.subpath = name;
	return artifact;
}

/* Add a server that answers the request for the section, and is held at the head of its second transfer, a whole file. */
static struct held_server *fixture_held_whole_file(struct fixture *fixture)
{
	struct held_server *held = fixture_held(fixture, "held");

	held->hold = HOLD_HEAD;
	held->hold_from = 2;
	return held;
}

static void test_section_is_derived_from_downloaded_file(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct bid_server *server;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &section, &call), 0);
	assert_true(call->size > 0 && call->size < LARGE);
	/* the reports of all three requests, in order */
	assert_int_equal(call->n_reports, 3);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_ABSENT);
	assert_int_equal(call->outcomes[1], BID_OUTCOME_ABSENT);
	assert_int_equal(call->outcomes[2], BID_OUTCOME_FOUND);
	assert_int_equal(memory_server_requests(server), 3);
	assert_int_equal(stats_of(fixture).absent, 0);
	assert_int_equal(find(fixture, &section, NULL), 0);
	bid_artifact_release(&section);
}

static void test_section_of_no_file_is_absent(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa), source_file = request_of(0xa, BID_KIND_SOURCE);
	struct bid_server *one, *other;
	struct bid_subpath *name;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	one = fixture_memory(fixture, "one");
	assert_int_equal(bid_subpath_source("/a.c", &name), 0);
	source_file.subpath = name;
	assert_int_equal(fetch(fixture, &section, &call), -ENOENT);
	assert_int_equal(call->n_reports, 3);
	assert_int_equal(stats_of(fixture).absent, 1);
	/* negative cache entries of the files answer for sections and source files, too */
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &section, &call), -ENOENT);
	assert_int_equal(fetch(fixture, &source_file, &call), -ENOENT);
	assert_int_equal(memory_server_requests(one), 3);
	/* a server without a negative cache entry gets a request */
	other = fixture_memory(fixture, "other");
	bid_broker_set_offline(fixture->broker, false); /* drops the kept result */
	assert_int_equal(fetch(fixture, &source_file, &call), -ENOENT);
	assert_int_equal(call->n_reports, 2);
	assert_int_equal(memory_server_requests(one), 3);
	assert_int_equal(memory_server_requests(other), 1);
	bid_artifact_release(&section);
	bid_artifact_release(&source_file);
}

static void test_outage_starts_no_whole_file(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct bid_server *server;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	memory_server_set_default(server, BID_OUTCOME_UNAVAILABLE);
	assert_int_equal(fetch(fixture, &section, NULL), -EHOSTUNREACH);
	assert_int_equal(memory_server_requests(server), 1);
	bid_artifact_release(&section);
}

/* A dead server beside one that responds does not matter either. */
static void test_dead_server_keeps_the_whole_files(void **state)
{
	static const enum bid_outcome outcomes[] = { BID_OUTCOME_ABSENT, BID_OUTCOME_REFUSED };
	struct fixture *fixture = *state;
	struct bid_server *alive;

	fixture_broker(fixture, &unhedged);
	memory_server_set_default(fixture_memory(fixture, "dead"), BID_OUTCOME_UNAVAILABLE);
	alive = fixture_memory(fixture, "alive");
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		uint8_t byte = (uint8_t)(0xa + i);
		struct bid_artifact section = section_of(byte);
		struct call *call;

		put_elf(alive, byte, byte);
		memory_server_set_default(alive, outcomes[i]);
		assert_int_equal(fetch(fixture, &section, &call), 0);
		assert_true(call->size > 0 && call->size < LARGE);
		bid_artifact_release(&section);
	}
}

/* A section is unknown, and not absent, if one server was unreachable. */
static void test_unknown_section_is_not_absent(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct call *call;

	fixture_broker(fixture, &unhedged);
	memory_server_set_default(fixture_memory(fixture, "dead"), BID_OUTCOME_UNAVAILABLE);
	fixture_memory(fixture, "alive");
	assert_int_equal(fetch(fixture, &section, &call), -EHOSTUNREACH);
	assert_int_equal(call->n_reports, 6);
	bid_artifact_release(&section);
}

/* A server that cannot be reached may have a smaller file: the section is not remembered as too large. */
static void test_too_large_file_and_outage_are_not_cached(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct bid_server *other;
	struct held_server *large;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	large = fixture_held_whole_file(fixture);
	other = fixture_memory(fixture, "other");
	call = call_for(fixture, &section);
	held_wait(large, 1);
	memory_server_set_default(other, BID_OUTCOME_UNAVAILABLE);
	pthread_mutex_lock(&large->lock);
	large->outcome = BID_OUTCOME_TOO_LARGE;
	pthread_mutex_unlock(&large->lock);
	held_hold(large, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), -EFBIG);
	assert_int_equal(find(fixture, &section, NULL), -EINPROGRESS);
	assert_int_equal(stats_of(fixture).negative_entries, 0);
	bid_artifact_release(&section);
}

/* The id of the waiter is the same all the way. */
static void test_cancel_ends_the_download_of_a_whole_file(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct bid_progress progress;
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held = fixture_held_whole_file(fixture);
	call = call_for(fixture, &section);
	held_wait(held, 1);
	assert_false(call_over(call));
	assert_int_equal(bid_broker_progress(fixture->broker, call->waiter_id, &progress), 0);
	assert_int_equal(progress.artifact.kind, BID_KIND_DEBUGINFO);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	assert_true(call_over(call));
	assert_int_equal(call->error, -EINTR);
	held_wait_done(held, 2);
	wait_for_no_downloads(fixture);
	assert_int_equal(held->cancels, 1);
	assert_int_equal(held->requests, 2);
	/* used up */
	assert_int_equal(bid_broker_progress(fixture->broker, call->waiter_id, &progress), -ENOENT);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	bid_artifact_release(&section);
}

static void test_wait_for_whole_file_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct held_server *held;

	fixture_broker(fixture, &hasty);
	held = fixture_held_whole_file(fixture);
	assert_int_equal(fetch(fixture, &section, NULL), -ETIMEDOUT);
	held_hold(held, HOLD_NOWHERE);
	bid_artifact_release(&section);
}

/* A whole file does not extend the wait of the caller of a section. */
static void test_section_and_whole_file_share_one_wait(void **state)
{
	static const struct bid_broker_config config = { .wait_ms = 1000 };
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct held_server *held;
	struct call *call, *whole;

	fixture_broker(fixture, &config);
	held = fixture_held(fixture, "held");
	held->hold = HOLD_HEAD;
	call = call_for(fixture, &section);
	held_wait(held, 1);
	fixture_wait_ms(fixture, 2 * PATIENCE_MS);
	held_hold_from(held, 2);
	held_wait_done(held, 1);
	/* a caller of the whole file has its own wait */
	whole = call_for(fixture, &debuginfo);
	held_wait(held, 2);
	assert_int_equal(call_wait(call), -ETIMEDOUT);
	assert_false(call_over(whole));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(whole), -ENOENT);
	bid_artifact_release(&section);
}

/* End the wait of the caller of a section. */
static void end_wait(struct fixture *fixture)
{
	struct bid_download *download;

	pthread_mutex_lock(&fixture->broker->lock);
	download = TAILQ_FIRST(&fixture->broker->downloads);
	while (!download->whole_file.waiter.download)
		download = TAILQ_NEXT(download, link);
	bid_broker_arm(fixture->broker, &download->expiry_timer, 1);
	pthread_mutex_unlock(&fixture->broker->lock);
}

/* The download of a whole file without waiters leaves the queue of the server. A later caller of the file has a whole wait. */
static void test_queued_section_ends_at_its_limit(void **state)
{
	static const struct bid_broker_config config = { .wait_ms = 2 * PATIENCE_MS };
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO), other = elf_of(0xb);
	struct held_server *held;
	struct call *call, *whole;

	fixture_broker(fixture, &config);
	held = fixture_held(fixture, "held");
	held->hold = HOLD_HEAD;
	call = call_for(fixture, &section);
	held_wait(held, 1);
	call_for(fixture, &other);
	held_hold_from(held, 2);
	held_wait(held, 2);
	held_wait_requests(held, 3);
	end_wait(fixture);
	assert_int_equal(call_wait(call), -ETIMEDOUT);
	held_wait_cancels(held, 1);
	whole = call_for(fixture, &debuginfo);
	assert_false(call_over(whole));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(whole), -ENOENT);
	wait_for_no_downloads(fixture);
	assert_int_equal(held->requests, 4);
	bid_artifact_release(&section);
}

static void test_free_answers_waiting_sections(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held = fixture_held_whole_file(fixture);
	call = call_for(fixture, &section);
	held_wait(held, 1);
	fixture_end_broker(fixture);
	assert_true(call_over(call));
	assert_int_equal(call->error, -EINTR);
	bid_artifact_release(&section);
}

static void test_cancel_before_use(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa);
	struct bid_server *server;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	call = call_begin(fixture);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	bid_broker_fetch(fixture->broker, call->waiter_id, &section);
	assert_true(call_over(call));
	assert_int_equal(call->error, -EINTR);
	assert_int_equal(memory_server_requests(server), 0);
	bid_artifact_release(&section);
}

/* Callers of one section, and one of the whole file, share the download. */
static void test_section_and_file_share_a_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact section = section_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct call *calls[4], *whole;
	struct held_server *held;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held->hold = HOLD_HEAD;
	for (int i = 0; i < 4; i++)
		calls[i] = call_for(fixture, &section);
	held_wait(held, 1);
	whole = call_for(fixture, &debuginfo);
	held_hold_from(held, 2);
	while (stats_of(fixture).downloads > 1)
		sleep_ms(5);
	wait_for_waiters(fixture, 5);
	held_hold(held, HOLD_NOWHERE);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(call_wait(calls[i]), -ENOENT);
		assert_int_equal(calls[i]->n_reports, 3);
	}
	assert_int_equal(call_wait(whole), -ENOENT);
	assert_int_equal(held->requests, 3);
	bid_artifact_release(&section);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_section_is_derived_from_downloaded_file),
		fixture_test(test_section_of_no_file_is_absent),
		fixture_test(test_outage_starts_no_whole_file),
		fixture_test(test_dead_server_keeps_the_whole_files),
		fixture_test(test_unknown_section_is_not_absent),
		fixture_test(test_too_large_file_and_outage_are_not_cached),
		fixture_test(test_cancel_ends_the_download_of_a_whole_file),
		fixture_test(test_wait_for_whole_file_is_bounded),
		fixture_test(test_section_and_whole_file_share_one_wait),
		fixture_test(test_queued_section_ends_at_its_limit),
		fixture_test(test_free_answers_waiting_sections),
		fixture_test(test_cancel_before_use),
		fixture_test(test_section_and_file_share_a_download),
	};

	return cmocka_run_group_tests_name("broker-section", tests, fixture_compile, fixture_clean);
}
