// SPDX-License-Identifier: LGPL-2.1-or-later
/* How callers of the broker share a download, wait for it, and watch it. */
#include "held_server.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/download.h"

#define WAIT 1000
static const struct bid_broker_config hasty = { .wait_ms = WAIT };

static void test_200_callers_share_one_download(void **state)
{
	enum { N = 200 };
	struct fixture *fixture = *state;
	bid_auto_free struct caller *callers = calloc(N, sizeof(*callers));
	bid_auto_free bool *seen = calloc(4096, sizeof(*seen));
	struct held_server *held;

	assert_true(callers && seen);
	fixture_broker(fixture, &unhedged);
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	for (int i = 0; i < N; i++)
		caller_start(&callers[i], fixture, 0xa);
	wait_for_waiters(fixture, N);
	assert_int_equal(stats_of(fixture).downloads, 1);
	held_hold(held, HOLD_NOWHERE);
	for (int i = 0; i < N; i++) {
		struct call *call = callers[i].call;

		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		assert_int_equal(call_wait(call), 0);
		assert_in_range(call->fd, 0, 4095);
		assert_false(seen[call->fd]);
		seen[call->fd] = true;
	}
	assert_int_equal(held->requests, 1);
	assert_int_equal(stats_of(fixture).fetched, 1);
	assert_int_equal(stats_of(fixture).waiters, 0);
}

static void stand_still(void *user, const struct bid_result *result)
{
	pthread_mutex_lock(user);
	pthread_mutex_unlock(user);
}

/* A commit that a slow disk delays blocks no other download. */
static void test_slow_commit_delays_no_other_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact large = elf_of(0xa), other = elf_of(0xb), nowhere = elf_of(0x1);
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	struct bid_server *server;
	uint64_t waiter_id;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	put_elf(server, 0xb, 0xb);
	pthread_mutex_lock(&gate);
	assert_int_equal(bid_broker_new_waiter(fixture->broker, stand_still, &gate, &waiter_id), 0);
	bid_broker_fetch(fixture->broker, waiter_id, &large);
	wait_for_waiters(fixture, 0);
	assert_int_equal(fetch(fixture, &nowhere, NULL), -ENOENT);
	assert_int_equal(fetch(fixture, &other, NULL), 0);
	pthread_mutex_unlock(&gate);
	/* before the gate is gone */
	fixture_end_broker(fixture);
}

/* Sections of a stored file come from disk workers, two at most. */
static void test_derivation_delays_no_hit_and_no_small_download(void **state)
{
	static const char *const names[] = { ".text", ".dynsym", ".comment" };
	struct fixture *fixture = *state;
	struct bid_artifact elf = elf_of(0xa), other = elf_of(0xb), section = request_of(0xa, BID_KIND_SECTION);
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	struct bid_subpath *name;
	struct bid_server *server;
	struct call *last = NULL;
	uint64_t waiter_id;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	put_elf(server, 0xb, 0xb);
	assert_int_equal(fetch(fixture, &elf, NULL), 0);
	pthread_mutex_lock(&gate);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(bid_subpath_section(names[i], &name), 0);
		section.subpath = name;
		assert_int_equal(find(fixture, &section, NULL), -EINPROGRESS);
		if (i < 2) {
			assert_int_equal(bid_broker_new_waiter(fixture->broker, stand_still, &gate, &waiter_id), 0);
			bid_broker_fetch(fixture->broker, waiter_id, &section);
			wait_for_waiters(fixture, 0);
		} else {
			last = call_for(fixture, &section);
		}
		bid_subpath_unref(name);
	}
	assert_int_equal(find(fixture, &elf, NULL), 0);
	assert_int_equal(fetch(fixture, &other, NULL), 0);
	assert_false(call_over(last));
	pthread_mutex_unlock(&gate);
	assert_int_equal(call_wait(last), 0);
	/* before the gate is gone */
	fixture_end_broker(fixture);
}

/* The same without holding the download: every interleaving of joining, publishing and finding. */
static void test_200_callers_at_the_end_get_one_answer_each(void **state)
{
	enum { N = 200 };
	struct fixture *fixture = *state;
	bid_auto_free struct caller *callers = calloc(N, sizeof(*callers));
	struct held_server *held;

	assert_non_null(callers);
	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	for (int i = 0; i < N; i++)
		caller_start(&callers[i], fixture, 0xa);
	for (int i = 0; i < N; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		assert_int_equal(call_wait(callers[i].call), 0);
	}
	assert_int_equal(held->requests, 1);
	assert_int_equal(stats_of(fixture).fetched, 1);
}

/* When does the open window end? 0 if none is open. */
static int64_t window_end(struct fixture *fixture)
{
	const struct bid_download *download;
	int64_t end;

	pthread_mutex_lock(&fixture->broker->lock);
	download = TAILQ_FIRST(&fixture->broker->downloads);
	end = download && download->expiry_timer.timers ? download->expires_ms : 0;
	pthread_mutex_unlock(&fixture->broker->lock);
	return end;
}

static void test_callers_leave_at_the_end_of_their_window(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct call *first, *second, *late, *later;
	struct held_server *held;
	int64_t begun, ends[2];
	bool in_time;

	fixture_broker(fixture, &hasty);
	held = fixture_held_elf(fixture, 0xa, HOLD_HEAD);

	/* all callers within the window leave at its end: both join before the first gets its answer */
	begun = now_ms();
	first = call_for(fixture, &artifact);
	ends[0] = window_end(fixture);
	sleep_ms(WAIT / 2);
	second = call_for(fixture, &artifact);
	ends[1] = window_end(fixture);
	in_time = now_ms() - begun < WAIT;
	assert_int_equal(call_wait(first), -ETIMEDOUT);
	if (in_time) {
		assert_int_equal(ends[1], ends[0]);
		assert_int_equal(stats_of(fixture).waiters, 0);
	}
	assert_int_equal(call_wait(second), -ETIMEDOUT);
	assert_true(first->answered_ms - begun >= WAIT - 1);

	/* a caller shortly after the window gets its answer at once */
	late = call_for(fixture, &artifact);
	in_time = now_ms() - begun < WAIT + BID_GRACE_MS;
	assert_true(call_over(late) || !in_time);
	assert_int_equal(call_wait(late), -ETIMEDOUT);

	/* a later caller has a new window: the download goes on without waiters */
	sleep_ms(300);
	begun = now_ms();
	later = call_for(fixture, &artifact);
	assert_int_equal(call_wait(later), -ETIMEDOUT);
	assert_true(later->answered_ms - begun >= WAIT - 1);
	assert_int_equal(held->requests, 1);
	assert_int_equal(held->cancels, 0);
	assert_int_equal(stats_of(fixture).unknown, 4);

	held_hold(held, HOLD_NOWHERE);
	wait_for_no_downloads(fixture);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	assert_int_equal(held->requests, 1);
}

/* A request without waiters leaves the queue of its server, where others wait. */
static void test_queued_caller_leaves_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), in_line = elf_of(0x1);
	struct call *first, *second, *late;
	struct held_server *held;

	fixture_broker(fixture, &hasty);
	held = fixture_held_elf(fixture, 0xa, HOLD_HEAD);
	first = call_for(fixture, &artifact);
	held_wait(held, 1);
	second = call_for(fixture, &in_line);
	assert_int_equal(call_wait(first), -ETIMEDOUT);
	assert_int_equal(call_wait(second), -ETIMEDOUT);
	late = call_for(fixture, &in_line);
	assert_int_equal(call_wait(late), -ETIMEDOUT);
	held_wait_cancels(held, 1);
	held_hold(held, HOLD_NOWHERE);
	wait_for_no_downloads(fixture);
	assert_int_equal(held->requests, 2);
	assert_int_equal(held->cancels, 1);
	assert_int_equal(find(fixture, &in_line, NULL), -EINPROGRESS);
	assert_int_equal(find(fixture, &artifact, NULL), 0);
}

/* A new window does not keep the next one's waiters from the artifact. */
static void test_later_caller_gets_the_continued_download(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &hasty);
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ETIMEDOUT);
	sleep_ms(300);
	fixture_wait_ms(fixture, 2 * PATIENCE_MS);
	call = call_for(fixture, &artifact);
	assert_false(call_over(call));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(held->requests, 1);
}

/* A download that was given up ends with its attempt, perhaps late. A later reader does not wait for that end. */
static void test_reader_after_a_given_up_download_starts_another(void **state)
{
	struct bid_artifact running = elf_of(0xb), queued = elf_of(0xa);
	struct fixture *fixture = *state;
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &hasty);
	held = fixture_held_elf(fixture, 0xa, HOLD_HEAD);
	held->deaf = true;
	call_for(fixture, &running);
	held_wait(held, 1);
	assert_int_equal(fetch(fixture, &queued, NULL), -ETIMEDOUT);
	sleep_ms(BID_GRACE_MS + 50);
	fixture_wait_ms(fixture, 2 * PATIENCE_MS);
	call = call_for(fixture, &queued);
	held_wait_requests(held, 3);
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
}

static void test_timed_out_download_continues(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &hasty);
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	assert_int_equal(fetch(fixture, &artifact, NULL), -ETIMEDOUT);
	sleep_ms(300);
	fixture_wait_ms(fixture, 2 * PATIENCE_MS);
	call = call_for(fixture, &artifact);
	bid_broker_cancel(fixture->broker, call->waiter_id);
	assert_int_equal(call_wait(call), -EINTR);
	assert_int_equal(held->cancels, 0);
	held_hold(held, HOLD_NOWHERE);
	wait_for_no_downloads(fixture);
	assert_int_equal(stats_of(fixture).fetched, 1);
}

static void test_progress_counts_bytes(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_progress progress;
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	fixture_memory(fixture, "empty");
	held = fixture_held_elf(fixture, 0xa, HOLD_MIDDLE);
	call = call_begin(fixture);
	assert_int_equal(bid_broker_progress(fixture->broker, call->waiter_id, &progress), -ENOENT);
	bid_broker_fetch(fixture->broker, call->waiter_id, &artifact);
	held_wait(held, 1);
	assert_int_equal(bid_broker_progress(fixture->broker, call->waiter_id, &progress), 0);
	assert_int_equal(progress.received, held->body_len / 2);
	assert_int_equal(progress.size, held->body_len);
	assert_string_equal(progress.server, "held");
	assert_int_equal(progress.waiters, 1);
	assert_true(bid_id_equal(&progress.artifact.id, &artifact.id));
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
	assert_int_equal(bid_broker_progress(fixture->broker, call->waiter_id, &progress), -ENOENT);
}

struct download_listing {
	unsigned n;
	unsigned stop_at;
	struct bid_progress seen[8];
};

static int list_one(void *user, const struct bid_progress *progress)
{
	struct download_listing *listing = user;

	listing->seen[listing->n++] = *progress;
	return listing->n == listing->stop_at;
}

static void test_each_download_is_listed(void **state)
{
	struct fixture *fixture = *state;
	struct download_listing all = { 0 }, one = { .stop_at = 1 }, none = { 0 };
	struct held_server *held;
	struct call *calls[3];

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_hold(held, HOLD_HEAD);
	for (uint8_t i = 0; i < 3; i++) {
		struct bid_artifact artifact = elf_of(0x20 + i);

		calls[i] = call_for(fixture, &artifact);
	}
	bid_broker_each_download(fixture->broker, list_one, &all);
	bid_broker_each_download(fixture->broker, list_one, &one);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.seen[0].artifact.id.bytes[0], 0x20);
	assert_int_equal(all.seen[2].artifact.id.bytes[0], 0x22);
	assert_int_equal(all.seen[2].size, BID_SIZE_UNKNOWN);
	assert_int_equal(one.n, 1);
	held_hold(held, HOLD_NOWHERE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(call_wait(calls[i]), -ENOENT);
	bid_broker_each_download(fixture->broker, list_one, &none);
	assert_int_equal(none.n, 0);
}

/* A callback may ask for more. */
struct chain {
	struct fixture *fixture;
	struct bid_artifact next;
	struct call *call;
};

static void ask_next(void *user, const struct bid_result *result)
{
	struct chain *chain = user;

	assert_int_equal(result->error, -ENOENT);
	bid_broker_fetch(chain->fixture->broker, chain->call->waiter_id, &chain->next);
}

static void test_callback_may_submit_a_request(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact first = elf_of(0x1);
	struct chain chain = { .fixture = fixture, .next = elf_of(0xa) };
	struct bid_server *server;
	uint64_t waiter_id;

	fixture_broker(fixture, &unhedged);
	server = fixture_memory(fixture, "memory");
	put_elf(server, 0xa, 0xa);
	chain.call = call_begin(fixture);
	assert_int_equal(bid_broker_new_waiter(fixture->broker, ask_next, &chain, &waiter_id), 0);
	bid_broker_fetch(fixture->broker, waiter_id, &first);
	assert_int_equal(call_wait(chain.call), 0);
}

/* Returns the time of the next hedge of the only download, or INT64_MAX without a download. */
static int64_t next_hedge(struct fixture *fixture)
{
	const struct bid_download *download;
	int64_t at;

	pthread_mutex_lock(&fixture->broker->lock);
	download = TAILQ_FIRST(&fixture->broker->downloads);
	at = download ? download->start_timer.at_ms : INT64_MAX;
	pthread_mutex_unlock(&fixture->broker->lock);
	return at;
}

static void hedge_now(struct fixture *fixture)
{
	pthread_mutex_lock(&fixture->broker->lock);
	bid_broker_arm(fixture->broker, &TAILQ_FIRST(&fixture->broker->downloads)->start_timer, 0);
	pthread_mutex_unlock(&fixture->broker->lock);
}

/* As two mounts that name each other: neither would answer before the other. */
static void test_self_request_ends_as_unavailable(void **state)
{
	static const struct bid_broker_config config = { .hedge_ms = 20, .detect_loops = true };
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), own = { .kind = BID_KIND_ELF };
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &config);
	held = fixture_held_elf(fixture, 0xa, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	/* also for the broker's own id, which arrives here as with any request */
	held_wait_requests(held, 2);
	assert_false(call_over(call));
	own.id = fixture->broker->servers[0].loop.id;
	assert_int_equal(find(fixture, &own, NULL), -ENOENT);
	assert_int_equal(call_wait(call), -EHOSTUNREACH);
}

/* The server leads back, and has the artifact itself: an attempt that is younger than hedge_ms goes on. */
static void test_self_request_delivers_its_own_file(void **state)
{
	static const struct bid_broker_config config = { .hedge_ms = 60000, .detect_loops = true };
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa), own = { .kind = BID_KIND_ELF };
	struct held_server *held;
	int64_t begun, first;
	struct call *call;

	fixture_broker(fixture, &config);
	held = fixture_held_elf(fixture, 0xa, HOLD_HEAD);
	call = call_for(fixture, &artifact);
	held_wait(held, 1);
	own.id = fixture->broker->servers[0].loop.id;
	first = next_hedge(fixture);
	sleep_ms(2); /* the next one is later */
	assert_int_equal(find(fixture, &own, NULL), -ENOENT);
	hedge_now(fixture);
	for (begun = now_ms(); next_hedge(fixture) <= first; sleep_ms(1))
		assert_true(now_ms() - begun < PATIENCE_MS);
	held_hold(held, HOLD_NOWHERE);
	assert_int_equal(call_wait(call), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_200_callers_share_one_download),
		fixture_test(test_slow_commit_delays_no_other_download),
		fixture_test(test_derivation_delays_no_hit_and_no_small_download),
		fixture_test(test_200_callers_at_the_end_get_one_answer_each),
		fixture_test(test_callers_leave_at_the_end_of_their_window),
		fixture_test(test_queued_caller_leaves_in_time),
		fixture_test(test_later_caller_gets_the_continued_download),
		fixture_test(test_reader_after_a_given_up_download_starts_another),
		fixture_test(test_timed_out_download_continues),
		fixture_test(test_progress_counts_bytes),
		fixture_test(test_each_download_is_listed),
		fixture_test(test_callback_may_submit_a_request),
		fixture_test(test_self_request_ends_as_unavailable),
		fixture_test(test_self_request_delivers_its_own_file),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
